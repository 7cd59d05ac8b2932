#include "config/entry_text.hpp"

#include "config/runtimes.hpp"

#include <boost/json.hpp>

namespace sandboxd::config {

namespace json = boost::json;

namespace {

template <class T>
void put(json::object& to, std::string_view name, const std::optional<T>& value) {
    if (value) {
        to[name] = json::value_from(*value);
    }
}

json::object object_of(const runtime_definition& definition) {
    json::object out;
    out["name"] = definition.name;
    out["description"] = definition.description;
    put(out, "image", definition.image);
    put(out, "base_image", definition.base_image);
    out["packages"] = json::value_from(definition.packages);
    out["package_manager"] = definition.package_manager;
    out["setup_commands"] = json::value_from(definition.setup_commands);
    json::object variables;
    for (const auto& [name, value] : definition.env_vars) {
        variables[name] = value;
    }
    out["env_vars"] = std::move(variables);
    out["work_dir"] = definition.work_dir;
    out["cache_image"] = definition.cache_image;
    put(out, "run_as_uid", definition.run_as_uid);
    return out;
}

} // namespace

std::string entry_text(const runtime_entry& entry) {
    json::object fields;
    if (entry.definition) {
        fields["runtime"] = object_of(*entry.definition);
    } else {
        put(fields, "image", entry.image);
    }
    put(fields, "description", entry.description);
    put(fields, "mem_limit", entry.mem_limit);
    put(fields, "memswap_limit", entry.memswap_limit);
    put(fields, "cpus", entry.cpus);
    put(fields, "cpu_shares", entry.cpu_shares);
    put(fields, "pids_limit", entry.pids_limit);
    put(fields, "network_mode", entry.network_mode);
    put(fields, "oci_runtime", entry.oci_runtime);
    json::object whole;
    whole[entry.alias] = std::move(fields);
    return json::serialize(whole);
}

result<runtime_entry> parse_entry(std::string_view text) {
    auto entries = parse_runtimes(text, "the stored runtime");
    if (!entries) {
        return entries.error();
    }
    if (entries->size() != 1) {
        return error{errc::invalid, "the stored runtime is not one entry"};
    }
    return std::move(entries->front());
}

} // namespace sandboxd::config
