#include "core/clock.hpp"

#include <mutex>

namespace sandboxd::core {

namespace {

class real final : public clock {
public:
    [[nodiscard]] std::chrono::steady_clock::time_point steady() const override {
        return std::chrono::steady_clock::now();
    }
    [[nodiscard]] double wall() const override {
        const auto since = std::chrono::system_clock::now().time_since_epoch();
        return std::chrono::duration<double>(since).count();
    }
};

class stepped final : public manual_clock {
public:
    explicit stepped(double wall) : wall_(wall) {}
    [[nodiscard]] std::chrono::steady_clock::time_point steady() const override {
        const std::lock_guard lock(mutex_);
        return steady_;
    }
    [[nodiscard]] double wall() const override {
        const std::lock_guard lock(mutex_);
        return wall_;
    }
    void advance(std::chrono::milliseconds by) override {
        const std::lock_guard lock(mutex_);
        steady_ += by;
        wall_ += std::chrono::duration<double>(by).count();
    }
    void step_wall(double seconds) override {
        const std::lock_guard lock(mutex_);
        wall_ += seconds;
    }

private:
    mutable std::mutex mutex_;
    std::chrono::steady_clock::time_point steady_{std::chrono::hours(1)};
    double wall_;
};

} // namespace

std::shared_ptr<clock> system_clock() {
    return std::make_shared<real>();
}

std::shared_ptr<manual_clock> create_manual_clock(double wall) {
    return std::make_shared<stepped>(wall);
}

} // namespace sandboxd::core
