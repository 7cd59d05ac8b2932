#pragma once

#include "http/exchange.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::http {

/// How the end of an answer is told.
enum class answer_framing { length, chunked, until_close, none };

/// "OK", "Not Found"; "Unknown" for numbers without a name.
[[nodiscard]] std::string_view reason_of(unsigned status) noexcept;

/// Appends status line and fields with the empty line. `connection` is "close", "keep-alive" or empty.
void format_head(std::string& out, unsigned status, const header_list& headers, answer_framing framing,
                 std::uint64_t length, std::string_view connection, std::string_view request_id);

/// "Sun, 06 Nov 1994 08:49:37 GMT", made at most once a second and thread. Valid until the next call.
[[nodiscard]] std::string_view date_now();

/// The same for a given time in Unix seconds.
[[nodiscard]] std::string format_date(std::int64_t seconds);

/// 16 hex digits, unique in this process and unlikely elsewhere.
[[nodiscard]] std::string new_request_id();

} // namespace sandboxd::http
