#include "session/shards.hpp"

#include <algorithm>

namespace sandboxd::session {

session_ptr shards::find(std::string_view id) const {
    const auto& one = of(id);
    const std::lock_guard lock(one.mutex);
    const auto at = one.by_id.find(id);
    return at == one.by_id.end() ? nullptr : at->second;
}

session_ptr shards::insert(const session_ptr& fresh) {
    auto& one = of(fresh->record.id);
    const std::lock_guard lock(one.mutex);
    const auto [at, inserted] = one.by_id.try_emplace(fresh->record.id, fresh);
    return inserted ? nullptr : at->second;
}

void shards::erase(const session_ptr& gone) {
    auto& one = of(gone->record.id);
    const std::lock_guard lock(one.mutex);
    const auto at = one.by_id.find(gone->record.id);
    if (at != one.by_id.end() && at->second == gone) {
        one.by_id.erase(at);
    }
}

std::vector<session_ptr> shards::unsorted() const {
    std::vector<session_ptr> found;
    for (const auto& one : shards_) {
        const std::lock_guard lock(one.mutex);
        for (const auto& [id, each] : one.by_id) {
            found.push_back(each);
        }
    }
    return found;
}

std::vector<session_ptr> shards::all() const {
    auto found = unsorted();
    std::ranges::sort(found, {}, [](const session_ptr& each) { return each->record.order; });
    return found;
}

} // namespace sandboxd::session
