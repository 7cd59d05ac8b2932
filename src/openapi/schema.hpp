#pragma once

// From the description that reads and writes a model (wire/model.hpp) to its JSON Schema (2020-12, as OpenAPI
// 3.1 has it). Only the tables of this room include it.

#include "wire/policy.hpp"

#include <boost/json.hpp>

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

namespace sandboxd::openapi {

/// What stands beside a field: its text, and members of its schema that no rule of the field says, as JSON
/// (the words of a state, a unit's format).
struct field_text {
    std::string_view name;
    std::string_view says;
    std::string_view more = {};
};

/// Requests may leave fields out; an answer always has them all (contract 1.1.1).
enum class direction { request, answer };

/// The schemas by name. `add` throws std::logic_error when the texts do not name exactly the model's fields.
class schema_book {
public:
    template <wire::described Model>
    void add(std::string_view name, direction way, std::string_view says,
             std::initializer_list<field_text> texts);

    /// A schema that no model describes.
    void add_plain(std::string_view name, boost::json::object schema);

    /// {"$ref": "#/components/schemas/<name>"}; throws std::logic_error when the model was not added.
    [[nodiscard]] boost::json::object reference(const std::type_info& model) const;

    [[nodiscard]] const boost::json::object& schemas() const noexcept { return schemas_; }

private:
    void keep(const std::type_info& model, std::string_view name, boost::json::object schema);

    std::map<std::type_index, std::string> names_;
    boost::json::object schemas_;
};

namespace detail {

using wire::rules;

[[nodiscard]] boost::json::object of_string(const rules& keep);
[[nodiscard]] boost::json::object of_integer(const rules& keep, bool of_request);
[[nodiscard]] boost::json::object of_number(const rules& keep);
[[nodiscard]] boost::json::object of_text_map(const rules& keep);
[[nodiscard]] boost::json::object with_null(boost::json::object schema);
[[nodiscard]] boost::json::object list_of(boost::json::object item, const rules& keep);
/// The rules of a list's items.
[[nodiscard]] rules rules_of_item(const rules& keep);

/// Writes the schema of one member's type. A struct, so that the overloads see each other.
struct writer {
    const schema_book& book;
    bool request;

    using json = boost::json::object;

    json of(const std::string&, const rules& keep) const { return of_string(keep); }
    json of(std::int64_t, const rules& keep) const { return of_integer(keep, request); }
    json of(std::uint64_t, const rules&) const { return {{"type", "integer"}, {"minimum", 0}}; }
    json of(double, const rules& keep) const { return of_number(keep); }
    json of(bool, const rules&) const { return {{"type", "boolean"}}; }
    json of(const std::vector<std::pair<std::string, std::string>>&, const rules& keep) const {
        return of_text_map(keep);
    }
    json of(const std::map<std::string, runtime_change>&, const rules&) const {
        return {{"type", "object"},
                {"additionalProperties", book.reference(typeid(wire::runtime_change_body))}};
    }
    template <wire::described T>
    json of(const T&, const rules&) const {
        return book.reference(typeid(T));
    }
    template <class T>
    json of(const std::vector<T>&, const rules& keep) const {
        return list_of(of(T{}, rules_of_item(keep)), keep);
    }
    template <class T>
    json of(const std::optional<T>&, const rules& keep) const {
        return with_null(of(T{}, keep));
    }
    template <class T>
    json of(const change_to<T>&, const rules& keep) const {
        return keep.no_null ? of(T{}, keep) : with_null(of(T{}, keep));
    }
};

/// What an absent field counts as: the member's initial value. A null, and a change's absence, go unsaid.
template <class T>
[[nodiscard]] boost::json::value default_of(const T& initial) {
    if constexpr (std::is_same_v<T, std::vector<std::pair<std::string, std::string>>>) {
        return boost::json::object();
    } else if constexpr (std::is_same_v<T, std::string>) {
        return boost::json::value(boost::json::string(initial));
    } else if constexpr (std::is_arithmetic_v<T>) {
        return boost::json::value(initial);
    } else {
        return nullptr;
    }
}

/// The texts in the order of the fields; throws when they don't name the same ones.
[[nodiscard]] std::vector<field_text> matched(std::string_view model,
                                              const std::vector<std::string_view>& fields,
                                              std::span<const field_text> texts);

/// Adds text and further members to a field's schema.
void annotate(boost::json::object& schema, const field_text& text);

} // namespace detail

template <wire::described Model>
void schema_book::add(std::string_view name, direction way, std::string_view says,
                      std::initializer_list<field_text> texts) {
    std::vector<std::string_view> fields;
    wire::for_each_field<Model>([&](const auto& one) { fields.push_back(one.name); });
    const auto told = detail::matched(name, fields, std::span(texts.begin(), texts.size()));
    const bool request = way == direction::request;
    const detail::writer write{*this, request};
    const Model initial{};
    boost::json::object properties;
    boost::json::array needed;
    std::size_t at = 0;
    wire::for_each_field<Model>([&](const auto& one) {
        auto schema = write.of(initial.*one.where, one.keep);
        if (!request || one.keep.required) {
            needed.push_back(boost::json::string(one.name));
        } else if (auto absent = detail::default_of(initial.*one.where); !absent.is_null()) {
            schema["default"] = std::move(absent);
        }
        detail::annotate(schema, told[at++]);
        properties[one.name] = std::move(schema);
    });
    boost::json::object schema{
        {"type", "object"}, {"description", says}, {"properties", std::move(properties)}};
    if (!needed.empty()) {
        schema["required"] = std::move(needed);
    }
    if constexpr (wire::forbids_unknown<Model>) {
        schema["additionalProperties"] = false;
    }
    keep(typeid(Model), name, std::move(schema));
}

} // namespace sandboxd::openapi
