#pragma once

#include "images/keeper.hpp"
#include "sandboxd/config.hpp"
#include "session/types.hpp"
#include "wire/answers.hpp"

namespace sandboxd::api {

// What the registry knows, as the wire shows it.

[[nodiscard]] wire::session_info shown(const session::session_info& session);
[[nodiscard]] wire::service_health shown(session::health numbers);
[[nodiscard]] std::vector<wire::warming_image> shown(const std::vector<images::warming>& all);
[[nodiscard]] wire::session_event shown(const session::event& event);
[[nodiscard]] wire::exec_answer shown(session::exec_answer answer);
[[nodiscard]] wire::run_answer shown(session::run_answer answer);
[[nodiscard]] wire::service_policy shown(const settings& service);

} // namespace sandboxd::api
