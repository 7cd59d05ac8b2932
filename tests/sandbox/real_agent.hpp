#pragma once

// The shipped agent as an ordinary child process, behind the interface that backends implement: what is
// tested is everything between sandbox::exec and the agent, without root.

#include "core/fd.hpp"
#include "sandbox/agent_sandbox.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <atomic>
#include <mutex>

namespace sandboxd::test {

class real_agent final : public sandboxes::sandbox_host, public std::enable_shared_from_this<real_agent> {
public:
    /// Starts the agent; its working directory is the root directory.
    [[nodiscard]] static std::shared_ptr<real_agent> start(boost::asio::io_context& context);
    ~real_agent() override;

    std::string_view type() const noexcept override { return "test"; }
    task<result<net::stream_ptr>> connect(boost::asio::any_io_executor executor) override;
    std::optional<sandboxes::command_user> default_user() const override { return std::nullopt; }
    bool alive() const noexcept override { return alive_; }
    void on_death(std::function<void()> callback) override;
    std::optional<std::uint64_t> oom_kills() const override { return oom_kills_.load(); }
    task<result<usage_sample>> usage() override;
    task<void> terminate(std::chrono::milliseconds grace, bool purge) override;
    std::string handle() const override { return "test"; }

    [[nodiscard]] int pid() const noexcept { return pid_; }
    /// Breaks the newest connection in the middle of whatever it is doing. False when there is none.
    bool cut();
    /// Connections made so far.
    [[nodiscard]] int connections() const noexcept { return connections_; }
    void pretend_oom_kills(std::uint64_t count) { oom_kills_ = count; }
    [[nodiscard]] int terminations() const noexcept { return terminations_; }

private:
    explicit real_agent(boost::asio::io_context& context) : exit_(context) {}
    void watch();

    boost::asio::posix::stream_descriptor exit_; ///< readable when the process has ended
    std::string address_;                        ///< in the abstract namespace
    int pid_ = -1;
    std::atomic<bool> alive_{true};
    std::atomic<std::uint64_t> oom_kills_{0};
    std::atomic<int> connections_{0};
    std::atomic<int> terminations_{0};
    std::mutex mutex_;
    core::unique_fd newest_; ///< a duplicate, so that cutting never hits another descriptor
    std::vector<std::function<void()>> on_death_;
};

/// One service's way to the agent. Closed for good, it is as if that service had died.
class door final : public sandboxes::sandbox_host {
public:
    explicit door(std::shared_ptr<real_agent> to) : to_(std::move(to)) {}
    /// Cuts the channel; there will be no other through this door.
    void close() {
        closed_ = true;
        to_->cut();
    }

    std::string_view type() const noexcept override { return to_->type(); }
    task<result<net::stream_ptr>> connect(boost::asio::any_io_executor executor) override;
    std::optional<sandboxes::command_user> default_user() const override { return to_->default_user(); }
    bool alive() const noexcept override { return to_->alive(); }
    void on_death(std::function<void()> callback) override { to_->on_death(std::move(callback)); }
    std::optional<std::uint64_t> oom_kills() const override { return to_->oom_kills(); }
    task<result<usage_sample>> usage() override { return to_->usage(); }
    task<void> terminate(std::chrono::milliseconds grace, bool purge) override {
        return to_->terminate(grace, purge);
    }
    std::string handle() const override { return to_->handle(); }

private:
    std::shared_ptr<real_agent> to_;
    std::atomic<bool> closed_{false};
};

/// A new run id.
[[nodiscard]] std::string fresh_id();

} // namespace sandboxd::test
