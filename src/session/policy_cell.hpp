#pragma once

#include "sandboxd/config.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace sandboxd::session {

/// The settings in force, exchanged whole while others read them. Thread-safe.
class policy_cell {
public:
    explicit policy_cell(settings first) : now_(std::make_shared<const settings>(std::move(first))) {}

    /// What one reader sees does not change under it.
    [[nodiscard]] std::shared_ptr<const settings> get() const {
        const std::lock_guard lock(mutex_);
        return now_;
    }
    /// For one value; two uses may see two policies.
    [[nodiscard]] std::shared_ptr<const settings> operator->() const { return get(); }

    void set(settings next) {
        auto fresh = std::make_shared<const settings>(std::move(next));
        const std::lock_guard lock(mutex_);
        now_.swap(fresh);
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const settings> now_;
};

} // namespace sandboxd::session
