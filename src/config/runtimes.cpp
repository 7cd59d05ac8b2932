#include "config/runtimes.hpp"

#include "config/catalogue.hpp"
#include "config/definition.hpp"
#include "config/runtime_reader.hpp"
#include "config/text.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace sandboxd::config {
namespace {

using std::string;
using std::string_view;
namespace json = boost::json;

constexpr string_view suggested = "@suggested"; ///< as an entry: the whole list (contract 5.6)

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
    reader in(label);
    in.entry.alias = trimmed(head.substr(0, equals));
    if (equals == string_view::npos || in.entry.alias.empty()) {
        const string list = head.starts_with('@')
                                ? " The only entry without an alias is " + in_quotes(suggested) + "."
                                : string();
        return runtimes_fault(label, "entry " + in_quotes(text) + " is not 'alias=image'." + list +
                                         string(runtimes_example));
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
            return runtimes_fault(label, "modifier " + in_quotes(modifier) + " of " +
                                             in_quotes(in.entry.alias) + " is not 'field=value'." +
                                             string(runtimes_example));
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
        const bool known = reader::has_field(field);
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
    const bool known = reader::has_field(field);
    if (known && !(numeric && value.is_number())) {
        return in.at_field(field, json::serialize(value), numeric ? "not a number" : "not a string");
    }
    return in.set(field, value.is_double() ? number_text(value.get_double()) : json::serialize(value));
}

result<runtime_entry> read_json_entry(string_view alias, const json::value& value, string_view label) {
    reader in(label);
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

result<json::value> read_json(string_view text, string_view label) {
    json::stream_parser parser;
    boost::system::error_code failed;
    std::size_t taken = parser.write_some(text, failed);
    if (!failed && text.find_first_not_of(" \t\r\n", taken) != string_view::npos) {
        taken = text.find_first_not_of(" \t\r\n", taken);
        failed = json::error::extra_data;
    }
    if (!failed) {
        parser.finish(failed);
    }
    if (failed) {
        return runtimes_fault(label, "is not valid JSON: " + failed.message() + " at byte " +
                                         std::to_string(taken + 1));
    }
    return parser.release();
}

result<std::vector<runtime_entry>> parse_json(string_view text, string_view label) {
    const auto parsed = read_json(text, label);
    if (!parsed) {
        return parsed.error();
    }
    if (!parsed->is_object()) {
        return runtimes_fault(label, "as JSON must be an object of aliases");
    }
    std::vector<runtime_entry> out;
    for (const auto& [alias, value] : parsed->get_object()) {
        auto entry = read_json_entry(alias, value, label);
        if (!entry) {
            return entry.error();
        }
        put(out, std::move(*entry));
    }
    if (out.empty()) {
        return runtimes_fault(label, "as JSON names no runtime, and at least one image must be allowed");
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
        if (part == suggested) {
            for (auto& entry : suggested_runtimes()) {
                put(out, std::move(entry));
            }
            continue;
        }
        auto entry = read_compact_entry(part, label);
        if (!entry) {
            return entry.error();
        }
        put(out, std::move(*entry));
    }
    if (out.empty()) {
        return runtimes_fault(
            label,
            "is set but names no runtime, and at least one image must be allowed. Unset it to take the "
            "shipped allowlist." +
                string(runtimes_example));
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
