#include "docker/context_store.hpp"

#include "core/random.hpp"
#include "docker/json.hpp"

#include <openssl/sha.h>

#include <array>
#include <span>

namespace sandboxd::docker {

namespace {

std::string digest_of(const std::string& name) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    ::SHA256(reinterpret_cast<const unsigned char*>(name.data()), name.size(), digest.data());
    return core::to_hex(std::span(digest));
}

error no_context(const std::string& name, const std::string& why) {
    return error{errc::invalid, "the docker context '" + name + "' " + why};
}

} // namespace

result<tls_material> read_tls(const std::string& folder, const file_reader& files) {
    tls_material found;
    const std::array<std::pair<const char*, std::string*>, 3> parts{
        {{"ca.pem", &found.ca}, {"cert.pem", &found.certificate}, {"key.pem", &found.key}}};
    for (const auto& [name, text] : parts) {
        auto read = files(folder + "/" + name);
        if (!read) {
            return read.error();
        }
        *text = std::move(*read).value_or("");
    }
    if (found.certificate.empty() != found.key.empty()) {
        return error{errc::invalid, "a client certificate needs both cert.pem and key.pem in " + folder};
    }
    return found;
}

result<std::string> current_context(const std::string& folder, const file_reader& files) {
    if (folder.empty()) {
        return std::string();
    }
    const std::string path = folder + "/config.json";
    const auto read = files(path);
    if (!read) {
        return read.error();
    }
    if (!*read) {
        return std::string();
    }
    const auto config = json_object(**read);
    if (!config) {
        return error{errc::invalid, path + " is no JSON object"};
    }
    return text_at(*config, "currentContext").value_or("");
}

result<endpoint> read_context(const std::string& folder, const std::string& name, const file_reader& files) {
    const std::string id = digest_of(name);
    const auto read = files(folder + "/contexts/meta/" + id + "/meta.json");
    if (!read) {
        return read.error();
    }
    if (!*read) {
        return no_context(name, "does not exist (see `docker context ls`)");
    }
    const auto meta = json_object(**read);
    const auto host = meta ? text_at(*meta, "Endpoints", "docker", "Host") : std::nullopt;
    if (!host || host->empty()) {
        return no_context(name, "names no host");
    }
    auto tls = read_tls(folder + "/contexts/tls/" + id + "/docker", files);
    if (!tls) {
        return tls.error();
    }
    tls->verify = !boolean(at(*meta, "Endpoints", "docker", "SkipTLSVerify")).value_or(false);
    const bool with_tls = !tls->ca.empty() || !tls->certificate.empty() || !tls->verify;
    auto found = parse_host(*host, with_tls);
    if (!found) {
        return no_context(name, "is unusable: " + found.error().message);
    }
    if (with_tls && found->kind == transport::tcp) {
        found->tls = std::move(*tls);
    }
    found->source = "the context '" + name + "'";
    return found;
}

} // namespace sandboxd::docker
