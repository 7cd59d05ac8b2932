#pragma once

// The channel to one agent, kept up while its sandbox lives: connects, reconnects, reads, writes, watches the
// clock. All state lives on the link's own strand; the public functions may be called from anywhere.
// Losing the channel ends no command: they are found again by the next one.

#include "core/event.hpp"
#include "core/gate.hpp"
#include "net/stream.hpp"
#include "sandbox/link_core.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sandboxd::sandboxes {

struct link_options {
    link_limits limits;
    std::chrono::milliseconds greet_within{5'000}; ///< from a connection to `ready`
    std::chrono::milliseconds back_off_first{10};  ///< between attempts, doubled each time
    std::chrono::milliseconds back_off_most{1'000};
    std::chrono::milliseconds last_words{200}; ///< after a death, to read what the agent had still sent
    unsigned lies = 3;                         ///< broken rules within `lies_within` that break the link
    std::chrono::milliseconds lies_within{60'000};
};

class agent_link final : public std::enable_shared_from_this<agent_link>, private link_core::observer {
public:
    /// A new byte stream to the agent, on the executor given; bounded in time.
    using connector = std::function<task<result<net::stream_ptr>>(boost::asio::any_io_executor)>;
    /// Called on the strand.
    struct events {
        std::function<void(const found_command&)> found; ///< see found_command
        std::function<void(std::string)> broken; ///< once: the agent can't be trusted or reached any more
    };

    /// `background` counts the link's work and must outlive it: close the link, then await drained().
    [[nodiscard]] static std::shared_ptr<agent_link> create(const boost::asio::any_io_executor& executor,
                                                            core::gate& background, connector connect,
                                                            link_options options, events told);
    ~agent_link() override;

    /// Starts to connect and returns once the agent has told what it holds. errc::timeout when it has not
    /// after `within` (the link goes on trying), gone when the link was closed or broke meanwhile.
    [[nodiscard]] task<result<void>> open(std::chrono::milliseconds within);

    /// Hands a stream over. Every outcome comes through its own functions.
    void start(std::shared_ptr<link_stream> stream);
    void abandon(std::shared_ptr<link_stream> stream);
    void signal(std::shared_ptr<link_stream> stream, std::uint32_t number);
    void resize(std::shared_ptr<link_stream> stream, std::uint16_t rows, std::uint16_t columns);
    /// For the strand only (from a stream's own functions, or through executor()).
    [[nodiscard]] std::size_t write_in(link_stream& stream, std::string_view bytes);
    void end_in(link_stream& stream);

    /// Stops a command and all it started; returns when it has ended, at the latest after `within`. False
    /// then.
    [[nodiscard]] task<bool> stop(run_id_bytes id, std::chrono::milliseconds within);

    /// Asks the agent to end everything and leave; every stream ends with errc::gone now.
    void shutdown(std::string why);
    /// The sandbox has ended: reads what was still under way, then ends every stream with errc::gone. No
    /// channel is opened any more. Idempotent.
    void close(std::string why);
    /// Leaves the sandbox alone: the commands go on, their streams here end with errc::gone. Idempotent.
    void detach();

    [[nodiscard]] boost::asio::any_io_executor executor() const { return strand_; }
    /// Commands not ended yet, those nobody waits for included. Any thread.
    [[nodiscard]] std::size_t running() const noexcept { return running_; }
    /// Those among them that were found running on the agent (found_command). Any thread.
    [[nodiscard]] std::size_t inherited() const noexcept { return inherited_; }

private:
    struct channel;
    struct stop_waiter {
        run_id_bytes id;
        std::shared_ptr<core::shared_event> gone;
    };
    using time_point = link_core::time_point;

    agent_link(const boost::asio::any_io_executor& executor, core::gate& background, connector connect,
               link_options options, events told);

    void on_found(const found_command& command) override;
    void on_gone(const run_id_bytes& id) override;

    [[nodiscard]] task<void> run(std::shared_ptr<agent_link> self);
    [[nodiscard]] task<bool> serve();
    [[nodiscard]] task<void> read_from(std::shared_ptr<channel> from);
    [[nodiscard]] bool take(std::string_view bytes);
    void do_start(const std::shared_ptr<link_stream>& stream);
    void settle();
    void flush();
    void write_more(const std::shared_ptr<channel>& to);
    void on_written(const std::shared_ptr<channel>& to, boost::system::error_code failed, std::size_t count);
    void arm();
    void on_timer();
    void drop_channel();
    void note_lie(std::string_view what);
    void break_down(std::string why);
    void finish(const std::string& why);

    boost::asio::any_io_executor strand_;
    core::gate& background_;
    connector connect_;
    link_options options_;
    events told_;
    link_core core_;
    std::shared_ptr<channel> channel_;
    boost::asio::steady_timer timer_;    ///< the only one: see link_core::due()
    boost::asio::steady_timer back_off_; ///< cancelled by close()
    core::event room_;                   ///< the output is not congested
    std::shared_ptr<core::shared_event> opened_ = std::make_shared<core::shared_event>();
    std::vector<stop_waiter> stop_waiters_;
    time_point armed_ = time_point::max();
    time_point greet_by_ = time_point::max();
    time_point close_by_ = time_point::max();
    time_point first_lie_{};
    unsigned lies_ = 0;
    bool started_ = false;
    bool closing_ = false;
    bool finished_ = false;
    std::string why_;
    std::atomic<std::size_t> running_{0};
    std::atomic<std::size_t> inherited_{0};
    std::atomic<bool> usable_{false};
};

} // namespace sandboxd::sandboxes
