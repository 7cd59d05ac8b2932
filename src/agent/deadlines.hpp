#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sandboxd::agent {

/// Nanoseconds of the monotonic clock.
using instant = std::int64_t;
inline constexpr instant millisecond = 1'000'000;
inline constexpr instant second = 1'000 * millisecond;

enum class deadline_kind : std::uint8_t {
    timeout,  ///< of a command
    drained,  ///< a finished command's pipes were given their grace
    backstop, ///< a supervisor that does not get its tree down
    hello,    ///< a connection that does not say hello
    redial,   ///< the next attempt to dial out
    bridge,   ///< relays are let in again
    stalled,  ///< an unfinished frame on the standard streams
    tidy,     ///< supervisors and memory nobody needs
    orphans,  ///< another look for what a killed supervisor left behind
    leave,    ///< end of the grace at shutdown
};

struct deadline {
    instant at = 0;
    deadline_kind kind{};
    std::uint32_t id = 0; ///< stream or connection
};

/// Deadlines in order. They are never taken out early: the one who gets a stale one finds so and does
/// nothing.
class deadlines {
public:
    void add(const deadline& entry) {
        heap_.push_back(entry);
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    /// Takes the earliest that has passed.
    [[nodiscard]] bool pop(instant now, deadline& out) {
        if (heap_.empty() || heap_.front().at > now) {
            return false;
        }
        out = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), later);
        heap_.pop_back();
        return true;
    }
    /// Milliseconds for epoll_wait until the earliest, rounded up; -1 when there is none.
    [[nodiscard]] int wait_ms(instant now) const {
        if (heap_.empty()) {
            return -1;
        }
        const auto left = heap_.front().at - now;
        if (left <= 0) {
            return 0;
        }
        return static_cast<int>(std::min<instant>((left + millisecond - 1) / millisecond, 60'000));
    }
    [[nodiscard]] std::size_t size() const { return heap_.size(); }
    /// Takes out all that `stale` says nobody waits for; worth it when there are many more than streams.
    template <class Predicate>
    void compact(Predicate stale) {
        std::erase_if(heap_, stale);
        std::make_heap(heap_.begin(), heap_.end(), later);
    }

private:
    static bool later(const deadline& a, const deadline& b) { return a.at > b.at; }

    std::vector<deadline> heap_;
};

} // namespace sandboxd::agent
