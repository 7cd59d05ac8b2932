#include "store/session_store.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace sandboxd::store {

namespace {

struct tables {
    std::map<std::int64_t, session_contents> sessions;
    std::map<std::string, std::int64_t> orders; ///< of ids
    std::map<std::string, slot_record> slots;
    std::map<nonce, tombstone> tombstones;
    std::map<std::string, kept_layer> kept;
    std::optional<std::string> policy;

    void operator()(const put_slot& one) { slots[one.slot.slot] = one.slot; }
    void operator()(const drop_slot& one) { slots.erase(one.slot); }
    void operator()(const put_session& one) {
        sessions[one.session.order].session = one.session;
        orders[one.session.id] = one.session.order;
    }
    void operator()(const set_host_door& one) {
        if (const auto at = sessions.find(one.order); at != sessions.end()) {
            at->second.session.host_door = one.host_door;
        }
    }
    void operator()(const set_state& one) {
        if (const auto at = sessions.find(one.order); at != sessions.end()) {
            at->second.session.state = one.state;
            at->second.session.slot = one.slot;
            at->second.session.last_activity = one.last_activity;
        }
    }
    void operator()(const drop_session& one) {
        if (const auto at = sessions.find(one.order); at != sessions.end()) {
            orders.erase(at->second.session.id);
            sessions.erase(at);
        }
    }
    void operator()(const put_tombstone& one) { tombstones[one.stone.token_nonce] = one.stone; }
    void operator()(const purge_done& one) {
        if (const auto at = tombstones.find(one.token_nonce); at != tombstones.end()) {
            at->second.purge.reset();
        }
    }
    void operator()(const prune_tombstones& one) {
        std::erase_if(tombstones, [&one](const auto& each) {
            return each.second.closed_at < one.before && !each.second.purge;
        });
    }
    void operator()(const put_kept& one) { kept[one.layer.id] = one.layer; }
    void operator()(const drop_kept& one) { kept.erase(one.id); }
    void operator()(const put_policy& one) { policy = one.overrides; }
    void operator()(const touch& one) {
        if (const auto at = sessions.find(one.order); at != sessions.end()) {
            at->second.session.last_activity = one.last_activity;
        }
    }
    void operator()(const reserve_events& one) {
        if (const auto at = sessions.find(one.order); at != sessions.end()) {
            at->second.session.event_limit = one.event_limit;
        }
    }
    void operator()(const add_event& one) {
        if (const auto at = sessions.find(one.order); at != sessions.end()) {
            auto& events = at->second.events;
            events.push_back(one.event);
            if (events.size() > events_kept) {
                events.erase(events.begin());
            }
        }
    }
};

class memory_store final : public session_store {
public:
    task<result<contents>> load() override {
        const std::lock_guard lock(mutex_);
        contents all;
        for (const auto& [order, one] : tables_.sessions) {
            all.sessions.push_back(one);
            if (one.session.state == session_state::hibernated) {
                all.sessions.back().events.clear();
            }
        }
        for (const auto& [name, one] : tables_.slots) {
            all.slots.push_back(one);
        }
        for (const auto& [key, one] : tables_.tombstones) {
            all.tombstones.push_back(one);
        }
        std::ranges::sort(all.tombstones, {}, &tombstone::closed_at);
        for (const auto& [id, one] : tables_.kept) {
            all.kept.push_back(one);
        }
        all.policy = tables_.policy;
        co_return all;
    }

    task<result<std::vector<event_record>>> events(std::int64_t order) override {
        const std::lock_guard lock(mutex_);
        const auto at = tables_.sessions.find(order);
        co_return at == tables_.sessions.end() ? std::vector<event_record>() : at->second.events;
    }

    task<result<void>> commit(std::vector<change> changes) override {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            co_return error{errc::unavailable, "the session store is closed"};
        }
        if (auto allowed = check(changes); !allowed) {
            co_return allowed;
        }
        for (const auto& one : changes) {
            std::visit(tables_, one);
        }
        co_return result<void>();
    }

    void close() override {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }

private:
    /// The only change that can be refused is a second session of an id.
    result<void> check(const std::vector<change>& changes) const {
        std::set<std::int64_t> dropped;
        for (const auto& one : changes) {
            if (const auto* drop = std::get_if<drop_session>(&one)) {
                dropped.insert(drop->order);
            } else if (const auto* put = std::get_if<put_session>(&one)) {
                const auto at = tables_.orders.find(put->session.id);
                if (at != tables_.orders.end() && at->second != put->session.order &&
                    !dropped.contains(at->second)) {
                    return error{errc::exists, "session " + put->session.id + " is in the store already"};
                }
            }
        }
        return {};
    }

    std::mutex mutex_;
    tables tables_;
    bool closed_ = false;
};

} // namespace

std::shared_ptr<session_store> create_memory_store() {
    return std::make_shared<memory_store>();
}

} // namespace sandboxd::store
