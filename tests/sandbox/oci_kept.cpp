// A sandbox whose layer outlives it.

#include "sandbox/oci_fixture.hpp"

using namespace sandboxd;
using namespace sandboxd::test;

namespace {
struct kept_fixture : oci_fixture {
    result<std::shared_ptr<sandbox>> build(const slot_record& slot, keeping keep) {
        auto wanted = spec();
        wanted.keep = keep;
        return get(builder->build(std::move(wanted), slot));
    }
    std::shared_ptr<sandbox> built(const slot_record& slot, keeping keep) {
        auto made = build(slot, keep);
        BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? std::string() : made.error().message));
        return *made;
    }
    void stop(const std::shared_ptr<sandbox>& one, bool purge) { test::run(context, one->stop(purge)); }
};
} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_kept, kept_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(a_layer_is_found_again_by_its_slot_with_its_owners) {
    start_service();
    const auto slot = *get(builder->prepare(spec()));
    auto box = built(slot, keeping::layer);
    (void)exec(box, "echo installed > /installed; chmod 640 /installed; rm /etc/hostname");
    stop(box, false);
    BOOST_TEST(owned().size() == 1U);
    BOOST_TEST(!box->alive());
    box = built(slot, keeping::kept);
    BOOST_TEST(exec(box, "cat /installed; stat -c '%a %u' /installed") == "installed\n640 0\n");
    // A restart of the service in between, whose launcher finds the running one and stops it the same way.
    stop_service();
    start_service();
    const auto again = get(builder->adopt(slot));
    BOOST_REQUIRE(again.has_value());
    stop(*again, false);
    BOOST_TEST(owned().size() == 1U);
    box = built(slot, keeping::layer);
    BOOST_TEST(exec(box, "cat /installed") == "installed\n");
    stop(box, true);
    BOOST_TEST(owned().empty());
    const auto gone = build(slot, keeping::kept);
    BOOST_REQUIRE(gone.has_error());
    BOOST_TEST((gone.error().code == errc::gone));
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(a_failed_start_leaves_the_layer) {
    start_service();
    const auto slot = *get(builder->prepare(spec()));
    auto box = built(slot, keeping::layer);
    (void)exec(box, "echo x > /kept");
    stop(box, false);
    auto wrong = spec();
    wrong.keep = keeping::kept;
    wrong.workspace_dir = "no/absolute/path"; // its image is the layer's own, whatever is named
    BOOST_TEST(get(builder->build(wrong, slot)).has_error());
    box = built(slot, keeping::kept);
    BOOST_TEST(exec(box, "cat /kept") == "x\n");
    // One that runs is in use.
    const auto second = build(slot, keeping::layer);
    BOOST_REQUIRE(second.has_error());
    BOOST_TEST((second.error().code == errc::start_failed));
    BOOST_TEST(exec(box, "cat /kept") == "x\n");
    stop(box, true);
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_SUITE_END()
