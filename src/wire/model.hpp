#pragma once

// The wire room: JSON of every model that clients see, in and out. Pure functions over text: no sockets, no
// clocks, no executor; safe from any thread.

#include "wire/body.hpp"
#include "wire/json_text.hpp"
#include "wire/scalars.hpp"

#include <boost/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sandboxd::wire {

// A model is a struct described once, by a static fields() that lists name, member and rules in the order of
// the wire. Reading, writing and (later) the OpenAPI document follow from it:
//
//     struct exists_body {
//         std::string path;
//         static constexpr auto fields() { return std::tuple{required("path", &exists_body::path)}; }
//     };
//
// A member's type is the field's type; an optional one may be null; a field that is not required has the
// member's initial value as its default.

template <class T, class M>
struct field {
    std::string_view name;
    M T::* where;
    rules keep;
};

/// A field of an answer, or one of a request that may be left out.
template <class T, class M>
constexpr field<T, M> optional(std::string_view name, M T::* where, rules keep = {}) {
    return {name, where, keep};
}

template <class T, class M>
constexpr field<T, M> required(std::string_view name, M T::* where, rules keep = {}) {
    keep.required = true;
    return {name, where, keep};
}

template <class T>
concept described = requires { T::fields(); };

/// Calls `visit(field)` for each of a model's fields, in order.
template <described T, class F>
void for_each_field(F&& visit) {
    std::apply([&visit](const auto&... one) { (visit(one), ...); }, T::fields());
}

/// Models that refuse unknown keys say so with `static constexpr bool forbids_unknown = true;`; others ignore
/// them (contract 1.1.6).
template <class T>
constexpr bool forbids_unknown = requires { requires T::forbids_unknown; };

/// True when the model has a field of that name.
template <described T>
bool has_field(std::string_view name) {
    bool found = false;
    for_each_field<T>([&](const auto& one) { found = found || one.name == name; });
    return found;
}

/// The faults of a body that is absent or no object, at loc ["body"]; null when it is an object.
[[nodiscard]] const boost::json::object* object_of(const parsed_body& body, fault_list& faults);

/// Pushes `missing` or `extra_forbidden` at ["body", name].
void add_missing(std::string_view name, const boost::json::value& whole, fault_list& faults);
void add_forbidden(std::string_view name, const boost::json::value& value, fault_list& faults);

/// Reads a request's model; every fault is pushed, in the reference's order (fields as described, then
/// unknown keys). Nothing when there was one.
template <described T>
[[nodiscard]] std::optional<T> read_model(const parsed_body& body, fault_list& faults) {
    const boost::json::object* object = object_of(body, faults);
    if (object == nullptr) {
        return std::nullopt;
    }
    T out{};
    const std::size_t before = faults.size();
    bool good = true;
    for_each_field<T>([&](const auto& one) {
        const auto found = object->find(one.name);
        if (found != object->end()) {
            good = read_value(found->value(), out.*one.where, one.keep, {"body", std::string(one.name)},
                              faults) &&
                   good;
        } else if (one.keep.required) {
            add_missing(one.name, body.value, faults);
            good = false;
        }
    });
    if constexpr (forbids_unknown<T>) {
        for (const auto& [name, value] : *object) {
            if (!has_field<T>(name)) {
                add_forbidden(name, value, faults);
                good = false;
            }
        }
    }
    return good && faults.size() == before ? std::optional(std::move(out)) : std::nullopt;
}

// Writing. All fields are always there, `null` included (contract 1.1.1).

template <described T>
void append_model(std::string& out, const T& model);

inline void append_field(std::string& out, const std::string& value) {
    append_string(out, value);
}
inline void append_field(std::string& out, std::string_view value) {
    append_string(out, value);
}
inline void append_field(std::string& out, bool value) {
    out += value ? "true" : "false";
}
inline void append_field(std::string& out, std::int64_t value) {
    append_number(out, value);
}
inline void append_field(std::string& out, std::uint64_t value) {
    append_number(out, value);
}
inline void append_field(std::string& out, double value) {
    append_number(out, value);
}
template <described T>
void append_field(std::string& out, const T& value) {
    append_model(out, value);
}
template <class T>
void append_field(std::string& out, const std::optional<T>& value) {
    if (value) {
        append_field(out, *value);
    } else {
        out += "null";
    }
}
template <class T>
void append_field(std::string& out, const std::vector<T>& values) {
    out += '[';
    const char* separator = "";
    for (const auto& value : values) {
        out += separator;
        append_field(out, value);
        separator = ",";
    }
    out += ']';
}

template <described T>
void append_model(std::string& out, const T& model) {
    char separator = '{';
    for_each_field<T>([&](const auto& one) {
        out += separator;
        append_string(out, one.name);
        out += ':';
        append_field(out, model.*one.where);
        separator = ',';
    });
    out += '}';
}

// About how many bytes of JSON a model makes, without making them.

template <described T>
[[nodiscard]] std::size_t weight(const T& model);

[[nodiscard]] inline std::size_t weight(const std::string& value) {
    return value.size();
}
template <class T>
    requires std::is_arithmetic_v<T>
[[nodiscard]] std::size_t weight(T) {
    return 8;
}
template <class T>
[[nodiscard]] std::size_t weight(const std::optional<T>& value) {
    return value ? weight(*value) : 4;
}
template <class T>
[[nodiscard]] std::size_t weight(const std::vector<T>& values) {
    std::size_t sum = 2;
    for (const auto& value : values) {
        sum += weight(value);
    }
    return sum;
}
template <described T>
[[nodiscard]] std::size_t weight(const T& model) {
    std::size_t sum = 2;
    for_each_field<T>([&](const auto& one) { sum += one.name.size() + 4 + weight(model.*one.where); });
    return sum;
}

/// A model as JSON: valid UTF-8 whatever its strings hold.
template <described T>
[[nodiscard]] std::string to_json(const T& model) {
    std::string out;
    append_model(out, model);
    return out;
}

/// A bare array of models.
template <described T>
[[nodiscard]] std::string to_json(const std::vector<T>& models) {
    std::string out;
    append_field(out, models);
    return out;
}

} // namespace sandboxd::wire
