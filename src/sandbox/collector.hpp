#pragma once

// A command whose output is collected and awaited: what exec and run put on a link.

#include "sandbox/agent_link.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>

namespace sandboxd::sandboxes {

class collector final : public link_stream, public std::enable_shared_from_this<collector> {
public:
    using link_stream::link_stream;

    std::string out;
    std::string err;
    std::optional<end_record> ended; ///< or:
    std::optional<error> failed;

    /// What goes to its input, and then its end; only for a start with open_stdin. Before perform().
    void feed(std::string bytes) { input_.emplace(std::move(bytes)); }

    void on_data(protocol::channel which, std::string_view bytes) override;
    void on_writable() override;
    void on_end(end_record record) override;
    void on_failed(error reason) override;

    /// Hands the command to the link and completes, on the awaiting executor, when it has ended or failed:
    /// then the fields above may be read. A terminal or partial cancellation completes with
    /// operation_aborted: nobody waits any more, the command goes on (contract 3.12.8).
    template <class Token>
    static auto perform(std::shared_ptr<agent_link> link, std::shared_ptr<collector> command, Token&& token) {
        auto begin = [](auto handler, const std::shared_ptr<agent_link>& on,
                        const std::shared_ptr<collector>& me) {
            me->executor_ = boost::asio::get_associated_executor(handler, on->executor());
            auto slot = boost::asio::get_associated_cancellation_slot(handler);
            me->handler_.emplace(std::move(handler));
            if (slot.is_connected()) {
                slot.assign([to = std::weak_ptr(on), command = std::weak_ptr(me)](
                                boost::asio::cancellation_type) { cancel(to.lock(), command.lock()); });
            }
            on->start(me);
            if (me->input_) {
                me->link_ = on;
                boost::asio::dispatch(on->executor(), [me] { me->on_writable(); });
            }
        };
        return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
            std::move(begin), token, std::move(link), std::move(command));
    }

private:
    using handler_type = boost::asio::any_completion_handler<void(boost::system::error_code)>;

    static void cancel(std::shared_ptr<agent_link> link, std::shared_ptr<collector> command);
    void complete(boost::system::error_code result);

    boost::asio::any_io_executor executor_;
    std::optional<std::string> input_;
    std::size_t fed_ = 0;
    std::weak_ptr<agent_link> link_;      ///< where input_ goes
    std::optional<handler_type> handler_; ///< never assigned: Asio 1.26 recurses for ever there
};

} // namespace sandboxd::sandboxes
