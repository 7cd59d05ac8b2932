#pragma once

#include "api/call.hpp"
#include "wire/model.hpp"

#include <string>
#include <typeinfo>
#include <vector>

namespace sandboxd::api {

// The successful answer of a route, as the document has it: another kind is a std::logic_error, a bug found
// by the route's first request. One that is told to be large is counted against the memory that all answers
// may hold together, and refused with 503 when there is none.

[[nodiscard]] task<void> answer_with_json(call& c, std::string json, bool truncated);
void expect_to_answer(const call& c, openapi::content::kind kind, const std::type_info* model);

/// `truncated`: the list is not complete, and the head says so ("Decided" 11).
template <wire::described Model>
[[nodiscard]] task<void> answer_with(call& c, const Model& model) {
    expect_to_answer(c, openapi::content::kind::json, &typeid(Model));
    return answer_with_json(c, wire::to_json(model), false);
}
template <wire::described Model>
[[nodiscard]] task<void> answer_with(call& c, const std::vector<Model>& list, bool truncated) {
    expect_to_answer(c, openapi::content::kind::json_list, &typeid(Model));
    return answer_with_json(c, wire::to_json(list), truncated);
}

/// 200 with the bytes of a file.
[[nodiscard]] task<void> answer_with_bytes(call& c, std::string bytes);

/// 204
[[nodiscard]] task<void> answer_with_nothing(call& c);

} // namespace sandboxd::api
