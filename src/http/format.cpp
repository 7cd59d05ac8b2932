#include "http/format.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <ctime>

namespace sandboxd::http {

namespace {

void append_number(std::string& out, std::uint64_t number) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out.append(digits.data(), end);
}

/// Control characters would end the field early; a handler must not send any, and if it does they don't pass.
void append_text(std::string& out, std::string_view text) {
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        out.push_back((byte < 0x20 && byte != '\t') || byte == 0x7F ? ' ' : c);
    }
}

std::uint64_t random_start() {
    std::array<unsigned char, 8> bytes{};
    core::random_bytes(bytes);
    std::uint64_t start = 0;
    std::memcpy(&start, bytes.data(), sizeof start);
    return start;
}

} // namespace

std::string_view reason_of(unsigned status) noexcept {
    switch (status) {
    case 100:
        return "Continue";
    case 102:
        return "Processing";
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 202:
        return "Accepted";
    case 204:
        return "No Content";
    case 206:
        return "Partial Content";
    case 304:
        return "Not Modified";
    case 307:
        return "Temporary Redirect";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 410:
        return "Gone";
    case 413:
        return "Content Too Large";
    case 415:
        return "Unsupported Media Type";
    case 417:
        return "Expectation Failed";
    case 422:
        return "Unprocessable Content";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 507:
        return "Insufficient Storage";
    default:
        return "Unknown";
    }
}

void format_head(std::string& out, unsigned status, const header_list& headers, answer_framing framing,
                 std::uint64_t length, std::string_view connection, std::string_view request_id) {
    out += "HTTP/1.1 ";
    append_number(out, status);
    out += ' ';
    out += reason_of(status);
    out += "\r\nDate: ";
    out += date_now();
    for (const auto& [name, value] : headers) {
        out += "\r\n";
        append_text(out, name);
        out += ": ";
        append_text(out, value);
    }
    if (framing == answer_framing::length) {
        out += "\r\nContent-Length: ";
        append_number(out, length);
    } else if (framing == answer_framing::chunked) {
        out += "\r\nTransfer-Encoding: chunked";
    }
    if (!connection.empty()) {
        out += "\r\nConnection: ";
        out += connection;
    }
    out += "\r\nX-Request-Id: ";
    out += request_id;
    out += "\r\n\r\n";
}

std::string format_date(std::int64_t seconds) {
    static constexpr std::array<std::string_view, 7> days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const std::time_t time = seconds;
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::string text;
    const auto number = [&text](int value, std::size_t width) {
        const std::string digits = std::to_string(value);
        text.append(width - std::min(width, digits.size()), '0');
        text += digits;
    };
    text += days[static_cast<std::size_t>(parts.tm_wday)];
    text += ", ";
    number(parts.tm_mday, 2);
    text += ' ';
    text += months[static_cast<std::size_t>(parts.tm_mon)];
    text += ' ';
    number(parts.tm_year + 1900, 4);
    text += ' ';
    number(parts.tm_hour, 2);
    text += ':';
    number(parts.tm_min, 2);
    text += ':';
    number(parts.tm_sec, 2);
    text += " GMT";
    return text;
}

std::string_view date_now() {
    thread_local std::int64_t made_for = -1;
    thread_local std::string text;
    const std::int64_t now = ::time(nullptr);
    if (now != made_for) {
        text = format_date(now);
        made_for = now;
    }
    return text;
}

std::string new_request_id() {
    static std::atomic<std::uint64_t> next{random_start()};
    const std::uint64_t id = next.fetch_add(1, std::memory_order_relaxed);
    std::array<unsigned char, sizeof id> bytes{};
    std::memcpy(bytes.data(), &id, sizeof id);
    return core::to_hex(bytes);
}

} // namespace sandboxd::http
