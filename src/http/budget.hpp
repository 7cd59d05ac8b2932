#pragma once

#include "core/event.hpp"
#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace sandboxd::http {

/// The bytes that bodies and buffered answers of all connections may hold together
/// (SANDBOXD_MAX_INFLIGHT_BYTES). First come, first served, but for what is smaller than a thousandth of the
/// budget: that waits only for room. Thread-safe; outlives its leases.
class memory_budget {
public:
    explicit memory_budget(std::uint64_t limit) : limit_(limit) {}
    ~memory_budget();
    memory_budget(const memory_budget&) = delete;
    memory_budget& operator=(const memory_budget&) = delete;

    /// A share of the budget, given back when destroyed.
    class lease {
    public:
        lease() = default;
        lease(lease&& other) noexcept
            : owner_(std::exchange(other.owner_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
        lease& operator=(lease&& other) noexcept;
        ~lease() { release(); }

        [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
        /// Makes one lease of two of the same budget.
        void add(lease other) noexcept;
        void release() noexcept;

    private:
        friend class memory_budget;
        lease(memory_budget* owner, std::uint64_t bytes) : owner_(owner), bytes_(bytes) {}
        memory_budget* owner_ = nullptr;
        std::uint64_t bytes_ = 0;
    };

    /// Who comes first. Who holds a lease already and needs more goes ahead of those who hold nothing: they
    /// wait for what it holds, and would have it wait for them.
    enum class order : std::uint8_t { in_turn, ahead };

    /// Nothing when there is no room before `limit` has passed, at once when there never can be. Throws
    /// operation_aborted on cancellation.
    [[nodiscard]] task<std::optional<lease>>
    acquire(std::uint64_t bytes, std::chrono::steady_clock::duration limit, order place = order::in_turn);
    /// The same for bytes that are there already: what waits then is memory too. Nothing at once when more
    /// than a quarter of the budget would wait, unless it is the only one.
    [[nodiscard]] task<std::optional<lease>>
    acquire_for_present(std::uint64_t bytes, std::chrono::steady_clock::duration limit, order place);
    /// The same without waiting.
    [[nodiscard]] std::optional<lease> try_acquire(std::uint64_t bytes);

    [[nodiscard]] std::uint64_t used() const;

private:
    struct waiter;
    /// Under the mutex.
    [[nodiscard]] bool goes_first(std::uint64_t bytes, order place) const noexcept;
    void give_back(std::uint64_t bytes) noexcept;
    [[nodiscard]] bool conclude(const std::shared_ptr<waiter>& one);
    /// Under the mutex.
    void serve(std::deque<std::shared_ptr<waiter>>& served) noexcept;

    const std::uint64_t limit_;
    mutable std::mutex mutex_;
    std::uint64_t used_ = 0;
    std::uint64_t present_ = 0; ///< bytes that are there and wait
    std::deque<std::shared_ptr<waiter>> waiters_;
};

} // namespace sandboxd::http
