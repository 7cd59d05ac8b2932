#include "config/resolve.hpp"

#include "config/size.hpp"
#include "config/text.hpp"

#include <algorithm>
#include <array>

namespace sandboxd::config {
namespace {

using std::string;

template <class T>
const std::optional<T>& either(const std::optional<T>& own, const std::optional<T>& service) {
    return own ? own : service;
}

std::optional<std::uint64_t> as_unsigned(const std::optional<std::int64_t>& value) {
    return value ? std::optional(static_cast<std::uint64_t>(std::max<std::int64_t>(0, *value)))
                 : std::nullopt;
}

result<std::uint64_t> bytes_of(const char* name, const string& text) {
    const auto bytes = parse_size(text);
    if (!bytes) {
        return error{errc::start_failed, string(name) + " " + in_quotes(text) + " is not a size"};
    }
    return *bytes;
}

} // namespace

ceilings effective_ceilings(const settings& service, const runtime_entry& entry) {
    return {either(entry.mem_limit, service.mem_limit),
            either(entry.memswap_limit, service.memswap_limit),
            either(entry.cpus, service.cpus),
            either(entry.cpu_shares, service.cpu_shares),
            either(entry.pids_limit, service.pids_limit),
            either(entry.network_mode, service.network_mode),
            either(entry.oci_runtime, service.oci_runtime)};
}

const runtime_entry* resolve_runtime(const settings& service, const std::optional<string>& alias) {
    const string& wanted = alias && !alias->empty() ? *alias : service.default_runtime;
    const auto found = std::find_if(service.runtimes.begin(), service.runtimes.end(),
                                    [&wanted](const runtime_entry& entry) { return entry.alias == wanted; });
    return found == service.runtimes.end() ? nullptr : &*found;
}

result<void> check_oci_runtimes(const settings& service) {
    // Those that the launcher has an adapter for.
    static constexpr std::array<std::string_view, 3> supported{"runc", "crun", "runsc"};
    const auto check = [](const string& where, const std::optional<string>& name) -> result<void> {
        if (name && std::find(supported.begin(), supported.end(), *name) == supported.end()) {
            return error{errc::invalid, where + "=" + in_quotes(*name) +
                                            " is not valid: with the oci backend use one of " +
                                            joined(supported)};
        }
        return {};
    };
    if (auto ok = check("SANDBOXD_OCI_RUNTIME", service.oci_runtime); !ok) {
        return ok;
    }
    for (const auto& entry : service.runtimes) {
        if (auto ok = check("SANDBOXD_RUNTIMES " + entry.alias + ".oci_runtime", entry.oci_runtime); !ok) {
            return ok;
        }
    }
    return {};
}

std::vector<string> sorted_aliases(const settings& service) {
    std::vector<string> out;
    for (const auto& entry : service.runtimes) {
        out.push_back(entry.alias);
    }
    std::sort(out.begin(), out.end());
    return out;
}

string unknown_runtime_text(const settings& service, std::string_view alias) {
    const auto aliases = sorted_aliases(service);
    const std::vector<std::string_view> words(aliases.begin(), aliases.end());
    return "Unknown runtime " + in_quotes(alias) + ". Allowed: " + joined(words);
}

image_choice image_of(const runtime_entry& entry) {
    using kind = image_choice::kind;
    if (entry.image) {
        return {kind::ready, *entry.image};
    }
    if (entry.definition && entry.definition->image) {
        return {kind::ready, *entry.definition->image};
    }
    if (entry.definition && entry.definition->base_image) {
        return {kind::must_be_built, *entry.definition->base_image};
    }
    return {};
}

bool builds(const runtime_entry& entry) {
    return entry.builtin.has_value() || entry.definition.has_value();
}

string shown_image(const runtime_entry& entry) {
    const auto choice = image_of(entry);
    if (choice.what != image_choice::kind::must_be_built) {
        return choice.image;
    }
    return choice.image + " + " + std::to_string(entry.definition->packages.size()) + " package(s)";
}

string shown_description(const runtime_entry& entry) {
    if (entry.description && !entry.description->empty()) {
        return *entry.description;
    }
    if (!entry.definition) {
        return entry.image.value_or("");
    }
    if (!entry.definition->description.empty()) {
        return entry.definition->description;
    }
    const auto& base = entry.definition->base_image;
    return "built from " + (base ? *base : entry.definition->image.value_or(""));
}

std::optional<std::uint32_t> sandbox_user(const settings& service, const runtime_entry& entry) {
    if (!entry.definition) {
        return std::nullopt;
    }
    if (entry.definition->run_as_uid) {
        return entry.definition->run_as_uid;
    }
    return service.sandbox_uid ? std::optional(static_cast<std::uint32_t>(*service.sandbox_uid))
                               : std::nullopt;
}

std::vector<std::pair<string, string>> container_environment(const runtime_entry& entry, bool unprivileged) {
    std::vector<std::pair<string, string>> out{{"GIT_CONFIG_COUNT", "5"},
                                               {"GIT_CONFIG_KEY_0", "safe.directory"},
                                               {"GIT_CONFIG_VALUE_0", "*"},
                                               {"GIT_CONFIG_KEY_1", "user.name"},
                                               {"GIT_CONFIG_VALUE_1", "Agent"},
                                               {"GIT_CONFIG_KEY_2", "user.email"},
                                               {"GIT_CONFIG_VALUE_2", "agent@sandbox.local"},
                                               {"GIT_CONFIG_KEY_3", "init.defaultBranch"},
                                               {"GIT_CONFIG_VALUE_3", "main"},
                                               {"GIT_CONFIG_KEY_4", "advice.detachedHead"},
                                               {"GIT_CONFIG_VALUE_4", "false"},
                                               {"GIT_TERMINAL_PROMPT", "0"},
                                               {"PYTHONUNBUFFERED", "1"},
                                               {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
                                               {"PIP_NO_INPUT", "1"},
                                               {"PIP_ROOT_USER_ACTION", "ignore"}};
    if (!unprivileged) {
        out.emplace_back("UV_SYSTEM_PYTHON", "1");
    }
    const std::pair<const char*, const char*> rest[]{{"UV_CONCURRENT_DOWNLOADS", "2"},
                                                     {"UV_CONCURRENT_INSTALLS", "2"},
                                                     {"UV_COMPILE_BYTECODE", "1"},
                                                     {"DEBIAN_FRONTEND", "noninteractive"},
                                                     {"NO_COLOR", "1"},
                                                     {"PAGER", "cat"},
                                                     {"GIT_PAGER", "cat"},
                                                     {"LANG", "C.UTF-8"}};
    out.insert(out.end(), std::begin(rest), std::end(rest));
    if (!entry.definition) {
        return out;
    }
    for (const auto& own : entry.definition->env_vars) {
        const auto same = std::find_if(out.begin(), out.end(),
                                       [&own](const auto& pair) { return pair.first == own.first; });
        if (same == out.end()) {
            out.push_back(own);
        } else {
            same->second = own.second;
        }
    }
    return out;
}

std::int64_t nano_cpus(double cpus) noexcept {
    return static_cast<std::int64_t>(cpus * 1e9);
}

result<sandbox_limits> limits_of(const ceilings& of, const std::optional<string>& tmpfs_size) {
    sandbox_limits out;
    if (of.mem_limit) {
        const auto memory = bytes_of("mem_limit", *of.mem_limit);
        const auto both = bytes_of("memswap_limit", of.memswap_limit.value_or(*of.mem_limit));
        if (!memory || !both) {
            return memory ? both.error() : memory.error();
        }
        out.memory_bytes = *memory;
        out.memory_swap_bytes = *both;
    }
    out.cpus = of.cpus;
    out.cpu_shares = as_unsigned(of.cpu_shares);
    out.pids = as_unsigned(of.pids_limit);
    if (tmpfs_size && !tmpfs_size->empty()) {
        out.tmpfs_size = tmpfs_size_option(*tmpfs_size);
        if (!out.tmpfs_size) {
            return error{errc::start_failed, "tmpfs_size " + in_quotes(*tmpfs_size) + " is not a size"};
        }
    }
    return out;
}

std::optional<runtime_definition> definition_to_build(const settings& service, const runtime_entry& entry) {
    if (image_of(entry).what != image_choice::kind::must_be_built) {
        return std::nullopt;
    }
    runtime_definition out = *entry.definition;
    out.work_dir = service.work_dir;
    out.run_as_uid = sandbox_user(service, entry);
    return out;
}

result<sandbox_spec> make_spec(const settings& service, const runtime_entry& entry, string session_id,
                               const std::optional<string>& built_image) {
    auto choice = image_of(entry);
    if (choice.what == image_choice::kind::must_be_built && built_image) {
        choice = {image_choice::kind::ready, *built_image};
    }
    if (choice.what == image_choice::kind::must_be_built) {
        return error{errc::start_failed, "the image of runtime " + in_quotes(entry.alias) +
                                             " would have to be built on " + in_quotes(choice.image) +
                                             ", and this backend does not build images"};
    }
    if (choice.what == image_choice::kind::none || choice.image.empty()) {
        return error{errc::start_failed, "runtime " + in_quotes(entry.alias) + " names no image"};
    }
    const auto limits = effective_ceilings(service, entry);
    auto amounts = limits_of(limits, service.tmpfs_size);
    if (!amounts) {
        return amounts.error();
    }
    sandbox_spec out;
    out.image = choice.image;
    out.limits = std::move(*amounts);
    out.network_mode = limits.network_mode;
    out.oci_runtime = limits.oci_runtime;
    out.work_dir = service.work_dir;
    if (service.workspace_root) {
        out.workspace_dir = *service.workspace_root + "/" + session_id + "/workspace";
    }
    out.session_id = std::move(session_id);
    out.uid = sandbox_user(service, entry);
    out.env = container_environment(entry, out.uid.has_value());
    return out;
}

} // namespace sandboxd::config
