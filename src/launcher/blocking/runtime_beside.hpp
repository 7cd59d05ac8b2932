#pragma once

#include "launcher/blocking/held_file.hpp"
#include "launcher/blocking/runtime_start.hpp"

#include <optional>
#include <string>

namespace sandboxd::launcher::blocking {

/// The call of a runtime beside the preparation of its bundle, where it takes long to get ready: it waits for
/// its configuration. Others are called when that is there. Undone when it goes before finish(); the
/// arguments outlive it.
class runtime_beside {
public:
    runtime_beside(const worker_context& context, const oci_runtime& runtime, const start_sandbox& request,
                   const slot_directory& slot)
        : context_(context), runtime_(runtime), request_(request), slot_(slot) {}

    /// `bundle` is empty, and in the mount namespace in which it will be filled.
    [[nodiscard]] result<void> begin_early(const std::string& bundle);

    /// Everything but config.json, whose text this is, lies in the bundle.
    [[nodiscard]] result<void> configure(const std::string& text);

    /// See runtime_start::finish().
    [[nodiscard]] result<void> finish(deadline until);

private:
    [[nodiscard]] std::string config_file() const { return bundle_ + "/config.json"; }
    [[nodiscard]] result<void> begin();

    const worker_context& context_;
    const oci_runtime& runtime_;
    const start_sandbox& request_;
    const slot_directory& slot_;
    std::string bundle_;
    core::unique_fd listener_; ///< for the agent, where it is handed in
    std::optional<held_file> config_;
    std::optional<runtime_start> begun_;
};

} // namespace sandboxd::launcher::blocking
