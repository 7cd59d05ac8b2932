#pragma once

#include "core/event.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace sandboxd::core {

/// Counts work in flight so that a shutdown can wait for it: close the gate, then await drained().
/// Thread-safe.
class gate {
    class count;

public:
    /// Proof of having entered; leaving is its destruction.
    class pass {
    public:
        pass() = default;
        explicit pass(std::shared_ptr<count> entered) : entered_(std::move(entered)) {}
        pass(pass&& other) noexcept = default;
        pass& operator=(pass&& other) noexcept {
            if (this != &other) {
                release();
                entered_ = std::move(other.entered_);
            }
            return *this;
        }
        ~pass() { release(); }
        explicit operator bool() const noexcept { return entered_ != nullptr; }

    private:
        void release() noexcept;
        std::shared_ptr<count> entered_;
    };

    gate();
    /// Nobody may be inside, unless the gate was abandoned.
    ~gate();
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;

    /// An empty pass when the gate is closed.
    [[nodiscard]] pass enter();

    /// No entry from now on. Idempotent.
    void close();

    /// Closes the gate, whose passes may outlast it from now on: for calls that may never come to their end.
    void abandon();

    [[nodiscard]] std::size_t inside() const;

    /// Returns when the gate is closed and empty. Several may wait.
    [[nodiscard]] task<void> drained();

private:
    std::shared_ptr<count> count_; ///< shared with the passes
    bool abandoned_ = false;
};

} // namespace sandboxd::core
