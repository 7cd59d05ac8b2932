#include "docker/error.hpp"

#include "docker/json.hpp"

#include <array>

namespace sandboxd::docker {

namespace {

constexpr std::size_t longest_words = 1000;

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

std::string printable(std::string_view text) {
    std::string clean;
    for (const char c : text.substr(0, longest_words)) {
        const auto byte = static_cast<unsigned char>(c);
        const bool blank = byte < 0x20 || byte == 0x7F;
        if (blank && (clean.empty() || clean.back() == ' ')) {
            continue;
        }
        clean.push_back(blank ? ' ' : c);
    }
    while (!clean.empty() && clean.back() == ' ') {
        clean.pop_back();
    }
    return clean;
}

/// Registries' refusals reach us as 500 or inside a 200 (engine-facts A11).
bool rate_limited(std::string_view words) {
    return contains(words, "toomanyrequests") || contains(words, "Too Many Requests") ||
           contains(words, "too many requests") || contains(words, "rate limit");
}

errc judge_500(std::string_view words) {
    if (rate_limited(words)) {
        return errc::unavailable;
    }
    static constexpr std::array absent{"manifest unknown", "manifest for", "repository does not exist",
                                       "No such image", "no such image"};
    for (const auto* sign : absent) {
        if (contains(words, sign)) {
            return errc::not_found;
        }
    }
    if (contains(words, "unauthorized") || contains(words, "denied: ") ||
        contains(words, "authentication required") || contains(words, "access denied")) {
        return errc::denied;
    }
    return errc::io;
}

errc judge(int status, std::string_view words) {
    switch (status) {
    case 400:
        return errc::invalid;
    case 401:
    case 403:
        return errc::denied;
    case 404:
        return errc::not_found;
    case 409:
        return contains(words, "already in use") ? errc::exists : errc::busy;
    case 429:
    case 502:
    case 503:
    case 504:
        return errc::unavailable;
    default:
        return status >= 500 ? judge_500(words) : errc::protocol;
    }
}

engine_error built(std::string_view what, errc code, int status, std::string words) {
    engine_error e;
    e.code = code;
    e.status = status;
    e.retryable = code == errc::unavailable;
    e.message = "cannot " + std::string(what) + ": " + std::move(words);
    return e;
}

} // namespace

std::string words_of(std::string_view body) {
    if (const auto parsed = json_object(body)) {
        if (const auto message = text_at(*parsed, "message")) {
            return printable(*message);
        }
    }
    return printable(body);
}

engine_error from_answer(std::string_view what, int status, std::string_view body) {
    auto words = words_of(body);
    if (words.empty()) {
        words = "the daemon answered " + std::to_string(status) + " without words";
    }
    const auto code = judge(status, words);
    return built(what, code, status, std::move(words));
}

engine_error from_stream(std::string_view what, std::string_view words) {
    const auto code = judge_500(words);
    return built(what, code, 200, printable(words));
}

engine_error no_answer(errc code, std::string message, bool may_have_happened) {
    engine_error e;
    e.code = code;
    e.message = std::move(message);
    e.may_have_happened = may_have_happened;
    e.retryable = code == errc::unavailable || code == errc::timeout;
    return e;
}

} // namespace sandboxd::docker
