#pragma once

#include <chrono>
#include <memory>

namespace sandboxd::core {

/// Where time comes from: steady for every interval and deadline, wall only for what is shown or stored.
/// Tests step it. Thread-safe.
class clock {
public:
    virtual ~clock() = default;
    [[nodiscard]] virtual std::chrono::steady_clock::time_point steady() const = 0;
    /// Unix seconds, fractional.
    [[nodiscard]] virtual double wall() const = 0;
};

[[nodiscard]] std::shared_ptr<clock> system_clock();

/// A clock that stands still until it is told otherwise.
class manual_clock : public clock {
public:
    [[nodiscard]] virtual std::chrono::steady_clock::time_point steady() const override = 0;
    [[nodiscard]] virtual double wall() const override = 0;
    /// Both go on.
    virtual void advance(std::chrono::milliseconds by) = 0;
    /// Somebody sets the wall clock, forwards or backwards; the steady one does not notice.
    virtual void step_wall(double seconds) = 0;
};

[[nodiscard]] std::shared_ptr<manual_clock> create_manual_clock(double wall);

} // namespace sandboxd::core
