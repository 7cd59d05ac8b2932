#include "router/answer.hpp"

namespace sandboxd::router {

http::reply unmatched(const http::request_head& head, const match& found) {
    switch (found.kind) {
    case match::outcome::unknown_method: {
        auto answer = http::detail_reply(405, "Method Not Allowed");
        answer.headers.emplace_back("Allow", found.allow);
        return answer;
    }
    case match::outcome::trailing_slash: {
        http::reply answer;
        answer.status = 307;
        const std::string origin = head.host.empty()
                                       ? std::string()
                                       : std::string(head.secure ? "https://" : "http://").append(head.host);
        answer.headers.emplace_back("Location", origin + found.location);
        return answer;
    }
    case match::outcome::found:
    case match::outcome::unknown_path:
        break;
    }
    return http::detail_reply(404, "Not Found");
}

} // namespace sandboxd::router
