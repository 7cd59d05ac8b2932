#include "agent/file_call.hpp"
#include "agent/file_replace.hpp"

#include <cerrno>

namespace sandboxd::agent {

namespace {

struct outcome {
    int failed = 0; ///< an errno, or -1: the target is no file
    mode_t mode = 0;
    std::uint32_t marks = 0;
};

/// Makes the directory of the path where it is missing, and the temporary file in it.
outcome prepare(std::string_view path, replacement& to) {
    if (path.empty()) {
        return {.failed = ENOENT};
    }
    const auto parts = split(path);
    descriptor directory;
    if (parts.name.empty() || parts.name == "." || parts.name == "..") {
        return {.failed = EISDIR};
    }
    if (const int failed = make_directory(parts.directory, directory)) {
        return {.failed = failed, .marks = protocol::parents};
    }
    target where;
    const int failed = find_target(std::move(directory), std::string(parts.name), where);
    const auto mode = where.status.st_mode;
    return {.failed = failed != 0 ? failed : to.begin(std::move(where)), .mode = mode};
}

outcome replace(file_call& call) {
    replacement to;
    auto out = prepare(call.request().path, to);
    if (out.failed != 0) {
        return out;
    }
    std::string_view piece;
    auto status = call.next_input(piece);
    for (; status == file_call::input::piece; status = call.next_input(piece)) {
        if (const int failed = to.append(piece)) {
            return {.failed = failed};
        }
    }
    if (status == file_call::input::broken) {
        return {.failed = ETIMEDOUT};
    }
    const path_lock lock(call.locks(), to.where());
    int failed = call.request().streamed ? to.look_again() : 0;
    failed = failed != 0 ? failed : to.commit();
    return {.failed = failed, .mode = to.where().status.st_mode};
}

} // namespace

void write_file(file_call& call) {
    const auto out = replace(call);
    if (out.failed < 0) {
        call.refuse(protocol::failure_kind::invalid, not_a_file(out.mode));
    } else if (out.failed != 0) {
        call.fail(out.failed, out.marks);
    } else {
        call.succeed();
    }
}

} // namespace sandboxd::agent
