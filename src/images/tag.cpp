#include "images/recipe.hpp"

#include <boost/json/serialize.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sandboxd::images {

namespace {

using std::string;
using std::string_view;

constexpr std::size_t digest_digits = 12;

// Written out by hand: Boost.JSON escapes as the reference's models do, but its objects would need building.
string quoted(string_view text) {
    return boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

string or_null(const std::optional<string>& text) {
    return text ? quoted(*text) : "null";
}

string list_of(const std::vector<string>& texts) {
    string out = "[";
    for (const auto& one : texts) {
        out += (out.size() > 1 ? "," : "") + quoted(one);
    }
    return out + "]";
}

string object_of(const std::vector<std::pair<string, string>>& pairs) {
    string out = "{";
    for (const auto& [name, value] : pairs) {
        out += (out.size() > 1 ? "," : "") + quoted(name) + ":" + quoted(value);
    }
    return out + "}";
}

/// Not a wall of any kind: it only tells one definition from another.
result<string> short_md5(string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_md5(), nullptr) != 1) {
        return error{errc::start_failed, "this OpenSSL offers no MD5, which names the images that are built"};
    }
    constexpr string_view digits = "0123456789abcdef";
    string out;
    for (std::size_t i = 0; i < digest_digits / 2; ++i) {
        out += digits[digest[i] >> 4U];
        out += digits[digest[i] & 15U];
    }
    return out;
}

} // namespace

string canonical_json(const runtime_definition& d) {
    return "{\"name\":" + quoted(d.name) + ",\"description\":" + quoted(d.description) +
           ",\"image\":" + or_null(d.image) + ",\"base_image\":" + or_null(d.base_image) +
           ",\"packages\":" + list_of(d.packages) + ",\"package_manager\":" + quoted(d.package_manager) +
           ",\"setup_commands\":" + list_of(d.setup_commands) + ",\"env_vars\":" + object_of(d.env_vars) +
           ",\"work_dir\":" + quoted(d.work_dir) + ",\"cache_image\":" + (d.cache_image ? "true" : "false") +
           ",\"run_as_uid\":" + (d.run_as_uid ? std::to_string(*d.run_as_uid) : "null") + "}";
}

result<string> tag_of(const runtime_definition& definition) {
    const auto digest = short_md5(canonical_json(definition));
    if (!digest) {
        return digest.error();
    }
    return string(repository) + ":" + definition.name + "-" + *digest;
}

bool is_image_of(const string& tag, const string& name) {
    const auto start = string(repository) + ":" + name + "-";
    if (tag.size() != start.size() + digest_digits || tag.compare(0, start.size(), start) != 0) {
        return false;
    }
    return std::all_of(tag.begin() + static_cast<std::ptrdiff_t>(start.size()), tag.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

} // namespace sandboxd::images
