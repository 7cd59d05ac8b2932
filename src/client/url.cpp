#include "client/url.hpp"

#include "client/failure.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <algorithm>

namespace sandboxd::client {

namespace {

bool is_alphanumeric(char one) noexcept {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9');
}

failure unusable(std::string_view text, std::string_view why) {
    return failed(fault::invalid, "the service's URL " + std::string(text) + " can't be used: " +
                                      std::string(why) + " (it looks like http://localhost:8080)");
}

} // namespace

outcome<service_url> parse_url(std::string_view text) {
    const auto parsed = boost::urls::parse_uri(text);
    if (!parsed) {
        return unusable(text, "it is no URL");
    }
    const boost::urls::url_view& url = *parsed;
    service_url made;
    made.tls = url.scheme_id() == boost::urls::scheme::https;
    if (!made.tls && url.scheme_id() != boost::urls::scheme::http) {
        return unusable(text, "it begins with neither http:// nor https://");
    }
    if (url.has_userinfo()) {
        return unusable("", "it holds a user name or password; give a token instead");
    }
    if (url.has_query() || url.has_fragment()) {
        return unusable(text, "it has a query or a fragment");
    }
    made.host = std::string(url.host_address());
    if (made.host.empty() || made.host.find('\0') != std::string::npos) {
        return unusable(text, "it has no host");
    }
    made.port = url.has_port() && !url.port().empty() ? std::string(url.port()) : (made.tls ? "443" : "80");
    const bool usual = made.port == (made.tls ? "443" : "80");
    constexpr std::size_t longest_port = 5;
    constexpr unsigned long last_port = 65'535;
    if (made.port.size() > longest_port || std::stoul(made.port) == 0 || std::stoul(made.port) > last_port) {
        return unusable(text, "the port is not a number from 1 to 65535");
    }
    made.prefix = std::string(url.encoded_path());
    while (made.prefix.ends_with('/')) {
        made.prefix.pop_back();
    }
    const bool numeric6 = made.host.find(':') != std::string::npos;
    made.host_field = (numeric6 ? "[" + made.host + "]" : made.host) + (usual ? "" : ":" + made.port);
    made.text = std::string(text);
    return made;
}

std::string encoded(std::string_view value) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    out.reserve(value.size());
    for (const char one : value) {
        if (is_alphanumeric(one) || one == '-' || one == '.' || one == '_' || one == '~') {
            out += one;
        } else {
            const auto byte = static_cast<unsigned char>(one);
            out += {'%', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
    return out;
}

bool is_session_id(std::string_view text) noexcept {
    constexpr std::size_t longest = 64;
    return !text.empty() && text.size() <= longest && is_alphanumeric(text.front()) &&
           std::all_of(text.begin(), text.end(), [](char one) {
               return is_alphanumeric(one) || one == '.' || one == '_' || one == '-';
           });
}

bool is_token(std::string_view text) noexcept {
    constexpr std::size_t longest = 4096;
    return text.size() <= longest && std::none_of(text.begin(), text.end(), [](char one) {
               const auto byte = static_cast<unsigned char>(one);
               return byte <= ' ' || byte == 0x7F;
           });
}

} // namespace sandboxd::client
