#include "launcher/fields.hpp"

#include <boost/json/array.hpp>

#include <cmath>

namespace sandboxd::launcher {

namespace json = boost::json;

namespace {

std::optional<std::string> as_text(const json::value& from) {
    const auto* text = from.if_string();
    if (text == nullptr || text->find('\0') != json::string::npos) {
        return std::nullopt;
    }
    return std::string(text->data(), text->size());
}

std::optional<std::uint64_t> as_number(const json::value& from) {
    if (from.is_uint64()) {
        return from.get_uint64();
    }
    if (from.is_int64() && from.get_int64() >= 0) {
        return static_cast<std::uint64_t>(from.get_int64());
    }
    return std::nullopt;
}

} // namespace

field_reader::field_reader(const json::value& from) : object_(from.if_object()) {}

const json::value* field_reader::find(std::string_view name) {
    const auto* found =
        object_ != nullptr ? object_->if_contains(json::string_view(name.data(), name.size())) : nullptr;
    if (found != nullptr) {
        ++read_;
        return found;
    }
    return nullptr;
}

std::string field_reader::text(std::string_view name) {
    auto found = optional_text(name);
    failed_ = failed_ || !found;
    return found.value_or("");
}

std::optional<std::string> field_reader::optional_text(std::string_view name) {
    const auto* found = find(name);
    if (found == nullptr) {
        return std::nullopt;
    }
    auto value = as_text(*found);
    failed_ = failed_ || !value;
    return value;
}

std::uint64_t field_reader::number(std::string_view name, std::uint64_t max) {
    auto found = optional_number(name, max);
    failed_ = failed_ || !found;
    return found.value_or(0);
}

std::optional<std::uint64_t> field_reader::optional_number(std::string_view name, std::uint64_t max) {
    const auto* found = find(name);
    if (found == nullptr) {
        return std::nullopt;
    }
    auto value = as_number(*found);
    if (!value || *value > max) {
        failed_ = true;
        return std::nullopt;
    }
    return value;
}

std::optional<double> field_reader::optional_real(std::string_view name) {
    const auto* found = find(name);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (found->is_double() && std::isfinite(found->get_double())) {
        return found->get_double();
    }
    if (auto whole = as_number(*found)) {
        return static_cast<double>(*whole);
    }
    failed_ = true;
    return std::nullopt;
}

std::vector<std::string> field_reader::texts(std::string_view name) {
    std::vector<std::string> list;
    const auto* found = find(name);
    const auto* array = found != nullptr ? found->if_array() : nullptr;
    if (array == nullptr) {
        failed_ = true;
        return list;
    }
    for (const auto& one : *array) {
        auto value = as_text(one);
        if (!value) {
            failed_ = true;
            return {};
        }
        list.push_back(std::move(*value));
    }
    return list;
}

std::vector<std::pair<std::string, std::string>> field_reader::pairs(std::string_view name) {
    std::vector<std::pair<std::string, std::string>> list;
    auto flat = texts(name);
    if (flat.size() % 2 != 0) {
        failed_ = true;
        return list;
    }
    for (std::size_t at = 0; at < flat.size(); at += 2) {
        list.emplace_back(std::move(flat[at]), std::move(flat[at + 1]));
    }
    return list;
}

const json::value* field_reader::optional_object(std::string_view name) {
    const auto* found = find(name);
    if (found != nullptr && !found->is_object()) {
        failed_ = true;
        return nullptr;
    }
    return found;
}

} // namespace sandboxd::launcher
