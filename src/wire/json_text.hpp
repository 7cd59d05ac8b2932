#pragma once

#include <boost/json/value.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace sandboxd::wire {

// Writing JSON. What is written is always valid JSON in valid UTF-8, whatever is given: Boost.JSON's own
// serializer passes invalid bytes, NaN and Infinity through. Non-ASCII stays as it is, separators have no
// blanks.

/// A string literal; bytes that are no UTF-8 become U+FFFD as in core::to_utf8. One pass.
void append_string(std::string& out, std::string_view text);

void append_number(std::string& out, std::int64_t value);
void append_number(std::string& out, std::uint64_t value);

/// The shortest text that reads back the same, with ".0" for whole numbers; `null` for what is not finite.
void append_number(std::string& out, double value);

void append_value(std::string& out, const boost::json::value& value);

/// The same, but gives up, leaving a start of it, soon after `limit` bytes; false then.
[[nodiscard]] bool append_value_within(std::string& out, const boost::json::value& value, std::size_t limit);

} // namespace sandboxd::wire
