#pragma once

#include "store/session_store.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::session {

/// What closed sessions left in their slots, by id. Whoever has taken one out owns it. Thread-safe.
class kept_layers {
public:
    using time_point = std::chrono::steady_clock::time_point;

    struct entry {
        store::kept_layer layer;
        slot_record slot;
        time_point since; ///< the layer's own is for the record: the wall clock may be set
    };

    void add(entry one) {
        const std::lock_guard lock(mutex_);
        auto id = one.layer.id;
        all_.insert_or_assign(std::move(id), std::move(one));
    }

    [[nodiscard]] std::optional<entry> take(const std::string& id) {
        const std::lock_guard lock(mutex_);
        const auto at = all_.find(id);
        if (at == all_.end()) {
            return std::nullopt;
        }
        auto found = std::move(at->second);
        all_.erase(at);
        return found;
    }

    [[nodiscard]] bool has(const std::string& id) const {
        const std::lock_guard lock(mutex_);
        return all_.contains(id);
    }

    /// The ids of those kept since before `then`.
    [[nodiscard]] std::vector<std::string> older_than(time_point then) const {
        const std::lock_guard lock(mutex_);
        std::vector<std::string> ids;
        for (const auto& [id, one] : all_) {
            if (one.since < then) {
                ids.push_back(id);
            }
        }
        return ids;
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, entry> all_;
};

} // namespace sandboxd::session
