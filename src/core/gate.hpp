#pragma once

#include "core/event.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace sandboxd::core {

/// Counts work in flight so that a shutdown can wait for it: close the gate, then await drained().
/// Thread-safe.
class gate {
public:
    /// Proof of having entered; leaving is its destruction.
    class pass {
    public:
        pass() = default;
        explicit pass(gate* owner) : owner_(owner) {}
        pass(pass&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
        pass& operator=(pass&& other) noexcept {
            if (this != &other) {
                release();
                owner_ = std::exchange(other.owner_, nullptr);
            }
            return *this;
        }
        ~pass() { release(); }
        explicit operator bool() const noexcept { return owner_ != nullptr; }

    private:
        void release() noexcept {
            if (owner_ != nullptr) {
                std::exchange(owner_, nullptr)->leave();
            }
        }
        gate* owner_ = nullptr;
    };

    gate() = default;
    ~gate();
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;

    /// An empty pass when the gate is closed.
    [[nodiscard]] pass enter();

    /// No entry from now on. Idempotent.
    void close();

    [[nodiscard]] std::size_t inside() const;

    /// Returns when the gate is closed and empty. Several may wait.
    [[nodiscard]] task<void> drained();

private:
    void leave() noexcept;

    mutable std::mutex mutex_;
    std::size_t inside_ = 0;
    bool closed_ = false;
    std::vector<std::shared_ptr<shared_event>> waiters_;
};

} // namespace sandboxd::core
