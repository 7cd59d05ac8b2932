#include "sandbox/oci/host.hpp"

#include "core/event.hpp"
#include "core/log.hpp"
#include "net/connect.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <mutex>
#include <vector>

namespace sandboxd::sandboxes::oci {

namespace asio = boost::asio;

namespace {

/// With an agent that dials; the caller tries again as long as the sandbox lives.
constexpr auto patience = std::chrono::seconds(1);

/// Waits for a pidfd to become readable and tells whoever asked.
class death_watch : public std::enable_shared_from_this<death_watch> {
public:
    death_watch(const asio::any_io_executor& executor, core::unique_fd pidfd)
        : strand_(asio::make_strand(executor)), pidfd_(strand_, pidfd.release()) {}

    void begin() {
        auto wait = [self = shared_from_this()] {
            auto ended = [self](boost::system::error_code failed) {
                if (failed != asio::error::operation_aborted) {
                    self->tell();
                }
            };
            self->pidfd_.async_wait(asio::posix::stream_descriptor::wait_read, std::move(ended));
        };
        asio::dispatch(strand_, std::move(wait));
    }

    /// Nobody is told any more.
    void end() {
        auto close = [self = shared_from_this()] {
            boost::system::error_code ignored;
            self->pidfd_.close(ignored);
        };
        asio::dispatch(strand_, std::move(close));
    }

    [[nodiscard]] bool dead() const noexcept { return dead_.is_set(); }
    [[nodiscard]] core::shared_event& death() noexcept { return dead_; }

    void add(std::function<void()> callback) {
        {
            const std::lock_guard lock(mutex_);
            if (!told_) {
                callbacks_.push_back(std::move(callback));
                return;
            }
        }
        callback();
    }

private:
    void tell() {
        std::vector<std::function<void()>> callbacks;
        {
            const std::lock_guard lock(mutex_);
            told_ = true;
            callbacks.swap(callbacks_);
        }
        dead_.set();
        boost::system::error_code ignored;
        pidfd_.close(ignored);
        for (auto& callback : callbacks) {
            callback();
        }
    }

    asio::strand<asio::any_io_executor> strand_;
    asio::posix::stream_descriptor pidfd_;
    core::shared_event dead_;
    std::mutex mutex_;
    bool told_ = false;
    std::vector<std::function<void()>> callbacks_;
};

class oci_host final : public sandbox_host {
public:
    oci_host(const asio::any_io_executor& executor, std::shared_ptr<launcher::client> launcher,
             std::string slot, std::string cgroup, const launcher::cgroup_layout& cgroups,
             launcher::live_sandbox live)
        : launcher_(std::move(launcher)),
          slot_(std::move(slot)),
          user_(live.facts.user),
          dials_(live.facts.dials),
          socket_(std::move(live.socket)),
          reader_(cgroups, cgroup),
          watch_(std::make_shared<death_watch>(executor, std::move(live.pidfd))) {
        watch_->begin();
    }
    ~oci_host() override { watch_->end(); }

    std::string_view type() const noexcept override { return "oci"; }
    bool alive() const noexcept override { return !watch_->dead(); }
    void on_death(std::function<void()> callback) override { watch_->add(std::move(callback)); }
    std::optional<std::uint64_t> oom_kills() const override { return reader_.oom_kills(); }
    std::string handle() const override { return slot_; }

    std::optional<command_user> default_user() const override {
        return user_ ? std::optional(command_user{user_->uid, user_->gid}) : std::nullopt;
    }

    task<result<net::stream_ptr>> connect(asio::any_io_executor executor) override {
        if (!alive()) {
            co_return error{errc::gone, "the sandbox has ended"};
        }
        if (dials_) {
            co_return co_await net::accept_within(std::move(executor), socket_.get(), patience);
        }
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
        const auto watch = watch_;
        static_cast<void>(co_await watch->death().wait_for(grace));
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
    bool dials_;
    core::unique_fd socket_;
    mutable launcher::cgroup_reader reader_;
    std::shared_ptr<death_watch> watch_;
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
