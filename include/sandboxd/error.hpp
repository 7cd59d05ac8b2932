#pragma once

#include <boost/system/result.hpp>

#include <string>

namespace sandboxd {

/// What went wrong, as far as a caller can act on it. The HTTP status of each is in api/errors.cpp.
enum class errc {
    invalid = 1,  ///< the request or a setting is at fault
    not_found,    ///< no such session, file, image
    exists,       ///< the id or run id is taken
    busy,         ///< in progress elsewhere: opening, closing
    capacity,     ///< a ceiling is reached
    gone,         ///< the sandbox ended before or while the work ran
    unsupported,  ///< this kind of sandbox can't do it
    start_failed, ///< building or starting a sandbox failed
    timeout,      ///< a deadline passed
    unavailable,  ///< overloaded or shutting down: later may work
    protocol,     ///< the other side broke the rules of a protocol
    denied,       ///< not permitted
    io,           ///< the operating system refused
    internal,     ///< a fault of ours
};

/// "invalid", "not_found", ...
const char* name_of(errc code) noexcept;

/// An expected failure. `message` is a sentence for a person that names the thing and, where there is one,
/// the way out. It may hold host paths: whatever answers a client decides what it shows.
struct error {
    errc code = errc::internal;
    std::string message;
    /// With errc::gone from sandbox::exec and run: false when the command can't have begun, so that it is
    /// safe to heal the sandbox and run it there (contract N16.3).
    bool may_have_started = true;
};

/// Thrown by result::value() on an error; a bug where it escapes.
[[noreturn]] void throw_exception_from_error(const error& e, const boost::source_location& where);

template <class T>
using result = boost::system::result<T, error>;

/// error{io, "<what>: <strerror(errnum)>"}.
error os_error(std::string what, int errnum);

} // namespace sandboxd
