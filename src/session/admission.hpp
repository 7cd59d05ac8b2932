#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace sandboxd::session {

/// Counts the places: resident sandboxes with those being started (N16.6), open sessions, sessions per
/// tenant. All of a session's places are taken at once or not at all. Thread-safe.
class admission {
public:
    /// Checked in the order of contract 1.4.3: open ceiling, tenant ceiling, resident ceiling. errc::capacity
    /// with the contract's text.
    [[nodiscard]] result<void> enter(const std::optional<std::string>& tenant, const settings& limits);

    /// For sessions found at start: they stand, whatever the ceilings are now.
    void enter_unchecked(const std::optional<std::string>& tenant);

    void leave(const std::optional<std::string>& tenant);

    [[nodiscard]] std::int64_t resident() const;
    [[nodiscard]] std::int64_t open() const;

private:
    void take(const std::optional<std::string>& tenant);

    mutable std::mutex mutex_;
    std::int64_t resident_ = 0;
    std::int64_t open_ = 0;
    std::map<std::string, std::int64_t> tenants_;
};

} // namespace sandboxd::session
