#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sandboxd::launcher {

/// What stands between the separators, empty parts included: at least one.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char by);

/// A decimal number and nothing else: no sign, no blank.
[[nodiscard]] std::optional<std::uint32_t> parse_number(std::string_view text);

} // namespace sandboxd::launcher
