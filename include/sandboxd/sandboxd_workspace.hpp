#pragma once

#include "sandboxd/client.hpp"

namespace sandboxd::client {

/// The way back to a session: kept by whoever wants to come back. `provider` tells services apart.
struct workspace_ref {
    std::string provider = "sandboxd";
    std::string id{};
    friend bool operator==(const workspace_ref&, const workspace_ref&) = default;
};

struct workspace_options {
    std::string token{};                ///< the service's: it opens sessions
    std::optional<workspace_ref> ref{}; ///< attach to this session only; never a new one
    /// A session id of the caller's own, without `ref`: the session of that name is opened, or attached to
    /// when it is open or its files are kept.
    std::optional<std::string> session_name{};
    std::string provider = "sandboxd";    ///< of refs
    std::optional<std::string> runtime{}; ///< an alias the service allows; its default when absent
    std::optional<std::string> tenant{};  ///< whom the session counts for
    std::vector<std::pair<std::string, std::string>> env{}; ///< of every command
    std::chrono::milliseconds request_timeout{30'000};      ///< the longest silence in what runs no command
    std::chrono::milliseconds opening_timeout{600'000};     ///< for opening: it may build an image
    /// Called once, on the client's thread, when opening takes longer than 3 s. What it throws is logged.
    std::function<void()> on_wait{};
};

struct run_options {
    std::vector<std::pair<std::string, std::string>> env{}; ///< over the options' own
    /// From the start on; the service's ceiling when absent or beyond it.
    std::optional<std::chrono::milliseconds> timeout{};
};

struct command_result {
    int exit_code = 0;
    std::string out;
    std::string err;
};

/// One session of a service as a place to work in (contract N13, "SandboxdWorkspace"). It is opened by the
/// first operation, once, and never again: what was opened can be closed by the service, and then every
/// operation fails with fault::gone.
///
/// Files are read and written by the service itself where it offers that (one request); what it hands back,
/// and everything on a service that does not, is done by commands in the sandbox, which need `sh` and the
/// usual small programs there. Relative paths begin at the working directory.
///
/// Failures: unreachable and refused leave the session as it is (ask again later); gone is for good;
/// timed_out and output_limited hold what the command printed; the faults of paths say which. Cancelling an
/// awaited command, and a connection lost in one, stops it in the sandbox (at most 5 s are spent on that).
/// Copies are the same workspace.
class async_sandboxd_workspace {
public:
    /// fault::invalid for a ref of another provider, a name the service would refuse, and as
    /// connections::create.
    [[nodiscard]] static outcome<async_sandboxd_workspace>
    create(const boost::asio::any_io_executor& executor, const connection_options& where,
           workspace_options options);
    [[nodiscard]] static outcome<async_sandboxd_workspace> create(std::shared_ptr<connections> shared,
                                                                  workspace_options options);

    /// Nothing before the first operation.
    [[nodiscard]] std::optional<workspace_ref> ref() const;

    /// Where commands start, as the sandbox resolves it.
    [[nodiscard]] task<outcome<std::string>> working_dir() const;

    /// One program with these arguments; stdin is at end-of-file. Any exit code is a result.
    [[nodiscard]] task<outcome<command_result>> run(std::vector<std::string> argv,
                                                    run_options options = {}) const;
    /// `/bin/sh -c command`.
    [[nodiscard]] task<outcome<command_result>> shell(std::string command, run_options options = {}) const;

    [[nodiscard]] task<outcome<std::string>> read_bytes(std::string path) const;
    /// Makes missing parents; through a link to its target; an existing file keeps its mode.
    [[nodiscard]] task<outcome<void>> write_bytes(std::string path, std::string data) const;
    /// Follows links. What is neither a file nor a directory has no size.
    [[nodiscard]] task<outcome<file_info>> stat(std::string path) const;
    /// Sorted by name, hidden ones too.
    [[nodiscard]] task<outcome<std::vector<file_info>>> list_dir(std::string path) const;
    /// With parents; no fault when it is there.
    [[nodiscard]] task<outcome<void>> make_dir(std::string path) const;
    /// A file, a link itself, or a whole tree; fault::invalid for the working directory and what holds it.
    [[nodiscard]] task<outcome<void>> remove(std::string path) const;
    [[nodiscard]] task<outcome<bool>> exists(std::string path) const;
    /// With links resolved; parts that are not there are kept as they are.
    [[nodiscard]] task<outcome<std::string>> realpath(std::string path) const;

    /// Closes the session and removes its files; attaches first when it is closed. No fault when it is gone.
    [[nodiscard]] task<outcome<void>> purge() const;

private:
    friend class sandboxd_workspace;
    struct impl;
    explicit async_sandboxd_workspace(std::shared_ptr<impl> self) : self_(std::move(self)) {}
    std::shared_ptr<impl> self_;
};

/// The same, blocking the calling thread.
class sandboxd_workspace {
public:
    [[nodiscard]] static outcome<sandboxd_workspace> create(const connection_options& where,
                                                            workspace_options options);
    /// fault::invalid for connections that have no thread of their own.
    [[nodiscard]] static outcome<sandboxd_workspace> create(std::shared_ptr<connections> shared,
                                                            workspace_options options);

    [[nodiscard]] std::optional<workspace_ref> ref() const;
    [[nodiscard]] outcome<std::string> working_dir() const;
    [[nodiscard]] outcome<command_result> run(std::vector<std::string> argv, run_options options = {}) const;
    [[nodiscard]] outcome<command_result> shell(std::string command, run_options options = {}) const;
    [[nodiscard]] outcome<std::string> read_bytes(std::string path) const;
    [[nodiscard]] outcome<void> write_bytes(std::string path, std::string data) const;
    [[nodiscard]] outcome<file_info> stat(std::string path) const;
    [[nodiscard]] outcome<std::vector<file_info>> list_dir(std::string path) const;
    [[nodiscard]] outcome<void> make_dir(std::string path) const;
    [[nodiscard]] outcome<void> remove(std::string path) const;
    [[nodiscard]] outcome<bool> exists(std::string path) const;
    [[nodiscard]] outcome<std::string> realpath(std::string path) const;
    [[nodiscard]] outcome<void> purge() const;

private:
    explicit sandboxd_workspace(async_sandboxd_workspace awaited) : awaited_(std::move(awaited)) {}
    template <class T>
    [[nodiscard]] T wait(task<T> work) const;
    async_sandboxd_workspace awaited_;
};

} // namespace sandboxd::client
