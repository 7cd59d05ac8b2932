// The operations that look at files.

#include "core/utf8.hpp"
#include "session/file_attempt.hpp"
#include "session/file_texts.hpp"
#include "session/read_limit.hpp"

namespace sandboxd::session {

namespace {
/// The root as a sandbox takes it: "." for the work directory.
std::string glob_root(std::string path) {
    return path.empty() || path == "/" ? "." : path;
}

std::string grep_root(const std::optional<std::string>& path) {
    return path && !path->empty() ? *path : ".";
}
} // namespace

std::string live_registry::next_file_call() {
    // Not a run id (contract 1.2.1), so that none can be stopped or taken for one.
    return "file " + std::to_string(next_file_call_++);
}

/// The text of a file in the sandbox. errc::timeout past the ceiling.
task<result<std::string>> live_registry::show_file(file_call& call, const file_content& file,
                                                   const read_command& command) {
    auto shown = co_await texts_.lines(command.path, file.bytes, command.offset, command.limit, call.give_up);
    if (!shown) {
        co_return past_ceiling(call);
    }
    co_return *shown ? std::move(**shown) : "[Error: " + shown->error().message + "]";
}

task<result<std::string>> live_registry::read(std::string id, read_command command) {
    file_call call{"read", std::move(id), command.path, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    const auto most = read_limit(*policy());
    std::string content;
    if (const auto fault = path_fault(command.path)) {
        content = read_failure(command.path, *fault);
    } else {
        file_operation<file_content> what = [&command, most](sandbox& box) {
            return box.read(command.path, static_cast<std::uint64_t>(most));
        };
        auto file = co_await look<file_content>(call, std::move(what));
        if (file.refused) {
            co_return *file.refused;
        }
        if (!file.answer) {
            content = read_failure(command.path, file.answer.error());
        } else if (file.answer->over_limit) {
            content = over_limit_text(file.answer->size, most);
        } else {
            auto shown = co_await show_file(call, *file.answer, command);
            if (!shown) {
                co_return shown.error();
            }
            content = std::move(*shown);
        }
    }
    content = core::to_utf8(std::move(content)); // causes and paths are bytes
    log(call, !is_error_text(content), fmt::format("{} chars", core::count_characters(content)));
    co_return content;
}

task<result<std::string>> live_registry::read_bytes(std::string id, std::string path) {
    file_call call{"read_bytes", std::move(id), path, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    std::string bytes;
    if (!path_fault(path)) {
        const auto most = static_cast<std::uint64_t>(read_limit(*policy()));
        file_operation<file_content> what = [&path, most](sandbox& box) { return box.read(path, most); };
        auto file = co_await look<file_content>(call, std::move(what));
        if (file.refused) {
            co_return *file.refused;
        }
        if (file.answer && !file.answer->over_limit) {
            bytes = std::move(file.answer->bytes);
        }
    }
    log(call, !bytes.empty(), fmt::format("{} bytes", bytes.size()));
    co_return bytes;
}

task<result<bool>> live_registry::exists(std::string id, std::string path) {
    file_call call{"exists", std::move(id), path, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    bool found = false;
    if (!path_fault(path)) {
        file_operation<bool> what = [&path](sandbox& box) { return box.exists(path); };
        auto answer = co_await look<bool>(call, std::move(what));
        if (answer.refused) {
            co_return *answer.refused;
        }
        found = answer.answer.has_value() && *answer.answer;
    }
    log(call, true, found ? "found" : "missing");
    co_return found;
}

task<result<file_listing>> live_registry::ls(std::string id, std::string path) {
    file_call call{"ls", std::move(id), path, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    file_listing all;
    if (!path_fault(path)) {
        file_operation<file_listing> what = [&path](sandbox& box) { return box.ls(path); };
        auto answer = co_await look<file_listing>(call, std::move(what));
        if (answer.refused) {
            co_return *answer.refused;
        }
        if (answer.answer) {
            all = std::move(*answer.answer);
        }
    }
    log(call, true, fmt::format("{} entries", all.entries.size()));
    co_return all;
}

task<result<file_listing>> live_registry::glob(std::string id, glob_request command) {
    file_call call{"glob", std::move(id), command.pattern + " in " + command.path, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    command.path = glob_root(std::move(command.path));
    file_listing all;
    if (!path_fault(command.path)) {
        file_operation<file_listing> what = [&command](sandbox& box) { return box.glob(command); };
        auto answer = co_await look<file_listing>(call, std::move(what));
        if (answer.refused) {
            co_return *answer.refused;
        }
        if (answer.answer) {
            all = std::move(*answer.answer);
        }
    }
    log(call, true, fmt::format("{} matches", all.entries.size()));
    co_return all;
}

task<result<grep_answer>> live_registry::grep(std::string id, grep_command command) {
    file_call call{"grep", std::move(id), command.pattern, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    grep_request request{command.pattern, grep_root(command.path), command.glob, command.ignore_hidden};
    result<grep_result> found = error{};
    if (const auto fault = path_fault(request.path)) {
        found = *fault;
    } else {
        file_operation<grep_result> what = [&request](sandbox& box) { return box.grep(request); };
        auto outcome = co_await look<grep_result>(call, std::move(what));
        if (outcome.refused) {
            co_return *outcome.refused;
        }
        found = std::move(outcome.answer);
    }
    grep_answer answer;
    if (found) {
        answer.matches = std::move(found->matches);
        answer.truncated = found->truncated;
        log(call, true, fmt::format("{} matches", answer.matches.size()));
    } else {
        answer.failure = grep_failure(request.path, found.error());
        log(call, false, *answer.failure);
    }
    co_return answer;
}

} // namespace sandboxd::session
