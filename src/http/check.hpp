#pragma once

// The checks that the parser leaves out, without I/O.

#include "http/exchange.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sandboxd::http {

/// Why a head is refused; the connection is closed after the answer.
struct head_fault {
    unsigned status = 400;
    std::string_view text;
};

/// How the body comes, and what else the connection must know of the fields.
struct head_facts {
    enum class framing { none, length, chunked };
    framing body = framing::none;
    std::uint64_t length = 0;
    bool expects_continue = false;
    std::string_view host;
    std::string_view request_id; ///< empty when absent or not acceptable
    std::optional<head_fault> fault;
};

/// Line folding, bare CR or LF, NUL and other control characters in the raw bytes of a head, its last empty
/// line included.
[[nodiscard]] std::optional<head_fault> check_raw(std::string_view raw) noexcept;

/// Target and fields of a head that the parser took.
[[nodiscard]] head_facts check_head(std::string_view method, std::string_view target, unsigned version,
                                    std::span<const header_view> fields) noexcept;

/// 1 to 64 characters of letters, digits, '.', '_', '-'.
[[nodiscard]] bool acceptable_request_id(std::string_view id) noexcept;

/// ASCII only.
[[nodiscard]] bool same_name(std::string_view a, std::string_view b) noexcept;

} // namespace sandboxd::http
