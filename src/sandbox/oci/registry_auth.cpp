#include "sandbox/oci/registry_auth.hpp"

#include "core/base64.hpp"
#include "docker/credential_helper.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>

namespace sandboxd::sandboxes::oci {

namespace json = boost::json;

namespace {

constexpr const char* token_user =
    "00000000-0000-0000-0000-000000000000"; // as the tools write beside a token

std::string text_in(const json::object& from, const char* name) {
    const auto* found = from.if_contains(name);
    const auto* text = found != nullptr ? found->if_string() : nullptr;
    return text != nullptr ? std::string(*text) : std::string();
}

} // namespace

std::vector<std::string> auth_files(const docker::environment& variables, unsigned uid) {
    std::vector<std::string> files;
    const auto add = [&](const char* variable, const std::string& below) {
        if (const auto value = variables(variable); value && !value->empty()) {
            files.push_back(*value + below);
            return true;
        }
        return false;
    };
    add("REGISTRY_AUTH_FILE", "");
    if (!add("XDG_RUNTIME_DIR", "/containers/auth.json")) {
        files.push_back("/run/containers/" + std::to_string(uid) + "/auth.json");
    }
    if (!add("XDG_CONFIG_HOME", "/containers/auth.json")) {
        add("HOME", "/.config/containers/auth.json");
    }
    if (const auto folder = docker::config_folder(variables); !folder.empty()) {
        files.push_back(folder + "/config.json");
    }
    return files;
}

task<result<std::string>> registry_auth(std::string host, std::vector<std::string> files,
                                        docker::file_reader disk) {
    for (const auto& file : files) {
        // All of these files have the form of the `docker` command's.
        docker::file_reader this_file = [file, disk](const std::string&) { return disk(file); };
        const auto header = co_await docker::registry_header("of " + file, host, std::move(this_file));
        if (!header && header.error().code == errc::invalid) {
            co_return error{errc::invalid,
                            "the credentials in " + file + " can't be read: it must be a JSON object"};
        }
        if (!header) {
            co_return header.error();
        }
        if (!header->empty()) {
            co_return auth_json(host, *header);
        }
    }
    co_return std::string();
}

std::string auth_json(const std::string& host, const std::string& header) {
    std::string plain = header;
    std::replace(plain.begin(), plain.end(), '-', '+');
    std::replace(plain.begin(), plain.end(), '_', '/');
    const auto decoded = core::from_base64(plain);
    boost::system::error_code failed;
    const auto value = decoded ? json::parse(*decoded, failed) : json::value();
    const auto* found = value.if_object();
    if (failed || found == nullptr) {
        return {};
    }
    json::object entry;
    if (const auto token = text_in(*found, "identitytoken"); !token.empty()) {
        entry["auth"] = core::base64(std::string(token_user) + ":");
        entry["identitytoken"] = token;
    } else {
        entry["auth"] = core::base64(text_in(*found, "username") + ":" + text_in(*found, "password"));
    }
    json::object hosts;
    hosts[host] = std::move(entry);
    json::object all;
    all["auths"] = std::move(hosts);
    return json::serialize(all);
}

} // namespace sandboxd::sandboxes::oci
