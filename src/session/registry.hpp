#pragma once

// The sessions of the service. Owned by the composition root. Each session is an actor: its life (opening,
// healing, closing) runs on its own strand and goes on when the client that asked has left; commands run on
// the caller's executor, which must be a strand. Nothing global is held while anything is awaited.
//
// Errors are result values that map one to one to statuses (api/errors.cpp): invalid 400, not_found 404,
// exists and busy 409, gone 410, capacity 429, unsupported 501, start_failed 502, unavailable 503, timeout
// 504. The texts are the contract's and fit for a client.

#include "auth/tokens.hpp"
#include "core/clock.hpp"
#include "core/offload.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/sandbox.hpp"
#include "session/archive.hpp"
#include "session/files.hpp"
#include "session/native_files.hpp"
#include "session/types.hpp"
#include "store/session_store.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace sandboxd::session {

/// How long the registry waits for others; tests shorten it.
struct patience {
    std::chrono::milliseconds stop{10'000};       ///< a stop; then the sandbox is quarantined
    std::chrono::milliseconds adopt{15'000};      ///< finding a sandbox again at start
    std::chrono::milliseconds stop_run{5'000};    ///< contract 3.12.5
    std::chrono::milliseconds exec_grace{3'000};  ///< after the ceiling ("Decided" 7)
    std::chrono::milliseconds run_grace{4'000};   ///< after the command's deadline (N8.2: 5 s at most)
    std::chrono::milliseconds usage{3'000};       ///< a sample
    std::chrono::milliseconds usage_cache{5'000}; ///< contract 2.15
    std::chrono::milliseconds door{3'000};        ///< the proof that host and sandbox share a directory
    std::chrono::milliseconds flush{500};         ///< events and activity are written so late at most
    std::chrono::milliseconds tick{1'000};        ///< between two looks at the clock of the reaper
    std::chrono::milliseconds adopt_again{2'000}; ///< between two looks for sandboxes that did not answer
};

/// What the registry stands on; all of it outlives the registry.
struct environment {
    boost::asio::io_context& context;
    const settings& config;
    store::session_store& store;
    sandbox_builder& builder;
    core::clock& clock;
    core::worker_pool& workers; ///< for work on the workspace directories
    const auth::token_authority& authority;
    runtime_source runtimes;
    policy_text policy;
    patience waits = {};
};

/// What a start found (design.md, "Nothing is lost on a crash").
struct start_report {
    std::size_t adopted = 0; ///< sessions whose sandbox is still there
    std::size_t dead = 0;    ///< sessions that stay listed, `alive` false
    std::size_t asleep = 0;  ///< sessions that sleep
    std::size_t removed = 0; ///< slots that had no owner
};

enum class shutdown_mode {
    keep, ///< sandboxes and records stay for the next start (design.md "Decided" 18)
    stop, ///< contract 2.16: every session is closed, all at once
};

class registry {
public:
    virtual ~registry() = default;

    /// Adopts the sessions of the store and removes what has no owner; before the first request. An error
    /// when the store can't be read or the builder can't tell what it owns.
    [[nodiscard]] virtual task<result<start_report>> start() = 0;

    /// Refuses what is new, waits for opens and closes under way, ends pending commands (410 or the
    /// operation's own error), then as `mode` says. Returns after `limit` at the latest (a little more for
    /// the last write); what has not answered by then is left to the next start.
    [[nodiscard]] virtual task<void> shutdown(shutdown_mode mode,
                                              std::chrono::steady_clock::duration limit) = 0;

    /// Contract 1.1.3: is this header value the service's token?
    [[nodiscard]] virtual bool is_service(std::string_view header) const = 0;

    /// What a header value is worth for a session id. `service` says nothing about whether there is such a
    /// session: the operations answer not_found, `No such session: <id>`.
    [[nodiscard]] virtual auth::scope authorize(std::string_view header, std::string_view id) const = 0;

    /// Contract 1.4.3, 2.2, 2.3; failures in its order with its texts. The open goes on when the awaiting
    /// coroutine is cancelled.
    [[nodiscard]] virtual task<result<opened>> open(open_request request) = 0;

    /// The answer to an open could not be delivered: a session with a generated id is closed at once, since
    /// nobody can find it (N16.33). Does nothing for another. Returns without waiting.
    virtual void undelivered(const opened& answer) = 0;

    /// Contract 1.5.1. No side effect.
    [[nodiscard]] virtual task<result<session_info>> inspect(std::string id, bool usage) = 0;

    /// Contract 1.4.4.
    [[nodiscard]] virtual task<listing> list(bool usage) = 0;

    /// Clients see a session of this id.
    [[nodiscard]] virtual bool has_session(std::string_view id) const = 0;

    /// Contract 1.5.2: entries with a number above `after`. No side effect.
    [[nodiscard]] virtual task<result<event_page>> events(std::string id, std::int64_t after) = 0;

    /// Contract 2.12. Goes on when the awaiting coroutine is cancelled.
    [[nodiscard]] virtual task<result<void>> close(std::string id, bool purge) = 0;

    /// Contract 3.2. What fails in the sandbox is an answer with exit code 1 and `Error: ...` as output.
    /// not_found, start_failed (healing), timeout (3 s after the ceiling, text with `service ceiling`),
    /// unsupported, unavailable (the client has left: nobody reads it). `client` may be empty.
    [[nodiscard]] virtual task<result<exec_answer>> exec(std::string id, exec_command command,
                                                         client_probe client) = 0;

    /// Contract 3.12, N8. not_found, gone, start_failed, unsupported, exists (the run id is in use),
    /// unavailable. `client` may be empty. A run that was stopped shows exit code 143.
    [[nodiscard]] virtual task<result<run_answer>> run(std::string id, run_command command,
                                                       client_probe client) = 0;

    /// Contract 1.5.6, N16.21: returns when the command is gone, at most 5 s later; a run still waiting never
    /// starts. not_found only. Never waits behind commands.
    [[nodiscard]] virtual task<result<void>> stop_run(std::string id, std::string run_id) = 0;

    /// The operations on files.
    [[nodiscard]] virtual file_operations& files() = 0;

    /// `files/*`.
    [[nodiscard]] virtual native_files& host_files() = 0;

    /// The workspaces of all sessions there ever were.
    [[nodiscard]] virtual archive& workspaces() = 0;

    [[nodiscard]] virtual health health_numbers() const = 0;

    /// The settings in force (contract 1.4.1 shows most of them).
    [[nodiscard]] virtual std::shared_ptr<const settings> policy() const = 0;

    /// What of them PUT /policy has set.
    [[nodiscard]] virtual std::vector<std::string> policy_overrides() const = 0;

    /// Contract 1.4.2, 2.14: in force when it answers, and after every restart until forget_policy(). All or
    /// nothing. errc::invalid with a text for the 400; errc::internal when it can't be recorded.
    [[nodiscard]] virtual task<result<void>> change_policy(policy_change change) = 0;

    /// Back to the settings of the environment and the files. errc::internal as above.
    [[nodiscard]] virtual task<result<void>> forget_policy() = 0;
};

[[nodiscard]] std::unique_ptr<registry> create_registry(environment on);

} // namespace sandboxd::session
