#include "core/spawn.hpp"
#include "fixture.hpp"
#include "images/job.hpp"

namespace images_tests {

BOOST_FIXTURE_TEST_SUITE(the_stop_of_a_job, fixture)

// What is stopped before its first step must have one all the same: somebody waits for what it does at its
// end.
BOOST_AUTO_TEST_CASE(a_stop_before_the_first_step) {
    const images::job_stop early(context.get_executor());
    bool told = false;
    const auto body = [](const images::job_stop& stop, bool& seen) -> task<void> {
        seen = !stop.begin();
        co_return;
    };
    early.now();
    sandboxd::core::spawn(early.strand(), "test", background, body(early, told), early.signal());
    early.now();
    context.run();
    BOOST_TEST(told);
}

BOOST_AUTO_TEST_CASE(a_stop_after_it) {
    const images::job_stop late(context.get_executor());
    int steps = 0;
    const auto body = [](const images::job_stop& stop, int& seen) -> task<void> {
        seen = stop.begin() ? 1 : 0;
        stop.now();
        seen += co_await sandboxd::core::sleep_for(1h) ? 0 : 1;
    };
    sandboxd::core::spawn(late.strand(), "test", background, body(late, steps), late.signal());
    context.run();
    BOOST_TEST(steps == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace images_tests
