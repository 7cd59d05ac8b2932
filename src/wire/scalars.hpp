#pragma once

#include "wire/fault.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::wire {

/// A regular expression of the contract (1.2.1) with a matcher of our own; anchored at both ends strictly
/// (1.1.7).
struct id_pattern {
    std::string_view text;
    bool (*matches)(std::string_view) noexcept;
};

extern const id_pattern session_id_pattern; ///< also a tenant's
extern const id_pattern run_id_pattern;

/// What a value must keep to beyond its type.
struct rules {
    bool required = false;
    std::optional<std::int64_t> at_least{};
    std::optional<std::int64_t> at_most{};
    std::optional<double> above{};
    const id_pattern* pattern = nullptr;
    std::size_t min_items = 0;
    std::optional<std::size_t> max_items{};
    const id_pattern* item_pattern = nullptr; ///< of each item of a list
    bool no_null = false;                     ///< of a change: the field can't be cleared
    bool no_nul = false;                      ///< a NUL can't reach a program (N19.2)
};

// Reading one value with the leniency of contract 1.1.6. Each pushes what is wrong, with the words of the
// reference's framework, and returns false then; `at` is where the value stands.
bool read_value(const boost::json::value& from, std::string& into, const rules& keep, const place& at,
                fault_list& faults);
bool read_value(const boost::json::value& from, std::int64_t& into, const rules& keep, const place& at,
                fault_list& faults);
bool read_value(const boost::json::value& from, double& into, const rules& keep, const place& at,
                fault_list& faults);
bool read_value(const boost::json::value& from, bool& into, const rules& keep, const place& at,
                fault_list& faults);
bool read_value(const boost::json::value& from, std::vector<std::string>& into, const rules& keep,
                const place& at, fault_list& faults);
bool read_value(const boost::json::value& from, std::vector<std::pair<std::string, std::string>>& into,
                const rules& keep, const place& at, fault_list& faults);

template <class T>
bool read_value(const boost::json::value& from, std::optional<T>& into, const rules& keep, const place& at,
                fault_list& faults) {
    if (from.is_null()) {
        into.reset();
        return true;
    }
    return read_value(from, into.emplace(), keep, at, faults);
}

} // namespace sandboxd::wire
