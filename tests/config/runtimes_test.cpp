#include "config/fixture.hpp"

#include "config/catalogue.hpp"
#include "config/runtimes.hpp"

BOOST_AUTO_TEST_SUITE(config_runtimes)
using namespace config_test;

namespace {

std::vector<runtime_entry> parsed(std::string_view text) {
    auto got = parse_runtimes(text, "SANDBOXD_RUNTIMES");
    BOOST_REQUIRE_MESSAGE(got.has_value(), (got ? "" : got.error().message));
    return *got;
}

std::string refused(std::string_view text) {
    const auto got = parse_runtimes(text, "SANDBOXD_RUNTIMES");
    BOOST_REQUIRE_MESSAGE(!got.has_value(), text << " was accepted");
    BOOST_TEST((got.error().code == errc::invalid));
    return got.error().message;
}

constexpr const char* example =
    " Example: SANDBOXD_RUNTIMES=python=python:3.12-slim,data=@python-datascience;mem_limit=4g";

} // namespace

BOOST_AUTO_TEST_CASE(the_hosts_own_programs_as_an_image) {
    const settings got = values_of(load_from({{"RUNTIMES", "host=host"}}));
    BOOST_TEST(got.runtimes.size() == 1U);
    BOOST_TEST(got.runtimes[0].alias == "host");
    BOOST_TEST((got.runtimes[0].image == "host"));
    BOOST_TEST(got.default_runtime == "host");
}

BOOST_AUTO_TEST_CASE(compact_entries) {
    const auto got =
        parsed(" a = img@sha256:ff=1 ; cpus = 1.5 ;; mem_limit=512m , , data=@python-analytics;"
               "cpu_shares=5;pids_limit=1_0;network_mode=bridge;oci_runtime=runc;description=x y,"
               "l=oci:/images/layout:tag");
    BOOST_TEST(got.size() == 3U);
    BOOST_TEST(got[0].alias == "a");
    BOOST_TEST((got[0].image == "img@sha256:ff=1"));
    BOOST_TEST((got[0].cpus == 1.5));
    BOOST_TEST((got[0].mem_limit == "512m"));
    BOOST_TEST(!got[0].builtin.has_value());
    BOOST_TEST((got[1].builtin == "python-analytics"));
    BOOST_TEST(!got[1].image.has_value());
    BOOST_TEST((got[1].definition == *find_builtin("python-analytics")));
    BOOST_TEST((got[1].cpu_shares == 5));
    BOOST_TEST((got[1].pids_limit == 10));
    BOOST_TEST((got[1].network_mode == "bridge"));
    BOOST_TEST((got[1].oci_runtime == "runc"));
    BOOST_TEST((got[1].description == "x y"));
    BOOST_TEST((got[2].image == "oci:/images/layout:tag"));
}

BOOST_AUTO_TEST_CASE(the_suggested_list_is_an_entry_that_others_may_change) {
    const auto got = parsed(" @suggested , rust=@rust;mem_limit=8g, mine=img");
    const auto suggested = suggested_runtimes();
    BOOST_REQUIRE(got.size() == suggested.size() + 1);
    for (std::size_t i = 0; i + 1 < suggested.size(); ++i) {
        BOOST_TEST((got[i] == suggested[i]), suggested[i].alias);
    }
    BOOST_TEST(got[10].alias == "rust");
    BOOST_TEST((got[10].mem_limit == "8g"));
    BOOST_TEST(!got[10].cpus.has_value());
    BOOST_TEST(got[11].alias == "mine");
}

BOOST_AUTO_TEST_CASE(a_later_duplicate_wins_in_the_place_of_the_first) {
    const auto got = parsed("a=one,b=two,a=three");
    BOOST_TEST(got.size() == 2U);
    BOOST_TEST((got[0].image == "three"));
    BOOST_TEST((got[1].image == "two"));
}

