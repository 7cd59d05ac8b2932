#include "config/fixture.hpp"

#include "config/catalogue.hpp"
#include "config/resolve.hpp"
#include "config/size.hpp"
#include "config/text.hpp"

#include <algorithm>
#include <set>

BOOST_AUTO_TEST_SUITE(config_resolve)
using namespace config_test;

namespace {

std::string value_in(const std::vector<std::pair<std::string, std::string>>& env, const std::string& name) {
    const auto found =
        std::find_if(env.begin(), env.end(), [&name](const auto& pair) { return pair.first == name; });
    return found == env.end() ? "(absent)" : found->second;
}

} // namespace

BOOST_AUTO_TEST_CASE(sizes) {
    const std::pair<const char*, std::uint64_t> good[]{
        {"1g", 1073741824U}, {"1G", 1073741824U}, {"1gb", 1073741824U}, {"1.5g", 1610612736U},
        {"0.1k", 102U},      {"100", 100U},       {"100b", 100U},       {"1KB", 1024U},
        {"64m", 67108864U},  {".5g", 536870912U}, {"1.g", 1073741824U}, {"0", 0U},
        {"1.5", 1U}};
    for (const auto& [text, bytes] : good) {
        BOOST_TEST((parse_size(text) == bytes), text);
    }
    for (const char* bad : {"",    "g",   "b",   "-1", "+1", "1 g",  " 1g", "1g ",  "1bb",  "1t",
                            "1e3", "1m5", "1_0", "x",  ".",  "1KiB", "inf", "0x10", "1..2", "9999999999g"}) {
        BOOST_TEST(!parse_size(bad).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(tmpfs_options) {
    BOOST_TEST((tmpfs_size_option("64m") == "67108864"));
    BOOST_TEST((tmpfs_size_option("1.5kb") == "1536"));
    BOOST_TEST((tmpfs_size_option("50%") == "50%"));
    for (const char* bad : {"0", "0%", "101%", "-5%", "+5%", "5 %", "%", "64m,exec", "1_0%", ""}) {
        BOOST_TEST(!tmpfs_size_option(bad).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(an_entrys_ceilings_win_over_the_services) {
    const settings got = values_of(load_from(
        {{"RUNTIMES",
          "a=x,b=y;mem_limit=8g;memswap_limit=9g;cpus=7;cpu_shares=3;pids_limit=9999;network_mode=bridge;"
          "oci_runtime=runc"},
         {"CPU_SHARES", "512"}}));
    BOOST_TEST((effective_ceilings(got, got.runtimes[0]) ==
                ceilings{"1g", std::nullopt, 2.0, 512, 512, "none", std::nullopt}));
    BOOST_TEST(
        (effective_ceilings(got, got.runtimes[1]) == ceilings{"8g", "9g", 7.0, 3, 9999, "bridge", "runc"}));
}

BOOST_AUTO_TEST_CASE(aliases) {
    const settings got = values_of(load_from({}));
    BOOST_TEST(resolve_runtime(got, std::nullopt)->alias == "coding");
    BOOST_TEST(resolve_runtime(got, "")->alias == "coding");
    BOOST_TEST(resolve_runtime(got, "node")->alias == "node");
    BOOST_TEST((resolve_runtime(got, "nope") == nullptr));
    BOOST_TEST((sorted_aliases(got) == std::vector<std::string>{"coding", "node", "python"}));
    BOOST_TEST(unknown_runtime_text(got, "no'pe") ==
               "Unknown runtime 'no\\'pe'. Allowed: coding, node, python");
}

BOOST_AUTO_TEST_CASE(images_and_how_they_are_shown) {
    const settings got = values_of(
        load_from({{"RUNTIMES", R"({"plain":"img","ready":"@node-minimal","data":"@python-datascience",
        "said":{"image":"i","description":"my words"},"own":{"runtime":{"name":"n","base_image":"debian:12","packages":["a","b"]}},
        "empty":{"runtime":{"name":"e"}},"code":"@coding"})"}}));
    const auto entry = [&got](const char* alias) { return *resolve_runtime(got, alias); };
    using kind = image_choice::kind;
    BOOST_TEST((image_of(entry("plain")) == image_choice{kind::ready, "img"}));
    BOOST_TEST((image_of(entry("ready")) == image_choice{kind::ready, "node:20-slim"}));
    BOOST_TEST((image_of(entry("data")) == image_choice{kind::must_be_built, "python:3.12-slim"}));
    BOOST_TEST((image_of(entry("empty")) == image_choice{kind::none, ""}));
    BOOST_TEST(builds(entry("plain")) == false);
    BOOST_TEST(builds(entry("ready")) == true);
    BOOST_TEST(shown_image(entry("ready")) == "node:20-slim");
    BOOST_TEST(shown_image(entry("data")) == "python:3.12-slim + 5 package(s)");
    BOOST_TEST(shown_image(entry("own")) == "debian:12 + 2 package(s)");
    BOOST_TEST(shown_image(entry("code")) == "python:3.12-slim + 0 package(s)");
    BOOST_TEST(shown_description(entry("plain")) == "img");
    BOOST_TEST(shown_description(entry("said")) == "my words");
    BOOST_TEST(shown_description(entry("own")) == "built from debian:12");
    BOOST_TEST(holds(shown_description(entry("data")), "pandas"));
}

BOOST_AUTO_TEST_CASE(the_environment_of_every_container) {
    const settings got = values_of(load_from(
        {{"RUNTIMES",
          R"({"a":"x","b":{"runtime":{"name":"n","image":"i","env_vars":{"LANG":"de","MINE":"1"}}}})"}}));
    const auto plain = container_environment(got.runtimes[0], false);
    BOOST_TEST(plain.size() == 25U);
    const std::pair<const char*, const char*> expected[]{{"GIT_CONFIG_COUNT", "5"},
                                                         {"GIT_CONFIG_KEY_0", "safe.directory"},
                                                         {"GIT_CONFIG_VALUE_0", "*"},
                                                         {"GIT_CONFIG_KEY_1", "user.name"},
                                                         {"GIT_CONFIG_VALUE_1", "Agent"},
                                                         {"GIT_CONFIG_KEY_2", "user.email"},
                                                         {"GIT_CONFIG_VALUE_2", "agent@sandbox.local"},
                                                         {"GIT_CONFIG_KEY_3", "init.defaultBranch"},
                                                         {"GIT_CONFIG_VALUE_3", "main"},
                                                         {"GIT_CONFIG_KEY_4", "advice.detachedHead"},
                                                         {"GIT_CONFIG_VALUE_4", "false"},
                                                         {"GIT_TERMINAL_PROMPT", "0"},
                                                         {"PYTHONUNBUFFERED", "1"},
                                                         {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
                                                         {"PIP_NO_INPUT", "1"},
                                                         {"PIP_ROOT_USER_ACTION", "ignore"},
                                                         {"UV_SYSTEM_PYTHON", "1"},
                                                         {"UV_CONCURRENT_DOWNLOADS", "2"},
                                                         {"UV_CONCURRENT_INSTALLS", "2"},
                                                         {"UV_COMPILE_BYTECODE", "1"},
                                                         {"DEBIAN_FRONTEND", "noninteractive"},
                                                         {"NO_COLOR", "1"},
                                                         {"PAGER", "cat"},
                                                         {"GIT_PAGER", "cat"},
                                                         {"LANG", "C.UTF-8"}};
    for (const auto& [name, value] : expected) {
        BOOST_TEST(value_in(plain, name) == value, name);
    }
    const auto own = container_environment(got.runtimes[1], true);
    BOOST_TEST(value_in(own, "LANG") == "de");
    BOOST_TEST(value_in(own, "MINE") == "1");
    BOOST_TEST(value_in(own, "UV_SYSTEM_PYTHON") == "(absent)");
    BOOST_TEST(value_in(own, "PAGER") == "cat");
    BOOST_TEST(own.size() == 25U);
}

BOOST_AUTO_TEST_CASE(limits_in_bytes) {
    const auto pinned = limits_of({"1g", std::nullopt, 1.5, 7, 100, {}, {}}, "64m");
    BOOST_REQUIRE(pinned.has_value());
    BOOST_TEST((pinned->memory_bytes == 1073741824U));
    BOOST_TEST((pinned->memory_swap_bytes == 1073741824U));
    BOOST_TEST((pinned->cpus == 1.5));
    BOOST_TEST((pinned->cpu_shares == 7U));
    BOOST_TEST((pinned->pids == 100U));
    BOOST_TEST((pinned->tmpfs_size == "67108864"));
    const auto wider = limits_of({"1g", "2g", {}, {}, {}, {}, {}}, std::nullopt);
    BOOST_TEST((wider->memory_swap_bytes == 2147483648U));
    BOOST_TEST(!wider->tmpfs_size.has_value());
    BOOST_TEST(!wider->pids.has_value());
    const auto swap_alone = limits_of({std::nullopt, "2g", {}, {}, {}, {}, {}}, "");
    BOOST_TEST(!swap_alone->memory_bytes.has_value());
    BOOST_TEST(!swap_alone->memory_swap_bytes.has_value());
    BOOST_TEST(limits_of({"lots", {}, {}, {}, {}, {}, {}}, "").error().message ==
               "mem_limit 'lots' is not a size");
    BOOST_TEST(nano_cpus(1.5) == 1'500'000'000);
    BOOST_TEST(nano_cpus(0.1) == 100'000'000);
}

BOOST_AUTO_TEST_CASE(a_sandboxs_spec) {
    const settings got = values_of(load_from({{"RUNTIMES", "host=host,go=@go,coding=@coding"},
                                              {"WORKSPACE_ROOT", "/srv/ws"},
                                              {"SANDBOX_UID", "1000"}}));
    const auto spec = make_spec(got, got.runtimes[0], "s-1");
    BOOST_REQUIRE(spec.has_value());
    BOOST_TEST(spec->session_id == "s-1");
    BOOST_TEST(spec->image == "host");
    BOOST_TEST((spec->network_mode == "none"));
    BOOST_TEST(spec->work_dir == "/workspace");
    BOOST_TEST((spec->workspace_dir == "/srv/ws/s-1/workspace"));
    BOOST_TEST(!spec->uid.has_value());
    BOOST_TEST(value_in(spec->env, "UV_SYSTEM_PYTHON") == "1");
    const auto built = make_spec(got, got.runtimes[1], "s-2");
    BOOST_TEST(built->image == "golang:1.23-alpine");
    BOOST_TEST((built->uid == 1000U));
    BOOST_TEST(value_in(built->env, "UV_SYSTEM_PYTHON") == "(absent)");
    const auto refused = make_spec(got, got.runtimes[2], "s-3");
    BOOST_TEST((refused.error().code == errc::start_failed));
    BOOST_TEST(refused.error().message ==
               "the image of runtime 'coding' would have to be built on 'python:3.12-slim', "
               "and this backend does not build images");
    const auto tagged = make_spec(got, got.runtimes[2], "s-4", "repo:coding-1");
    BOOST_TEST(tagged->image == "repo:coding-1");
    BOOST_TEST((tagged->uid == 1000U));
    const auto definition = definition_to_build(got, got.runtimes[2]);
    BOOST_REQUIRE(definition.has_value());
    BOOST_TEST(definition->name == "coding");
    BOOST_TEST(definition->work_dir == "/workspace");
    BOOST_TEST((definition->run_as_uid == 1000U));
    BOOST_TEST(!definition_to_build(got, got.runtimes[0]).has_value());
    BOOST_TEST(!definition_to_build(got, got.runtimes[1]).has_value());
}

BOOST_AUTO_TEST_CASE(catalogues) {
    const auto shipped = default_runtimes();
    BOOST_TEST(shipped.size() == 3U);
    BOOST_TEST(shipped[0].alias == "coding");
    BOOST_TEST((shipped[0].network_mode == "bridge"));
    BOOST_TEST((shipped[1].image == "python:3.12-slim"));
    BOOST_TEST((shipped[2].image == "node:20-slim"));
    BOOST_TEST(std::count_if(shipped.begin(), shipped.end(), builds) == 1);
    const auto suggested = suggested_runtimes();
    BOOST_TEST(suggested.size() == 11U);
    std::set<std::string> networked;
    for (const auto& entry : suggested) {
        BOOST_TEST(entry.mem_limit.has_value(), entry.alias);
        if (entry.network_mode) {
            networked.insert(entry.alias);
        }
    }
    BOOST_TEST((networked == std::set<std::string>{"coding", "polyglot", "python-scraping"}));
}

// Contract 5.7.
BOOST_AUTO_TEST_CASE(built_in_runtimes) {
    struct row {
        const char* name;
        const char* image; ///< ready, or what it is built on
        std::vector<std::string> packages;
        const char* manager;
        const char* work_dir;
        std::size_t commands = 0;
    };
    const std::vector<row> table{
        {"coding", "python:3.12-slim", {}, "pip", "/workspace", 2},
        {"polyglot", "python:3.12-slim", {"numpy", "duckdb", "polars", "httpx"}, "pip", "/workspace", 2},
        {"python-minimal", "python:3.12-slim", {}, "", "/workspace"},
        {"python-datascience",
         "python:3.12-slim",
         {"pandas", "numpy", "matplotlib", "scikit-learn", "seaborn"},
         "pip",
         "/workspace"},
        {"python-analytics", "python:3.12-slim", {"duckdb", "polars", "pyarrow"}, "pip", "/workspace"},
        {"python-web",
         "python:3.12-slim",
         {"fastapi", "uvicorn", "sqlalchemy", "httpx"},
         "pip",
         "/workspace"},
        {"python-scraping",
         "python:3.12-slim",
         {"httpx", "beautifulsoup4", "lxml", "markdownify"},
         "pip",
         "/workspace"},
        {"python-documents",
         "python:3.12-slim",
         {"pypdf", "python-docx", "openpyxl", "pillow"},
         "pip",
         "/workspace"},
        {"node-minimal", "node:20-slim", {}, "", "/app"},
        {"node-typescript", "node:20-slim", {"typescript", "tsx", "vitest"}, "npm", "/app"},
        {"node-react",
         "node:20-slim",
         {"typescript", "vite", "react", "react-dom", "@types/react"},
         "npm",
         "/app"},
        {"bun", "oven/bun:1-slim", {}, "", "/app"},
        {"deno", "denoland/deno:alpine", {}, "", "/app"},
        {"go", "golang:1.23-alpine", {}, "", "/src"},
        {"rust", "rust:1-slim", {}, "", "/src"},
    };
    BOOST_TEST(builtin_names().size() == table.size());
    for (const auto& want : table) {
        const auto* got = find_builtin(want.name);
        BOOST_REQUIRE_MESSAGE(got != nullptr, want.name);
        const bool ready = *want.manager == '\0';
        BOOST_TEST((ready ? got->image : got->base_image).value_or("(none)") == want.image, want.name);
        BOOST_TEST((ready ? got->base_image : got->image).has_value() == false, want.name);
        BOOST_TEST(got->packages == want.packages, boost::test_tools::per_element());
        BOOST_TEST((ready || got->package_manager == want.manager), want.name);
        BOOST_TEST(got->work_dir == want.work_dir, want.name);
        BOOST_TEST(got->setup_commands.size() == want.commands, want.name);
        BOOST_TEST(!got->description.empty(), want.name);
    }
    BOOST_TEST((find_builtin("nope") == nullptr));
}

BOOST_AUTO_TEST_CASE(distances_and_nearest_names) {
    BOOST_TEST(edit_distance("", "abc") == 3U);
    BOOST_TEST(edit_distance("kitten", "sitting") == 3U);
    BOOST_TEST(edit_distance("ab", "ba") == 1U);
    BOOST_TEST(edit_distance("same", "same") == 0U);
    const std::vector<std::string_view> names{"serve", "config"};
    BOOST_TEST((nearest("confg", names) == "config"));
    BOOST_TEST((nearest("SERVE", names) == "serve"));
    BOOST_TEST(!nearest("zzzzz", names).has_value());
    BOOST_TEST(!nearest(std::string(100, 's'), names).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
