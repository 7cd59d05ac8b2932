#pragma once

// oci: sandboxes without a daemon (design.md, "The oci backend"). The launcher starts an OCI runtime that
// leaves nothing behind but the agent; this folder checks what is asked for, watches and takes down what
// runs.

#include "images/keeper.hpp"
#include "launcher/client.hpp"
#include "sandbox/sandbox_host.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sandboxd::sandboxes::oci {

struct builder_options {
    std::string service_uuid;                   ///< as the launcher was told
    boost::asio::any_io_executor executor;      ///< where deaths are noticed
    std::shared_ptr<launcher::client> launcher; ///< outlives the builder and all its sandboxes
    agent_sandbox_factory factory;              ///< makes the sandbox over an agent that runs
    /// Fetches and builds what is not here; without one the launcher fetches, with no credentials.
    std::shared_ptr<images::keeper> images;
    std::optional<std::uint32_t>
        workspace_uid; ///< SANDBOXD_SANDBOX_UID: owner of workspaces (contract 4.6.4)
    std::chrono::milliseconds start_deadline = std::chrono::seconds(60);
};

/// Asks the launcher what the host can do, for notes(). errc::start_failed, naming the way out, when it can't
/// run sandboxes at all.
[[nodiscard]] task<result<std::shared_ptr<sandbox_builder>>> create_builder(builder_options options);

/// What prepare() refuses before anything is started: networks, runtimes and images that are none, limits
/// that mean nothing, odd names in the environment. errc::start_failed with a sentence.
[[nodiscard]] result<void> check_spec(const sandbox_spec& spec);

} // namespace sandboxd::sandboxes::oci
