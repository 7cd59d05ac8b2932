#pragma once

#include "auth/tokens.hpp"

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace sandboxd::session {

/// The tokens of closed sessions, as digests (N16.4). Thread-safe.
class tombstones {
public:
    /// In the order of `closed_at`, or nearly so: forgetting goes from the oldest on.
    void add(const auth::token_digest& one, double closed_at);
    [[nodiscard]] bool contains(const auth::token_digest& one) const;
    void forget_before(double time);

private:
    struct hash {
        std::size_t operator()(const auth::token_digest& one) const noexcept {
            std::size_t value = 0; // a digest is random enough to be its own hash
            std::memcpy(&value, one.data(), sizeof value);
            return value;
        }
    };
    mutable std::mutex mutex_;
    std::unordered_set<auth::token_digest, hash> all_;
    std::deque<std::pair<double, auth::token_digest>> by_age_;
};

} // namespace sandboxd::session
