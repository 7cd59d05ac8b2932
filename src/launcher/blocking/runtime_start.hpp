#pragma once

#include "launcher/blocking/slots.hpp"
#include "launcher/runtimes/runtime.hpp"

#include <string>

namespace sandboxd::launcher::blocking {

/// The program of an adapter.
[[nodiscard]] std::string program_of(const oci_runtime& runtime, const launcher_options& options);

/// What a program of this launcher gets: PATH and nothing else.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> program_environment();

/// Where a runtime keeps its own records.
[[nodiscard]] std::string records_directory(const oci_runtime& runtime, const launcher_options& options);

/// The sentence for a program that is missing, with the package that has it.
[[nodiscard]] std::string not_installed(const oci_runtime& runtime, const launcher_options& options);

/// Has the runtime start the bundle that lies in `bundle`; afterwards `<bundle>/pid` holds its first process.
/// `listener` (negative: none) becomes descriptor 3 of that process, the agent, which is then waited for
/// until it serves. errc::start_failed with the runtime's own words, or the agent's.
[[nodiscard]] result<void> call_runtime(const worker_context& context, const oci_runtime& runtime,
                                        const start_sandbox& request, const std::string& bundle, int listener,
                                        int lock, deadline until);

} // namespace sandboxd::launcher::blocking
