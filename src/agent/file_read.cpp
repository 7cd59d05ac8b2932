// read, stat and list.

#include "agent/directory.hpp"
#include "agent/file_call.hpp"
#include "agent/file_paths.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace sandboxd::agent {

using protocol::failure_kind;

namespace {

char buffer[largest_report];

/// Fails the call for what kept open_regular() or find_target() from a file.
void fail_open(file_call& call, int failed, mode_t mode) {
    if (failed < 0) {
        call.refuse(failure_kind::invalid, not_a_file(mode));
    } else {
        call.fail(failed);
    }
}

struct listed {
    std::string name;
    bool is_directory = false;
    std::optional<std::uint64_t> size;
};

/// Directories first, then by the bytes of the name (contract 3.8).
bool before(const listed& a, const listed& b) {
    return a.is_directory != b.is_directory ? a.is_directory : a.name < b.name;
}

listed look_at(int directory, const directory_entry& entry) {
    listed out;
    out.name = entry.name;
    struct stat status{};
    if (fstatat(directory, out.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        out.is_directory = S_ISDIR(status.st_mode);
        out.size = static_cast<std::uint64_t>(status.st_size);
    } else {
        out.is_directory = entry.type == DT_DIR;
    }
    return out;
}

} // namespace

/// The size that stat gives is believed only to refuse: a file of /proc says 0, another one may be growing.
void read_file(file_call& call) {
    located where;
    descriptor file;
    struct stat status{};
    int failed = locate(call.request().path, where);
    failed = failed != 0 ? failed : open_regular(where, file, status);
    if (failed != 0) {
        fail_open(call, failed, status.st_mode);
        return;
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto limit = call.request().length;
    if (size > limit) {
        call.succeed(protocol::over_limit | protocol::size_known, size);
        return;
    }
    for (;;) {
        const auto count = read_fully(file.get(), buffer, sizeof buffer);
        if (count < 0) {
            call.fail(errno);
            return;
        }
        const auto bytes = std::string_view(buffer, static_cast<std::size_t>(count));
        if (call.put_so_far() + bytes.size() > limit) {
            call.succeed(protocol::over_limit);
            return;
        }
        call.put(bytes);
        if (bytes.size() < sizeof buffer) {
            call.succeed();
            return;
        }
        if (call.expired()) {
            call.fail(ETIMEDOUT);
            return;
        }
    }
}

void stat_file(file_call& call) {
    located where;
    struct stat status{};
    int failed = locate(call.request().path, where);
    if (failed == 0 && fstatat(where.at(), where.rest.c_str(), &status, 0) != 0) {
        failed = errno;
    }
    if (failed != 0) {
        call.fail(failed);
    } else if (S_ISREG(status.st_mode)) {
        call.succeed(protocol::regular, static_cast<std::uint64_t>(status.st_size));
    } else {
        call.succeed();
    }
}

void list_directory(file_call& call) {
    located where;
    directory_reader directory;
    int failed = locate(call.request().path, where);
    failed = failed != 0 ? failed : directory.open(where.at(), where.rest.c_str(), true);
    if (failed == ENOTDIR) {
        call.refuse(failure_kind::invalid, "Not a directory");
        return;
    }
    if (failed != 0) {
        call.fail(failed);
        return;
    }
    std::vector<listed> all;
    std::uint64_t bytes = 0;
    std::uint32_t marks = 0;
    directory_entry entry;
    while (directory.next(entry)) {
        bytes += protocol::listing_head + entry.name.size();
        if (all.size() == call.request().length || bytes > call.request().limit_bytes ||
            call.expired_now_and_then()) {
            marks = protocol::truncated;
            break;
        }
        all.push_back(look_at(directory.fd(), entry));
    }
    if (directory.error() != 0) {
        call.fail(directory.error());
        return;
    }
    std::sort(all.begin(), all.end(), before);
    std::string record;
    for (const auto& one : all) {
        record.clear();
        protocol::append_record(record, {one.is_directory, one.size, one.name});
        call.put(record);
    }
    call.succeed(marks);
}

} // namespace sandboxd::agent
