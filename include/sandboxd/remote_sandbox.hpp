#pragma once

#include "sandboxd/client.hpp"

namespace sandboxd::client {

struct remote_sandbox_options {
    std::string token{};                     ///< the service's; used to open, then the session's own is
    std::optional<std::string> session_id{}; ///< made up ("remote-" and 12 hex digits) when absent
    std::optional<std::string> runtime{};    ///< an alias the service allows; its default when absent
    std::optional<std::string> tenant{};     ///< whom the session counts for
    bool reuse = false; ///< attach to the session of that id when it is open, instead of failing
    /// The longest silence of the service in a request without a time of its own (opening, say).
    std::chrono::milliseconds timeout{60'000};
};

struct execute_response {
    std::string output;
    std::optional<int> exit_code;
    bool truncated = false;
};

/// `path` when it was written, else `error`.
struct write_response {
    std::optional<std::string> path;
    std::optional<std::string> error;
};

struct edit_response {
    std::optional<std::string> path;
    std::optional<std::string> error;
    std::optional<std::uint64_t> occurrences;
};

/// Matches, or `error` when the search itself failed.
struct grep_response {
    std::vector<grep_match> matches;
    std::optional<std::string> error;
};

/// One session of a service (contract 8.1, "RemoteSandbox"). It is opened by the first operation, once,
/// however many come at the same time; an unused one costs nothing.
///
/// Operations never fail as such: what goes wrong in transit, or a session that is gone, looks like what goes
/// wrong in the sandbox (an empty listing, an error text, exit code 1). Only start() tells why there is no
/// session. A command without a timeout runs under the service's ceiling (`execute_timeout`, learned when the
/// session opens); the client waits 10 s longer than the command may take. A request is sent a second time
/// only when that can't do it twice: reads and searches, and what a closed connection did not take whole.
///
/// Cancelling an awaited call ends it with operation_aborted; an open that it has begun is waited for first,
/// so that no session is opened that nobody knows. Copies are the same sandbox.
class async_remote_sandbox {
public:
    /// fault::invalid for an id or tenant the service would refuse, and as connections::create.
    [[nodiscard]] static outcome<async_remote_sandbox> create(const boost::asio::any_io_executor& executor,
                                                              const connection_options& where,
                                                              remote_sandbox_options options);
    /// Over connections that are shared; they stay open after stop().
    [[nodiscard]] static outcome<async_remote_sandbox> create(std::shared_ptr<connections> shared,
                                                              remote_sandbox_options options);

    /// Opens the session, or attaches with `reuse`. Nothing to do while one is open; after stop() a new one.
    [[nodiscard]] task<outcome<void>> start() const;
    /// Closes the session. `purge` also removes its files. Harmless before start(); failures are not told:
    /// the service closes idle sessions by itself.
    [[nodiscard]] task<void> stop(bool purge = false) const;

    [[nodiscard]] task<execute_response> execute(std::string command,
                                                 std::optional<std::chrono::seconds> timeout = {}) const;
    /// Lines of a text file, from line `offset` on.
    [[nodiscard]] task<std::string> read(std::string path, std::uint64_t offset = 0,
                                         std::uint64_t limit = 2000) const;
    /// The whole file; empty when it can't be read.
    [[nodiscard]] task<std::string> read_bytes(std::string path) const;
    [[nodiscard]] task<write_response> write(std::string path, std::string content) const;
    [[nodiscard]] task<edit_response> edit(std::string path, std::string old_string, std::string new_string,
                                           bool replace_all = false) const;
    /// A regular file.
    [[nodiscard]] task<bool> exists(std::string path) const;
    [[nodiscard]] task<std::vector<file_info>> ls_info(std::string path) const;
    [[nodiscard]] task<std::vector<file_info>> glob_info(std::string pattern, std::string path = "/") const;
    [[nodiscard]] task<grep_response> grep_raw(std::string pattern, std::optional<std::string> path = {},
                                               std::optional<std::string> glob = {},
                                               bool ignore_hidden = true) const;

    /// The session exists and its sandbox runs. Opens nothing.
    [[nodiscard]] task<bool> is_alive() const;
    [[nodiscard]] task<std::optional<usage_sample>> resource_usage() const;

    [[nodiscard]] std::string session_id() const;
    /// How long the service lets an operation run; the own timeout until the session is open, and where the
    /// service does not say.
    [[nodiscard]] std::chrono::milliseconds server_timeout() const;

private:
    friend class remote_sandbox;
    struct impl;
    [[nodiscard]] static outcome<async_remote_sandbox> make(std::shared_ptr<connections> over,
                                                            remote_sandbox_options options, bool owned);
    [[nodiscard]] task<bool> end(bool purge) const;
    explicit async_remote_sandbox(std::shared_ptr<impl> self) : self_(std::move(self)) {}
    std::shared_ptr<impl> self_;
};

/// The same, blocking the calling thread. Not to be called on the thread of a shared io_context.
class remote_sandbox {
public:
    [[nodiscard]] static outcome<remote_sandbox> create(const connection_options& where,
                                                        remote_sandbox_options options);
    /// fault::invalid for connections that have no thread of their own.
    [[nodiscard]] static outcome<remote_sandbox> create(std::shared_ptr<connections> shared,
                                                        remote_sandbox_options options);

    [[nodiscard]] outcome<void> start() const;
    void stop(bool purge = false) const;

    [[nodiscard]] execute_response execute(std::string command,
                                           std::optional<std::chrono::seconds> timeout = {}) const;
    [[nodiscard]] std::string read(std::string path, std::uint64_t offset = 0,
                                   std::uint64_t limit = 2000) const;
    [[nodiscard]] std::string read_bytes(std::string path) const;
    [[nodiscard]] write_response write(std::string path, std::string content) const;
    [[nodiscard]] edit_response edit(std::string path, std::string old_string, std::string new_string,
                                     bool replace_all = false) const;
    [[nodiscard]] bool exists(std::string path) const;
    [[nodiscard]] std::vector<file_info> ls_info(std::string path) const;
    [[nodiscard]] std::vector<file_info> glob_info(std::string pattern, std::string path = "/") const;
    [[nodiscard]] grep_response grep_raw(std::string pattern, std::optional<std::string> path = {},
                                         std::optional<std::string> glob = {},
                                         bool ignore_hidden = true) const;
    [[nodiscard]] bool is_alive() const;
    [[nodiscard]] std::optional<usage_sample> resource_usage() const;
    [[nodiscard]] std::string session_id() const;
    [[nodiscard]] std::chrono::milliseconds server_timeout() const;

private:
    explicit remote_sandbox(async_remote_sandbox awaited) : awaited_(std::move(awaited)) {}
    template <class T>
    [[nodiscard]] T wait(task<T> work) const;
    async_remote_sandbox awaited_;
};

} // namespace sandboxd::client
