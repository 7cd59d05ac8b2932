#include "config/runtimes.hpp"
#include "config/size.hpp"
#include "config/table.hpp"
#include "config/text.hpp"

#include <algorithm>
#include <charconv>
#include <type_traits>

namespace sandboxd::config {
namespace {

using std::string;
using std::string_view;

error refused(const setting_info& info, string_view label, string_view raw, string_view cause) {
    const string shown = info.secret ? string() : "=" + in_quotes(raw);
    return error{errc::invalid, string(label) + shown + " is not valid: " + string(cause)};
}

/// For a limit: how to have none, which a user may look for in numbers such as 0 and -1.
string way_to_none(const setting_info& info) {
    if (!is_optional(info)) {
        return {};
    }
    return "; empty means " + string(info.empty_meaning.empty() ? "none" : info.empty_meaning);
}

error empty_refused(string_view label) {
    return error{errc::invalid, string(label) + " must not be empty"};
}

bool has_control(string_view text) {
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

/// What is wrong with a text value, in words; nothing when it is fine.
std::optional<string> text_fault(const setting_info& info, string_view raw) {
    if (!info.secret && has_control(raw)) {
        return "it holds a control character";
    }
    if (!info.choices.empty() &&
        std::find(info.choices.begin(), info.choices.end(), raw) == info.choices.end()) {
        return "use one of " + joined(info.choices) + "." + suggestion(raw, info.choices);
    }
    switch (info.form) {
    case shape::any:
        return std::nullopt;
    case shape::size: {
        auto fault = size_fault(raw);
        return fault ? std::optional(*fault + way_to_none(info)) : std::nullopt;
    }
    case shape::tmpfs:
        return tmpfs_size_option(raw)
                   ? std::nullopt
                   : std::optional("not a size such as 64m, 1g or 50% (of memory)" + way_to_none(info));
    case shape::absolute:
        return work_dir_fault(raw);
    case shape::network:
        return network_fault(raw);
    case shape::backend:
        return backend_fault(raw);
    case shape::oci_runtime:
        return oci_runtime_fault(raw);
    }
    return std::nullopt;
}

string bounds_text(const setting_info& info) {
    if (info.max == std::numeric_limits<std::int64_t>::max()) {
        return "must be at least " + std::to_string(info.min);
    }
    return "must be from " + std::to_string(info.min) + " to " + std::to_string(info.max);
}

result<void> read(const setting_info& info, string& into, string_view raw, string_view label) {
    if (raw.empty() && info.empty == when_empty::refused) {
        return empty_refused(label);
    }
    if (!raw.empty()) {
        if (const auto fault = text_fault(info, raw)) {
            return refused(info, label, raw, *fault);
        }
    }
    into = raw;
    return {};
}

result<void> read(const setting_info& info, std::int64_t& into, string_view raw, string_view label) {
    const auto value = parse_integer(raw);
    if (!value) {
        return refused(info, label, raw, "not a whole number" + way_to_none(info));
    }
    if (*value < info.min || *value > info.max) {
        return refused(info, label, raw, bounds_text(info) + way_to_none(info));
    }
    into = *value;
    return {};
}

result<void> read(const setting_info& info, double& into, string_view raw, string_view label) {
    const auto value = parse_number(raw);
    if (!value) {
        return refused(info, label, raw, "not a number" + way_to_none(info));
    }
    if (const auto fault = cpus_fault(*value)) {
        return refused(info, label, raw, *fault + way_to_none(info));
    }
    into = *value;
    return {};
}

result<void> read(const setting_info&, bool& into, string_view raw, string_view label) {
    const auto value = parse_boolean(raw);
    if (!value) {
        return error{errc::invalid, string(label) + "=" + in_quotes(raw) +
                                        " is not a boolean. Use one of 0, 1, false, no, off, on, true, yes."};
    }
    into = *value;
    return {};
}

result<void> read(const setting_info&, std::vector<runtime_entry>& into, string_view raw, string_view label) {
    auto parsed = parse_runtimes(raw, label);
    if (!parsed) {
        return parsed.error();
    }
    into = std::move(*parsed);
    return {};
}

std::optional<std::uint32_t> parse_uid(string_view text) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    text.remove_prefix(hex ? 2 : 0);
    std::uint32_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    return fault == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

result<void> read(const setting_info& info, std::pair<std::uint32_t, std::uint32_t>& into, string_view raw,
                  string_view label) {
    constexpr std::uint32_t session_ids = 65'536;
    const auto dash = raw.find('-');
    const auto first = parse_uid(trimmed(raw.substr(0, dash)));
    const auto last = dash == string_view::npos ? std::nullopt : parse_uid(trimmed(raw.substr(dash + 1)));
    if (!first || !last) {
        return refused(info, label, raw, "not FIRST-LAST, two user ids in decimal or 0x");
    }
    // Ids below 65536 belong to the host's own accounts; the last one means "no id" to the kernel.
    if (*first < session_ids || *last == std::numeric_limits<std::uint32_t>::max()) {
        return refused(info, label, raw, "ids must be from 65536 to 4294967294");
    }
    if (*last < *first || *last - *first < session_ids - 1) {
        return refused(info, label, raw, "the range holds less than the 65536 ids of one session");
    }
    into = {*first, *last};
    return {};
}

template <class T>
result<void> read(const setting_info& info, std::optional<T>& into, string_view raw, string_view label) {
    if (raw.empty()) {
        into.reset();
        return {};
    }
    T value{};
    if (auto done = read(info, value, raw, label); !done) {
        return done;
    }
    into = std::move(value);
    return {};
}

} // namespace

result<void> assign(const setting_info& info, settings& into, string_view raw, string_view label) {
    return std::visit([&](auto member) { return read(info, into.*member, raw, label); }, info.where);
}

} // namespace sandboxd::config
