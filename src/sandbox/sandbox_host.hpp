#pragma once

// sandbox_host: what a backend (oci, later docker) gives to an agent-backed sandbox. The backend knows how to
// reach the agent, how the sandbox dies and how it is taken down; everything that is said to the agent lives
// above this interface.
//
// The namespace of this room is `sandboxes`: `sandboxd::sandbox` is a class.

#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::sandboxes {

/// Whose name commands carry: `user_id` and `group_id` of every start, the agent itself being root inside.
struct command_user {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;

    friend bool operator==(const command_user&, const command_user&) = default;
};

/// Safe to call from any executor, several calls at a time. Owned by the sandbox made over it.
class sandbox_host {
public:
    virtual ~sandbox_host() = default;
    sandbox_host() = default;
    sandbox_host(const sandbox_host&) = delete;
    sandbox_host& operator=(const sandbox_host&) = delete;

    /// The backend's name, "oci": what sandbox::type() shows.
    [[nodiscard]] virtual std::string_view type() const noexcept = 0;

    /// A new byte stream to the agent, running on `executor`; no frame has been sent on it. errc::gone when
    /// the sandbox has ended, errc::io when it can't be reached now (the caller tries again). Bounded in
    /// time.
    [[nodiscard]] virtual task<result<net::stream_ptr>> connect(boost::asio::any_io_executor executor) = 0;

    /// User and group of commands; the agent's own (root inside) when absent. The working directory and the
    /// environment are the agent's own: the backend started it with the sandbox's.
    [[nodiscard]] virtual std::optional<command_user> default_user() const = 0;

    /// False once the sandbox's first process has ended. Never blocks.
    [[nodiscard]] virtual bool alive() const noexcept = 0;

    /// Called once, on an unspecified executor, when the sandbox's first process has ended, whatever the
    /// reason (terminate() included); at once when that is past. Each callback set is called.
    virtual void on_death(std::function<void()> callback) = 0;

    /// How many processes of this sandbox the kernel has killed for lack of memory so far; nothing where the
    /// cgroup doesn't tell. A few microseconds (one read of a kernel file). Compare before and after a
    /// command.
    [[nodiscard]] virtual std::optional<std::uint64_t> oom_kills() const = 0;

    /// A sample for contract 2.15; errc::unsupported where the cgroup can't be read, errc::gone after the
    /// end.
    [[nodiscard]] virtual task<result<usage_sample>> usage() = 0;

    /// Takes the sandbox down and removes all that is left of it (processes, mounts, cgroups, files, uid
    /// claim). The caller has asked the agent to leave (protocol `shutdown`) and does not wait for it: this
    /// gives the first process `grace` to end by itself, then kills it. Never fails: what could not be
    /// removed is logged and found again by owned(). Idempotent. `purge`: also what outlives a stop (a kept
    /// layer).
    [[nodiscard]] virtual task<void> terminate(std::chrono::milliseconds grace, bool purge) = 0;

    /// What adopt() needs to find it again: sandbox::handle().
    [[nodiscard]] virtual std::string handle() const = 0;
};

/// Makes the sandbox that speaks to the agent behind `host`. `adopted`: it ran before this service started,
/// so its streams must be taken over. Fails (errc::start_failed, gone) when the agent does not answer in
/// time; the backend then takes the host down.
using agent_sandbox_factory =
    std::function<task<result<std::shared_ptr<sandbox>>>(std::shared_ptr<sandbox_host> host, bool adopted)>;

} // namespace sandboxd::sandboxes
