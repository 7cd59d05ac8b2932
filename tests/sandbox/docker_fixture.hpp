#pragma once

#include "docker_fake.hpp"
#include "sandbox/docker/builder.hpp"
#include "support/run.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sandboxd::test {

/// What the builder makes over a host, where no agent is needed.
class plain_sandbox final : public sandbox {
public:
    plain_sandbox(std::shared_ptr<sandboxes::sandbox_host> over, bool adopted)
        : host(std::move(over)), was_adopted(adopted) {}

    std::string_view type() const noexcept override { return host->type(); }
    task<result<exec_result>> exec(exec_request) override {
        co_return error{errc::unsupported, "there is no agent here"};
    }
    task<void> stop_run(std::string) override { co_return; }
    bool alive() const noexcept override { return host->alive(); }
    void on_death(std::function<void()> callback) override { host->on_death(std::move(callback)); }
    task<void> stop(bool purge) override { return host->terminate(std::chrono::milliseconds(0), purge); }
    std::string handle() const override { return host->handle(); }

    std::shared_ptr<sandboxes::sandbox_host> host;
    bool was_adopted;
};

/// A builder over a daemon in memory. The daemon counts as far away: its agents are attached to.
struct docker_fixture {
    docker_fixture();
    ~docker_fixture();

    boost::asio::io_context context;
    core::gate background;
    std::shared_ptr<fake_daemon> daemon = std::make_shared<fake_daemon>(context.get_executor());
    std::string state; ///< directory
    std::string agent; ///< a file that stands for the agent
    std::shared_ptr<images::keeper> keeper;
    std::shared_ptr<sandbox_builder> builder;
    std::optional<error> factory_error; ///< of the next agent
    bool may_be_local = false;          ///< of the next builder: the daemon is asked for a proof

    void make_builder();
    [[nodiscard]] sandbox_spec spec(const std::string& image = "box") const;
    [[nodiscard]] result<std::shared_ptr<sandbox>> open(sandbox_spec of);
    /// The host below a sandbox of this builder's.
    [[nodiscard]] static sandboxes::sandbox_host& host_of(sandbox& one);

    template <class T>
    T get(task<T> work) {
        return test::get(context, std::move(work));
    }
    /// Lets what is under way go on.
    void settle(std::chrono::milliseconds time);
    /// Waits for something to come true; a failed check when it does not.
    void until(const std::function<bool()>& what);
};

} // namespace sandboxd::test
