#include "docker/inspect.hpp"

#include <boost/json/array.hpp>

#include <algorithm>

namespace sandboxd::docker {

namespace {

json::object object_at(const json::object& from, std::string_view name) {
    const auto* found = at(from, name);
    const auto* object = found != nullptr ? found->if_object() : nullptr;
    return object != nullptr ? *object : json::object();
}

class comparison {
public:
    explicit comparison(const json::object& host) : host_(host) {}

    void number(const char* name, const std::optional<std::uint64_t>& wanted) {
        if (!wanted) {
            return;
        }
        const auto found = integer(at(host_, name));
        if (!found || *found != static_cast<std::int64_t>(*wanted)) {
            add(name, std::to_string(*wanted), found ? std::to_string(*found) : "nothing");
        }
    }

    void string(const char* name, const std::optional<std::string>& wanted) {
        if (wanted) {
            const auto found = text_at(host_, name).value_or("");
            if (found != *wanted) {
                add(name, *wanted, found.empty() ? "nothing" : found);
            }
        }
    }

    void listed(const char* name, const std::vector<std::string>& wanted) {
        const auto found = texts(at(host_, name));
        for (const auto& one : wanted) {
            if (std::find(found.begin(), found.end(), one) == found.end()) {
                add(name, one, "not that");
            }
        }
    }

    void add(const char* name, const std::string& wanted, const std::string& found) {
        list.push_back(std::string("the daemon did not take over ") + name + "=" + wanted + " (it has " +
                       found + ")");
    }

    std::vector<std::string> list;

private:
    const json::object& host_;
};

bool has_bind(const json::object& host, const mount& wanted) {
    const auto* binds = at(host, "Binds");
    return binds != nullptr && binds->is_array() && !wanted.read_only &&
           std::any_of(binds->get_array().begin(), binds->get_array().end(), [&](const json::value& one) {
               const auto* text = one.if_string();
               return text != nullptr && *text == wanted.source + ":" + wanted.destination;
           });
}

bool has_mount(const json::object& host, const mount& wanted) {
    if (wanted.make_source && has_bind(host, wanted)) {
        return true;
    }
    const auto* mounts = at(host, "Mounts");
    if (mounts == nullptr || !mounts->is_array()) {
        return false;
    }
    return std::any_of(mounts->get_array().begin(), mounts->get_array().end(), [&](const json::value& one) {
        const auto* object = one.if_object();
        return object != nullptr && text_at(*object, "Target") == wanted.destination &&
               text_at(*object, "Source") == wanted.source &&
               boolean(at(*object, "ReadOnly")).value_or(false) == wanted.read_only;
    });
}

bool has_ulimit(const json::object& host, const ulimit& wanted) {
    const auto* limits = at(host, "Ulimits");
    if (limits == nullptr || !limits->is_array()) {
        return false;
    }
    return std::any_of(limits->get_array().begin(), limits->get_array().end(), [&](const json::value& one) {
        const auto* object = one.if_object();
        return object != nullptr && text_at(*object, "Name") == wanted.name &&
               integer(at(*object, "Soft")) == wanted.soft && integer(at(*object, "Hard")) == wanted.hard;
    });
}

} // namespace

container_details read_container(const json::object& from) {
    container_details found;
    found.id = text_at(from, "Id").value_or("");
    found.name = text_at(from, "Name").value_or("");
    if (!found.name.empty() && found.name.front() == '/') {
        found.name.erase(0, 1);
    }
    found.image_id = text_at(from, "Image").value_or("");
    found.status = text_at(from, "State", "Status").value_or("");
    found.running = boolean(at(from, "State", "Running")).value_or(false);
    found.paused = boolean(at(from, "State", "Paused")).value_or(false);
    found.oom_killed = boolean(at(from, "State", "OOMKilled")).value_or(false);
    found.pid = integer(at(from, "State", "Pid")).value_or(0);
    found.exit_code = integer(at(from, "State", "ExitCode"));
    found.state_error = text_at(from, "State", "Error").value_or("");
    found.started_at = text_at(from, "State", "StartedAt").value_or("");
    found.labels = pairs(at(from, "Config", "Labels"));
    found.exec_ids = texts(at(from, "ExecIDs"));
    found.config = object_at(from, "Config");
    found.host = object_at(from, "HostConfig");
    return found;
}

std::vector<std::string> differences(const container_spec& wanted, const container_details& found) {
    comparison compare(found.host);
    compare.number("Memory", wanted.memory);
    compare.number("MemorySwap", wanted.memory_swap);
    compare.number("NanoCpus", wanted.nano_cpus);
    compare.number("CpuShares", wanted.cpu_shares);
    compare.number("PidsLimit", wanted.pids);
    compare.string("NetworkMode", wanted.network_mode);
    compare.string("Runtime", wanted.runtime);
    compare.listed("SecurityOpt", wanted.security_options);
    for (const auto& [path, options] : wanted.tmpfs) {
        if (text_at(found.host, "Tmpfs", path) != options) {
            compare.add("Tmpfs", path + ":" + options, "not that");
        }
    }
    for (const auto& one : wanted.mounts) {
        if (!has_mount(found.host, one)) {
            compare.add("Mounts", one.source + " at " + one.destination, "not that");
        }
    }
    for (const auto& one : wanted.ulimits) {
        if (!has_ulimit(found.host, one)) {
            compare.add("Ulimits", one.name, "not that");
        }
    }
    return std::move(compare.list);
}

} // namespace sandboxd::docker
