#pragma once

#include "api/call.hpp"
#include "wire/body.hpp"
#include "wire/fault.hpp"
#include "wire/model.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <typeinfo>

namespace sandboxd::api {

/// Bytes of a body read from a sender without a valid token, to give the reference's order of errors
/// (design.md "Decided" 9).
inline constexpr std::uint64_t stranger_body_bytes = 64 * 1024;

/// Reads query and body, in the order of contract 1.1.5, and pushes the faults it finds. Called once, after
/// the path's checks; what it refers to outlives the admission.
using reader = std::function<void(const wire::parsed_body& body, wire::fault_list& faults)>;

/// For routes with neither.
void read_nothing(const wire::parsed_body& body, wire::fault_list& faults);

/// Throws std::logic_error unless the route is told to take this model: a bug, found by its first request.
void expect_to_take(const call& c, const std::type_info& model);

/// Reads the body into `model`, which is set once the request has been admitted.
template <wire::described Model>
[[nodiscard]] reader body_into(const call& c, std::optional<Model>& model) {
    expect_to_take(c, typeid(Model));
    return [&model](const wire::parsed_body& body, wire::fault_list& faults) {
        model = wire::read_model<Model>(body, faults);
    };
}

// The checks of contract 1.1.8 b to d, in its order: JSON, then (session routes) the id, then the token, then
// query and body, the latter only where the route is told to take JSON. False when one failed: the request
// has been answered then. Both throw std::logic_error where the route is told to be another's.

/// For routes that only the service's token opens.
[[nodiscard]] task<bool> admit_service(call& c, reader read);

/// For the routes of one session: the service's token or the session's own. The session exists.
[[nodiscard]] task<bool> admit_session(call& c, reader read);

} // namespace sandboxd::api
