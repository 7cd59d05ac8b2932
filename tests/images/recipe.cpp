#include "images/recipe.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

// Expected texts and digests were printed by the reference (0.2.29 and 0.2.37 agree), where not said
// otherwise.

namespace {

namespace images = sandboxd::images;
using images::builder;
using images::step;
using sandboxd::errc;
using sandboxd::runtime_definition;
using std::string;

runtime_definition on(string name, string base) {
    runtime_definition out;
    out.name = std::move(name);
    out.base_image = std::move(base);
    return out;
}

runtime_definition web() {
    auto out = on("web_1", "node:20-slim");
    out.packages = {"@types/react", "vite@5"};
    out.package_manager = "npm";
    out.work_dir = "/app x";
    return out;
}

runtime_definition tools() {
    auto out = on("tools", "debian:12");
    out.packages = {"curl", "jq"};
    out.package_manager = "apt";
    out.description = "T\xc3\xb6ols \xe2\x80\xa8 \"q\" \\ \t\x01\x7f/";
    out.env_vars = {{"P", "a$b\\"}};
    return out;
}

runtime_definition account() {
    auto out = on("data", "python:3.12-slim");
    out.packages = {"numpy", "pandas[excel]>=2<3"};
    out.setup_commands = {"echo hi && true"};
    out.env_vars = {{"A", "1"}, {"B", "it's a b"}, {"C", ""}};
    out.run_as_uid = 1000;
    return out;
}

string words_of(const runtime_definition& d) {
    const auto made = images::make_recipe(d);
    BOOST_REQUIRE(!made);
    BOOST_TEST((made.error().code == errc::start_failed));
    return made.error().message;
}

string file_of(const runtime_definition& d, builder by) {
    const auto made = images::make_recipe(d);
    BOOST_REQUIRE(made);
    return images::dockerfile(*made, by);
}

BOOST_AUTO_TEST_SUITE(recipe_of_a_runtime)

BOOST_AUTO_TEST_CASE(the_digest_is_over_all_fields_in_their_order) {
    BOOST_TEST(images::canonical_json(on("plain", "debian:12-slim")) ==
               R"({"name":"plain","description":"","image":null,"base_image":"debian:12-slim","packages":[],)"
               R"("package_manager":"pip","setup_commands":[],"env_vars":{},"work_dir":"/workspace",)"
               R"("cache_image":true,"run_as_uid":null})");
    BOOST_TEST(*images::tag_of(on("plain", "debian:12-slim")) ==
               "pydantic-ai-backend-runtime:plain-e12f06036a20");
    BOOST_TEST(*images::tag_of(web()) == "pydantic-ai-backend-runtime:web_1-ac631368b485");
    BOOST_TEST(*images::tag_of(tools()) == "pydantic-ai-backend-runtime:tools-c88fefd8603f");
    BOOST_TEST(*images::tag_of(account()) == "pydantic-ai-backend-runtime:data-3bb258812064");
    auto cargo = on("rs", "rust:1-slim");
    cargo.packages = {"ripgrep"};
    cargo.package_manager = "cargo";
    cargo.cache_image = false;
    cargo.setup_commands = {R"(["/bin/true"])"};
    BOOST_TEST(*images::tag_of(cargo) == "pydantic-ai-backend-runtime:rs-9d62e4d1c0f5");
}

BOOST_AUTO_TEST_CASE(a_dockerfile_for_either_builder) {
    BOOST_TEST(file_of(on("plain", "debian:12-slim"), builder::classic) ==
               "FROM debian:12-slim\nWORKDIR /workspace");
    BOOST_TEST(file_of(on("plain", "debian:12-slim"), builder::buildkit) ==
               "# syntax=docker/dockerfile:1\nFROM debian:12-slim\nWORKDIR /workspace");
    BOOST_TEST(file_of(web(), builder::classic) ==
               "FROM node:20-slim\nWORKDIR '/app x'\nRUN npm install @types/react vite@5\nWORKDIR '/app x'");
    BOOST_TEST(file_of(web(), builder::buildkit) ==
               "# syntax=docker/dockerfile:1\nFROM node:20-slim\nWORKDIR '/app x'\n"
               "RUN --mount=type=cache,target=/root/.npm,sharing=locked npm install @types/react vite@5\n"
               "WORKDIR '/app x'");
    BOOST_TEST(file_of(tools(), builder::classic) ==
               "FROM debian:12\nRUN apt-get update && apt-get install -y curl jq\nENV P='a$b\\'\nWORKDIR "
               "/workspace");
    BOOST_TEST(file_of(tools(), builder::buildkit) ==
               "# syntax=docker/dockerfile:1\nFROM debian:12\nRUN rm -f /etc/apt/apt.conf.d/docker-clean\n"
               "RUN --mount=type=cache,target=/var/cache/apt,sharing=locked "
               "--mount=type=cache,target=/var/lib/apt/lists,sharing=locked apt-get update && "
               "apt-get install -y --no-install-recommends curl jq\nENV P='a$b\\'\nWORKDIR /workspace");
    auto cargo = on("rs", "rust:1-slim");
    cargo.packages = {"ripgrep"};
    cargo.package_manager = "cargo";
    BOOST_TEST(file_of(cargo, builder::classic) ==
               "FROM rust:1-slim\nRUN cargo install ripgrep\nWORKDIR /workspace");
    BOOST_TEST(
        file_of(cargo, builder::buildkit) ==
        "# syntax=docker/dockerfile:1\nFROM rust:1-slim\n"
        "RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked cargo install ripgrep\n"
        "WORKDIR /workspace");
}

// The reference leaves the package bare, which makes its constraint a redirection.
BOOST_AUTO_TEST_CASE(an_account_and_variables_that_need_quotes) {
    const string rest =
        "RUN useradd --uid 1000 --create-home --shell /bin/bash agent && "
        "python -m venv --system-site-packages /opt/venv && chown -R 1000:1000 /opt/venv\n"
        "ENV VIRTUAL_ENV=/opt/venv HOME=/home/agent UV_SYSTEM_PYTHON=0 PATH=/opt/venv/bin:$PATH\n"
        "ENV A=1\nENV B='it'\"'\"'s a b'\nENV C=''\nWORKDIR /workspace";
    BOOST_TEST(file_of(account(), builder::classic) ==
               "FROM python:3.12-slim\nRUN echo hi && true\n"
               "RUN pip install --no-cache-dir numpy 'pandas[excel]>=2<3'\n" +
                   rest);
    BOOST_TEST(file_of(account(), builder::buildkit) ==
               "# syntax=docker/dockerfile:1\nFROM python:3.12-slim\nRUN echo hi && true\n"
               "RUN --mount=type=cache,target=/root/.cache/pip,sharing=locked pip install numpy "
               "'pandas[excel]>=2<3'\n" +
                   rest);
}

BOOST_AUTO_TEST_CASE(the_same_as_steps) {
    const auto made = images::make_recipe(account());
    BOOST_REQUIRE(made);
    BOOST_REQUIRE(made->steps.size() == 8U);
    BOOST_TEST((made->steps[0].what == step::kind::run));
    BOOST_TEST(made->steps[0].argv == (std::vector<string>{"/bin/sh", "-c", "echo hi && true"}),
               boost::test_tools::per_element());
    const auto& env = made->steps[3];
    BOOST_TEST((env.what == step::kind::env));
    BOOST_TEST(env.expands);
    BOOST_REQUIRE(env.env.size() == 4U);
    BOOST_TEST(env.env[3].first == "PATH");
    BOOST_TEST(env.env[3].second == "/opt/venv/bin:$PATH");
    BOOST_TEST(!made->steps[5].expands);
    BOOST_TEST(made->steps[5].env[0].second == "it's a b");
    BOOST_TEST((made->steps[7].what == step::kind::work_dir));
    BOOST_TEST(made->steps[7].text == "/workspace");
}

BOOST_AUTO_TEST_CASE(a_json_array_is_a_program) {
    auto given = on("x", "debian:12");
    given.setup_commands = {R"(["/bin/echo", "a b"])", "[ -e /etc ]", R"(["a", 1])"};
    const auto made = images::make_recipe(given);
    BOOST_REQUIRE(made);
    BOOST_TEST(made->steps[0].argv == (std::vector<string>{"/bin/echo", "a b"}),
               boost::test_tools::per_element());
    BOOST_TEST(made->steps[1].argv.back() == "[ -e /etc ]");
    BOOST_TEST(made->steps[2].argv.front() == "/bin/sh");
}

BOOST_AUTO_TEST_CASE(what_would_escape_its_instruction_is_refused) {
    const auto changed = [](auto change) {
        auto d = on("x", "debian:12");
        change(d);
        return words_of(d);
    };
    const auto has = [](const string& text, const char* part) { return text.find(part) != string::npos; };
    for (const char* name : {"", "a b", "a;b", "-r", "$x", "a\nb", "a`b`"}) {
        BOOST_TEST(has(changed([&](auto& d) { d.packages = {name}; }), "Invalid package name"), name);
    }
    BOOST_TEST(
        has(changed([](auto& d) { d.setup_commands = {"a\nRUN b"}; }), "setup command contains a newline"));
    BOOST_TEST(has(changed([](auto& d) { d.setup_commands = {"a\rb"}; }), "newline"));
    BOOST_TEST(has(changed([](auto& d) { d.setup_commands = {"echo \\ "}; }), "backslash"));
    BOOST_TEST(has(changed([](auto& d) { d.setup_commands = {" "}; }), "empty"));
    BOOST_TEST(has(changed([](auto& d) { d.env_vars = {{"1A", "x"}}; }), "environment variable name"));
    BOOST_TEST(has(changed([](auto& d) { d.env_vars = {{"A", "x\ny"}}; }), "newline"));
    for (const char* path :
         {"/a;b", "/a&b", "/a|b", "/a`b", "/a$b", "/a(b", "/a)b", "/a<b", "/a>b", "/a\nb"}) {
        BOOST_TEST(has(changed([&](auto& d) { d.work_dir = path; }), "work_dir"), path);
    }
    BOOST_TEST(has(changed([](auto& d) { d.run_as_uid = 0; }), "positive uid"));
    BOOST_TEST(has(changed([](auto& d) { d.base_image = "debian\nRUN x"; }), "base_image"));
    BOOST_TEST(has(changed([](auto& d) { d.base_image.reset(); }), "base_image"));
    for (const char* name : {"", "a b", ".a", "-a", "a/b", "a:b"}) {
        BOOST_TEST(has(changed([&](auto& d) { d.name = name; }), "image tag"), name);
    }
    BOOST_TEST(has(changed([](auto& d) { d.name = string(116, 'a'); }), "image tag"));
    BOOST_TEST(images::make_recipe(on(string(115, 'a'), "debian:12")).has_value());
}

BOOST_AUTO_TEST_CASE(older_images_are_told_by_the_exact_name) {
    const string repo = "pydantic-ai-backend-runtime:";
    BOOST_TEST(images::is_image_of(repo + "python-0123456789ab", "python"));
    BOOST_TEST(!images::is_image_of(repo + "python-analytics-0123456789ab", "python"));
    BOOST_TEST(!images::is_image_of(repo + "python-0123456789a", "python"));
    BOOST_TEST(!images::is_image_of(repo + "python-0123456789abc", "python"));
    BOOST_TEST(!images::is_image_of(repo + "python-0123456789aX", "python"));
    BOOST_TEST(!images::is_image_of("other:python-0123456789ab", "python"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