BOOST_AUTO_TEST_CASE(compact_faults) {
    BOOST_TEST(refused("a") == std::string("SANDBOXD_RUNTIMES entry 'a' is not 'alias=image'.") + example);
    BOOST_TEST(refused("=b") == std::string("SANDBOXD_RUNTIMES entry '=b' is not 'alias=image'.") + example);
    BOOST_TEST(refused("@sugested") ==
               std::string("SANDBOXD_RUNTIMES entry '@sugested' is not 'alias=image'. The only "
                           "entry without an alias is '@suggested'.") +
                   example);
    BOOST_TEST(refused("a=") ==
               std::string("SANDBOXD_RUNTIMES entry 'a' names no image or runtime.") + example);
    BOOST_TEST(refused("a=@") ==
               std::string("SANDBOXD_RUNTIMES entry 'a' names no image or runtime.") + example);
    BOOST_TEST(refused("a=b;c") ==
               std::string("SANDBOXD_RUNTIMES modifier 'c' of 'a' is not 'field=value'.") + example);
    BOOST_TEST(refused("a=b;mem_limt=1g") ==
               "SANDBOXD_RUNTIMES entry 'a' sets 'mem_limt', which a runtime does not "
               "have. Did you mean 'mem_limit'?");
    BOOST_TEST(refused("a=b;cpus=x") == "SANDBOXD_RUNTIMES a.cpus='x' is not valid: not a number");
    BOOST_TEST(refused("a=b;cpu_shares=1.5") ==
               "SANDBOXD_RUNTIMES a.cpu_shares='1.5' is not valid: not a whole number");
    BOOST_TEST(refused("a=b;pids_limit=0") ==
               "SANDBOXD_RUNTIMES a.pids_limit='0' is not valid: must be from 1 to 4194304");
    BOOST_TEST(refused("a=b\x1B[1m") ==
               "SANDBOXD_RUNTIMES a.image='b\\x1b[1m' is not valid: it holds a control character");
    BOOST_TEST(refused("a=b;runtime=go") ==
               "SANDBOXD_RUNTIMES entry 'a' is invalid: it needs exactly one of image or runtime");
    BOOST_TEST(refused("a=@go;image=x") ==
               "SANDBOXD_RUNTIMES entry 'a' is invalid: it needs exactly one of image or runtime");
    BOOST_TEST(
        refused("a=b;mem_limit=") ==
        "SANDBOXD_RUNTIMES a.mem_limit='' is not valid: it is empty; leave it out to take the service's");
    BOOST_TEST(refused("a=b;mem_limit=lots") ==
               "SANDBOXD_RUNTIMES a.mem_limit='lots' is not valid: not a size such as "
               "512m, 1.5g or 1073741824");
    BOOST_TEST(
        refused("a=b;network_mode=host") ==
        "SANDBOXD_RUNTIMES a.network_mode='host' is not valid: a sandbox never gets the host's own network");
    BOOST_TEST(refused("a=b;oci_runtime=/bin/sh") ==
               "SANDBOXD_RUNTIMES a.oci_runtime='/bin/sh' is not valid: must be a name of letters, digits, "
               "'-', '_' and '.'");
}

BOOST_AUTO_TEST_CASE(naming_nothing) {
    const std::string expected =
        std::string("SANDBOXD_RUNTIMES is set but names no runtime, and at least one image "
                    "must be allowed. Unset it to take the shipped allowlist.") +
        example;
    BOOST_TEST(refused("") == expected);
    BOOST_TEST(refused(" , ,") == expected);
    BOOST_TEST(refused("{}") ==
               "SANDBOXD_RUNTIMES as JSON names no runtime, and at least one image must be allowed");
    BOOST_TEST(message_of(load_from({{"RUNTIMES", ""}})) == expected);
}

BOOST_AUTO_TEST_CASE(an_unknown_builtin_is_refused_with_the_nearest_name) {
    BOOST_TEST(refused("a=@pyhton-web") ==
               "SANDBOXD_RUNTIMES entry 'a' names the unknown runtime '@pyhton-web'. Did you mean "
               "'python-web'? Known: "
               "coding, polyglot, python-minimal, python-datascience, python-analytics, python-web, "
               "python-scraping, "
               "python-documents, node-minimal, node-typescript, node-react, bun, deno, go, rust");
}

BOOST_AUTO_TEST_CASE(json_entries) {
    const auto got =
        parsed(R"( {"z":"img","c":"@go","o":{"image":"x","cpus":"2","cpu_shares":"5","pids_limit":7,
        "mem_limit":null,"description":""},"b":{"runtime":"rust","cpus":0.5},
        "d":{"runtime":{"name":"n","base_image":"debian:12","packages":["@scope/p","q[extra]>=1"],"package_manager":"npm",
        "setup_commands":["true"],"env_vars":{"B":"2","A":"1"},"work_dir":"/w","cache_image":false,"run_as_uid":5,
        "image":null,"description":"d"}}} )");
    BOOST_TEST(got.size() == 5U);
    BOOST_TEST(got[0].alias == "z");
    BOOST_TEST((got[0].image == "img"));
    BOOST_TEST((got[1].builtin == "go"));
    BOOST_TEST((got[2].cpus == 2.0));
    BOOST_TEST((got[2].cpu_shares == 5));
    BOOST_TEST((got[2].pids_limit == 7));
    BOOST_TEST(!got[2].mem_limit.has_value());
    BOOST_TEST((got[3].builtin == "rust"));
    BOOST_TEST((got[3].cpus == 0.5));
    const auto& own = got[4].definition;
    BOOST_REQUIRE(own.has_value());
    BOOST_TEST(!got[4].builtin.has_value());
    BOOST_TEST(own->name == "n");
    BOOST_TEST((own->base_image == "debian:12"));
    BOOST_TEST((own->packages == std::vector<std::string>{"@scope/p", "q[extra]>=1"}));
    BOOST_TEST(own->package_manager == "npm");
    BOOST_TEST((own->env_vars == std::vector<std::pair<std::string, std::string>>{{"B", "2"}, {"A", "1"}}));
    BOOST_TEST(own->work_dir == "/w");
    BOOST_TEST(own->cache_image == false);
    BOOST_TEST((own->run_as_uid == 5U));
    BOOST_TEST(!own->image.has_value());
}

