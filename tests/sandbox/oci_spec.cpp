#include "sandbox/oci/builder.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using sandboxes::oci::check_spec;

namespace {

sandbox_spec plain() {
    sandbox_spec spec;
    spec.session_id = "s";
    spec.image = "host";
    spec.work_dir = "/workspace";
    return spec;
}

/// The sentence of a refusal; "" when the spec is taken.
std::string refusal(const sandbox_spec& spec) {
    const auto answer = check_spec(spec);
    if (answer) {
        return "";
    }
    BOOST_TEST((answer.error().code == errc::start_failed));
    return answer.error().message;
}

} // namespace

BOOST_AUTO_TEST_SUITE(oci_spec)

BOOST_AUTO_TEST_CASE(networks) {
    auto spec = plain();
    BOOST_TEST(refusal(spec) == "");
    for (const char* mode : {"none", "bridge"}) {
        spec.network_mode = mode;
        BOOST_TEST(refusal(spec) == "");
    }
    for (const char* mode : {"host", "container:x", ""}) {
        spec.network_mode = mode;
        BOOST_TEST(refusal(spec).find(std::string("network_mode '") + mode + "'") == 0U, mode);
    }
}

BOOST_AUTO_TEST_CASE(runtimes_and_images) {
    auto spec = plain();
    for (const char* name : {"runc", "crun", "runsc"}) {
        spec.oci_runtime = name;
        BOOST_TEST(refusal(spec) == "");
    }
    for (const char* name : {"kata", "", "RUNC", "/usr/bin/runc", "runc "}) {
        spec.oci_runtime = name;
        BOOST_TEST(refusal(spec) == "oci_runtime '" + std::string(name) +
                                        "' is not known to the oci backend: it has runc, crun, runsc");
    }
    spec = plain();
    spec.image = "python:3.12-slim";
    BOOST_TEST(refusal(spec) == "");
    spec.image = "Python:3.12";
    BOOST_TEST(refusal(spec).find("the image 'Python:3.12' is no image") == 0U);
}

BOOST_AUTO_TEST_CASE(limits) {
    auto spec = plain();
    spec.limits.memory_bytes = 6 << 20;
    spec.limits.cpus = 0.01;
    spec.limits.pids = 1;
    spec.limits.tmpfs_size = "";
    BOOST_TEST(refusal(spec) == "");
    auto bad = spec;
    bad.limits.memory_bytes = (6 << 20) - 1;
    BOOST_TEST(refusal(bad) != "");
    bad = spec;
    bad.limits.memory_swap_bytes = 5 << 20;
    BOOST_TEST(refusal(bad) != "");
    bad = spec;
    bad.limits.cpus = 0.001;
    BOOST_TEST(refusal(bad) != "");
    bad = spec;
    bad.limits.pids = 0;
    BOOST_TEST(refusal(bad) != "");
    bad = spec;
    bad.limits.tmpfs_size = "64m,dev";
    BOOST_TEST(refusal(bad) != "");
    bad = spec;
    bad.uid = 65536;
    BOOST_TEST(refusal(bad) != "");
}

BOOST_AUTO_TEST_CASE(directories_and_environment) {
    auto spec = plain();
    spec.workspace_dir = "/srv/x/workspace";
    BOOST_TEST(refusal(spec) == "");
    for (const char* where : {"/", "/.", "/proc", "/sys/x", "/dev/shm", "relative"}) {
        spec.work_dir = where;
        BOOST_TEST(refusal(spec) != "", where);
    }
    spec = plain();
    spec.work_dir = "/devices";
    spec.workspace_dir = "/srv/x/workspace";
    BOOST_TEST(refusal(spec) == "");
    spec.workspace_dir = "x";
    BOOST_TEST(refusal(spec) != "");
    spec = plain();
    spec.env = {{"A=B", "1"}};
    BOOST_TEST(refusal(spec) != "");
    spec.env = {{"", "1"}};
    BOOST_TEST(refusal(spec) != "");
}

BOOST_AUTO_TEST_SUITE_END()
