// Builds that are cut off while the host is busy.

#include "core/deadline.hpp"
#include "launcher/image_config.hpp"
#include "sandbox/oci/image_build.hpp"
#include "support/run.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace sandboxd::sandboxes::oci;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

/// Starts that hang, and removals that wait in vain for the slot at first.
class busy_launcher final : public launcher::client {
public:
    explicit busy_launcher(std::vector<errc> refusals) : refusals_(std::move(refusals)) {}

    task<result<launcher::live_sandbox>> start(launcher::start_sandbox request,
                                               std::chrono::milliseconds deadline) override {
        slot = request.slot;
        asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
        co_await timer.async_wait(asio::use_awaitable);
        co_return error{errc::timeout, "the start did not end"};
    }
    task<result<void>> remove(std::string which) override {
        removed.push_back(std::move(which));
        if (removed.size() <= refusals_.size()) {
            co_return error{refusals_[removed.size() - 1], "not now"};
        }
        co_return result<void>();
    }

    task<result<launcher::live_sandbox>> attach(std::string) override { co_return nobody(); }
    task<result<void>> stop(std::string) override { co_return nobody(); }
    task<result<std::vector<std::string>>> list() override { co_return nobody(); }
    task<result<launcher::image_info>> import(launcher::import_image, launcher::progress_line,
                                              std::chrono::milliseconds) override {
        co_return nobody();
    }
    task<result<launcher::image_info>> keep(launcher::keep_image, std::chrono::milliseconds) override {
        co_return nobody();
    }
    task<result<std::vector<std::string>>> images() override { co_return nobody(); }
    task<result<void>> forget(std::vector<std::string>) override { co_return nobody(); }
    task<result<launcher::host_features>> probe() override { co_return nobody(); }
    std::shared_ptr<core::shared_event> lost() const override { return nullptr; }
    task<void> close() override { co_return; }

    std::string slot;
    std::vector<std::string> removed; ///< the slots, in the order of the calls

private:
    static error nobody() { return {errc::unsupported, "not asked for here"}; }

    std::vector<errc> refusals_;
};

/// How often a build's slot is removed after the build was cut off in its start.
std::size_t removals_after(std::vector<errc> refusals) {
    asio::io_context context;
    core::gate background;
    const auto client = std::make_shared<busy_launcher>(std::move(refusals));
    image_source_options with;
    with.executor = context.get_executor();
    with.background = &background;
    with.launcher = client;
    images::recipe what;
    what.tag = "built:1";
    const auto steps = std::make_shared<images::build_steps>(what, images::progress_sink());
    auto build = build_image(std::move(with), std::move(what),
                             {"sha256-base", launcher::encode_image_config({})}, steps);
    BOOST_TEST(!test::get(context, core::with_timeout(std::move(build), 2s)).has_value());
    background.close();
    test::run(context, background.drained());
    BOOST_TEST(client->slot.starts_with(build_slot_prefix));
    for (const auto& one : client->removed) {
        BOOST_TEST(one == client->slot);
    }
    return client->removed.size();
}

} // namespace

BOOST_AUTO_TEST_SUITE(oci_cut_builds)

BOOST_AUTO_TEST_CASE(a_build_cut_off_in_its_start_is_removed_when_that_has_ended) {
    BOOST_TEST(removals_after({}) == 1U);
    BOOST_TEST(removals_after({errc::timeout, errc::timeout}) == 3U);
    BOOST_TEST(removals_after(std::vector<errc>(9, errc::timeout)) == 4U); // the next start's
    BOOST_TEST(removals_after({errc::unavailable}) == 1U);                 // the launcher has left
}

BOOST_AUTO_TEST_SUITE_END()
