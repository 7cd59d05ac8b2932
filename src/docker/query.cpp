#include "docker/query.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sandboxd::docker {

namespace {

std::string encode(std::string_view text, std::string_view also) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letter || c == '-' || c == '_' || c == '.' || c == '~' ||
            also.find(c) != std::string_view::npos) {
            out.push_back(c);
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out.push_back('%');
            out.push_back(digits[byte >> 4U]);
            out.push_back(digits[byte & 15U]);
        }
    }
    return out;
}

} // namespace

std::string segment(std::string_view text) {
    return encode(text, {});
}

std::string image_path(std::string_view reference) {
    return encode(reference, "/:@");
}

target target::with(std::string_view name, std::string_view value) && {
    text_ += any_ ? '&' : '?';
    any_ = true;
    text_ += encode(name, {}) + "=" + encode(value, {});
    return std::move(*this);
}

std::string filters_json(const filter_list& filters) {
    boost::json::object all;
    for (const auto& [name, value] : filters) {
        auto& list = all[name];
        if (!list.is_array()) {
            list = boost::json::array();
        }
        list.get_array().emplace_back(value);
    }
    return boost::json::serialize(all);
}

} // namespace sandboxd::docker
