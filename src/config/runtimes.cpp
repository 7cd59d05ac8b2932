#include "config/runtimes.hpp"

#include "config/catalogue.hpp"
#include "config/definition.hpp"
#include "config/size.hpp"
#include "config/table.hpp"
#include "config/text.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace sandboxd::config {
namespace {

using std::string;
using std::string_view;
namespace json = boost::json;

constexpr string_view example =
    " Example: SANDBOXD_RUNTIMES=python=python:3.12-slim,data=@python-datascience;mem_limit=4g";

constexpr std::array<string_view, 10> fields{"image",         "runtime",    "description", "mem_limit",
                                             "memswap_limit", "cpus",       "cpu_shares",  "pids_limit",
                                             "network_mode",  "oci_runtime"};

error fault(string_view label, const string& rest) {
    return error{errc::invalid, string(label) + " " + rest};
}

/// One entry on its way in: what is wrong with it is told with the label and the alias.
struct reader {
    string_view label;
    runtime_entry entry;

    error at_field(string_view field, string_view value, string_view cause) const {
        return fault(label, entry.alias + "." + string(field) + "=" + in_quotes(value) +
                                " is not valid: " + string(cause));
    }
    error at_entry(const string& cause) const {
        return fault(label, "entry " + in_quotes(entry.alias) + " " + cause);
    }

    result<void> set_text(std::optional<string>& into, string_view field, string_view value) {
        if (value.empty()) {
            return at_field(field, value, "it is empty; leave it out to take the service's");
        }
        into = value;
        return {};
    }

    result<void> set_number(std::optional<std::int64_t>& into, string_view field, string_view value) {
        into = parse_integer(value);
        if (!into) {
            return at_field(field, value, "not a whole number");
        }
        const setting_info& bounds = *find_setting(field);
        if (*into < bounds.min || *into > bounds.max) {
            return at_field(field, value,
                            "must be from " + std::to_string(bounds.min) + " to " +
                                std::to_string(bounds.max));
        }
        return {};
    }

    result<void> set_cpus(string_view value) {
        entry.cpus = parse_number(value);
        if (!entry.cpus) {
            return at_field("cpus", value, "not a number");
        }
        if (const auto wrong = cpus_fault(*entry.cpus)) {
            return at_field("cpus", value, *wrong);
        }
        return {};
    }

    /// A text ceiling that is checked as the service's own would be.
    result<void> set_checked(std::optional<string>& into, string_view field, string_view value,
                             std::optional<string> (*check)(string_view)) {
        if (auto done = set_text(into, field, value); !done) {
            return done;
        }
        if (const auto wrong = check(value)) {
            return at_field(field, value, *wrong);
        }
        return {};
    }

    result<void> set(string_view field, string_view value) {
        if (field == "image") {
            return set_text(entry.image, field, value);
        }
        if (field == "runtime") {
            return set_text(entry.builtin, field, value);
        }
        if (field == "description") {
            entry.description = value;
            return {};
        }
        if (field == "mem_limit") {
            return set_checked(entry.mem_limit, field, value, size_fault);
        }
        if (field == "memswap_limit") {
            return set_checked(entry.memswap_limit, field, value, size_fault);
        }
        if (field == "cpus") {
            return set_cpus(value);
        }
        if (field == "cpu_shares") {
            return set_number(entry.cpu_shares, field, value);
        }
        if (field == "pids_limit") {
            return set_number(entry.pids_limit, field, value);
        }
        if (field == "network_mode") {
            return set_checked(entry.network_mode, field, value, network_fault);
        }
        if (field == "oci_runtime") {
            return set_checked(entry.oci_runtime, field, value, oci_runtime_fault);
        }
        return at_entry("sets " + in_quotes(field) + ", which a runtime does not have." +
                        suggestion(field, fields));
    }

    /// `image` or `@name`.
    result<void> set_source(string_view source) {
        const bool named = source.starts_with('@');
        source.remove_prefix(named ? 1 : 0);
        if (source.empty()) {
            return at_entry("names no image or runtime." + string(example));
        }
        (named ? entry.builtin : entry.image) = string(source);
        return {};
    }

    result<void> check_alias() const {
        constexpr std::size_t longest = 128;
        const bool control = std::any_of(entry.alias.begin(), entry.alias.end(), [](char c) {
            return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
        });
        if (entry.alias.empty() || entry.alias.size() > longest || control) {
            return at_entry("has no usable alias: 1 to 128 characters, none of them a control character");
        }
        return {};
    }

