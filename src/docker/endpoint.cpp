#include "docker/endpoint.hpp"

#include "docker/context_store.hpp"

#include <algorithm>
#include <charconv>

namespace sandboxd::docker {

namespace {

constexpr std::string_view default_socket = "unix:///var/run/docker.sock";
constexpr std::string_view default_tls_host = "tcp://localhost:2376";

error bad_host(std::string_view text, std::string_view why) {
    return error{errc::invalid,
                 "the docker host '" + std::string(text.substr(0, 200)) + "' " + std::string(why)};
}

bool good_port(std::string_view text) {
    unsigned value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failed == std::errc{} && end == text.data() + text.size() && value > 0 && value < 65536;
}

bool good_name(std::string_view text) {
    // No leading '-': the name becomes an argument of ssh.
    return !text.empty() && text.size() <= 255 && text.front() != '-' &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return c > ' ' && c < 0x7F &&
                      std::string_view("/@?#\\\"'`$;|&<>(){}[]").find(c) == std::string_view::npos;
           });
}

/// "host", "host:port", "[::1]:port"; false when it is none of them.
bool split_host(std::string_view text, endpoint& into) {
    std::string_view host = text;
    std::string_view port;
    if (!text.empty() && text.front() == '[') {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) {
            return false;
        }
        host = text.substr(1, close - 1);
        const std::string_view rest = text.substr(close + 1);
        if (!rest.empty() && rest.front() != ':') {
            return false;
        }
        port = rest.empty() ? rest : rest.substr(1);
    } else if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        port = text.substr(colon + 1);
        if (host.find(':') != std::string_view::npos) {
            return false; // an IPv6 address needs brackets
        }
    }
    if (!port.empty() && !good_port(port)) {
        return false;
    }
    into.host = host;
    into.port = port;
    return true;
}

result<endpoint> parse_tcp(std::string_view text, std::string_view rest, bool with_tls) {
    endpoint found;
    found.kind = transport::tcp;
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos) {
        found.path = rest.substr(slash);
        while (!found.path.empty() && found.path.back() == '/') {
            found.path.pop_back();
        }
        rest = rest.substr(0, slash);
    }
    const bool clean = std::all_of(found.path.begin(), found.path.end(),
                                   [](char c) { return c > ' ' && c < 0x7F && c != '?' && c != '#'; });
    if (!split_host(rest, found) || !clean) {
        return bad_host(text, "is not of the form tcp://HOST[:PORT][/PATH]");
    }
    if (found.host.empty()) {
        found.host = "localhost";
    }
    if (!good_name(found.host)) {
        return bad_host(text, "has a host name that can't be one");
    }
    if (found.port.empty()) {
        found.port = with_tls ? "2376" : "2375";
    }
    return found;
}

result<endpoint> parse_ssh(std::string_view text, std::string_view rest) {
    endpoint found;
    found.kind = transport::ssh;
    if (!rest.empty() && rest.back() == '/') {
        rest.remove_suffix(1);
    }
    if (rest.find('/') != std::string_view::npos) {
        return bad_host(text, "must not have a path: ssh://[USER@]HOST[:PORT]");
    }
    const std::size_t sign = rest.rfind('@');
    if (sign != std::string_view::npos) {
        found.user = rest.substr(0, sign);
        rest = rest.substr(sign + 1);
        if (found.user.find(':') != std::string::npos) {
            return bad_host(text, "must not hold a password: use a key");
        }
        if (!good_name(found.user)) {
            return bad_host(text, "has a user name that can't be one");
        }
    }
    if (!split_host(rest, found) || !good_name(found.host)) {
        return bad_host(text, "is not of the form ssh://[USER@]HOST[:PORT]");
    }
    return found;
}

bool set(const std::optional<std::string>& value) {
    return value && !value->empty();
}