BOOST_AUTO_TEST_CASE(json_faults) {
    BOOST_TEST(refused("{") == "SANDBOXD_RUNTIMES is not valid JSON: incomplete JSON at byte 2");
    BOOST_TEST(refused(R"({"a" "b"})") == "SANDBOXD_RUNTIMES is not valid JSON: syntax error at byte 6");
    BOOST_TEST(refused(R"({"a":"b"} c)") == "SANDBOXD_RUNTIMES is not valid JSON: extra data at byte 11");
    BOOST_TEST(refused("[\"a\"]") == "SANDBOXD_RUNTIMES as JSON must be an object of aliases");
    BOOST_TEST(refused(R"({"a":1})") == "SANDBOXD_RUNTIMES entry 'a' must be an image string or an object");
    BOOST_TEST(refused(R"({"a":null})") ==
               "SANDBOXD_RUNTIMES entry 'a' must be an image string or an object");
    BOOST_TEST(refused(R"({"a":"@"})") ==
               std::string("SANDBOXD_RUNTIMES entry 'a' names no image or runtime.") + example);
    BOOST_TEST(refused(R"({"":"x"})") == "SANDBOXD_RUNTIMES entry '' has no usable alias: 1 to 128 "
                                         "characters, none of them a control character");
    BOOST_TEST(refused(R"({"a":{"image":"x","cpus":"y"}})") ==
               "SANDBOXD_RUNTIMES a.cpus='y' is not valid: not a number");
    BOOST_TEST(refused(R"({"a":{"image":"x","cpus":true}})") ==
               "SANDBOXD_RUNTIMES a.cpus='true' is not valid: not a number");
    BOOST_TEST(refused(R"({"a":{"image":"x","mem_limit":5}})") ==
               "SANDBOXD_RUNTIMES a.mem_limit='5' is not valid: not a string");
    BOOST_TEST(
        refused(R"({"a":{"image":"x","zz":1}})") ==
        "SANDBOXD_RUNTIMES entry 'a' sets 'zz', which a runtime does not have. It has image, runtime, "
        "description, mem_limit, memswap_limit, cpus, cpu_shares, pids_limit, network_mode, oci_runtime.");
    BOOST_TEST(refused(R"({"a":{}})") ==
               "SANDBOXD_RUNTIMES entry 'a' is invalid: it needs exactly one of image or runtime");
    BOOST_TEST(refused(R"({"a":{"runtime":"@go"}})")
                   .starts_with("SANDBOXD_RUNTIMES entry 'a' names the unknown runtime '@@go'."));
}

BOOST_AUTO_TEST_CASE(faults_of_own_definitions) {
    const auto with = [](const std::string& fields) {
        return refused(R"({"a":{"runtime":{"name":"n",)" + fields + "}}}");
    };
    const std::string start = "SANDBOXD_RUNTIMES entry 'a' has an invalid runtime: ";
    BOOST_TEST(refused(R"({"a":{"runtime":{}}})") == start + "name: is required");
    BOOST_TEST(with(R"("package_manager":"yarn")") ==
               start + "package_manager: use one of pip, npm, apt, cargo");
    BOOST_TEST(with(R"("packages":[""])") == start + "packages: Invalid package name ''");
    BOOST_TEST(with(R"("packages":["a;b"])") == start + "packages: Invalid package name 'a;b'");
    BOOST_TEST(with(R"("setup_commands":["a\nb"])") ==
               start + "setup_commands: a setup command must not hold a newline");
    BOOST_TEST(with(R"("env_vars":{"1A":"x"})") == start + "env_vars: '1A' is no environment variable name");
    BOOST_TEST(with(R"("env_vars":{"A":"x\r"})") ==
               start + "env_vars: the value of 'A' must not hold a newline");
    BOOST_TEST(with(R"("work_dir":"/a;b")") == start + "work_dir: must not hold any of ; & | ` $ ( ) < >");
    BOOST_TEST(with(R"("run_as_uid":0)") == start + "run_as_uid: must be a positive uid");
    BOOST_TEST(with(R"("pakages":[])") ==
               start + "pakages: a runtime has no such field. Did you mean 'packages'?");
    BOOST_TEST(with(R"("zz":1)") ==
               start +
                   "zz: a runtime has no such field. It has name, description, image, base_image, packages, "
                   "package_manager, setup_commands, env_vars, work_dir, cache_image, run_as_uid.");
    BOOST_TEST(with(R"("packages":"x")") == start + "packages: must be a list of strings");
}

BOOST_AUTO_TEST_CASE(the_text_of_a_list) {
    BOOST_TEST(runtimes_text(parsed("a=x;mem_limit=1g;cpus=2;pids_limit=5,b=@go")) ==
               "a=x;mem_limit=1g;cpus=2.0;pids_limit=5,b=@go");
}

BOOST_AUTO_TEST_SUITE_END()
