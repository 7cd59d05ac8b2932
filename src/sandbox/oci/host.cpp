#include "sandbox/oci/host.hpp"

#include "core/event.hpp"
#include "core/log.hpp"
#include "net/connect.hpp"
#include "sandbox/death.hpp"

#include <atomic>

namespace sandboxd::sandboxes::oci {

namespace asio = boost::asio;

namespace {

class oci_host final : public sandbox_host {
public:
    oci_host(const asio::any_io_executor& executor, std::shared_ptr<launcher::client> launcher,
             std::string slot, std::string cgroup, const launcher::cgroup_layout& cgroups,
             launcher::live_sandbox live)
        : launcher_(std::move(launcher)),
          slot_(std::move(slot)),
          user_(live.facts.user),
          socket_(std::move(live.socket)),
          reader_(cgroups, cgroup),
          watch_(executor, std::move(live.pidfd), death_) {}

    std::string_view type() const noexcept override { return "oci"; }
    bool alive() const noexcept override { return !death_->is_past(); }
    void on_death(std::function<void()> callback) override { death_->add(std::move(callback)); }
    std::optional<std::uint64_t> oom_kills() const override { return reader_.oom_kills(); }
    std::string handle() const override { return slot_; }

    std::optional<command_user> default_user() const override {
        return user_ ? std::optional(command_user{user_->uid, user_->gid}) : std::nullopt;
    }

    task<result<net::stream_ptr>> connect(asio::any_io_executor executor) override {
        co_return connect_now(executor);
    }

    task<result<usage_sample>> usage() override {
        if (!alive()) {
            co_return error{errc::gone, "the sandbox has ended"};
        }
        const auto sample = reader_.sample(std::chrono::steady_clock::now());
        if (!sample) {
            co_return error{errc::unsupported, "the sandbox's cgroup can't be read"};
        }
        co_return *sample;
    }

    task<void> terminate(std::chrono::milliseconds grace,
                         bool /*purge: nothing outlives a stop yet*/) override {
        if (terminating_.exchange(true)) {
            co_await terminated_.wait();
            co_return;
        }
        const set_at_end finished{terminated_};
        const auto ended = death_;
        static_cast<void>(co_await ended->event().wait_for(grace));
        const auto removed = co_await launcher_->remove(slot_);
        if (!removed) {
            core::log::warning("sandbox {} did not stop cleanly: {}", slot_, removed.error().message);
        }
    }

private:
    struct set_at_end {
        core::shared_event& event;
        ~set_at_end() { event.set(); }
    };

    /// Never blocks: a Unix socket connects at once or not at all.
    result<net::stream_ptr> connect_now(const asio::any_io_executor& executor) const {
        if (!alive()) {
            return error{errc::gone, "the sandbox has ended"};
        }
        // Through the descriptor: no right to walk the state directory is needed, and no path is too long.
        auto made = net::connect_unix(executor, "/proc/self/fd/" + std::to_string(socket_.get()));
        if (!made) {
            return error{made.error().code, "the agent of " + slot_ + ": " + made.error().message};
        }
        return made;
    }

    std::shared_ptr<launcher::client> launcher_;
    std::string slot_;
    std::optional<launcher::account> user_;
    core::unique_fd socket_;
    mutable launcher::cgroup_reader reader_;
    std::shared_ptr<death> death_ = std::make_shared<death>();
    process_watch watch_;
    std::atomic<bool> terminating_{false};
    core::shared_event terminated_;
};

} // namespace

std::shared_ptr<sandbox_host> create_host(asio::any_io_executor executor,
                                          std::shared_ptr<launcher::client> launcher, std::string slot,
                                          std::string cgroup, const launcher::cgroup_layout& cgroups,
                                          launcher::live_sandbox live) {
    return std::make_shared<oci_host>(executor, std::move(launcher), std::move(slot), std::move(cgroup),
                                      cgroups, std::move(live));
}

} // namespace sandboxd::sandboxes::oci
