// Life and death of real sandboxes: stop, death, adoption; nothing is left behind (the fixture checks).

#include "oci_fixture.hpp"

#include "core/event.hpp"

#include <csignal>

using namespace sandboxd;
using namespace sandboxd::test;
using namespace std::chrono_literals;

namespace {

task<bool> wait_for(std::shared_ptr<core::shared_event> one) {
    co_return co_await one->wait_for(20s);
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_life, oci_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(the_host_keeps_no_mount_and_no_descriptor) {
    start_service();
    close(open(spec())); // whatever is made once is made
    const auto descriptors = count_descriptors();
    {
        const auto box = open(spec());
        BOOST_TEST(count_mounts(*this) == 0U);
        close(box);
    }
    for (int round = 0; round < 5; ++round) {
        close(open(spec()));
    }
    context.restart();
    context.poll();
    BOOST_TEST(count_mounts(*this) == 0U);
    BOOST_TEST(count_descriptors() == descriptors);
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(a_death_is_noticed_and_told_once) {
    start_service();
    const auto box = open(spec());
    auto died = std::make_shared<core::shared_event>();
    int told = 0;
    box->on_death([&told, died] {
        ++told;
        died->set();
    });
    BOOST_TEST(box->alive());
    BOOST_TEST(::kill(pid_of(*this, box), SIGKILL) == 0);
    BOOST_TEST(get(wait_for(died)));
    BOOST_TEST(!box->alive());
    BOOST_TEST(told == 1);
    exec_request late;
    late.command = "true";
    BOOST_TEST((get(box->exec(late)).error().code == errc::gone));
    bool at_once = false;
    box->on_death([&at_once] { at_once = true; });
    BOOST_TEST(at_once);
    close(box);
    close(box); // idempotent
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(a_restarted_service_finds_its_sandboxes) {
    start_service();
    auto box = open(spec());
    BOOST_TEST(exec(box, "echo kept > /etc/kept; (sleep 1000 > /dev/null 2>&1 &)") == "");
    const auto kept = box->handle();
    auto dead = open(spec());
    const auto lost = dead->handle();
    ::kill(pid_of(*this, dead), SIGKILL);
    box.reset();
    dead.reset();
    stop_service();
    start_service();
    const auto slots = owned();
    BOOST_TEST(slots.size() == 2U);
    const auto adopted = get(builder->adopt({kept, "oci", kept}));
    BOOST_REQUIRE(adopted.has_value());
    BOOST_TEST(exec(*adopted, "cat /etc/kept; pgrep -c sleep") == "kept\n1\n");
    const auto gone = get(builder->adopt({lost, "oci", lost}));
    BOOST_REQUIRE(!gone.has_value());
    BOOST_TEST((gone.error().code == errc::gone));
    const auto never = get(builder->adopt({"never", "oci", "never"}));
    BOOST_TEST((never.error().code == errc::gone));
    BOOST_TEST(get(builder->remove({"never", "oci", "never"})).has_value());
    close(*adopted);
}

BOOST_AUTO_TEST_SUITE_END()
