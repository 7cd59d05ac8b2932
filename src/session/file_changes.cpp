// The operations that change files: one after the other per path.

#include "session/file_attempt.hpp"
#include "session/file_texts.hpp"
#include "session/read_limit.hpp"
#include "text/file_kind.hpp"

namespace sandboxd::session {

namespace {
edit_request as_request(const edit_command& command, std::int64_t most) {
    edit_request request;
    request.path = command.path;
    request.old_text = command.old_text;
    request.new_text = command.new_text;
    request.replace_all = command.replace_all;
    request.max_bytes = static_cast<std::uint64_t>(most);
    request.any_bytes = text::kind_of(command.path) == text::file_kind::text;
    return request;
}

/// What an edit came to, as far as it was not made.
std::optional<edit_complaint> complaint_about(const edit_command& command, const edit_result& how,
                                              std::int64_t most) {
    if (how.over_limit) {
        auto text = over_limit_text(how.size, most);
        return edit_complaint{text, text};
    }
    if (how.binary) {
        return edit_complaint{"[Error: [Binary File]]", "[Error: [Binary File]]"};
    }
    if (how.occurrences == 0) {
        return text_absent(command.old_text);
    }
    if (how.occurrences > 1 && !command.replace_all) {
        return text_ambiguous(command.old_text, how.occurrences);
    }
    return std::nullopt;
}

/// An empty file holds the empty text once (contract 9.1.4 calls it a defect that it can't be edited).
task<result<edit_result>> edit_once(sandbox& box, edit_request request) {
    if (!request.old_text.empty()) {
        co_return co_await box.edit(std::move(request));
    }
    const auto path = request.path;
    auto new_text = request.new_text;
    auto how = co_await box.edit(std::move(request));
    if (how && how->empty) {
        if (auto written = co_await box.write(path, std::move(new_text)); !written) {
            co_return written.error();
        }
        how->occurrences = 1;
    }
    co_return how;
}
} // namespace

task<result<write_answer>> live_registry::write(std::string id, std::string path, std::string content) {
    file_call call{"write", std::move(id), path, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    const auto size = content.size();
    result<void> written;
    if (const auto fault = path_fault(path)) {
        written = *fault;
    } else {
        file_operation<void> what = [&path, &content](sandbox& box) { return box.write(path, content); };
        auto outcome = co_await change<void>(call, path, std::move(what));
        if (outcome.refused) {
            co_return *outcome.refused;
        }
        written = std::move(outcome.answer);
    }
    write_answer answer;
    if (written) {
        answer.path = joined_path(policy()->work_dir, path);
        log(call, true, fmt::format("{} bytes", size));
    } else {
        answer.failure = write_failure(written.error());
        log(call, false, *answer.failure);
    }
    co_return answer;
}

task<result<edit_answer>> live_registry::edit(std::string id, edit_command command) {
    file_call call{"edit", std::move(id), command.path, {}, {}, {}};
    if (auto begun = begin(call); !begun) {
        co_return begun.error();
    }
    const auto most = read_limit(*policy());
    std::optional<edit_complaint> complaint;
    std::uint64_t replaced = 0;
    if (const auto fault = path_fault(command.path)) {
        complaint = edit_failure(command.path, *fault);
    } else {
        file_operation<edit_result> what = [&command, most](sandbox& box) {
            return edit_once(box, as_request(command, most));
        };
        auto outcome = co_await change<edit_result>(call, command.path, std::move(what));
        if (outcome.refused) {
            co_return *outcome.refused;
        }
        if (outcome.answer) {
            complaint = complaint_about(command, *outcome.answer, most);
            replaced = outcome.answer->occurrences;
        } else {
            complaint = edit_failure(command.path, outcome.answer.error());
        }
    }
    edit_answer answer;
    if (complaint) {
        answer.failure = std::move(complaint->shown);
        log(call, false, complaint->logged);
    } else {
        answer.path = joined_path(policy()->work_dir, command.path);
        answer.occurrences = static_cast<std::int64_t>(replaced);
        log(call, true, fmt::format("{} replaced", replaced));
    }
    co_return answer;
}

} // namespace sandboxd::session
