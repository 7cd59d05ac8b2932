#include "core/gate.hpp"
#include "core/spawn.hpp"
#include "support/run.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>

using namespace sandboxd;

namespace {
task<void> hold(core::gate::pass pass, std::shared_ptr<core::shared_event> go) {
    co_await go->wait();
    pass = {};
}

task<void> close_and_wait(core::gate& gate, std::shared_ptr<core::shared_event> go, bool& drained) {
    gate.close();
    BOOST_TEST(!gate.enter());
    go->set();
    co_await gate.drained();
    drained = true;
}
} // namespace

BOOST_AUTO_TEST_CASE(a_closed_gate_lets_nobody_in_and_waits_for_those_inside) {
    core::gate gate;
    core::gate background;
    auto go = std::make_shared<core::shared_event>();
    bool drained = false;
    boost::asio::io_context context;
    BOOST_TEST(core::spawn(context.get_executor(), "holder", background, hold(gate.enter(), go)));
    BOOST_TEST(gate.inside() == 1U);
    test::run(context, close_and_wait(gate, go, drained));
    BOOST_TEST(drained);
    BOOST_TEST(gate.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(who_is_inside_an_abandoned_gate_outlasts_it) {
    auto gate = std::make_unique<core::gate>();
    auto pass = gate->enter();
    BOOST_TEST(static_cast<bool>(pass));
    gate->abandon();
    BOOST_TEST(!gate->enter());
    BOOST_TEST(gate->inside() == 1U);
    gate.reset();
    BOOST_TEST(static_cast<bool>(pass));
    pass = {};
    BOOST_TEST(!pass);
}
