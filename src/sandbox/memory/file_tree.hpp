#pragma once

#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace sandboxd::sandboxes::memory {

/// The files of a made-up sandbox, as the seam's file operations see them: directories and regular files, no
/// links and no owners. Thread-safe.
class file_tree {
public:
    /// `work_dir` is absolute and exists from the start, as does /tmp.
    explicit file_tree(std::string_view work_dir);

    [[nodiscard]] result<file_content> read(std::string_view path, std::uint64_t max_bytes) const;
    [[nodiscard]] result<void> write(std::string_view path, std::string content);
    [[nodiscard]] result<edit_result> edit(const edit_request& request);
    [[nodiscard]] bool exists(std::string_view path) const;
    [[nodiscard]] result<file_listing> ls(std::string_view path) const;
    [[nodiscard]] result<file_listing> glob(const glob_request& request) const;
    [[nodiscard]] result<grep_result> grep(const grep_request& request) const;

private:
    struct node {
        bool is_dir = false;
        std::string bytes;
    };

    [[nodiscard]] std::string absolute(std::string_view path) const;
    [[nodiscard]] result<const node*> regular(const std::string& path) const;
    [[nodiscard]] error missing(const std::string& path) const;
    [[nodiscard]] result<void> make_parents(const std::string& path);

    std::string work_dir_;
    mutable std::mutex mutex_;
    std::map<std::string, node> nodes_; ///< by absolute path, "/" is there
};

} // namespace sandboxd::sandboxes::memory
