#include "http/check.hpp"

#include <algorithm>
#include <charconv>

namespace sandboxd::http {

namespace {

char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

bool alphanumeric(char c) noexcept {
    return digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
}

/// Characters of a host, an IPv6 address in brackets and a port: nothing that could break out of a Location.
bool host_character(char c) noexcept {
    return alphanumeric(c) || std::string_view("-._~%!$&'()*+,;=:[]").find(c) != std::string_view::npos;
}

bool target_character(char c) noexcept {
    return c > 0x20 && c < 0x7F && c != '#';
}

/// What was seen of the fields that matter.
struct seen {
    std::optional<std::string_view> host;
    std::optional<std::string_view> length;
    std::optional<std::string_view> coding;
    std::optional<std::string_view> expect;
    bool twice = false; ///< one of host, length, coding came twice

    void take(std::optional<std::string_view>& place, std::string_view value) noexcept {
        twice = twice || place.has_value();
        place = value;
    }
};

seen look(std::span<const header_view> fields, std::string_view& request_id) noexcept {
    seen all;
    for (const auto& [name, value] : fields) {
        // Most names differ in length from all of these.
        switch (name.size()) {
        case 4:
            if (same_name(name, "host")) {
                all.take(all.host, value);
            }
            break;
        case 6:
            if (same_name(name, "expect")) {
                all.expect = value;
            }
            break;
        case 12:
            if (request_id.empty() && same_name(name, "x-request-id") && acceptable_request_id(value)) {
                request_id = value;
            }
            break;
        case 14:
            if (same_name(name, "content-length")) {
                all.take(all.length, value);
            }
            break;
        case 17:
            if (same_name(name, "transfer-encoding")) {
                all.take(all.coding, value);
            }
            break;
        default:
            break;
        }
    }
    return all;
}

std::optional<head_fault> check_coding(const seen& all, unsigned version) noexcept {
    if (all.length) {
        return head_fault{400, "Content-Length and Transfer-Encoding exclude each other"};
    }
    if (version < 11) {
        return head_fault{400, "Transfer-Encoding is not part of HTTP/1.0"};
    }
    if (same_name(*all.coding, "chunked")) {
        return std::nullopt;
    }
    const auto last = all.coding->find_last_of(", \t");
    const auto tail = last == std::string_view::npos ? *all.coding : all.coding->substr(last + 1);
    if (all.coding->empty() ||
        (same_name(tail, "chunked") && same_name(all.coding->substr(0, 7), "chunked"))) {
        return head_fault{400, "the Transfer-Encoding is malformed"};
    }
    return head_fault{501, "the only transfer coding understood is chunked"};
}

std::optional<head_fault> check_target(std::string_view method, std::string_view target) noexcept {
    const bool asterisk = target == "*" && method == "OPTIONS";
    if (!asterisk && (target.empty() || target.front() != '/')) {
        return head_fault{400, "the request target must be a path"};
    }
    if (!std::all_of(target.begin(), target.end(), target_character)) {
        return head_fault{400, "the request target holds a character that must be escaped"};
    }
    return std::nullopt;
}

std::optional<head_fault> check_host(const seen& all, unsigned version) noexcept {
    if (!all.host) {
        return version < 11 ? std::nullopt : std::optional(head_fault{400, "the Host field is missing"});
    }
    if (!std::all_of(all.host->begin(), all.host->end(), host_character)) {
        return head_fault{400, "the Host field is malformed"};
    }
    return std::nullopt;
}

std::optional<head_fault> check_framing(const seen& all, unsigned version, head_facts& facts) noexcept {
    if (all.coding) {
        facts.body = head_facts::framing::chunked;
        return check_coding(all, version);
    }
    if (all.length) {
        const auto text = *all.length;
        const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), facts.length);
        if (text.empty() || !std::all_of(text.begin(), text.end(), digit) || failed != std::errc() ||
            end != text.data() + text.size()) {
            return head_fault{400, "the Content-Length is malformed"};
        }
        facts.body = facts.length > 0 ? head_facts::framing::length : head_facts::framing::none;
    }
    return std::nullopt;
}

} // namespace

bool same_name(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

bool acceptable_request_id(std::string_view id) noexcept {
    return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
        return alphanumeric(c) || c == '.' || c == '_' || c == '-';
    });
}

std::optional<head_fault> check_raw(std::string_view raw) noexcept {
    for (std::size_t i = 0; i < raw.size(); ++i) {
        const auto byte = static_cast<unsigned char>(raw[i]);
        if (byte >= 0x20 && byte != 0x7F) {
            continue;
        }
        if (byte == '\t') {
            continue;
        }
        if (byte != '\r' || i + 1 == raw.size() || raw[i + 1] != '\n') {
            return head_fault{400, "the head of the request holds a control character"};
        }
        ++i;
        if (i + 1 < raw.size() && (raw[i + 1] == ' ' || raw[i + 1] == '\t')) {
            return head_fault{400, "a header field is folded over several lines"};
        }
    }
    return std::nullopt;
}

head_facts check_head(std::string_view method, std::string_view target, unsigned version,
                      std::span<const header_view> fields) noexcept {
    head_facts facts;
    const seen all = look(fields, facts.request_id);
    facts.host = all.host.value_or(std::string_view());
    if (all.twice) {
        facts.fault = head_fault{400, "Host, Content-Length and Transfer-Encoding may each be sent once"};
        return facts;
    }
    facts.fault = check_target(method, target);
    if (!facts.fault) {
        facts.fault = check_host(all, version);
    }
    if (!facts.fault) {
        facts.fault = check_framing(all, version, facts);
    }
    if (!facts.fault && all.expect && version >= 11) {
        facts.expects_continue = same_name(*all.expect, "100-continue");
        if (!facts.expects_continue) {
            facts.fault = head_fault{417, "the only expectation understood is 100-continue"};
        }
    }
    return facts;
}

} // namespace sandboxd::http
