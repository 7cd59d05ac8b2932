// The image `host` is made once for all who open at the same time.

#include "oci_fixture.hpp"

#include "core/event.hpp"
#include "core/gate.hpp"
#include "core/spawn.hpp"

using namespace sandboxd;
using namespace sandboxd::test;
using namespace std::chrono_literals;

namespace {

task<void> open_into(std::shared_ptr<sandbox_builder> builder, sandbox_spec spec,
                     std::vector<std::shared_ptr<sandbox>>& boxes) {
    const auto slot = co_await builder->prepare(spec);
    if (slot) {
        auto made = co_await builder->build(std::move(spec), *slot);
        if (made) {
            boxes.push_back(std::move(*made));
        }
    }
}

/// Hands everything on and counts the imports.
class counting_client final : public launcher::client {
public:
    explicit counting_client(std::shared_ptr<launcher::client> real) : real_(std::move(real)) {}
    std::shared_ptr<core::shared_event> lost() const override { return real_->lost(); }

    task<result<launcher::live_sandbox>> start(launcher::start_sandbox request,
                                               std::chrono::milliseconds deadline) override {
        return real_->start(std::move(request), deadline);
    }
    task<result<launcher::live_sandbox>> attach(std::string slot) override {
        return real_->attach(std::move(slot));
    }
    task<result<void>> remove(std::string slot) override { return real_->remove(std::move(slot)); }
    task<result<void>> stop(std::string slot) override { return real_->stop(std::move(slot)); }
    task<result<std::vector<std::string>>> list() override { return real_->list(); }
    task<result<launcher::image_info>> import(launcher::import_image request, launcher::progress_line tell,
                                              std::chrono::milliseconds deadline) override {
        ++imports;
        return real_->import(std::move(request), std::move(tell), deadline);
    }
    task<result<launcher::image_info>> keep(launcher::keep_image request,
                                            std::chrono::milliseconds deadline) override {
        return real_->keep(std::move(request), deadline);
    }
    task<result<std::vector<std::string>>> images() override { return real_->images(); }
    task<result<void>> forget(std::vector<std::string> references) override {
        return real_->forget(std::move(references));
    }
    task<result<launcher::host_features>> probe() override { return real_->probe(); }
    task<void> close() override { return real_->close(); }

    int imports = 0;

private:
    std::shared_ptr<launcher::client> real_;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_host_image, oci_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(opens_at_once_copy_the_host_once) {
    start_service();
    const auto counting = std::make_shared<counting_client>(client);
    make_builder(counting);
    core::gate running;
    std::vector<std::shared_ptr<sandbox>> boxes;
    for (int i = 0; i < 4; ++i) {
        core::spawn(context.get_executor(), "open", running, open_into(builder, spec(), boxes));
    }
    running.close();
    test::run(context, running.drained(), 60s);
    BOOST_REQUIRE(boxes.size() == 4U);
    BOOST_TEST(counting->imports == 1);
    for (const auto& box : boxes) {
        BOOST_TEST(exec(box, "echo yes") == "yes\n");
        close(box);
    }
}

BOOST_AUTO_TEST_SUITE_END()
