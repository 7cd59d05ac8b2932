#pragma once

#include "session/types.hpp"

#include <cstdint>
#include <vector>

namespace sandboxd::session {

/// The last 200 operations of a session (contract 2.11). Numbers are given out of blocks that were written to
/// the store before, so that none comes twice, whatever crashes (design.md "Decided" 3). Not thread-safe.
class event_log {
public:
    /// `limit`: numbers up to it are free to give out, none of them has been.
    explicit event_log(std::int64_t limit) : limit_(limit) {}

    /// After a restart: any number up to `limit` may have been given out.
    event_log(std::int64_t limit, std::vector<event> kept);
    /// The same where the entries were left in the store.
    static event_log left_in_store(std::int64_t limit) {
        event_log log(limit, {});
        log.partial_ = true;
        return log;
    }

    /// Numbers the entry. False when the block is used up, because the store has not answered for long: the
    /// entry is lost then, rather than a number used twice.
    bool add(event one);

    [[nodiscard]] event_page after(std::int64_t seq) const;
    [[nodiscard]] std::int64_t latest() const noexcept { return latest_; }
    [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }

    /// The next block, when it is time to have it written; 0 when not.
    [[nodiscard]] std::int64_t wanted_limit() const noexcept;
    void reserved(std::int64_t limit);

    /// Entries that were not written yet; written(seq) says that those up to `seq` are.
    [[nodiscard]] std::vector<event> unwritten() const;
    void written(std::int64_t seq) noexcept { written_ = seq; }

    /// Frees what has been written: the store has it.
    void forget_written();
    /// The store has entries that are not here.
    [[nodiscard]] bool partial() const noexcept { return partial_; }
    /// after(seq), given what the store has.
    [[nodiscard]] event_page after(std::int64_t seq, std::vector<event> stored) const;

    static constexpr std::int64_t first_block = 256;

private:
    bool partial_ = false;
    std::vector<event> kept_; ///< now and then more than are shown, so that dropping the oldest costs little
    std::int64_t latest_ = 0;
    std::int64_t written_ = 0;
    std::int64_t limit_ = 0;
    std::int64_t block_ = first_block;
};

} // namespace sandboxd::session
