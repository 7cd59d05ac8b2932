#include "config/load.hpp"

#include "config/catalogue.hpp"
#include "config/checked.hpp"
#include "config/table.hpp"
#include "config/text.hpp"

#include <algorithm>
#include <array>

namespace sandboxd::config {
namespace {

using std::string;
using std::string_view;

/// Stores values and remembers where each came from.
class collector {
public:
    collector() : draft_{{}, std::vector<source>(table().size(), source::fallback), {}} {
        for (const auto& info : table()) {
            draft_.labels.push_back(variable_name(info.name));
        }
    }

    result<void> take(const setting_info& info, string_view raw, source from, const string& label) {
        if (auto done = assign(info, draft_.values, raw, label); !done) {
            return done;
        }
        const std::size_t at = index_of(info.name);
        draft_.sources[at] = from;
        draft_.labels[at] = label;
        return {};
    }

    draft release() { return std::move(draft_); }

private:
    draft draft_;
};

result<void> take_file(collector& into, const file_text& file) {
    const auto entries = read_file(file);
    if (!entries) {
        return entries.error();
    }
    for (const auto& entry : *entries) {
        if (auto done = into.take(*find_setting(entry.key), entry.raw, source::file, entry.label); !done) {
            return done;
        }
    }
    return {};
}

result<void> take_environment(collector& into, const environment& variables) {
    for (const auto& info : table()) {
        const string name = variable_name(info.name);
        const auto found = variables.find(name);
        if (found == variables.end()) {
            continue;
        }
        if (found->second.empty() && info.empty == when_empty::as_absent) {
            continue;
        }
        // An empty token is judged later: a token file may hold the real one.
        if (info.name == "token" && found->second.empty()) {
            continue;
        }
        if (auto done = into.take(info, found->second, source::environment, name); !done) {
            return done;
        }
    }
    return {};
}

result<void> take_flags(collector& into, const flags& given) {
    const auto take = [&into](string_view name, const std::optional<string>& value, const char* label) {
        return value ? into.take(*find_setting(name), *value, source::flag, label) : result<void>{};
    };
    if (auto done = take("host", given.host, "--listen"); !done) {
        return done;
    }
    const auto port = given.port ? std::optional(std::to_string(*given.port)) : std::nullopt;
    if (auto done = take("port", port, "--listen"); !done) {
        return done;
    }
    return take("backend", given.backend, "--backend");
}

/// Sentences about variables that look like settings and are none.
std::vector<string> notes_on(const environment& variables) {
    constexpr string_view prefix = "SANDBOXD_";
    // Of the command line, the scripts and the tests.
    constexpr std::array<string_view, 3> others{"SANDBOXD_URL", "SANDBOXD_QUICKSTART_DIR", "SANDBOXD_TEST_"};
    std::vector<string> out;
    for (auto at = variables.lower_bound(prefix); at != variables.end(); ++at) {
        const string_view name = at->first;
        if (!name.starts_with(prefix)) {
            break;
        }
        const auto ours = [name](string_view one) {
            return name == one || (one.ends_with('_') && name.starts_with(one));
        };
        const auto is_named = [name](const setting_info& one) { return variable_name(one.name) == name; };
        if (std::ranges::any_of(table(), is_named) || std::ranges::any_of(others, ours)) {
            continue;
        }
        const auto meant = nearest(name.substr(prefix.size()), setting_names());
        out.push_back(in_quotes(name) + " is no setting and is ignored." +
                      (meant ? " Did you mean " + variable_name(*meant) + "?" : ""));
    }
    return out;
}

} // namespace

string_view name_of(source from) noexcept {
    switch (from) {
    case source::environment:
        return "environment";
    case source::file:
        return "file";
    case source::flag:
        return "flag";
    case source::fallback:
        break;
    }
    return "default";
}

result<loaded_settings> load(const environment& variables, const std::optional<file_text>& file,
                             const flags& command_line, const host_facts& host) {
    collector collected;
    if (file) {
        if (auto done = take_file(collected, *file); !done) {
            return done.error();
        }
    }
    if (auto done = take_environment(collected, variables); !done) {
        return done.error();
    }
    if (auto done = take_flags(collected, command_line); !done) {
        return done.error();
    }
    draft whole = collected.release();
    if (auto done = complete(whole, variables, host); !done) {
        return done.error();
    }
    if (auto done = check_together(whole, host); !done) {
        return done.error();
    }
    return loaded_settings{std::move(whole.values), std::move(whole.sources), notes_on(variables)};
}

} // namespace sandboxd::config
