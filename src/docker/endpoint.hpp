#pragma once

#include "docker/api_version.hpp"
#include "docker/error.hpp"

#include <functional>
#include <optional>
#include <string>

namespace sandboxd::docker {

enum class transport : unsigned char { unix_socket, tcp, ssh };

/// PEM texts; empty where there is none.
struct tls_material {
    std::string ca;
    std::string certificate;
    std::string key;
    bool verify = true;
};

/// Where the daemon is and how to reach it.
struct endpoint {
    transport kind = transport::unix_socket;
    std::string path;                ///< of the Unix socket; the URL prefix for tcp ("" or "/docker")
    std::string host;                ///< tcp, ssh
    std::string port;                ///< tcp always, ssh when given
    std::string user;                ///< ssh, when given
    std::optional<tls_material> tls; ///< tcp only
    std::optional<api_version> pinned;
    std::string source; ///< who decided: "DOCKER_HOST", "the context 'remote'", "the default"

    /// What stands before "/v1.41/..." in a request: the path of a tcp host.
    [[nodiscard]] std::string path_prefix() const { return kind == transport::tcp ? path : std::string(); }

    /// "unix:///var/run/docker.sock", "tcp://h:2376 (TLS)", "ssh://user@h:22"
    [[nodiscard]] std::string text() const;
};

/// The environment variable of that name; nothing when unset.
using environment = std::function<std::optional<std::string>(std::string_view)>;
/// A file's contents (at most 1 MiB); nothing when it does not exist, an error when it can't be read.
using file_reader = std::function<result<std::optional<std::string>>(const std::string&)>;

/// Where the `docker` command would go: DOCKER_HOST, else DOCKER_CONTEXT, else currentContext of
/// `config.json`, else the local socket; DOCKER_TLS, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH, DOCKER_API_VERSION,
/// DOCKER_CONFIG (engine-facts A2). errc::invalid names the variable or the file.
[[nodiscard]] result<endpoint> resolve_endpoint(const environment& variables, const file_reader& files);

/// One host as DOCKER_HOST has it. `with_tls` chooses the default port.
[[nodiscard]] result<endpoint> parse_host(std::string_view text, bool with_tls);

/// The folder of the `docker` command's configuration: DOCKER_CONFIG, else ~/.docker; "" without a HOME.
[[nodiscard]] std::string config_folder(const environment& variables);

[[nodiscard]] environment process_environment();
[[nodiscard]] file_reader disk_files();

} // namespace sandboxd::docker
