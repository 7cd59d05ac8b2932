#pragma once

#include "session/service.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace sandboxd::test {

/// A registry with a workspace root, where idle sessions make way after a minute.
struct sleeping_fixture : with_host {
    temporary_directory root;

    [[nodiscard]] settings config(std::optional<std::int64_t> max_sessions) const {
        auto made = test_settings();
        made.workspace_root = root.path().string();
        made.max_sessions = max_sessions;
        made.evict_idle_after = 60;
        return made;
    }
};

inline session::open_request reusing(const std::string& id) {
    auto request = named(id);
    request.reuse = true;
    return request;
}

inline std::string failure(const result<session::opened>& answer) {
    return answer ? "opened" : std::string(name_of(answer.error().code)) + ": " + answer.error().message;
}

inline std::size_t hibernated_records(service& service, store::session_store& store) {
    const auto all = *service.get(store.load());
    return static_cast<std::size_t>(std::ranges::count_if(
        all.sessions, [](const auto& one) { return one.session.state == store::session_state::hibernated; }));
}

} // namespace sandboxd::test
