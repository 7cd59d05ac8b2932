#include "docker/endpoint.hpp"

#include "docker/registry_auth.hpp"

#include <boost/test/unit_test.hpp>

#include <map>

using namespace sandboxd;
using namespace sandboxd::docker;

namespace {

using texts = std::map<std::string, std::string>;

result<endpoint> resolve(const texts& variables, const texts& files = {}) {
    const auto from = [&](std::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(std::string(name));
        return found != variables.end() ? std::optional<std::string>(found->second) : std::nullopt;
    };
    const auto read = [&](const std::string& path) -> result<std::optional<std::string>> {
        const auto found = files.find(path);
        return found != files.end() ? std::optional<std::string>(found->second) : std::nullopt;
    };
    return resolve_endpoint(from, read);
}

std::string refusal(const texts& variables, const texts& files = {}) {
    const auto found = resolve(variables, files);
    BOOST_TEST_REQUIRE(!found.has_value());
    BOOST_TEST(static_cast<int>(found.error().code) == static_cast<int>(errc::invalid));
    return found.error().message;
}

file_reader from_map(const texts& files) {
    return [files](const std::string& path) -> result<std::optional<std::string>> {
        const auto found = files.find(path);
        return found != files.end() ? std::optional<std::string>(found->second) : std::nullopt;
    };
}

} // namespace

BOOST_AUTO_TEST_CASE(without_anything_it_is_the_local_socket) {
    const auto found = resolve({{"HOME", "/h"}});
    BOOST_TEST(found->text() == "unix:///var/run/docker.sock");
    BOOST_TEST(found->source == "the default");
    BOOST_TEST(!found->pinned.has_value());
}

BOOST_AUTO_TEST_CASE(hosts_are_read_as_docker_reads_them) {
    const auto text = [](const char* host) { return resolve({{"DOCKER_HOST", host}})->text(); };
    BOOST_TEST(text("unix:///run/x.sock") == "unix:///run/x.sock");
    BOOST_TEST(text("unix://") == "unix:///var/run/docker.sock");
    BOOST_TEST(text("tcp://box") == "tcp://box:2375");
    BOOST_TEST(text("box:99") == "tcp://box:99");
    BOOST_TEST(text("tcp://[::1]:2375/docker/") == "tcp://[::1]:2375/docker");
    BOOST_TEST(text("tcp://:4000") == "tcp://localhost:4000");
    BOOST_TEST(text("ssh://me@box:22") == "ssh://me@box:22");
    BOOST_TEST(text("ssh://box") == "ssh://box");
    BOOST_TEST(resolve({{"DOCKER_HOST", "tcp://box/docker"}})->path_prefix() == "/docker");
}

BOOST_AUTO_TEST_CASE(impossible_hosts_are_refused_in_words) {
    for (const char* bad :
         {"npipe:////./pipe/x", "fd://", "unix://relative", "tcp://box:0", "tcp://box:99999", "tcp://a:b:c",
          "tcp://[::1", "ssh://me:secret@box", "ssh://box/path", "ssh://-oProxyCommand=x", "ssh://-l@box",
          "ssh://", "tcp://bad host", "tcp://box/a b"}) {
        BOOST_TEST(refusal({{"DOCKER_HOST", bad}}).starts_with("the docker host '" + std::string(bad) + "' "),
                   bad);
    }
    BOOST_TEST(
        refusal({{"DOCKER_HOST", "ssh://me:secret@box"}}).ends_with("must not hold a password: use a key"));
    BOOST_TEST(refusal({{"DOCKER_API_VERSION", "new"}}) ==
               "DOCKER_API_VERSION must look like 1.41, not 'new'");
}

BOOST_AUTO_TEST_CASE(tls_comes_from_the_variables) {
    const texts files{{"/c/ca.pem", "CA"}, {"/c/cert.pem", "CERT"}, {"/c/key.pem", "KEY"}};
    const texts variables{
        {"DOCKER_HOST", "tcp://box"}, {"DOCKER_TLS_VERIFY", "0"}, {"DOCKER_CERT_PATH", "/c"}};
    const auto found = resolve(variables, files);
    BOOST_TEST(found->text() == "tcp://box:2376 (TLS)");
    BOOST_TEST(found->tls->ca == "CA");
    BOOST_TEST(found->tls->certificate == "CERT");
    BOOST_TEST(found->tls->key == "KEY");
    BOOST_TEST(found->tls->verify);
    BOOST_TEST(refusal(variables) == "DOCKER_TLS_VERIFY is set, but there is no /c/ca.pem");
    BOOST_TEST(refusal(variables, {{"/c/ca.pem", "CA"}, {"/c/key.pem", "KEY"}}) ==
               "a client certificate needs both cert.pem and key.pem in /c");
    const auto unverified = resolve({{"DOCKER_HOST", "tcp://box"}, {"DOCKER_TLS", "1"}, {"HOME", "/h"}});
    BOOST_TEST(!unverified->tls->verify);
    BOOST_TEST(!resolve({{"DOCKER_HOST", "tcp://box"}, {"DOCKER_TLS_VERIFY", ""}})->tls.has_value());
    BOOST_TEST(resolve({{"DOCKER_TLS", "1"}})->text() == "tcp://localhost:2376 (TLS)");
}

