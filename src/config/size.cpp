#include "config/size.hpp"

#include "config/text.hpp"

#include <cmath>
#include <tuple>

namespace sandboxd::config {
namespace {

/// Takes the unit off the end and returns its factor.
double take_unit(std::string_view& text) {
    const auto at_end = [&text](char small, char big) {
        return !text.empty() && (text.back() == small || text.back() == big);
    };
    if (at_end('b', 'B')) {
        text.remove_suffix(1);
    }
    constexpr double kibi = 1024.0;
    for (const auto& [small, big, factor] : {std::tuple{'k', 'K', kibi}, std::tuple{'m', 'M', kibi * kibi},
                                             std::tuple{'g', 'G', kibi * kibi * kibi}}) {
        if (at_end(small, big)) {
            text.remove_suffix(1);
            return factor;
        }
    }
    return 1.0;
}

} // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
    const auto factor = take_unit(text);
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) {
        return std::nullopt;
    }
    const auto number = parse_number(text);
    constexpr double limit = 9223372036854775808.0;
    if (!number || *number * factor >= limit) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(std::floor(*number * factor));
}

std::optional<std::string> tmpfs_size_option(std::string_view text) {
    if (text.ends_with('%')) {
        const std::string_view digits = text.substr(0, text.size() - 1);
        const auto share = parse_integer(digits);
        const bool plain = digits.find_first_not_of("0123456789") == std::string_view::npos;
        return share && plain && *share >= 1 && *share <= 100 ? std::optional(std::string(text))
                                                              : std::nullopt;
    }
    const auto bytes = parse_size(text);
    return bytes && *bytes > 0 ? std::optional(std::to_string(*bytes)) : std::nullopt;
}

} // namespace sandboxd::config
