#pragma once

#include "api/call.hpp"
#include "wire/body.hpp"
#include "wire/fault.hpp"
#include "wire/model.hpp"

#include <cstdint>
#include <optional>

namespace sandboxd::api {

/// Bytes of a body read from a sender without a valid token, to give the reference's order of errors
/// (design.md "Decided" 9).
inline constexpr std::uint64_t stranger_body_bytes = 64 * 1024;

/// Pushes the faults of query and body; called once, after the path's.
using validator = void (*)(const call& c, const wire::parsed_body& body, wire::fault_list& faults);

/// Nothing to check.
void no_checks(const call& c, const wire::parsed_body& body, wire::fault_list& faults);

/// The faults of a body as a model.
template <wire::described Model>
void body_checks(const call&, const wire::parsed_body& body, wire::fault_list& faults) {
    (void)wire::read_model<Model>(body, faults);
}

// The checks of contract 1.1.8 b to d, in its order: JSON, then (session routes) the id, then the token, then
// query and body. Nothing when one failed: the request has been answered then. Otherwise the body, which is
// empty unless `with_body`.

/// For routes that only the service's token opens.
[[nodiscard]] task<std::optional<wire::parsed_body>> admit_service(call& c, bool with_body, validator checks);

/// For the routes of one session: the service's token or the session's own. The session exists.
[[nodiscard]] task<std::optional<wire::parsed_body>> admit_session(call& c, bool with_body, validator checks);

/// The faults were told already, so this can't fail: for reading a model after admission.
template <wire::described Model>
[[nodiscard]] Model model_of(const wire::parsed_body& body) {
    wire::fault_list faults;
    auto model = wire::read_model<Model>(body, faults);
    return std::move(model.value());
}

} // namespace sandboxd::api