    /// Rules about several fields, and the built-in's definition.
    result<void> finish() {
        if (auto done = check_alias(); !done) {
            return done;
        }
        const bool has_runtime = entry.builtin || entry.definition;
        if (entry.image.has_value() == has_runtime) {
            return at_entry("is invalid: it needs exactly one of image or runtime");
        }
        if (entry.builtin) {
            const runtime_definition* known = find_builtin(*entry.builtin);
            if (known == nullptr) {
                return at_entry("names the unknown runtime " + in_quotes("@" + *entry.builtin) + "." +
                                suggestion(*entry.builtin, builtin_names()) +
                                " Known: " + joined(builtin_names()));
            }
            entry.definition = *known;
        }
        return {};
    }
};

void put(std::vector<runtime_entry>& list, runtime_entry entry) {
    const auto same = std::find_if(list.begin(), list.end(), [&entry](const runtime_entry& other) {
        return other.alias == entry.alias;
    });
    if (same == list.end()) {
        list.push_back(std::move(entry));
    } else {
        *same = std::move(entry);
    }
}

/// Cuts off and returns what stands before the next `separator`.
string_view next_part(string_view& rest, char separator) {
    const auto end = std::min(rest.find(separator), rest.size());
    const string_view part = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
}

result<runtime_entry> read_compact_entry(string_view text, string_view label) {
    string_view rest = text;
    const string_view head = next_part(rest, ';');
    const auto equals = head.find('=');
    reader in{label, {}};
    in.entry.alias = trimmed(head.substr(0, equals));
    if (equals == string_view::npos || in.entry.alias.empty()) {
        return fault(label, "entry " + in_quotes(text) + " is not 'alias=image'." + string(example));
    }
    if (auto done = in.set_source(trimmed(head.substr(equals + 1))); !done) {
        return done.error();
    }
    while (!rest.empty()) {
        const string_view modifier = next_part(rest, ';');
        if (modifier.empty()) {
            continue;
        }
        const auto sign = modifier.find('=');
        if (sign == string_view::npos) {
            return fault(label, "modifier " + in_quotes(modifier) + " of " + in_quotes(in.entry.alias) +
                                    " is not 'field=value'." + string(example));
        }
        if (auto done = in.set(trimmed(modifier.substr(0, sign)), trimmed(modifier.substr(sign + 1)));
            !done) {
            return done.error();
        }
    }
    if (auto done = in.finish(); !done) {
        return done.error();
    }
    return std::move(in.entry);
}

/// A field of an entry given as JSON: texts, and numbers where the field is one.
result<void> set_json(reader& in, string_view field, const json::value& value) {
    if (value.is_null()) {
        const bool known = std::find(fields.begin(), fields.end(), field) != fields.end();
        return known ? result<void>{} : in.set(field, "");
    }
    if (field == "runtime" && value.is_object()) {
        auto definition = read_definition(value.get_object());
        if (!definition) {
            return in.at_entry("has an invalid runtime: " + definition.error().message);
        }
        in.entry.definition = std::move(*definition);
        return {};
    }
    if (value.is_string()) {
        return in.set(field, value.get_string());
    }
    const bool numeric = field == "cpus" || field == "cpu_shares" || field == "pids_limit";
    const bool known = std::find(fields.begin(), fields.end(), field) != fields.end();
    if (known && !(numeric && value.is_number())) {
        return in.at_field(field, json::serialize(value), numeric ? "not a number" : "not a string");
    }
    return in.set(field, value.is_double() ? number_text(value.get_double()) : json::serialize(value));
}

result<runtime_entry> read_json_entry(string_view alias, const json::value& value, string_view label) {
    reader in{label, {}};
    in.entry.alias = alias;
    if (value.is_string()) {
        if (auto done = in.set_source(trimmed(value.get_string())); !done) {
            return done.error();
        }
    } else if (value.is_object()) {
        for (const auto& [field, part] : value.get_object()) {
            if (auto done = set_json(in, field, part); !done) {
                return done.error();
            }
        }
    } else {
        return in.at_entry("must be an image string or an object");
    }
    if (auto done = in.finish(); !done) {
        return done.error();
    }
    return std::move(in.entry);
}

result<std::vector<runtime_entry>> parse_json(string_view text, string_view label) {
    boost::system::error_code failed;
    const json::value parsed = json::parse(text, failed);
    if (failed) {
        return fault(label, "is not valid JSON: " + failed.message());
    }
    if (!parsed.is_object()) {
        return fault(label, "as JSON must be an object of aliases");
    }
    std::vector<runtime_entry> out;
    for (const auto& [alias, value] : parsed.get_object()) {
        auto entry = read_json_entry(alias, value, label);
        if (!entry) {
            return entry.error();
        }
        put(out, std::move(*entry));
    }
    if (out.empty()) {
        return fault(label, "as JSON names no runtime, and at least one image must be allowed");
    }
    return out;
}

result<std::vector<runtime_entry>> parse_compact(string_view text, string_view label) {
    std::vector<runtime_entry> out;
    while (!text.empty()) {
        const string_view part = next_part(text, ',');
        if (part.empty()) {
            continue;
        }
        auto entry = read_compact_entry(part, label);
        if (!entry) {
            return entry.error();
        }
        put(out, std::move(*entry));
    }
    if (out.empty()) {
        return fault(
            label,
            "is set but names no runtime, and at least one image must be allowed. Unset it to take the "
            "shipped allowlist." +
                string(example));
    }
    return out;
}

} // namespace

result<std::vector<runtime_entry>> parse_runtimes(string_view text, string_view label) {
    const string_view start = trimmed(text);
    const bool as_json = start.starts_with('{') || start.starts_with('[');
    return as_json ? parse_json(start, label) : parse_compact(text, label);
}

string runtimes_text(const std::vector<runtime_entry>& entries) {
    string out;
    const auto add = [&out](string_view field, const auto& value) {
        if (value) {
            out += ";" + string(field) + "=";
            if constexpr (std::is_same_v<std::decay_t<decltype(*value)>, string>) {
                out += *value;
            } else if constexpr (std::is_same_v<std::decay_t<decltype(*value)>, double>) {
                out += number_text(*value);
            } else {
                out += std::to_string(*value);
            }
        }
    };
    for (const auto& entry : entries) {
        out += out.empty() ? "" : ",";
        out += entry.alias + "=";
        out += entry.image     ? *entry.image
               : entry.builtin ? "@" + *entry.builtin
                               : "(own) " + entry.definition->name;
        add("mem_limit", entry.mem_limit);
        add("memswap_limit", entry.memswap_limit);
        add("cpus", entry.cpus);
        add("cpu_shares", entry.cpu_shares);
        add("pids_limit", entry.pids_limit);
        add("network_mode", entry.network_mode);
        add("oci_runtime", entry.oci_runtime);
    }
    return out;
}

} // namespace sandboxd::config
