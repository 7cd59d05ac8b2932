#pragma once

#include "core/fd.hpp"
#include "hostfs/outcome.hpp"
#include "hostfs/paths.hpp"
#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::hostfs {

/// What a relative path names in a workspace, found without waiting for a disk: by names and attributes that
/// the kernel has in memory (openat2 with RESOLVE_CACHED), on a file system of this machine's own (a network
/// or user-space one can hang). Follows the rules of blocking::workspace::find(). For I/O threads: a
/// hand-over to a worker and back costs several times what a look into memory does.
class cached_node {
public:
    /// Nothing where a disk would have to be asked, for whatever is not there or no file or directory, and
    /// until learn_file_system() has found the root to be local.
    [[nodiscard]] static std::optional<cached_node> find(const std::string& root, const std::string& id,
                                                         const std::string& relative);

    [[nodiscard]] bool is_directory() const noexcept { return directory_; }

    /// As blocking::stat() and blocking::list() of what was found.
    [[nodiscard]] file_entry entry(const native_path& path) const;
    [[nodiscard]] native_result<std::vector<file_entry>> entries(const native_path& path) const;

    /// The whole of a small regular file; nothing when a part of it is not in memory, it has more than
    /// `max_bytes`, or it is changing.
    [[nodiscard]] std::optional<std::string> content(std::uint64_t max_bytes) const;

    /// Whether it is a small directory that note_listed() was told about within a minute, so that its few
    /// blocks were in memory then.
    [[nodiscard]] bool listed_lately() const noexcept;

private:
    cached_node() = default;
    core::unique_fd handle_;
    std::uint64_t size_ = 0;
    std::uint64_t key_ = 0; ///< of root, id and path
    bool directory_ = false;
    bool no_disk_ = false; ///< on a tmpfs
};

namespace blocking {
/// Finds out, once for each root, whether it is on a file system of this machine. On a worker, like:
void learn_file_system(const std::string& root);
/// This directory has just been listed.
void note_listed(const std::string& root, const std::string& id, const std::string& relative) noexcept;
} // namespace blocking

} // namespace sandboxd::hostfs
