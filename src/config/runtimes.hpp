#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::config {

/// Reads SANDBOXD_RUNTIMES in either of its syntaxes (contract 5.3), checks every entry (5.2, 11.11:
/// `@names`, sizes, ranges) and fills in the definitions of built-ins. The order is kept, a later duplicate
/// of an alias takes the place of the earlier one. In the compact syntax the entry "@suggested" stands for
/// all of suggested_runtimes(). `label` begins every error: it names the variable, or the file and key.
[[nodiscard]] result<std::vector<runtime_entry>> parse_runtimes(std::string_view text,
                                                                std::string_view label);

/// The entries in the compact syntax, for people; an own definition is shown by its name.
[[nodiscard]] std::string runtimes_text(const std::vector<runtime_entry>& entries);

/// What is wrong with a value that both the service and a runtime's entry can have, in words; nothing when it
/// is fine.
[[nodiscard]] std::optional<std::string> size_fault(std::string_view text);
[[nodiscard]] std::optional<std::string> network_fault(std::string_view mode);
/// Whether a backend has that runtime: check_oci_runtimes() for oci, the daemon for docker.
[[nodiscard]] std::optional<std::string> oci_runtime_fault(std::string_view name);
[[nodiscard]] std::optional<std::string> cpus_fault(double cpus);
[[nodiscard]] std::optional<std::string> work_dir_fault(std::string_view path);
[[nodiscard]] std::optional<std::string> backend_fault(std::string_view name);

} // namespace sandboxd::config
