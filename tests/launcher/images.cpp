#include "launcher/image_config.hpp"
#include "launcher/image_reference.hpp"
#include "launcher/oci_index.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace sandboxd::launcher;
using kind = image_reference::kind;

BOOST_AUTO_TEST_SUITE(launcher_images)

BOOST_AUTO_TEST_CASE(references) {
    const auto parsed = [](std::string_view text) {
        const auto got = parse_image_reference(text);
        BOOST_REQUIRE_MESSAGE(got.has_value(), text);
        return *got;
    };
    BOOST_TEST((parsed("host") == image_reference{kind::host, "", "", ""}));
    BOOST_TEST((parsed("dir:/srv/root") == image_reference{kind::directory, "/srv/root", "", ""}));
    BOOST_TEST((parsed("/srv/a,b:c\\d") == image_reference{kind::directory, "/srv/a,b:c\\d", "", ""}));
    BOOST_TEST((parsed("oci:/srv/l") == image_reference{kind::oci_layout, "/srv/l", "", ""}));
    BOOST_TEST((parsed("oci:/srv/l:1.0") == image_reference{kind::oci_layout, "/srv/l", "1.0", ""}));
    BOOST_TEST((parsed("oci:/srv/a:b/l:1.0") == image_reference{kind::oci_layout, "/srv/a:b/l", "1.0", ""}));
    BOOST_TEST((parsed("oci:/srv/a:b/l") == image_reference{kind::oci_layout, "/srv/a:b/l", "", ""}));
    BOOST_TEST(
        (parsed("docker-archive:/a b.tar") == image_reference{kind::docker_archive, "/a b.tar", "", ""}));
    for (const std::string bad : {"",
                                  "Python:3.12",
                                  "a//b",
                                  "/",
                                  "-x",
                                  "x:",
                                  "x:.tag",
                                  "x y",
                                  "x@sha256:12",
                                  "$x",
                                  "docker://x",
                                  "localhost:port/x",
                                  "../x",
                                  "dir:",
                                  "dir:relative",
                                  "dir:/",
                                  "/",
                                  "//.",
                                  "dir:/..",
                                  "oci:",
                                  "oci:x:1",
                                  "docker-archive:x",
                                  "host:"}) {
        const auto got = parse_image_reference(bad);
        BOOST_TEST(!got.has_value(), bad);
        if (!got) {
            BOOST_TEST((got.error().code == errc::start_failed), bad);
        }
    }
    BOOST_TEST(!parse_image_reference(std::string_view("/a\0b", 4)).has_value());
    BOOST_TEST(parse_image_reference("No").error().message.find("python:3.12-slim") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(references_of_a_registry) {
    const std::string digest = "sha256:" + std::string(64, 'a');
    const std::pair<std::string, std::string> all[] = {
        {"ubuntu", "docker.io/library/ubuntu:latest"},
        {"python:3.12-slim", "docker.io/library/python:3.12-slim"},
        {"me/tool", "docker.io/me/tool:latest"},
        {"docker.io/ubuntu", "docker.io/library/ubuntu:latest"},
        {"index.docker.io/me/tool:1", "docker.io/me/tool:1"},
        {"ghcr.io/a/b_c/d-e:V1.0", "ghcr.io/a/b_c/d-e:V1.0"},
        {"localhost/x", "localhost/x:latest"},
        {"localhost:5000/x:y", "localhost:5000/x:y"},
        {"127.0.0.1:5000/x", "127.0.0.1:5000/x:latest"},
        {"[::1]:5000/x", "[::1]:5000/x:latest"},
        {"x@" + digest, "docker.io/library/x@" + digest},
        {"x:1@" + digest, "docker.io/library/x@" + digest},
        {"pydantic-ai-backend-runtime:A-0123456789ab",
         "docker.io/library/pydantic-ai-backend-runtime:A-0123456789ab"},
    };
    for (const auto& [text, full] : all) {
        const auto got = parse_image_reference(text);
        BOOST_REQUIRE_MESSAGE(got.has_value(), text);
        BOOST_TEST((got->what == kind::registry), text);
        BOOST_TEST(got->full() == full);
    }
    BOOST_TEST(parse_image_reference("ghcr.io/a/b")->host() == "ghcr.io");
    BOOST_TEST(parse_image_reference("a/b")->host() == "docker.io");
    for (const char* host : {"localhost", "localhost:5000", "127.0.0.1", "127.9.8.7:443", "[::1]:5000"}) {
        BOOST_TEST(is_loopback(host), host);
    }
    for (const char* host :
         {"docker.io", "localhost.example", "127.example.com", "128.0.0.1", "[::2]:5000"}) {
        BOOST_TEST(!is_loopback(host), host);
    }
}

BOOST_AUTO_TEST_CASE(configurations) {
    const auto got = parse_image_config(
        R"({"architecture":"amd64","config":{"Env":["PATH=/x","A=b=c","A=d","=bad","bad"],"User":"1000:1000",)"
        R"("WorkingDir":"/srv","Entrypoint":["/init","--"],"Cmd":["x"],"Labels":{}}})");
    BOOST_REQUIRE(got.has_value());
    const image_config want{{{"PATH", "/x"}, {"A", "d"}}, "1000:1000", "/srv", {"/init", "--"}};
    BOOST_TEST((*got == want));
    const auto back = decode_image_config(encode_image_config(want));
    BOOST_REQUIRE(back.has_value());
    BOOST_TEST((*back == want));
    BOOST_TEST((*parse_image_config("{}") == image_config{}));
    BOOST_TEST((*parse_image_config(R"({"config":{"Env":null,"Entrypoint":null}})") == image_config{}));
    for (const char* bad : {"", "[]", R"({"config":[]})", R"({"config":{"Env":"A=b"}})",
                            R"({"config":{"User":1}})", R"({"config":{"Entrypoint":[1]}})"}) {
        BOOST_TEST(!parse_image_config(bad).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(users) {
    const std::string passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:34::/var/www:/bin/false\n";
    const std::string group = "root:x:0:\nwww:x:35:web\n";
    const auto resolved = [&](std::string_view user) {
        const auto got = resolve_user(user, passwd, group);
        BOOST_REQUIRE_MESSAGE(got.has_value(), user);
        return *got;
    };
    BOOST_TEST((resolved("web") == resolved_user{{33, 34}, "/var/www"}));
    BOOST_TEST((resolved("33") == resolved_user{{33, 34}, "/var/www"}));
    BOOST_TEST((resolved("web:www") == resolved_user{{33, 35}, "/var/www"}));
    BOOST_TEST((resolved("web:7") == resolved_user{{33, 7}, "/var/www"}));
    BOOST_TEST((resolved("1234") == resolved_user{{1234, 0}, "/"}));
    BOOST_TEST((resolved("root") == resolved_user{{0, 0}, "/root"}));
    BOOST_TEST(!resolve_user("nobody", passwd, group).has_value());
    BOOST_TEST(!resolve_user("web:nogroup", passwd, group).has_value());
    BOOST_TEST(home_of(0, "") == "/root");
    BOOST_TEST(home_of(5, "") == "/");
}

BOOST_AUTO_TEST_CASE(environments) {
    const environment image{{"A", "1"}, {"PATH", "/image"}};
    const environment merged = merge_environment(image, {{"A", "2"}, {"B", "3"}}, "/root", "box");
    BOOST_TEST(
        (merged ==
         environment{{"A", "2"}, {"PATH", "/image"}, {"B", "3"}, {"HOME", "/root"}, {"HOSTNAME", "box"}}));
    const environment bare = merge_environment({}, {{"HOME", "/h"}}, "/root", "box");
    BOOST_TEST((bare == environment{{"HOME", "/h"},
                                    {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                                    {"HOSTNAME", "box"}}));
}

BOOST_AUTO_TEST_CASE(choosing_in_a_layout) {
    const std::string a = "sha256:" + std::string(64, 'a');
    const std::string b = "sha256:" + std::string(64, 'b');
    const auto one = [](const std::string& digest, const std::string& tag) {
        return R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","size":5,"digest":")" + digest +
               R"(","annotations":{"org.opencontainers.image.ref.name":")" + tag + R"("}})";
    };
    const auto index = [](const std::string& list) {
        return R"({"schemaVersion":2,"manifests":[)" + list + "]}";
    };
    BOOST_TEST(choose_by_tag(index(one(a, "x")), "")->digest == a);
    BOOST_TEST(choose_by_tag(index(one(a, "x") + "," + one(b, "y")), "y")->digest == b);
    BOOST_TEST(choose_by_tag(index(one(a, "x") + "," + one(b, "latest")), "")->digest == b);
    const auto none = choose_by_tag(index(one(a, "x") + "," + one(b, "y")), "z");
    BOOST_REQUIRE(!none.has_value());
    BOOST_TEST(none.error().message == "the layout has no image with the tag 'z'; it has: x, y");
    BOOST_TEST(!choose_by_tag(index(one("sha256:../../etc", "x")), "").has_value());
    BOOST_TEST(!choose_by_tag("[]", "").has_value());
    const auto back = choose_by_tag(index_of({"m", a, 9}), "image");
    BOOST_REQUIRE(back.has_value());
    BOOST_TEST((*back == blob_descriptor{"m", a, 9}));
    BOOST_TEST(config_of_manifest(R"({"config":{"digest":")" + b + R"("}})")->digest == b);
    BOOST_TEST(!config_of_manifest("{}").has_value());
    BOOST_TEST(!choose_by_platform(index(one(a, "x"))).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
