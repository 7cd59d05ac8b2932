#pragma once

#include "api/call.hpp"
#include "wire/model.hpp"

#include <functional>
#include <string>
#include <typeinfo>
#include <vector>

namespace sandboxd::api {

// The successful answer of a route, as the document has it: another kind is a std::logic_error, a bug found
// by the route's first request. One that is told to be large is counted against the memory that all answers
// may hold together, and refused with 503 when there is none.

[[nodiscard]] task<void> answer_with_json(call& c, std::string json, bool truncated);
[[nodiscard]] task<void> answer_by_worker(call& c, std::function<std::string()> print, bool truncated);
void expect_to_answer(const call& c, openapi::content::kind kind, const std::type_info* model);

/// A model or a list of them, which must stay until this is over: a large one is printed by a worker.
template <class Answer>
[[nodiscard]] task<void> answer_printed(call& c, const Answer& answer, bool truncated) {
    if (wire::weight(answer) > core::worker_pool::most_at_once) {
        return answer_by_worker(c, [&answer] { return wire::to_json(answer); }, truncated);
    }
    return answer_with_json(c, wire::to_json(answer), truncated);
}

/// `truncated`: the list is not complete, and the head says so ("Decided" 11).
template <wire::described Model>
[[nodiscard]] task<void> answer_with(call& c, const Model& model) {
    expect_to_answer(c, openapi::content::kind::json, &typeid(Model));
    return answer_printed(c, model, false);
}
template <wire::described Model>
[[nodiscard]] task<void> answer_with(call& c, const std::vector<Model>& list, bool truncated) {
    expect_to_answer(c, openapi::content::kind::json_list, &typeid(Model));
    return answer_printed(c, list, truncated);
}

/// 200 with the bytes of a file.
[[nodiscard]] task<void> answer_with_bytes(call& c, std::string bytes);

/// 204
[[nodiscard]] task<void> answer_with_nothing(call& c);

} // namespace sandboxd::api