BOOST_AUTO_TEST_CASE(contexts_are_followed) {
    const texts files{{"/h/.docker/config.json", R"({"currentContext":"remote","auths":{}})"}};
    BOOST_TEST(refusal({{"HOME", "/h"}}, files) ==
               "the docker context 'remote' does not exist (see `docker context ls`)");
    BOOST_TEST(resolve({{"HOME", "/h"}, {"DOCKER_HOST", "unix:///x"}}, files)->text() == "unix:///x");
    BOOST_TEST(resolve({{"HOME", "/h"}, {"DOCKER_CONTEXT", "default"}}, files)->text() ==
               "unix:///var/run/docker.sock");
    BOOST_TEST(refusal({{"HOME", "/h"}}, {{"/h/.docker/config.json", "{"}}) ==
               "/h/.docker/config.json is no JSON object");
}

BOOST_AUTO_TEST_CASE(a_contexts_tls_files_are_taken) {
    const std::string name = "abc"; // its sha256 is the standard's first example
    const std::string digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const texts files{{"/d/contexts/meta/" + digest + "/meta.json",
                       R"({"Name":"abc","Metadata":{},"Endpoints":{"docker":{"Host":"tcp://far:1",
                          "SkipTLSVerify":false}}})"},
                      {"/d/contexts/tls/" + digest + "/docker/ca.pem", "CA"}};
    const auto found =
        resolve({{"DOCKER_CONFIG", "/d"}, {"DOCKER_CONTEXT", name}, {"DOCKER_API_VERSION", "1.43"}}, files);
    BOOST_TEST(found->text() == "tcp://far:1 (TLS)");
    BOOST_TEST(found->source == "the context 'abc'");
    BOOST_TEST(found->tls->verify);
    BOOST_TEST(found->pinned->text() == "1.43");
}

BOOST_AUTO_TEST_CASE(credentials_are_found_as_docker_finds_them) {
    const texts files{{"/d/config.json", R"({"auths":{"https://index.docker.io/v1/":{"auth":"bWU6c2VjcmV0"},
        "https://ghcr.io":{"identitytoken":"tok"}},"credHelpers":{"gcr.io":"gcloud"}})"}};
    const auto hub = find_credentials("/d", "docker.io", from_map(files));
    BOOST_TEST(hub->found.user == "me");
    BOOST_TEST(hub->found.password == "secret");
    BOOST_TEST(hub->helper == "");
    BOOST_TEST(
        auth_header(hub->found) ==
        "eyJ1c2VybmFtZSI6Im1lIiwicGFzc3dvcmQiOiJzZWNyZXQiLCJzZXJ2ZXJhZGRyZXNzIjoiaHR0cHM6Ly9pbmRleC5kb2Nr"
        "ZXIuaW8vdjEvIn0=");
    BOOST_TEST(find_credentials("/d", "ghcr.io", from_map(files))->found.identity_token == "tok");
    BOOST_TEST(find_credentials("/d", "gcr.io", from_map(files))->helper == "gcloud");
    BOOST_TEST(find_credentials("/d", "quay.io", from_map(files))->found.empty());
    BOOST_TEST(auth_header(credentials()) == "");
    BOOST_TEST(
        !find_credentials("/d", "x", from_map({{"/d/config.json", R"({"credsStore":"../x"})"}})).has_value());
}

BOOST_AUTO_TEST_CASE(helpers_answers_are_read) {
    const auto found = read_helper_answer("s", 0, R"({"ServerURL":"s","Username":"u","Secret":"p"})");
    BOOST_TEST(found->user == "u");
    BOOST_TEST(found->password == "p");
    BOOST_TEST(read_helper_answer("s", 0, R"({"Username":"<token>","Secret":"t"})")->identity_token == "t");
    BOOST_TEST(read_helper_answer("s", 1, "credentials not found in native keychain")->empty());
    BOOST_TEST(read_helper_answer("s", 1, "locked\n").error().message ==
               "the credential helper for s failed: locked");
    BOOST_TEST(!read_helper_answer("s", 0, "junk").has_value());
}
