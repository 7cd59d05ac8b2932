#pragma once

#include "docker/endpoint.hpp"

namespace sandboxd::docker {

/// What a registry wants to know of us.
struct credentials {
    std::string server; ///< as the `docker` command names it: "https://index.docker.io/v1/", "ghcr.io"
    std::string user;
    std::string password;
    std::string identity_token;
    [[nodiscard]] bool empty() const { return user.empty() && identity_token.empty(); }
};

/// Where the credentials for a registry are, by `config.json` of the `docker` command: a helper program
/// ("docker-credential-<helper>") to be asked, or the file itself, or nowhere (both empty: anonymous).
struct credential_source {
    std::string server;
    std::string helper;
    credentials found;
};

/// errc::invalid when the file is no JSON or names a helper that can't be one. `folder` is config_folder().
[[nodiscard]] result<credential_source>
find_credentials(const std::string& folder, const std::string& registry, const file_reader& files);

/// A helper's answer to `get`; nothing when it has none for this server.
[[nodiscard]] result<credentials> read_helper_answer(const std::string& server, int exit_code,
                                                     std::string_view output);

/// The X-Registry-Auth header: base64url (padded, as the daemon wants it) of JSON. "" for empty ones.
[[nodiscard]] std::string auth_header(const credentials& found);

} // namespace sandboxd::docker
