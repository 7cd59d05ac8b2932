#include "core/spawn.hpp"

#include "core/log.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>

namespace sandboxd::core {

namespace {
std::atomic<unsigned long> escaped{0};

void report(const std::string& name, const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const boost::system::system_error& e) {
        if (e.code() == boost::asio::error::operation_aborted) {
            return;
        }
        log::error("{} ended with an exception: {}", name, e.what());
    } catch (const std::exception& e) {
        log::error("{} ended with an exception: {}", name, e.what());
    } catch (...) {
        log::error("{} ended with an unknown exception", name);
    }
    ++escaped;
}
} // namespace

bool spawn(const boost::asio::any_io_executor& executor, std::string name, gate& inside, task<void> body) {
    return spawn(executor, std::move(name), inside, std::move(body), nullptr);
}

bool spawn(const boost::asio::any_io_executor& executor, std::string name, gate& inside, task<void> body,
           std::shared_ptr<boost::asio::cancellation_signal> cancel) {
    auto pass = inside.enter();
    if (!pass) {
        return false;
    }
    const auto slot = cancel ? cancel->slot() : boost::asio::cancellation_slot();
    auto done = [name = std::move(name), pass = std::move(pass),
                 cancel = std::move(cancel)](const std::exception_ptr& failure) {
        if (failure) {
            report(name, failure);
        }
    };
    boost::asio::co_spawn(executor, std::move(body),
                          boost::asio::bind_cancellation_slot(slot, std::move(done)));
    return true;
}

unsigned long escaped_exceptions() noexcept {
    return escaped;
}

} // namespace sandboxd::core
