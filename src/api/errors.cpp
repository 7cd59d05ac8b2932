#include "api/errors.hpp"

#include "core/log.hpp"

namespace sandboxd::api {

unsigned status_of(errc code) noexcept {
    switch (code) {
    case errc::invalid:
        return 400;
    case errc::denied:
        return 403;
    case errc::not_found:
        return 404;
    case errc::exists:
    case errc::busy:
        return 409;
    case errc::gone:
        return 410;
    case errc::capacity:
        return 429;
    case errc::unsupported:
        return 501;
    case errc::start_failed:
    case errc::protocol:
        return 502;
    case errc::unavailable:
        return 503;
    case errc::timeout:
        return 504;
    case errc::io:
    case errc::internal:
        return 500;
    }
    return 500;
}

std::string detail_of(const error& failure) {
    if (status_of(failure.code) != 500) {
        return failure.message;
    }
    core::log::error("a request failed: {}: {}", name_of(failure.code), failure.message);
    return "The service failed; its log says why";
}

http::reply reply_of(const error& failure) {
    return http::detail_reply(status_of(failure.code), detail_of(failure));
}

http::reply reply_of(const wire::fault_list& faults) {
    return http::json_reply(422, wire::faults_body(faults));
}

http::reply unauthorized() {
    return http::detail_reply(401, "Invalid or missing X-Sandbox-Token");
}

} // namespace sandboxd::api
