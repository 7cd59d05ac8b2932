#include "session/event_log.hpp"

#include <algorithm>
#include <utility>

namespace sandboxd::session {

namespace {
constexpr std::int64_t largest_block = 65'536;
constexpr std::size_t slack = 56;

/// The entries above `seq` among the last that are kept.
std::vector<event> shown(const std::vector<event>& all, std::int64_t seq) {
    const auto last = all.end();
    const auto oldest = all.size() > store::events_kept
                            ? last - static_cast<std::ptrdiff_t>(store::events_kept)
                            : all.begin();
    return {std::ranges::upper_bound(oldest, last, seq, {}, &event::seq), last};
}
} // namespace

event_log::event_log(std::int64_t limit, std::vector<event> kept)
    : kept_(std::move(kept)), latest_(limit), limit_(limit) {
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
    if (kept_.size() > store::events_kept + slack) {
        kept_.erase(kept_.begin(), kept_.begin() + slack);
    }
    return true;
}

event_page event_log::after(std::int64_t seq) const {
    event_page page;
    page.latest_seq = latest_;
    page.events = shown(kept_, seq);
    return page;
}

event_page event_log::after(std::int64_t seq, std::vector<event> stored) const {
    const auto ours = kept_.empty() ? latest_ + 1 : kept_.front().seq;
    stored.erase(std::ranges::lower_bound(stored, ours, {}, &event::seq), stored.end());
    stored.insert(stored.end(), kept_.begin(), kept_.end());
    event_page page;
    page.latest_seq = latest_;
    page.events = shown(stored, seq);
    return page;
}

void event_log::forget_written() {
    if (kept_.empty()) {
        return;
    }
    partial_ = true;
    std::vector<event> left = unwritten();
    kept_.swap(left);
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
