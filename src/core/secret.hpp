#pragma once

#include <string_view>

namespace sandboxd::core {

/// Compares in a time that depends on the lengths only.
[[nodiscard]] bool equal_secret(std::string_view a, std::string_view b) noexcept;

} // namespace sandboxd::core
