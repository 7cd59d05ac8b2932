#include "sandbox/collector.hpp"

#include <boost/asio/defer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>

namespace sandboxd::sandboxes {

namespace asio = boost::asio;

void collector::on_data(protocol::channel which, std::string_view bytes) {
    (which == protocol::channel::err ? err : out).append(bytes);
}

void collector::on_writable() {
    const auto to = link_.lock();
    if (!to || !input_ || !handler_) {
        return;
    }
    const auto rest = std::string_view(*input_).substr(fed_);
    fed_ += to->write_in(*this, rest);
    if (fed_ == input_->size()) {
        input_.reset();
        to->end_in(*this);
    }
}

void collector::on_end(end_record record) {
    ended = std::move(record);
    complete({});
}

void collector::on_failed(error reason) {
    failed = std::move(reason);
    complete({});
}

void collector::cancel(std::shared_ptr<agent_link> link, std::shared_ptr<collector> command) {
    if (!link || !command) {
        return;
    }
    auto executor = link->executor();
    asio::dispatch(executor, [link = std::move(link), command = std::move(command)] {
        if (command->handler_) {
            link->abandon(command);
            command->complete(asio::error::operation_aborted);
        }
    });
}

/// Deferred, not dispatched: the link's strand is not to be held while the caller goes on, and no other
/// thread has to be woken for it.
void collector::complete(boost::system::error_code result) {
    if (!handler_) {
        return;
    }
    auto resume = [handler = std::move(*handler_), result]() mutable { std::move(handler)(result); };
    handler_.reset();
    asio::defer(executor_, std::move(resume));
}

} // namespace sandboxd::sandboxes
