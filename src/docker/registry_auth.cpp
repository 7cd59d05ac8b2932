#include "docker/registry_auth.hpp"

#include "core/base64.hpp"
#include "docker/json.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>

namespace sandboxd::docker {

namespace {

constexpr std::string_view hub = "https://index.docker.io/v1/";

/// "https://ghcr.io/v2/" and "ghcr.io" are the same registry.
std::string_view host_of(std::string_view server) {
    for (const std::string_view scheme : {"https://", "http://"}) {
        if (server.starts_with(scheme)) {
            server.remove_prefix(scheme.size());
        }
    }
    return server.substr(0, server.find('/'));
}

const json::object* entry_of(const json::object& config, const std::string& server) {
    const auto* auths = at(config, "auths");
    const auto* all = auths != nullptr ? auths->if_object() : nullptr;
    if (all == nullptr) {
        return nullptr;
    }
    if (const auto* exact = all->if_contains(server)) {
        return exact->if_object();
    }
    for (const auto& member : *all) {
        if (host_of(member.key()) == host_of(server)) {
            return member.value().if_object();
        }
    }
    return nullptr;
}

credentials from_entry(const json::object& entry, const std::string& server) {
    credentials found;
    found.server = server;
    found.user = text_at(entry, "username").value_or("");
    found.password = text_at(entry, "password").value_or("");
    found.identity_token = text_at(entry, "identitytoken").value_or("");
    const auto both = core::from_base64(text_at(entry, "auth").value_or(""));
    if (both) {
        const std::size_t colon = both->find(':');
        if (colon != std::string::npos) {
            found.user = both->substr(0, colon);
            found.password = both->substr(colon + 1);
            while (!found.password.empty() && found.password.back() == '\0') {
                found.password.pop_back();
            }
        }
    }
    return found;
}

bool helper_name(std::string_view name) {
    return name.size() <= 100 && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
           });
}

} // namespace

result<credential_source> find_credentials(const std::string& folder, const std::string& registry,
                                           const file_reader& files) {
    credential_source source;
    source.server = registry == "docker.io" ? std::string(hub) : registry;
    source.found.server = source.server;
    if (folder.empty()) {
        return source;
    }
    const std::string path = folder + "/config.json";
    const auto read = files(path);
    if (!read) {
        return read.error();
    }
    if (!*read) {
        return source;
    }
    const auto config = json_object(**read);
    if (!config) {
        return error{errc::invalid, path + " is no JSON object"};
    }
    auto helper = text_at(*config, "credHelpers", source.server);
    if (!helper) {
        helper = text_at(*config, "credHelpers", registry);
    }
    if (!helper) {
        helper = text_at(*config, "credsStore");
    }
    if (helper && !helper->empty()) {
        if (!helper_name(*helper)) {
            return error{errc::invalid, path + " names a credential helper that can't be one"};
        }
        source.helper = std::move(*helper);
        return source;
    }
    if (const auto* entry = entry_of(*config, source.server)) {
        source.found = from_entry(*entry, source.server);
    }
    return source;
}

result<credentials> read_helper_answer(const std::string& server, int exit_code, std::string_view output) {
    credentials found;
    found.server = server;
    if (exit_code != 0) {
        if (output.find("credentials not found") != std::string_view::npos) {
            return found;
        }
        return error{errc::denied, "the credential helper for " + server + " failed: " + words_of(output)};
    }
    const auto parsed = json_object(output);
    const auto secret = parsed ? text_at(*parsed, "Secret") : std::nullopt;
    if (!secret) {
        return error{errc::protocol, "the credential helper for " + server + " did not answer with JSON"};
    }
    const auto user = text_at(*parsed, "Username").value_or("");
    if (user == "<token>") {
        found.identity_token = *secret;
    } else {
        found.user = user;
        found.password = *secret;
    }
    return found;
}

std::string auth_header(const credentials& found) {
    if (found.empty()) {
        return {};
    }
    json::object body;
    if (!found.identity_token.empty()) {
        body["identitytoken"] = found.identity_token;
    } else {
        body["username"] = found.user;
        body["password"] = found.password;
    }
    body["serveraddress"] = found.server;
    std::string header = core::base64(json::serialize(body));
    std::replace(header.begin(), header.end(), '+', '-');
    std::replace(header.begin(), header.end(), '/', '_');
    return header;
}

} // namespace sandboxd::docker
