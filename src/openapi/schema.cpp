#include "openapi/schema.hpp"

#include <limits>
#include <stdexcept>

namespace sandboxd::openapi {

namespace json = boost::json;

void schema_book::add_plain(std::string_view name, json::object schema) {
    schemas_[name] = std::move(schema);
}

void schema_book::keep(const std::type_info& model, std::string_view name, json::object schema) {
    if (schemas_.contains(name)) {
        throw std::logic_error("two models are called " + std::string(name));
    }
    names_[model] = std::string(name);
    schemas_[name] = std::move(schema);
}

json::object schema_book::reference(const std::type_info& model) const {
    const auto found = names_.find(model);
    if (found == names_.end()) {
        throw std::logic_error(std::string("no schema was described for ") + model.name());
    }
    return {{"$ref", "#/components/schemas/" + found->second}};
}

namespace detail {

namespace {

/// Anything but a NUL (contract N19.2), as a regular expression of JSON Schema.
constexpr std::string_view no_nul_pattern = "^[^\\u0000]*$";

std::optional<std::string_view> pattern_of(const rules& keep) {
    if (keep.pattern != nullptr) {
        return keep.pattern->text;
    }
    return keep.no_nul ? std::optional(no_nul_pattern) : std::nullopt;
}

} // namespace

json::object of_string(const rules& keep) {
    json::object out{{"type", "string"}};
    if (const auto pattern = pattern_of(keep)) {
        out["pattern"] = *pattern;
    }
    return out;
}

json::object of_integer(const rules& keep, bool of_request) {
    json::object out{{"type", "integer"}, {"format", "int64"}};
    if (keep.above) {
        out["exclusiveMinimum"] = static_cast<std::int64_t>(*keep.above);
    } else if (keep.at_least) {
        out["minimum"] = *keep.at_least;
    } else if (of_request) {
        out["minimum"] = std::numeric_limits<std::int64_t>::min();
    }
    if (keep.at_most) {
        out["maximum"] = *keep.at_most;
    } else if (of_request) {
        out["maximum"] = std::numeric_limits<std::int64_t>::max();
    }
    return out;
}

json::object of_number(const rules& keep) {
    json::object out{{"type", "number"}};
    if (keep.above) {
        out["exclusiveMinimum"] = *keep.above;
    }
    return out;
}

json::object of_text_map(const rules& keep) {
    json::object out{{"type", "object"}, {"additionalProperties", of_string(keep)}};
    if (keep.no_nul) {
        out["propertyNames"] = json::object{{"pattern", no_nul_pattern}};
    }
    return out;
}

json::object with_null(json::object schema) {
    if (const auto* type = schema.if_contains("type")) {
        schema["type"] = json::array{*type, "null"};
        return schema;
    }
    return {{"anyOf", json::array{std::move(schema), json::object{{"type", "null"}}}}};
}

json::object list_of(json::object item, const rules& keep) {
    json::object out{{"type", "array"}, {"items", std::move(item)}};
    if (keep.min_items != 0) {
        out["minItems"] = keep.min_items;
    }
    if (keep.max_items) {
        out["maxItems"] = *keep.max_items;
    }
    return out;
}

rules rules_of_item(const rules& keep) {
    rules of_item;
    of_item.no_nul = keep.no_nul;
    of_item.pattern = keep.item_pattern;
    return of_item;
}

std::vector<field_text> matched(std::string_view model, const std::vector<std::string_view>& fields,
                                std::span<const field_text> texts) {
    std::vector<field_text> out;
    for (const auto name : fields) {
        for (const auto& text : texts) {
            if (text.name == name) {
                out.push_back(text);
            }
        }
        if (out.empty() || out.back().name != name || out.back().says.empty()) {
            throw std::logic_error(std::string(model) + "." + std::string(name) + " has no description");
        }
    }
    if (out.size() != texts.size() || out.size() != fields.size()) {
        throw std::logic_error(std::string(model) + ": a description is of no field, or there twice");
    }
    return out;
}

void annotate(json::object& schema, const field_text& text) {
    schema["description"] = text.says;
    if (!text.more.empty()) {
        const auto more = json::parse(json::string_view(text.more.data(), text.more.size()));
        for (const auto& [name, value] : more.get_object()) {
            schema[name] = value;
        }
    }
}

} // namespace detail

} // namespace sandboxd::openapi
