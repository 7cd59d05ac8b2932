#include "client/failure.hpp"

#include <boost/throw_exception.hpp>

namespace sandboxd::client {

const char* name_of(fault kind) noexcept {
    switch (kind) {
    case fault::invalid:
        return "invalid";
    case fault::unreachable:
        return "unreachable";
    case fault::refused:
        return "refused";
    case fault::malformed:
        return "malformed";
    case fault::gone:
        return "gone";
    case fault::timed_out:
        return "timed_out";
    case fault::output_limited:
        return "output_limited";
    case fault::not_found:
        return "not_found";
    case fault::is_a_directory:
        return "is_a_directory";
    case fault::not_a_directory:
        return "not_a_directory";
    case fault::exists:
        return "exists";
    case fault::denied:
        return "denied";
    case fault::failed:
        return "failed";
    }
    return "unknown";
}

void throw_exception_from_error(const failure& what, const boost::source_location& where) {
    boost::throw_exception(failure_error(what), where);
}

} // namespace sandboxd::client
