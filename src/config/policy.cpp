#include "config/policy.hpp"

#include "config/checked.hpp"
#include "config/resolve.hpp"
#include "config/table.hpp"
#include "config/text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sandboxd::config {

namespace {

using std::string;

/// Calls `visit(name, member of the change, member of the settings)` for each field but `runtimes`.
template <class F>
void for_each_field(F&& visit) {
    using c = policy_change;
    using s = settings;
    visit("default_runtime", &c::default_runtime, &s::default_runtime);
    visit("max_sessions", &c::max_sessions, &s::max_sessions);
    visit("max_open_sessions", &c::max_open_sessions, &s::max_open_sessions);
    visit("max_sessions_per_tenant", &c::max_sessions_per_tenant, &s::max_sessions_per_tenant);
    visit("evict_idle_after", &c::evict_idle_after, &s::evict_idle_after);
    visit("idle_timeout", &c::idle_timeout, &s::idle_timeout);
    visit("execute_timeout", &c::execute_timeout, &s::execute_timeout);
    visit("max_read_bytes", &c::max_read_bytes, &s::max_read_bytes);
    visit("workspace_ttl", &c::workspace_ttl, &s::workspace_ttl);
    visit("container_ttl", &c::container_ttl, &s::container_ttl);
    visit("mem_limit", &c::mem_limit, &s::mem_limit);
    visit("memswap_limit", &c::memswap_limit, &s::memswap_limit);
    visit("cpus", &c::cpus, &s::cpus);
    visit("cpu_shares", &c::cpu_shares, &s::cpu_shares);
    visit("pids_limit", &c::pids_limit, &s::pids_limit);
    visit("tmpfs_size", &c::tmpfs_size, &s::tmpfs_size);
}

/// The same for the fields of a runtime; the third is the service's setting of that name, whose bounds hold.
template <class F>
void for_each_runtime_field(F&& visit) {
    using c = runtime_change;
    using e = runtime_entry;
    using s = settings;
    visit("mem_limit", &c::mem_limit, &e::mem_limit, &s::mem_limit);
    visit("memswap_limit", &c::memswap_limit, &e::memswap_limit, &s::memswap_limit);
    visit("cpus", &c::cpus, &e::cpus, &s::cpus);
    visit("cpu_shares", &c::cpu_shares, &e::cpu_shares, &s::cpu_shares);
    visit("pids_limit", &c::pids_limit, &e::pids_limit, &s::pids_limit);
}

string text_of(const string& value) {
    return value;
}
string text_of(std::int64_t value) {
    return std::to_string(value);
}
string text_of(double value) {
    char digits[64];
    auto shown = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 6);
    if (shown.ec != std::errc()) { // a number of more digits than that
        shown = std::to_chars(digits, digits + sizeof digits, value);
    }
    return {digits, shown.ptr};
}

template <class T>
result<void> clear(std::optional<T>& setting, const string&) {
    setting.reset();
    return {};
}
template <class T>
result<void> clear(T&, const string& label) {
    return error{errc::invalid, label + " must not be null"};
}

/// One field, checked as the setting of that name is at start.
template <class T, class M>
result<void> set(settings& into, const char* name, const string& label, const change_to<T>& change,
                 M settings::* where) {
    if (!change.value) {
        return clear(into.*where, label);
    }
    return assign(*find_setting(name), into, text_of(*change.value), label);
}

/// Notes the first failure and which fields changed.
class applier {
public:
    explicit applier(const settings& to) : answer_{to, {}} {}

    result<changed_policy> run(const policy_change& change) {
        for_each_field([&](const char* name, auto from, auto where) { service(name, change.*from, where); });
        if (failure_) {
            return *failure_;
        }
        for (const auto& [alias, of_runtime] : change.runtimes) {
            runtime(alias, of_runtime);
        }
        if (!failure_ && !resolve_runtime(answer_.values, answer_.values.default_runtime)) {
            failure_ = unknown(answer_.values.default_runtime);
        }
        if (failure_) {
            return *failure_;
        }
        if (const auto clash = find_clash(answer_.values)) {
            return error{errc::invalid, clash->cause};
        }
        return std::move(answer_);
    }

private:
    [[nodiscard]] error unknown(const string& alias) const {
        return {errc::invalid, unknown_runtime_text(answer_.values, alias)};
    }

    template <class T, class M>
    void service(const char* name, const change_to<T>& change, M settings::* where) {
        if (!change.given || failure_) {
            return;
        }
        // An empty name stands for the default elsewhere; here it would be no runtime.
        if (string(name) == "default_runtime" && change.value && text_of(*change.value).empty()) {
            failure_ = unknown("");
            return;
        }
        const auto before = answer_.values.*where;
        if (auto done = set(answer_.values, name, name, change, where); !done) {
            failure_ = done.error();
        } else if (answer_.values.*where != before) {
            answer_.changed.emplace_back(name);
        }
    }

    void runtime(const string& alias, const runtime_change& change) {
        auto& all = answer_.values.runtimes;
        const auto entry = std::ranges::find(all, alias, &runtime_entry::alias);
        if (failure_ || entry == all.end()) {
            failure_ = failure_ ? *failure_ : unknown(alias);
            return;
        }
        for_each_runtime_field([&](const char* name, auto from, auto to, auto like) {
            if (failure_ || !(change.*from).given) {
                return;
            }
            const string label = "runtimes." + alias + "." + name;
            settings scratch;
            if (auto done = set(scratch, name, label, change.*from, like); !done) {
                failure_ = done.error();
            } else if ((*entry).*to != scratch.*like) {
                (*entry).*to = scratch.*like;
                answer_.changed.push_back(label);
            }
        });
    }

    changed_policy answer_;
    std::optional<error> failure_;
};

template <class T>
void take(change_to<T>& into, const change_to<T>& later) {
    if (later.given) {
        into = later;
    }
}

} // namespace

result<changed_policy> apply(const settings& to, const policy_change& change) {
    return applier(to).run(change);
}

void merge(policy_change& into, const policy_change& later) {
    for_each_field([&](const char*, auto field, auto) { take(into.*field, later.*field); });
    for (const auto& [alias, change] : later.runtimes) {
        auto& mine = into.runtimes[alias];
        for_each_runtime_field(
            [&](const char*, auto field, auto, auto) { take(mine.*field, change.*field); });
    }
}

std::vector<string> names_of(const policy_change& change) {
    std::vector<string> names;
    for_each_field([&](const char* name, auto field, auto) {
        if ((change.*field).given) {
            names.emplace_back(name);
        }
    });
    for (const auto& [alias, of_runtime] : change.runtimes) {
        for_each_runtime_field([&](const char* name, auto field, auto, auto) {
            if ((of_runtime.*field).given) {
                names.push_back("runtimes." + alias + "." + name);
            }
        });
    }
    return names;
}

} // namespace sandboxd::config
