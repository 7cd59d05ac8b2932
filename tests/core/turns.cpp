#include "core/turns.hpp"

#include "support/run.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace sandboxd;

namespace {

task<void> note(core::turns& all, std::string key, std::vector<std::string>& log,
                std::shared_ptr<core::shared_event> go_on) {
    const auto mine = co_await all.take(key);
    log.push_back("has " + key);
    co_await go_on->wait();
    log.push_back("gives back " + key);
}

} // namespace

BOOST_AUTO_TEST_SUITE(turns)

BOOST_AUTO_TEST_CASE(one_at_a_time_for_each_key) {
    boost::asio::io_context context;
    auto all = std::make_unique<core::turns>();
    std::vector<std::string> log;
    std::vector<std::shared_ptr<core::shared_event>> go_on;
    int ended = 0;
    for (const char* key : {"a", "a", "b"}) {
        go_on.push_back(std::make_shared<core::shared_event>());
        boost::asio::co_spawn(context, note(*all, key, log, go_on.back()),
                              [&ended](const std::exception_ptr&) { ++ended; });
    }
    const auto settle = [&context] {
        context.restart();
        context.poll();
    };
    settle();
    using words = std::vector<std::string>;
    BOOST_TEST(log == (words{"has a", "has b"}), boost::test_tools::per_element());
    go_on[0]->set();
    settle();
    BOOST_TEST(log == (words{"has a", "has b", "gives back a", "has a"}), boost::test_tools::per_element());
    all.reset(); // a turn may outlive it
    go_on[1]->set();
    go_on[2]->set();
    settle();
    BOOST_TEST(ended == 3);
}

BOOST_AUTO_TEST_SUITE_END()
