#include "config/checked.hpp"

#include "config/catalogue.hpp"
#include "config/size.hpp"
#include "config/table.hpp"
#include "config/text.hpp"

#include <algorithm>

namespace sandboxd::config {
namespace {

using std::string;

const string& label_of(const draft& of, std::string_view name) {
    return of.labels[index_of(name)];
}

bool was_given(const draft& of, std::string_view name) {
    return of.sources[index_of(name)] != source::fallback;
}

error refused(const draft& of, std::string_view name, const string& cause) {
    return error{errc::invalid, label_of(of, name) + ": " + cause};
}

string absolute(const string& path, const host_facts& host) {
    return path.starts_with('/') ? path : host.current_dir + "/" + path;
}

result<void> take_token(draft& of, const host_facts& host) {
    settings& values = of.values;
    if (!values.token_file) {
        if (values.token.empty()) {
            return error{errc::invalid,
                         label_of(of, "token") +
                             " is required: the token must not be empty. Whoever has it can run "
                             "commands on this host, so choose a long random one."};
        }
        return {};
    }
    if (!values.token.empty()) {
        return refused(of, "token_file", "token and token_file are both set; set one of them");
    }
    constexpr std::size_t longest = 4096;
    auto text = host.read_file(*values.token_file, longest + 1);
    if (!text) {
        return refused(of, "token_file", text.error().message);
    }
    if (text->ends_with('\n')) {
        text->pop_back();
        if (text->ends_with('\r')) {
            text->pop_back();
        }
    }
    if (text->empty()) {
        return refused(of, "token_file",
                       in_quotes(*values.token_file) + " is empty: the token must not be empty");
    }
    if (text->size() > longest || text->find_first_of(string("\r\n\0", 3)) != string::npos) {
        return refused(of, "token_file",
                       in_quotes(*values.token_file) + " holds more than one token of one line");
    }
    values.token = std::move(*text);
    of.sources[index_of("token")] = of.sources[index_of("token_file")];
    return {};
}

result<void> take_runtimes(draft& of) {
    settings& values = of.values;
    if (!was_given(of, "runtimes")) {
        values.runtimes = default_runtimes();
    }
    if (values.default_runtime.empty()) {
        values.default_runtime = values.runtimes.front().alias;
        return {};
    }
    std::vector<std::string_view> aliases;
    for (const auto& entry : values.runtimes) {
        aliases.emplace_back(entry.alias);
    }
    if (std::find(aliases.begin(), aliases.end(), values.default_runtime) == aliases.end()) {
        std::sort(aliases.begin(), aliases.end());
        return refused(of, "default_runtime",
                       "default_runtime " + in_quotes(values.default_runtime) + " is not in runtimes (" +
                           joined(aliases) + ")");
    }
    return {};
}

result<void> take_state_dir(draft& of, const environment& variables, const host_facts& host) {
    if (was_given(of, "state_dir")) {
        of.values.state_dir = absolute(of.values.state_dir, host);
        return {};
    }
    const auto variable = [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? string() : found->second;
    };
    // The XDG rules want a relative XDG_STATE_HOME ignored.
    if (host.is_root) {
        of.values.state_dir = "/var/lib/sandboxd";
    } else if (const string state = variable("XDG_STATE_HOME"); state.starts_with('/')) {
        of.values.state_dir = state + "/sandboxd";
    } else if (const string home = variable("HOME"); home.starts_with('/')) {
        of.values.state_dir = home + "/.local/state/sandboxd";
    } else {
        return refused(of, "state_dir", "neither XDG_STATE_HOME nor HOME is set; name a state directory");
    }
    return {};
}

std::optional<clash> sessions_clash(const settings& values) {
    if (values.evict_idle_after && !values.workspace_root) {
        return clash{
            "evict_idle_after",
            "evict_idle_after needs workspace_root: the files of a session put to sleep would be lost"};
    }
    if (values.max_open_sessions && values.max_sessions && *values.max_open_sessions < *values.max_sessions) {
        return clash{"max_open_sessions", "max_open_sessions (" + std::to_string(*values.max_open_sessions) +
                                              ") is below max_sessions (" +
                                              std::to_string(*values.max_sessions) +
                                              "): a resident session is an open one too"};
    }
    return std::nullopt;
}

result<void> check_tls(const draft& of, const host_facts& host) {
    const settings& values = of.values;
    if (values.tls_cert.has_value() != values.tls_key.has_value()) {
        return refused(of, values.tls_cert ? "tls_cert" : "tls_key",
                       "tls_cert and tls_key must be set together");
    }
    constexpr std::size_t enough = 1;
    for (const auto& [name, path] :
         {std::pair{"tls_cert", values.tls_cert}, std::pair{"tls_key", values.tls_key}}) {
        if (!path) {
            continue;
        }
        if (const auto text = host.read_file(*path, enough); !text) {
            return refused(of, name, text.error().message);
        } else if (text->empty()) {
            return refused(of, name, in_quotes(*path) + " is empty");
        }
    }
    return {};
}

/// Swap and memory are one number to the kernel, which refuses a swap limit below the memory limit.
std::optional<clash> swap_clash(const settings& values) {
    const auto below = [](const std::optional<string>& swap, const std::optional<string>& memory) {
        return swap && memory && parse_size(*swap).value_or(0) < parse_size(*memory).value_or(0);
    };
    if (below(values.memswap_limit, values.mem_limit)) {
        return clash{"memswap_limit", "memswap_limit " + in_quotes(*values.memswap_limit) +
                                          " is below mem_limit " + in_quotes(*values.mem_limit)};
    }
    for (const auto& entry : values.runtimes) {
        const auto& swap = entry.memswap_limit ? entry.memswap_limit : values.memswap_limit;
        const auto& memory = entry.mem_limit ? entry.mem_limit : values.mem_limit;
        if (below(swap, memory)) {
            return clash{"runtimes", "entry " + in_quotes(entry.alias) + ": memswap_limit " +
                                         in_quotes(*swap) + " is below mem_limit " + in_quotes(*memory)};
        }
    }
    return std::nullopt;
}

} // namespace

result<void> complete(draft& of, const environment& variables, const host_facts& host) {
    if (auto done = take_token(of, host); !done) {
        return done;
    }
    if (auto done = take_runtimes(of); !done) {
        return done;
    }
    if (auto done = take_state_dir(of, variables, host); !done) {
        return done;
    }
    if (of.values.workspace_root) {
        of.values.workspace_root = absolute(*of.values.workspace_root, host);
    }
    if (!was_given(of, "io_threads")) {
        of.values.io_threads = std::clamp<std::int64_t>(host.cores, 1, find_setting("io_threads")->max);
    }
    return {};
}

std::optional<clash> find_clash(const settings& values) {
    auto found = sessions_clash(values);
    return found ? found : swap_clash(values);
}

result<void> check_together(const draft& of, const host_facts& host) {
    if (const auto found = find_clash(of.values)) {
        return refused(of, found->name, found->cause);
    }
    if (of.values.max_inflight_bytes < of.values.max_body_bytes) {
        return refused(of, "max_inflight_bytes",
                       "max_inflight_bytes (" + std::to_string(of.values.max_inflight_bytes) +
                           ") is below max_body_bytes (" + std::to_string(of.values.max_body_bytes) + ")");
    }
    return check_tls(of, host);
}

} // namespace sandboxd::config
