#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace sandboxd::session {

struct session;

/// Counts the places: resident sandboxes with those being started (N16.6), open sessions, sessions per
/// tenant. Whether there is room is decided in room.cpp. A session gives each of its places back once,
/// however often it is told to. Thread-safe.
class admission {
public:
    void enter_open(session& one);
    void enter_resident(session& one);
    void leave_resident(session& one);
    /// Both.
    void leave(session& one);

    [[nodiscard]] std::int64_t resident() const;
    [[nodiscard]] std::int64_t open() const;
    [[nodiscard]] std::int64_t of_tenant(const std::string& tenant) const;

private:
    mutable std::mutex mutex_;
    std::int64_t resident_ = 0;
    std::int64_t open_ = 0;
    std::map<std::string, std::int64_t> tenants_;
};

} // namespace sandboxd::session
