#pragma once

#include "sandboxd/config.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace sandboxd::config {

/// The built-in runtimes by name (contract 5.7), reached as `@name`.
[[nodiscard]] std::span<const runtime_definition> builtin_runtimes();

/// One of them; null when there is none of that name.
[[nodiscard]] const runtime_definition* find_builtin(std::string_view name);

/// Their names, in order.
[[nodiscard]] std::span<const std::string_view> builtin_names();

/// What SANDBOXD_RUNTIMES is when it is not set (contract 5.5), definitions resolved.
[[nodiscard]] std::vector<runtime_entry> default_runtimes();

/// A fuller list an operator may choose as `@suggested` (contract 5.6), definitions resolved.
[[nodiscard]] std::vector<runtime_entry> suggested_runtimes();

} // namespace sandboxd::config
