#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <string>
#include <vector>

namespace sandboxd::config {

struct changed_policy {
    settings values;
    std::vector<std::string> changed; ///< what is another value now: "max_sessions", "runtimes.x.cpus"
};

/// The settings after a change, checked as at start: all of it is applied or nothing (contract 1.4.2, 2.14).
/// errc::invalid with a sentence for the 400.
[[nodiscard]] result<changed_policy> apply(const settings& to, const policy_change& change);

/// Adds what a later change says; it wins field by field.
void merge(policy_change& into, const policy_change& later);

/// The fields that are given, in the order of contract 1.4.2.
[[nodiscard]] std::vector<std::string> names_of(const policy_change& change);

} // namespace sandboxd::config
