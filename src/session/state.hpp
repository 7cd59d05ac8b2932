#pragma once

// The table of states of a session: pure, no clock, no executor (design.md, Traps, "Sessions").

#include <cstdint>
#include <optional>
#include <string_view>

namespace sandboxd::session {

enum class phase : std::uint8_t {
    opening,     ///< the id and the slot are taken, the sandbox is being made
    running,     ///< listed; its sandbox may be dead
    healing,     ///< a dead sandbox is being replaced
    sleeping,    ///< the sandbox is being stopped, the session stays
    hibernated,  ///< no sandbox
    waking,      ///< a sandbox is being made again
    closing,     ///< for clients it is gone; the sandbox is being stopped
    quarantined, ///< gone, but its sandbox does not answer the stop
    closed,      ///< nothing of it is left
};

enum class trigger : std::uint8_t {
    built,
    build_failed,
    heal_started,
    healed,
    heal_failed,
    sleep_started,
    slept,
    sleep_failed,
    wake_started,
    woken,
    wake_failed,
    close_started,
    close_failed,        ///< the record could not be written: the session stands as before
    close_failed_asleep, ///< the same for one that slept
    stopped,
    stop_overdue,
};

/// Where a trigger leads; nothing when it has no place in that phase, and the session stays as it is.
[[nodiscard]] std::optional<phase> next(phase from, trigger what) noexcept;

/// Clients see it: in listings, by its id, by its token.
[[nodiscard]] bool is_listed(phase at) noexcept;
/// Shown as `hibernated`; everything else that is listed is `running`.
[[nodiscard]] bool shows_hibernated(phase at) noexcept;

[[nodiscard]] std::string_view name_of(phase at) noexcept;

} // namespace sandboxd::session
