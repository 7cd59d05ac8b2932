#include "agent/file_call.hpp"
#include "agent/file_replace.hpp"
#include "agent/text_edit.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace sandboxd::agent {

namespace {

/// A file may grow by an edit beyond the limit for what is read, but not without bound.
constexpr std::size_t most_growth = 64 * 1024 * 1024;

/// How an edit went: a failure (an errno, or -1 for what is no file), or the marks and number of its end.
struct outcome {
    int failed = 0;
    mode_t mode = 0;
    std::uint32_t marks = 0;
    std::uint64_t length = 0;
};

int gather_input(file_call& call, std::string& out) {
    std::string_view piece;
    auto status = call.next_input(piece);
    for (; status == file_call::input::piece; status = call.next_input(piece)) {
        out.append(piece);
    }
    return status == file_call::input::end ? 0 : ETIMEDOUT;
}

int find_file(std::string_view path, target& out) {
    if (path.empty()) {
        return ENOENT;
    }
    const auto parts = split(path);
    descriptor directory;
    if (const int failed = open_directory(parts.directory, directory)) {
        return failed;
    }
    const int failed = find_target(std::move(directory), std::string(parts.name), out);
    return failed == 0 && !out.exists ? ENOENT : failed;
}

/// What the target is now, and the file's bytes, or fewer than its size when there are more than `most`.
outcome read_whole(target& where, std::uint64_t most, std::string& out) {
    constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const descriptor file(openat(where.directory.get(), where.name.c_str(), flags));
    auto& status = where.status;
    if (!file.valid() || fstat(file.get(), &status) != 0) {
        return {.failed = errno};
    }
    if (!S_ISREG(status.st_mode)) {
        return {.failed = -1, .mode = status.st_mode};
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size > most) {
        return {.marks = protocol::over_limit | protocol::size_known, .length = size};
    }
    constexpr std::size_t step = 64 * 1024;
    out.resize(static_cast<std::size_t>(size) + 1); // one more: where the file ends is seen at once
    for (std::size_t done = 0;;) {
        const auto count = read_fully(file.get(), out.data() + done, out.size() - done);
        if (count < 0) {
            return {.failed = errno};
        }
        done += static_cast<std::size_t>(count);
        if (done < out.size()) {
            out.resize(done);
            break;
        }
        if (done > most) {
            return {.marks = protocol::over_limit};
        }
        out.resize(done + step);
    }
    return out.size() > most ? outcome{.marks = protocol::over_limit} : outcome{};
}

int replace_with(target where, std::string_view content) {
    replacement to;
    int failed = to.begin(std::move(where));
    failed = failed != 0 ? failed : to.append(content);
    return failed != 0 ? failed : to.commit();
}

outcome edit(file_call& call) {
    const auto& request = call.request();
    std::string input;
    target where;
    int failed = gather_input(call, input);
    failed = failed == 0 && request.offset > input.size() ? EINVAL : failed;
    failed = failed != 0 ? failed : find_file(request.path, where);
    if (failed != 0) {
        return {.failed = failed, .mode = where.status.st_mode};
    }
    const path_lock lock(call.locks(), where);
    std::string content;
    auto out = read_whole(where, request.length, content);
    if (out.failed != 0 || out.marks != 0) {
        return out;
    }
    if (content.empty()) {
        return {.marks = protocol::empty_file};
    }
    if ((request.options & protocol::any_bytes) == 0 && looks_binary(content)) {
        return {.marks = protocol::binary_file};
    }
    const auto old_size = static_cast<std::size_t>(request.offset);
    const auto texts = std::string_view(input);
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(request.length, SIZE_MAX / 2));
    const auto done = edit_text(content, texts.substr(0, old_size), texts.substr(old_size),
                                (request.options & protocol::replace_all) != 0, most + most_growth);
    out.length = done.occurrences;
    out.failed = done.too_large ? EFBIG : done.applied ? replace_with(std::move(where), done.content) : 0;
    return out;
}

} // namespace

void edit_file(file_call& call) {
    const auto out = edit(call);
    if (out.failed < 0) {
        call.refuse(protocol::failure_kind::invalid, not_a_file(out.mode));
    } else if (out.failed != 0) {
        call.fail(out.failed);
    } else {
        call.succeed(out.marks, out.length);
    }
}

} // namespace sandboxd::agent
