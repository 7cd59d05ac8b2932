#pragma once

#include "core/event.hpp"

#include <memory>
#include <string>

namespace sandboxd::core {

/// One at a time for each key, across suspensions; in no certain order. Thread-safe; turns may outlive it.
class turns {
public:
    turns();

    /// Having it: its destruction lets the next one go on.
    class turn;

    /// Waits until nobody has the turn of this key. Any executor.
    [[nodiscard]] task<turn> take(std::string key = {});

private:
    struct state;
    std::shared_ptr<state> state_;
};

class turns::turn {
public:
    turn(turn&&) noexcept = default;
    turn& operator=(turn&&) = delete;
    ~turn();

private:
    friend class turns;
    turn(std::shared_ptr<state> of, std::string key);

    std::shared_ptr<state> of_; ///< null when moved from
    std::string key_;
};

} // namespace sandboxd::core
