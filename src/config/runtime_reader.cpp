#include "config/runtime_reader.hpp"

#include "config/catalogue.hpp"
#include "config/runtimes.hpp"
#include "config/table.hpp"
#include "config/text.hpp"

#include <algorithm>
#include <array>

namespace sandboxd::config {
namespace {

using std::string;
using std::string_view;

constexpr std::array<string_view, 10> fields{"image",         "runtime",    "description", "mem_limit",
                                             "memswap_limit", "cpus",       "cpu_shares",  "pids_limit",
                                             "network_mode",  "oci_runtime"};

bool has_control(string_view text) {
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

} // namespace

error runtimes_fault(string_view label, const string& rest) {
    return error{errc::invalid, string(label) + " " + rest};
}

bool reader::has_field(string_view field) {
    return std::find(fields.begin(), fields.end(), field) != fields.end();
}

error reader::at_field(string_view field, string_view value, string_view cause) const {
    return runtimes_fault(label_, entry.alias + "." + string(field) + "=" + in_quotes(value) +
                                      " is not valid: " + string(cause));
}
error reader::at_entry(const string& cause) const {
    return runtimes_fault(label_, "entry " + in_quotes(entry.alias) + " " + cause);
}

result<void> reader::set_text(std::optional<string>& into, string_view field, string_view value) {
    if (value.empty()) {
        return at_field(field, value, "it is empty; leave it out to take the service's");
    }
    if (has_control(value)) {
        return at_field(field, value, "it holds a control character");
    }
    into = value;
    return {};
}

result<void> reader::set_number(std::optional<std::int64_t>& into, string_view field, string_view value) {
    into = parse_integer(value);
    if (!into) {
        return at_field(field, value, "not a whole number");
    }
    const setting_info& bounds = *find_setting(field);
    if (*into < bounds.min || *into > bounds.max) {
        return at_field(field, value,
                        "must be from " + std::to_string(bounds.min) + " to " + std::to_string(bounds.max));
    }
    return {};
}

result<void> reader::set_cpus(string_view value) {
    entry.cpus = parse_number(value);
    if (!entry.cpus) {
        return at_field("cpus", value, "not a number");
    }
    if (const auto wrong = cpus_fault(*entry.cpus)) {
        return at_field("cpus", value, *wrong);
    }
    return {};
}

result<void> reader::set_checked(std::optional<string>& into, string_view field, string_view value,
                                 std::optional<string> (*check)(string_view)) {
    if (auto done = set_text(into, field, value); !done) {
        return done;
    }
    if (const auto wrong = check(value)) {
        return at_field(field, value, *wrong);
    }
    return {};
}

result<void> reader::set(string_view field, string_view value) {
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
    const string near = suggestion(field, fields);
    return at_entry("sets " + in_quotes(field) + ", which a runtime does not have." +
                    (near.empty() ? " It has " + joined(fields) + "." : near));
}

result<void> reader::set_source(string_view source) {
    const bool named = source.starts_with('@');
    source.remove_prefix(named ? 1 : 0);
    if (source.empty()) {
        return at_entry("names no image or runtime." + string(runtimes_example));
    }
    return named ? set_text(entry.builtin, "runtime", source) : set_text(entry.image, "image", source);
}

result<void> reader::check_alias() const {
    constexpr std::size_t longest = 128;
    if (entry.alias.empty() || entry.alias.size() > longest || has_control(entry.alias)) {
        return at_entry("has no usable alias: 1 to 128 characters, none of them a control character");
    }
    return {};
}

result<void> reader::finish() {
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

} // namespace sandboxd::config
