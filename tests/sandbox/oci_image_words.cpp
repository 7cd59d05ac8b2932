// What is worked out about images before anything is fetched or built: credentials, variables, words.

#include "docker/registry_auth.hpp"
#include "sandbox/oci/image_build.hpp"
#include "sandbox/oci/registry_auth.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace sandboxd::sandboxes::oci;

BOOST_AUTO_TEST_SUITE(oci_image_words)

BOOST_AUTO_TEST_CASE(where_credentials_are_looked_for) {
    std::map<std::string, std::string, std::less<>> set{{"HOME", "/home/me"}};
    const docker::environment variables = [&](std::string_view name) -> std::optional<std::string> {
        const auto found = set.find(name);
        return found == set.end() ? std::nullopt : std::optional(found->second);
    };
    BOOST_TEST((auth_files(variables, 7) == std::vector<std::string>{"/run/containers/7/auth.json",
                                                                     "/home/me/.config/containers/auth.json",
                                                                     "/home/me/.docker/config.json"}));
    set = {{"REGISTRY_AUTH_FILE", "/a"},
           {"XDG_RUNTIME_DIR", "/r"},
           {"XDG_CONFIG_HOME", "/c"},
           {"DOCKER_CONFIG", "/d"}};
    BOOST_TEST(
        (auth_files(variables, 0) == std::vector<std::string>{"/a", "/r/containers/auth.json",
                                                              "/c/containers/auth.json", "/d/config.json"}));
    set = {};
    BOOST_TEST((auth_files(variables, 0) == std::vector<std::string>{"/run/containers/0/auth.json"}));
}

BOOST_AUTO_TEST_CASE(an_auth_file_holds_one_registry) {
    docker::credentials found{"ghcr.io", "me", "p:w?>", ""};
    BOOST_TEST(auth_json("ghcr.io", docker::auth_header(found)) ==
               R"({"auths":{"ghcr.io":{"auth":"bWU6cDp3Pz4="}}})");
    found.identity_token = "t";
    BOOST_TEST(auth_json("ghcr.io", docker::auth_header(found)) ==
               R"({"auths":{"ghcr.io":{"auth":"MDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwOg==",)"
               R"("identitytoken":"t"}}})");
    BOOST_TEST(auth_json("ghcr.io", "no base64").empty());
}

BOOST_AUTO_TEST_CASE(variables_of_steps) {
    launcher::environment env{{"PATH", "/bin"}, {"A", "1"}};
    images::step step;
    step.what = images::step::kind::env;
    step.expands = true;
    step.env = {{"PATH", "/opt/bin:$PATH"}, {"B", "${A}$A$NONE"}, {"C", "$PATH $ ${A $5"}};
    apply_env(env, step);
    const launcher::environment want{
        {"PATH", "/opt/bin:/bin"}, {"A", "1"}, {"B", "11"}, {"C", "/bin $ ${A $5"}};
    BOOST_TEST((env == want));
    step.expands = false;
    step.env = {{"A", "$PATH"}};
    apply_env(env, step);
    BOOST_TEST(env[1].second == "$PATH");
}

// As an engine's builder does; without it a step that adds to PATH would take the image its programs.
BOOST_AUTO_TEST_CASE(a_path_to_add_to) {
    launcher::environment none;
    launcher::add_usual_path(none);
    const launcher::environment usual{
        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}};
    BOOST_TEST((none == usual));
    launcher::environment own{{"PATH", "/opt"}};
    launcher::add_usual_path(own);
    BOOST_TEST(own[0].second == "/opt");
}

BOOST_AUTO_TEST_CASE(the_last_lines_of_an_output) {
    BOOST_TEST(last_lines("") == "");
    BOOST_TEST(last_lines("one\ntwo\n\n") == "one\ntwo");
    BOOST_TEST(last_lines("\x1b[31mred\x01\r\n") == "[31mred");
    std::string many;
    for (int i = 1; i <= 30; ++i) {
        many += std::to_string(i) + "\n";
    }
    BOOST_TEST(last_lines(many).substr(0, 6) == "11\n12\n");
    BOOST_TEST(last_lines(std::string(5000, 'x')).size() == 2000U);
}

BOOST_AUTO_TEST_SUITE_END()
