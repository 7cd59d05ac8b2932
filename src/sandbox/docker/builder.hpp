#pragma once

// docker: a sandbox is a container whose first process is the agent (design.md "Decided" 2, 5 and 6; contract
// 4.1 to 4.3 and 4.5). The daemon is asked to create, start and remove; what runs in between never enters it.

#include "core/gate.hpp"
#include "docker/engine.hpp"
#include "images/keeper.hpp"
#include "sandbox/sandbox_host.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

struct builder_options {
    std::string service_uuid; ///< label of all that is ours
    boost::asio::any_io_executor executor;
    core::gate* background = nullptr; ///< counts the watch over the daemon: close the builder, then drain
    std::shared_ptr<docker::engine> engine;
    bool may_be_local = false;   ///< the daemon is spoken to over a Unix socket
    std::string agent_program;   ///< file of our own agent
    std::string state_directory; ///< sockets that agents dial lie below it
    agent_sandbox_factory factory;
    std::shared_ptr<images::keeper> images;                         ///< makes absent images ready
    std::chrono::milliseconds look_every = std::chrono::seconds(5); ///< whether the daemon answers
    std::chrono::milliseconds start_limit = std::chrono::seconds(60);
};

/// Asks the daemon what it is and can, for notes(). errc::start_failed when it does not answer, or not like a
/// Docker daemon.
[[nodiscard]] task<result<std::shared_ptr<sandbox_builder>>> create_builder(builder_options options);

/// What prepare() refuses before the daemon is asked: images of the oci backend, names that no environment
/// can hold. errc::start_failed with a sentence.
[[nodiscard]] result<void> check_spec(const sandbox_spec& spec);

} // namespace sandboxd::sandboxes::docker_backend
