#include "sandboxd/error.hpp"

#include <cstring>
#include <stdexcept>

namespace sandboxd {

const char* name_of(errc code) noexcept {
    switch (code) {
    case errc::invalid:
        return "invalid";
    case errc::not_found:
        return "not_found";
    case errc::exists:
        return "exists";
    case errc::busy:
        return "busy";
    case errc::capacity:
        return "capacity";
    case errc::gone:
        return "gone";
    case errc::unsupported:
        return "unsupported";
    case errc::start_failed:
        return "start_failed";
    case errc::timeout:
        return "timeout";
    case errc::unavailable:
        return "unavailable";
    case errc::protocol:
        return "protocol";
    case errc::denied:
        return "denied";
    case errc::io:
        return "io";
    case errc::internal:
        return "internal";
    }
    return "unknown";
}

void throw_exception_from_error(const error& e, const boost::source_location& where) {
    throw std::runtime_error(std::string(name_of(e.code)) + ": " + e.message + " (" + where.to_string() +
                             ")");
}

error os_error(std::string what, int errnum) {
    char buffer[128];
    // The GNU strerror_r answers with the text, which may live outside the buffer.
    what += ": ";
    what += strerror_r(errnum, buffer, sizeof buffer);
    return {errc::io, std::move(what)};
}

} // namespace sandboxd
