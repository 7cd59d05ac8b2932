#pragma once

#include "launcher/blocking/own_cgroups.hpp"
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

/// What the agent says before it serves: then it leaves its standard streams.
class agent_words {
public:
    [[nodiscard]] result<void> open();
    /// Negative when they were not opened.
    [[nodiscard]] int writing() const { return writing_.get(); }
    /// When the agent, or who starts it, has it.
    void leave_to_it() { writing_.reset(); }
    /// Until the agent serves. Its complaint, when it has one. At once when they were not opened.
    [[nodiscard]] result<void> wait(deadline until);

private:
    core::unique_fd reading_;
    core::unique_fd writing_;
};

/// One call of a runtime, which starts the bundle that lies in `bundle`. Undone when it goes before finish().
class runtime_start {
public:
    /// `listener` (negative: none) becomes descriptor 3 of the first process, the agent.
    [[nodiscard]] static result<runtime_start> begin(const worker_context& context,
                                                     const oci_runtime& runtime, const start_sandbox& request,
                                                     const std::string& bundle, int listener, int lock);

    /// Waits for the runtime, and for an agent with a listener until it serves. Afterwards `<bundle>/pid`
    /// holds the first process. errc::start_failed with the runtime's own words, or the agent's.
    [[nodiscard]] result<void> finish(deadline until);

private:
    runtime_start(const oci_runtime& runtime, std::string log, made_cgroups cgroups, agent_words words,
                  child_process child)
        : runtime_(&runtime),
          log_(std::move(log)),
          cgroups_(std::move(cgroups)),
          words_(std::move(words)),
          child_(std::move(child)) {}

    const oci_runtime* runtime_;
    std::string log_;
    made_cgroups cgroups_;
    agent_words words_;
    child_process child_;
};

} // namespace sandboxd::launcher::blocking
