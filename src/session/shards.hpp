#pragma once

#include "session/session.hpp"

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sandboxd::session {

/// The sessions by id, spread over locks of their own that are held for one look-up. Thread-safe.
class shards {
public:
    /// Null when there is none, in whatever phase.
    [[nodiscard]] session_ptr find(std::string_view id) const;

    /// The one that is there already, or null when `fresh` went in.
    [[nodiscard]] session_ptr insert(const session_ptr& fresh);

    /// Takes out this very session, not another of the same id.
    void erase(const session_ptr& one);

    /// All, in the order of opening.
    [[nodiscard]] std::vector<session_ptr> all() const;
    [[nodiscard]] std::vector<session_ptr> unsorted() const;

private:
    struct hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view id) const noexcept {
            return std::hash<std::string_view>()(id);
        }
    };
    struct shard {
        mutable std::mutex mutex;
        std::unordered_map<std::string, session_ptr, hash, std::equal_to<>> by_id;
    };
    static constexpr std::size_t count = 64;

    [[nodiscard]] const shard& of(std::string_view id) const { return shards_[hash()(id) % count]; }
    [[nodiscard]] shard& of(std::string_view id) { return shards_[hash()(id) % count]; }

    std::array<shard, count> shards_;
};

} // namespace sandboxd::session
