#include "sandbox/death.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>

#include <utility>

namespace sandboxd::sandboxes {

namespace asio = boost::asio;

void death::add(std::function<void()> callback) {
    {
        const std::lock_guard lock(mutex_);
        if (!told_) {
            callbacks_.push_back(std::move(callback));
            return;
        }
    }
    callback();
}

void death::tell() {
    std::vector<std::function<void()>> callbacks;
    {
        const std::lock_guard lock(mutex_);
        told_ = true;
        callbacks.swap(callbacks_);
    }
    event_.set();
    for (auto& callback : callbacks) {
        callback();
    }
}

struct process_watch::state : std::enable_shared_from_this<state> {
    state(const asio::any_io_executor& executor, core::unique_fd fd, std::shared_ptr<death> of)
        : strand(asio::make_strand(executor)), pidfd(strand, fd.release()), what(std::move(of)) {}

    void begin() {
        asio::dispatch(strand, [self = shared_from_this()] {
            auto ended = [self](boost::system::error_code failed) {
                if (failed != asio::error::operation_aborted) {
                    self->what->tell();
                    self->close();
                }
            };
            self->pidfd.async_wait(asio::posix::stream_descriptor::wait_read, std::move(ended));
        });
    }

    void end() {
        asio::dispatch(strand, [self = shared_from_this()] { self->close(); });
    }

    void close() {
        boost::system::error_code ignored;
        pidfd.close(ignored);
    }

    asio::strand<asio::any_io_executor> strand;
    asio::posix::stream_descriptor pidfd;
    std::shared_ptr<death> what;
};

process_watch::process_watch(const asio::any_io_executor& executor, core::unique_fd pidfd,
                             std::shared_ptr<death> what)
    : state_(std::make_shared<state>(executor, std::move(pidfd), std::move(what))) {
    state_->begin();
}

process_watch::~process_watch() {
    if (state_) {
        state_->end();
    }
}

process_watch& process_watch::operator=(process_watch&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

} // namespace sandboxd::sandboxes
