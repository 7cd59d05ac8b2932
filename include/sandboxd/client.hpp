#pragma once

#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <stdexcept>

namespace sandboxd::client {

// Clients of a sandboxd service: remote_sandbox.hpp, workspace_archive.hpp and sandboxd_workspace.hpp. Each
// comes twice: a class whose calls block, and one (async_...) whose calls are awaited. Both are safe to use
// from several threads at once.

/// Where the service is and how it is talked to.
struct connection_options {
    /// http:// or https://, with a port and a path in front of the service's own if need be.
    std::string url = "http://localhost:8080";
    std::string ca_file;          ///< PEM, the authorities that are believed; "": the system's
    std::string certificate_file; ///< PEM, of this client, where the service's proxy asks for one
    std::string key_file;         ///< PEM, belongs to it
    bool verify = true;           ///< the service's certificate chain and the name in it
    std::size_t max_answer_bytes = 256U
                                   << 20U; ///< of one answer, or of a file read in pieces; more is a failure
    std::chrono::milliseconds connect_timeout{30'000};
};

/// What went wrong, as far as a caller can act on it.
enum class fault {
    invalid,         ///< an argument or option is at fault; where it says so, the service did
    unreachable,     ///< no answer: not listening, cut, too slow, a certificate that does not hold
    refused,         ///< an error status that means nothing more special; `status` has it
    malformed,       ///< an answer, but not one of this service
    gone,            ///< the session or its sandbox no longer exists
    timed_out,       ///< the command reached its deadline; `out` and `err` hold what it printed
    output_limited,  ///< the command printed more than allowed; `out` and `err` hold the start
    not_found,       ///< of a path: nothing there
    is_a_directory,  ///< of a path
    not_a_directory, ///< of a path, or of something on its way
    exists,          ///< of a path
    denied,          ///< of a path: not permitted
    failed,          ///< a file operation failed in another way; `message` is what was printed
};

/// "invalid", "unreachable", ...
[[nodiscard]] const char* name_of(fault kind) noexcept;

struct failure {
    fault kind = fault::invalid;
    std::string message;       ///< for a person; `refused` holds the body of the answer
    std::optional<int> status; ///< what the service answered; nothing when it did not
    std::string out;
    std::string err;
};

/// Thrown by outcome::value() on a failure.
class failure_error : public std::runtime_error {
public:
    explicit failure_error(failure what) : std::runtime_error(what.message), what_(std::move(what)) {}
    [[nodiscard]] const failure& why() const noexcept { return what_; }

private:
    failure what_;
};

[[noreturn]] void throw_exception_from_error(const failure& what, const boost::source_location& where);

template <class T>
using outcome = boost::system::result<T, failure>;

/// One row of a listing.
struct file_info {
    std::string name;
    std::string path;
    bool is_dir = false;
    std::optional<std::uint64_t> size;
    std::optional<std::string> modified_at; ///< ISO 8601, where the service tells it
};

/// Connections to one service, kept for reuse: at most 20, each for 4 s. Give one object to several clients
/// and they share them.
class connections {
public:
    /// For clients that block: their work runs on a thread of this object's own, which ends with the last
    /// owner. Fails (fault::invalid) on a URL that can't be used and on unreadable certificates; nothing is
    /// connected yet.
    [[nodiscard]] static outcome<std::shared_ptr<connections>> create(const connection_options& where);

    /// For clients that are awaited: their work runs on `executor`, in a strand of its own.
    [[nodiscard]] static outcome<std::shared_ptr<connections>>
    create(const boost::asio::any_io_executor& executor, const connection_options& where);

    ~connections();
    connections(const connections&) = delete;
    connections& operator=(const connections&) = delete;

    /// Connections that are open and unused now.
    [[nodiscard]] std::size_t idle() const;

    /// The rest of the library's business.
    struct inside;
    [[nodiscard]] inside& parts() noexcept { return *inside_; }

private:
    explicit connections(std::unique_ptr<inside> parts);
    std::unique_ptr<inside> inside_;
};

} // namespace sandboxd::client
