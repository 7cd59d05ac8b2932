#include "core/strand.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <thread>
#include <vector>

using namespace sandboxd;
namespace asio = boost::asio;

namespace {
/// Runs a thousand pieces of work through the strand, by four threads: false when two overlapped or one
/// overtook another.
bool keeps_order(const asio::any_io_executor& strand, asio::io_context& context) {
    int inside = 0; // not atomic on purpose: the strand is what protects it
    int next = 0;
    bool kept = true;
    for (int i = 0; i < 1000; ++i) {
        asio::post(strand, [&, i] {
            kept = kept && ++inside == 1 && next++ == i;
            --inside;
        });
    }
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { context.run(); });
    }
    threads.clear();
    return kept && next == 1000;
}
} // namespace

BOOST_AUTO_TEST_CASE(a_strand_over_a_context_is_kept_in_place) {
    asio::io_context context(4);
    const auto strand = core::make_strand(context.get_executor());
    BOOST_TEST(strand.target<asio::strand<asio::io_context::executor_type>>() != nullptr);
    BOOST_TEST(keeps_order(strand, context));
}

BOOST_AUTO_TEST_CASE(a_strand_over_another_executor_is_one_too) {
    asio::io_context context(4);
    const asio::any_io_executor inner = asio::make_strand(context.get_executor());
    const auto strand = core::make_strand(inner);
    BOOST_TEST(strand.target<asio::strand<asio::any_io_executor>>() != nullptr);
    BOOST_TEST(keeps_order(strand, context));
}
