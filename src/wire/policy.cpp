#include "wire/policy.hpp"

#include <variant>

namespace sandboxd::wire {

namespace json = boost::json;

namespace {

constexpr std::size_t shown_key = 256;

place below(place at, std::string_view key) {
    at.emplace_back(std::string(key.substr(0, shown_key)));
    return at;
}

/// The members of one runtime, as read_model() reads those of a body.
bool read_runtime(const json::value& from, runtime_change_body& into, const place& at, fault_list& faults) {
    const auto* object = from.if_object();
    if (object == nullptr) {
        faults.add({"model_attributes_type",
                    at,
                    "Input should be a valid dictionary or object to extract fields from",
                    shown_input(from),
                    {}});
        return false;
    }
    bool good = true;
    for_each_field<runtime_change_body>([&](const auto& one) {
        if (const auto* found = object->if_contains(one.name)) {
            good = read_value(*found, into.*one.where, one.keep, below(at, one.name), faults) && good;
        }
    });
    for (const auto& [name, value] : *object) {
        if (!has_field<runtime_change_body>(name)) {
            faults.add({"extra_forbidden",
                        below(at, name),
                        "Extra inputs are not permitted",
                        shown_input(value),
                        {}});
            good = false;
        }
    }
    return good;
}

template <class T>
bool is_given(const change_to<T>& change) {
    return change.given;
}
bool is_given(const std::map<std::string, runtime_change>& runtimes) {
    return !runtimes.empty();
}

template <described Body, class Change>
void append_given(std::string& out, const Change& change);

template <class T>
void append_change(std::string& out, const change_to<T>& change) {
    append_field(out, change.value);
}
void append_change(std::string& out, const std::map<std::string, runtime_change>& runtimes) {
    char separator = '{';
    for (const auto& [alias, change] : runtimes) {
        out += separator;
        append_string(out, alias);
        out += ':';
        append_given<runtime_change_body>(out, change);
        separator = ',';
    }
    out += '}';
}

template <described Body, class Change>
void append_given(std::string& out, const Change& change) {
    std::string_view separator;
    out += '{';
    for_each_field<Body>([&](const auto& one) {
        const auto& value = change.*one.where;
        if (is_given(value)) {
            out += separator;
            append_string(out, one.name);
            out += ':';
            append_change(out, value);
            separator = ",";
        }
    });
    out += '}';
}

std::string sentence(const fault& one) {
    std::string where;
    for (std::size_t i = 1; i < one.loc.size(); ++i) {
        const auto* key = std::get_if<std::string>(&one.loc[i]);
        where += (where.empty() ? "" : ".") +
                 (key != nullptr ? *key : std::to_string(std::get<std::int64_t>(one.loc[i])));
    }
    return where.empty() ? one.msg : where + ": " + one.msg;
}

} // namespace

bool read_value(const json::value& from, std::map<std::string, runtime_change>& into, const rules&,
                const place& at, fault_list& faults) {
    const auto* object = from.if_object();
    if (object == nullptr) {
        faults.add({"dict_type", at, "Input should be a valid dictionary", shown_input(from), {}});
        return false;
    }
    bool good = true;
    for (const auto& [alias, value] : *object) {
        runtime_change_body one;
        good = read_runtime(value, one, below(at, alias), faults) && good;
        into[std::string(alias)] = one;
    }
    return good;
}

std::string policy_text(const policy_change& change) {
    std::string out;
    append_given<policy_change_body>(out, change);
    return out;
}

result<policy_change> parse_policy(std::string_view text) {
    const auto parsed = parse_body("application/json", text);
    const auto* body = std::get_if<parsed_body>(&parsed);
    if (body == nullptr || !body->present) {
        return error{errc::invalid, "not valid JSON"};
    }
    fault_list faults;
    auto change = read_model<policy_change_body>(*body, faults);
    if (!change) {
        return error{errc::invalid, sentence(faults.all().front())};
    }
    return policy_change(std::move(*change));
}

} // namespace sandboxd::wire
