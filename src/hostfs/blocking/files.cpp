#include "hostfs/blocking/files.hpp"

#include "core/utf8.hpp"
#include "hostfs/blocking/content.hpp"
#include "hostfs/blocking/directory.hpp"
#include "hostfs/blocking/remove.hpp"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace sandboxd::hostfs::blocking {

namespace {

native_failure failure(error_code code, const native_path& path) {
    return native_failure_of(code, path.given);
}

std::string name_of(const native_path& path) {
    const auto slash = path.normalized.rfind('/');
    return path.normalized.substr(slash + 1);
}

/// Nothing for an entry that has vanished meanwhile.
os_result<std::optional<file_entry>> entry_of(int directory, std::string name, const std::string& above) {
    struct ::stat about{};
    if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) {
            return std::optional<file_entry>();
        }
        return os_code(errno);
    }
    if (S_ISLNK(about.st_mode)) {
        return os_code(ELOOP);
    }
    if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
        return os_code(EOPNOTSUPP);
    }
    if (!core::is_utf8(name)) {
        return os_code(EILSEQ);
    }
    file_entry one;
    one.path = above + "/" + name;
    one.name = std::move(name);
    one.is_dir = S_ISDIR(about.st_mode);
    if (!one.is_dir) {
        one.size = static_cast<std::uint64_t>(about.st_size);
    }
    return std::optional(std::move(one));
}

os_result<std::vector<file_entry>> entries_of(int directory, const std::string& above, time_limit until) {
    std::vector<file_entry> out;
    std::size_t bytes = 0;
    directory_reader names(directory);
    for (;;) {
        if (passed(until)) {
            return os_code(ETIMEDOUT);
        }
        const auto next = names.next();
        if (!next) {
            return next.error();
        }
        if (!*next) {
            return out;
        }
        auto one = entry_of(directory, std::string((*next)->name), above);
        if (!one) {
            return one.error();
        }
        if (*one) {
            bytes += (*one)->path.size() + (*one)->name.size();
            out.push_back(std::move(**one));
        }
        if (out.size() > most_listed || bytes > most_listed_bytes) {
            return os_code(E2BIG);
        }
    }
}

/// Directories made again for one change, when somebody removes them in between. Those of a workspace that is
/// gone itself can't be.
constexpr int most_rounds = 100;

/// What `change(directory, name)` comes to in the directory of `path`, which is made where it is missing. Who
/// removes that directory in between has come first: it is made again.
template <class F>
error_code in_parent(const workspace& in, const native_path& path, time_limit until, F change) {
    const auto [parent, name] = split(path.relative);
    for (int round = 1;; ++round) {
        const auto directory = in.make_directories(parent, until);
        const auto failed = directory ? change(*directory, std::string(name)) : directory.error();
        if (failed != os_code(ENOENT) || round == most_rounds) {
            return failed;
        }
    }
}

} // namespace

native_result<std::string> read(const workspace& in, const native_path& path, std::uint64_t max_bytes,
                                time_limit until) {
    const auto found = in.find(path.relative);
    if (!found) {
        return failure(found.error(), path);
    }
    auto bytes = read_content(*found, max_bytes, until);
    if (!bytes) {
        return failure(bytes.error(), path);
    }
    return std::move(*bytes);
}

native_result<void> write(const workspace& in, const native_path& path, std::string_view content,
                          time_limit until) {
    if (path.relative.empty()) {
        return failure(os_code(EISDIR), path);
    }
    const auto put = [&](const node& directory, const std::string& name) {
        return replace_content(directory, name, content, until);
    };
    if (const auto failed = in_parent(in, path, until, put)) {
        return failure(failed, path);
    }
    return {};
}

file_entry entry_of(const native_path& path, bool is_directory, std::uint64_t size) {
    return {.name = name_of(path),
            .path = path.given,
            .is_dir = is_directory,
            .size = is_directory ? std::nullopt : std::optional(size)};
}

native_result<file_entry> stat(const workspace& in, const native_path& path) {
    if (path.relative.empty()) {
        return entry_of(path, true, 0);
    }
    const auto found = in.find(path.relative);
    if (!found) {
        return failure(found.error(), path);
    }
    if (!found->is_file() && !found->is_directory()) {
        return failure(os_code(EOPNOTSUPP), path);
    }
    return entry_of(path, found->is_directory(), static_cast<std::uint64_t>(found->about.st_size));
}

native_result<std::vector<file_entry>> list(const workspace& in, const native_path& path, time_limit until) {
    const auto found = in.find(path.relative);
    if (!found) {
        return failure(found.error(), path);
    }
    return list_opened(found->handle.get(), path, until);
}

native_result<std::vector<file_entry>> list_opened(int handle, const native_path& path, time_limit until) {
    const auto directory = open_directory(handle);
    if (!directory) {
        return failure(directory.error(), path);
    }
    auto entries = entries_of(directory->get(), path.normalized == "/" ? "" : path.normalized, until);
    if (!entries) {
        return failure(entries.error(), path);
    }
    std::ranges::sort(*entries, {}, &file_entry::name);
    return std::move(*entries);
}

native_result<std::string> realpath(const workspace& in, const native_path& path) {
    const auto found = in.find(path.relative);
    // What is missing, and what would be below a file, is kept as written.
    if (!found && found.error() != os_code(ENOENT) && found.error() != os_code(ENOTDIR)) {
        return failure(found.error(), path);
    }
    return path.normalized;
}

native_result<void> mkdir(const workspace& in, const native_path& path, time_limit until) {
    if (path.relative.empty()) {
        return {};
    }
    const auto make = [&](const node& directory, const std::string& name) {
        if (::mkdirat(directory.handle.get(), name.c_str(), 0777) == 0) {
            return error_code();
        }
        if (errno != EEXIST) {
            return os_code(errno);
        }
        const auto there = in.find(path.relative);
        if (!there) {
            return there.error();
        }
        return there->is_directory() ? error_code() : os_code(EEXIST);
    };
    if (const auto failed = in_parent(in, path, until, make)) {
        return failure(failed, path);
    }
    return {};
}

native_result<void> remove(const workspace& in, const native_path& path, time_limit until) {
    if (path.relative.empty()) {
        return native_failure{refusal::bad_value, "The working directory can't be removed"};
    }
    const auto [parent, name] = split(path.relative);
    const auto directory = in.find_directory(parent);
    if (!directory) {
        return failure(directory.error(), path);
    }
    if (const auto failed = remove_entry(*directory, std::string(name), until)) {
        return failure(failed, path);
    }
    return {};
}

} // namespace sandboxd::hostfs::blocking