/// DOCKER_TLS, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH: any non-empty value of the first two counts.
result<endpoint> from_variables(const environment& variables, const file_reader& files, std::string host) {
    const bool verify = set(variables("DOCKER_TLS_VERIFY"));
    const bool with_tls = verify || set(variables("DOCKER_TLS"));
    const std::string source = host.empty() ? "the default" : "DOCKER_HOST";
    if (host.empty()) {
        host = with_tls ? default_tls_host : default_socket;
    }
    auto found = parse_host(host, with_tls);
    if (!found) {
        return found;
    }
    found->source = source;
    if (found->kind != transport::tcp || !with_tls) {
        return found;
    }
    std::string folder = variables("DOCKER_CERT_PATH").value_or("");
    if (folder.empty()) {
        folder = config_folder(variables);
    }
    auto tls = read_tls(folder, files);
    if (!tls) {
        return tls.error();
    }
    if (verify && tls->ca.empty()) {
        return error{errc::invalid, "DOCKER_TLS_VERIFY is set, but there is no " + folder + "/ca.pem"};
    }
    tls->verify = verify;
    found->tls = std::move(*tls);
    return found;
}

result<endpoint> choose(const environment& variables, const file_reader& files) {
    auto host = variables("DOCKER_HOST").value_or("");
    if (!host.empty()) {
        return from_variables(variables, files, std::move(host));
    }
    const std::string folder = config_folder(variables);
    std::string context = variables("DOCKER_CONTEXT").value_or("");
    if (context.empty()) {
        auto current = current_context(folder, files);
        if (!current) {
            return current.error();
        }
        context = std::move(*current);
    }
    if (context.empty() || context == "default") {
        return from_variables(variables, files, "");
    }
    if (folder.empty()) {
        return error{errc::invalid, "DOCKER_CONTEXT is set, but neither DOCKER_CONFIG nor HOME is"};
    }
    return read_context(folder, context, files);
}

} // namespace

std::string endpoint::text() const {
    const std::string shown = host.find(':') != std::string::npos ? "[" + host + "]" : host;
    switch (kind) {
    case transport::unix_socket:
        return "unix://" + path;
    case transport::tcp:
        return "tcp://" + shown + ":" + port + path + (tls ? " (TLS)" : "");
    case transport::ssh:
        return "ssh://" + (user.empty() ? "" : user + "@") + shown + (port.empty() ? "" : ":" + port);
    }
    return {};
}

std::string config_folder(const environment& variables) {
    const auto chosen = variables("DOCKER_CONFIG");
    if (set(chosen)) {
        return *chosen;
    }
    const auto home = variables("HOME");
    return set(home) ? *home + "/.docker" : std::string();
}

result<endpoint> parse_host(std::string_view text, bool with_tls) {
    const std::size_t mark = text.find("://");
    const std::string_view scheme = mark == std::string_view::npos ? "tcp" : text.substr(0, mark);
    const std::string_view rest = mark == std::string_view::npos ? text : text.substr(mark + 3);
    if (scheme == "unix") {
        endpoint found;
        found.path = rest.empty() ? default_socket.substr(7) : rest;
        if (found.path.front() != '/' || found.path.size() > 107 ||
            found.path.find('\0') != std::string::npos) {
            return bad_host(text, "must be an absolute path of at most 107 bytes");
        }
        return found;
    }
    if (scheme == "tcp" || scheme == "http" || scheme == "https") {
        return parse_tcp(text, rest, with_tls);
    }
    if (scheme == "ssh") {
        return parse_ssh(text, rest);
    }
    return bad_host(text, "has a scheme that is none of unix, tcp and ssh");
}

result<endpoint> resolve_endpoint(const environment& variables, const file_reader& files) {
    auto found = choose(variables, files);
    const auto pinned = variables("DOCKER_API_VERSION");
    if (found && set(pinned)) {
        found->pinned = parse_version(*pinned);
        if (!found->pinned) {
            return error{errc::invalid,
                         "DOCKER_API_VERSION must look like 1.41, not '" + pinned->substr(0, 40) + "'"};
        }
    }
    return found;
}

} // namespace sandboxd::docker
