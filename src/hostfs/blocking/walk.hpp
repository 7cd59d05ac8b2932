#pragma once

#include "core/fd.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace sandboxd::hostfs::blocking {

using boost::system::error_code;
template <class T>
using os_result = boost::system::result<T>;

[[nodiscard]] error_code os_code(int errnum) noexcept;

/// When an operation gives up with ETIMEDOUT (contract N16.27).
using time_limit = std::chrono::steady_clock::time_point;
[[nodiscard]] bool passed(time_limit until) noexcept;

/// How a path is walked: by openat2, or one component at a time where a kernel or a system-call filter
/// doesn't have it. The answers are the same.
enum class walk_kind { kernel, components };
/// Probed once.
[[nodiscard]] walk_kind best_walk() noexcept;

/// Something found in a workspace: a handle to it (O_PATH: nothing has been opened) and what it is.
struct node {
    core::unique_fd handle;
    struct stat about{};

    [[nodiscard]] bool is_directory() const noexcept { return S_ISDIR(about.st_mode); }
    [[nodiscard]] bool is_file() const noexcept { return S_ISREG(about.st_mode); }
};

/// The directory a session works in, as the host sees it.
class workspace {
public:
    /// `<root>/<id>/workspace`. Links are followed in `root` only. ENOENT when there is none, or `id` is no
    /// name (contract 1.2.1).
    [[nodiscard]] static os_result<workspace> open(const std::string& root, const std::string& id,
                                                   walk_kind how = best_walk());

    /// What a relative path names ("" is the workspace itself); it holds no empty, "." or ".." component.
    /// ELOOP for a link anywhere on it, the last component included; EXDEV behind a mount point; ENOTDIR
    /// below what is no directory.
    [[nodiscard]] os_result<node> find(std::string_view relative) const;

    /// find() for what must be a directory: ENOTDIR for anything else.
    [[nodiscard]] os_result<node> find_directory(std::string_view relative) const;

    /// find_directory(), with the directories that are missing made (0777 less the umask). ETIMEDOUT leaves
    /// those that were made.
    [[nodiscard]] os_result<node> make_directories(std::string_view relative, time_limit until) const;

private:
    workspace(core::unique_fd top, dev_t device, walk_kind how)
        : top_(std::move(top)), device_(device), how_(how) {}
    [[nodiscard]] os_result<node> child(int directory, const std::string& name) const;
    [[nodiscard]] os_result<node> child_or_new(int directory, const std::string& name) const;
    [[nodiscard]] os_result<node> find_by_kernel(int directory, const std::string& relative) const;
    [[nodiscard]] os_result<node> find_by_components(std::string_view relative) const;

    core::unique_fd top_;
    dev_t device_;
    walk_kind how_;
};

/// Opens the regular file or the directory that `found` is, exactly that one, for reading; EOPNOTSUPP for
/// anything else, EISDIR for a directory when a file is wanted, ENOTDIR the other way round. Needs /proc for
/// files.
[[nodiscard]] os_result<core::unique_fd> open_file(const node& found);
[[nodiscard]] os_result<core::unique_fd> open_directory(const node& found);
[[nodiscard]] os_result<core::unique_fd> open_directory(int handle);

} // namespace sandboxd::hostfs::blocking
