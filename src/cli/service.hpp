#pragma once

#include "cli/client_arguments.hpp"
#include "client/session_link.hpp"

namespace sandboxd::cli {

/// The service that the commands talk to. Used on its strand.
struct service {
    std::shared_ptr<client::http_client> http;
    std::string token;
    bool json = false;
};

/// From the command's flags and the environment (SANDBOXD_URL, SANDBOXD_TOKEN, SANDBOXD_TOKEN_FILE). Errors
/// are sentences that name the flag or variable.
[[nodiscard]] result<client::connection_options> connection_of(const client_call& call);
[[nodiscard]] result<std::string> token_of(const client_call& call);

/// One request; an error status is a failure whose words help (which session, which token).
[[nodiscard]] task<client::outcome<boost::json::value>>
ask(const service& of, std::string method, std::string target, std::optional<boost::json::value> body = {},
    std::chrono::milliseconds silence = std::chrono::seconds(60));

/// A way to the session's commands and files. `work_dir` is where relative paths begin.
struct session_place {
    std::shared_ptr<client::session_link> link;
    std::string work_dir;
    std::uint64_t native_limit = 0; ///< bytes of a file that the service writes itself

    [[nodiscard]] std::string absolute(const std::string& path) const;
};
[[nodiscard]] task<client::outcome<session_place>> reach(const service& of, std::string session);

/// The sentence for a person, with the way out.
[[nodiscard]] std::string advice(const client::failure& why);

} // namespace sandboxd::cli
