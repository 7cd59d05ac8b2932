#pragma once

// The service's log: one line each on standard error, as text or as one JSON object (SANDBOXD_LOG_FORMAT).
// Never holds tokens, contents of files or output of commands. Thread-safe.

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>

namespace sandboxd::core::log {

enum class level { debug, info, warning, error };

/// "debug", "info", "warning", "error"; false for any other name, nothing changes then.
bool set_level(std::string_view name);

/// "text" or "json"; false for any other name.
bool set_format(std::string_view name);

[[nodiscard]] bool enabled(level at) noexcept;
void write(level at, std::string_view message);

template <class... A>
void at(level severity, fmt::format_string<A...> format, A&&... arguments) {
    if (enabled(severity)) {
        write(severity, fmt::format(format, std::forward<A>(arguments)...));
    }
}
template <class... A>
void debug(fmt::format_string<A...> format, A&&... arguments) {
    at(level::debug, format, std::forward<A>(arguments)...);
}
template <class... A>
void info(fmt::format_string<A...> format, A&&... arguments) {
    at(level::info, format, std::forward<A>(arguments)...);
}
template <class... A>
void warning(fmt::format_string<A...> format, A&&... arguments) {
    at(level::warning, format, std::forward<A>(arguments)...);
}
template <class... A>
void error(fmt::format_string<A...> format, A&&... arguments) {
    at(level::error, format, std::forward<A>(arguments)...);
}

} // namespace sandboxd::core::log
