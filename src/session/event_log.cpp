#include "session/event_log.hpp"

#include <algorithm>
#include <utility>

namespace sandboxd::session {

namespace {
constexpr std::int64_t largest_block = 65'536;
}

event_log::event_log(std::int64_t limit, std::vector<event> kept) : latest_(limit), limit_(limit) {
    std::ranges::move(kept, std::back_inserter(kept_));
    if (!kept_.empty()) {
        latest_ = std::max(latest_, kept_.back().seq);
    }
    written_ = latest_;
}

bool event_log::add(event one) {
    if (latest_ >= limit_) {
        return false;
    }
    one.seq = ++latest_;
    kept_.push_back(std::move(one));
    if (kept_.size() > store::events_kept) {
        kept_.pop_front();
    }
    return true;
}

event_page event_log::after(std::int64_t seq) const {
    event_page page;
    page.latest_seq = latest_;
    const auto first = std::ranges::upper_bound(kept_, seq, {}, &event::seq);
    page.events.assign(first, kept_.end());
    return page;
}

std::int64_t event_log::wanted_limit() const noexcept {
    return limit_ - latest_ <= block_ / 2 ? latest_ + 2 * block_ : 0;
}

void event_log::reserved(std::int64_t limit) {
    if (limit > limit_) {
        limit_ = limit;
        block_ = std::min(2 * block_, largest_block);
    }
}

std::vector<event> event_log::unwritten() const {
    const auto first = std::ranges::upper_bound(kept_, written_, {}, &event::seq);
    return {first, kept_.end()};
}

} // namespace sandboxd::session
