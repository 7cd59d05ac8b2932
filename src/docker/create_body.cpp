#include "docker/container_spec.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sandboxd::docker {

namespace json = boost::json;

namespace {

json::array strings(const std::vector<std::string>& list) {
    json::array all;
    for (const auto& one : list) {
        all.emplace_back(one);
    }
    return all;
}

json::object members(const text_pairs& list) {
    json::object all;
    for (const auto& [name, value] : list) {
        all[name] = value;
    }
    return all;
}

void set_text(json::object& into, const char* name, const std::string& value) {
    if (!value.empty()) {
        into[name] = value;
    }
}

template <class T>
void set_value(json::object& into, const char* name, const std::optional<T>& value) {
    if (value) {
        into[name] = *value;
    }
}

/// Binds have the daemon make what is not there, Mounts have it refuse; a colon can't be said in Binds.
bool is_told_as_bind(const mount& one) {
    return one.make_source && one.type == mount::kind::bind && !one.read_only &&
           (one.source + one.destination).find(':') == std::string::npos;
}

json::array binds_of(const container_spec& spec) {
    json::array all;
    for (const auto& one : spec.mounts) {
        if (is_told_as_bind(one)) {
            all.emplace_back(one.source + ":" + one.destination);
        }
    }
    return all;
}

json::array mounts_of(const container_spec& spec) {
    json::array all;
    for (const auto& one : spec.mounts) {
        if (is_told_as_bind(one)) {
            continue;
        }
        json::object made;
        made["Type"] = one.type == mount::kind::bind ? "bind" : "volume";
        made["Source"] = one.source;
        made["Target"] = one.destination;
        made["ReadOnly"] = one.read_only;
        all.emplace_back(std::move(made));
    }
    return all;
}

json::array ulimits_of(const container_spec& spec) {
    json::array all;
    for (const auto& one : spec.ulimits) {
        json::object made;
        made["Name"] = one.name;
        made["Soft"] = one.soft;
        made["Hard"] = one.hard;
        all.emplace_back(std::move(made));
    }
    return all;
}

json::object host_config(const container_spec& spec) {
    json::object host;
    host["AutoRemove"] = false;
    set_value(host, "Memory", spec.memory);
    set_value(host, "MemorySwap", spec.memory_swap);
    set_value(host, "NanoCpus", spec.nano_cpus);
    set_value(host, "CpuShares", spec.cpu_shares);
    set_value(host, "PidsLimit", spec.pids);
    set_value(host, "NetworkMode", spec.network_mode);
    set_value(host, "Runtime", spec.runtime);
    set_value(host, "Init", spec.init);
    set_value(host, "OomScoreAdj", spec.oom_score_adj);
    if (!spec.tmpfs.empty()) {
        host["Tmpfs"] = members(spec.tmpfs);
    }
    if (auto binds = binds_of(spec); !binds.empty()) {
        host["Binds"] = std::move(binds);
    }
    if (auto mounts = mounts_of(spec); !mounts.empty()) {
        host["Mounts"] = std::move(mounts);
    }
    if (!spec.security_options.empty()) {
        host["SecurityOpt"] = strings(spec.security_options);
    }
    if (!spec.ulimits.empty()) {
        host["Ulimits"] = ulimits_of(spec);
    }
    if (!spec.log_driver.empty()) {
        json::object log;
        log["Type"] = spec.log_driver;
        host["LogConfig"] = std::move(log);
    }
    return host;
}

} // namespace

std::string create_body(const container_spec& spec) {
    json::object body;
    body["Image"] = spec.image;
    if (spec.entrypoint) {
        body["Entrypoint"] = strings(*spec.entrypoint);
    }
    if (spec.command) {
        body["Cmd"] = strings(*spec.command);
    }
    json::array environment;
    for (const auto& [name, value] : spec.environment) {
        environment.emplace_back(name + "=" + value); // without '=' it would remove the variable
    }
    if (!environment.empty()) {
        body["Env"] = std::move(environment);
    }
    set_text(body, "WorkingDir", spec.working_dir);
    set_text(body, "User", spec.user);
    if (!spec.labels.empty()) {
        body["Labels"] = members(spec.labels);
    }
    body["Tty"] = false;
    body["OpenStdin"] = spec.open_stdin;
    body["StdinOnce"] = false;
    if (!spec.healthcheck) {
        json::object check;
        check["Test"] = strings({"NONE"});
        body["Healthcheck"] = std::move(check);
    }
    set_text(body, "StopSignal", spec.stop_signal);
    set_value(body, "StopTimeout", spec.stop_timeout);
    body["HostConfig"] = host_config(spec);
    return json::serialize(body);
}

} // namespace sandboxd::docker
