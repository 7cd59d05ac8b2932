#include "agent/run_ids.hpp"

#include <utility>

namespace sandboxd::agent {

namespace {

/// The host draws run ids at random, so that folding them loses nothing; the multiplications spread ids that
/// are not.
std::uint64_t digest(std::string_view id) {
    std::uint64_t value = 0x9e3779b97f4a7c15U;
    for (const char byte : id) {
        value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
        value ^= value >> 29;
    }
    return value == 0 ? 1 : value;
}

} // namespace

bool run_ids::table::contains(std::uint64_t key) const {
    if (slots_.empty()) {
        return false;
    }
    const auto mask = slots_.size() - 1;
    for (auto at = static_cast<std::size_t>(key) & mask; slots_[at] != 0; at = (at + 1) & mask) {
        if (slots_[at] == key) {
            return true;
        }
    }
    return false;
}

void run_ids::table::add(std::uint64_t key) {
    if (contains(key)) {
        return;
    }
    if ((size_ + 1) * 4 > slots_.size() * 3) {
        std::vector<std::uint64_t> before(slots_.empty() ? 64 : slots_.size() * 2);
        before.swap(slots_);
        size_ = 0;
        for (const auto held : before) {
            if (held != 0) {
                add(held);
            }
        }
    }
    const auto mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(key) & mask;
    while (slots_[at] != 0) {
        at = (at + 1) & mask;
    }
    slots_[at] = key;
    ++size_;
}

void run_ids::rotate(std::int64_t now_seconds) {
    const auto age = now_seconds - young_since_;
    if (age < keep && young_.size() < most / 2) {
        return;
    }
    old_ = age < 2 * keep ? std::move(young_) : table();
    young_ = table();
    young_since_ = now_seconds;
}

bool run_ids::contains(std::string_view id, std::int64_t now_seconds) {
    rotate(now_seconds);
    const auto key = digest(id);
    return young_.contains(key) || old_.contains(key);
}

void run_ids::add(std::string_view id, std::int64_t now_seconds) {
    rotate(now_seconds);
    young_.add(digest(id));
}

} // namespace sandboxd::agent
