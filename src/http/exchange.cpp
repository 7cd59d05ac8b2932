#include "http/exchange.hpp"

#include "core/utf8.hpp"
#include "http/check.hpp"

#include <array>
#include <stdexcept>

namespace sandboxd::http {

namespace {

/// A JSON string, quotes included.
std::string quoted(std::string_view text) {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : core::to_utf8(std::string(text))) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (byte < 0x20) {
            const std::array<char, 6> escaped{'\\', 'u', '0', '0', digits[byte >> 4U], digits[byte & 15U]};
            out.append(escaped.data(), escaped.size());
        } else {
            out.push_back(c);
        }
    }
    out.push_back('"');
    return out;
}

} // namespace

std::optional<std::string_view> request_head::header(std::string_view name) const noexcept {
    for (const auto& one : headers) {
        if (same_name(one.name, name)) {
            return one.value;
        }
    }
    return std::nullopt;
}

unsigned status_of(body_fault fault) noexcept {
    switch (fault) {
    case body_fault::too_large:
        return 413;
    case body_fault::malformed:
    case body_fault::gone:
        return 400;
    case body_fault::too_slow:
        return 408;
    case body_fault::overloaded:
        return 503;
    }
    return 500;
}

std::string_view text_of(body_fault fault) noexcept {
    switch (fault) {
    case body_fault::too_large:
        return "The request body is too large";
    case body_fault::malformed:
        return "The request body is malformed";
    case body_fault::gone:
        return "The request body is incomplete";
    case body_fault::too_slow:
        return "The request body came too slowly";
    case body_fault::overloaded:
        return "The service has no memory left for this request; try again later";
    }
    return "The request body can't be read";
}

void throw_exception_from_error(body_fault fault, const boost::source_location& where) {
    throw std::runtime_error(std::string(text_of(fault)) + " (" + where.to_string() + ")");
}

reply json_reply(unsigned status, std::string body) {
    reply made;
    made.status = status;
    made.headers.emplace_back("Content-Type", "application/json");
    made.body = std::move(body);
    return made;
}

reply detail_reply(unsigned status, std::string_view text) {
    return json_reply(status, "{\"detail\":" + quoted(text) + "}");
}

task<void> refuse(exchange& x, body_fault fault) {
    co_await x.answer().send(detail_reply(status_of(fault), text_of(fault)));
}

} // namespace sandboxd::http
