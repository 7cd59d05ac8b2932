#pragma once

#include "wire/fault.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::wire {

// Parameters of the path and the query, as text already percent-decoded. Where a query names one several
// times the caller hands in the last. Each pushes what is wrong at ["path", name] or ["query", name].

/// What a route takes from its query; read and documented from here. None of them may be wanted twice.
struct query_parameter {
    enum class kind {
        flag,   ///< false when absent
        number, ///< a whole number, at least 0 and 0 when absent
        text,   ///< any text, but there must be one
    };
    std::string_view name;
    kind of;
};

inline constexpr query_parameter usage_query{"usage", query_parameter::kind::flag};
inline constexpr query_parameter purge_query{"purge", query_parameter::kind::flag};
inline constexpr query_parameter after_query{"after", query_parameter::kind::number};
inline constexpr query_parameter path_query{"path", query_parameter::kind::text}; ///< of files/write

/// True when `id` is a session id (contract 1.2.1).
bool check_session_id(std::string_view id, fault_list& faults);

/// True when `id` is a run id (contract 1.2.1).
bool check_run_id(std::string_view id, fault_list& faults);

/// `usage`, `purge`: `absent` when there is none (contract 1.1.6); nothing when it is faulty.
[[nodiscard]] std::optional<bool> read_query_flag(std::string_view name, std::optional<std::string_view> text,
                                                  bool absent, fault_list& faults);

/// `path` of files/write: any text, but there must be one.
[[nodiscard]] std::optional<std::string>
read_query_text(std::string_view name, std::optional<std::string_view> text, fault_list& faults);

/// `after`: a whole number not below `at_least`.
[[nodiscard]] std::optional<std::int64_t> read_query_integer(std::string_view name,
                                                             std::optional<std::string_view> text,
                                                             std::int64_t absent, std::int64_t at_least,
                                                             fault_list& faults);

} // namespace sandboxd::wire
