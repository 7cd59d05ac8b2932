#pragma once

#include "core/event.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sandboxd::session {

/// The key of a path for path_locks: absolute below `work_dir`, without `.`, `..` and repeated slashes. By
/// the text alone: two links to one file have two keys (the sandbox itself keeps those apart).
[[nodiscard]] std::string lock_key(std::string_view work_dir, std::string_view path);

/// Who changes a file now, and who is next, one line per path (N16: two doors lead to the same files). First
/// come, first served. Thread-safe; nothing is held while anybody waits. Outlives its places.
class path_locks {
public:
    /// The right to change a path, or a place in the line for it. Its destruction gives up either.
    class place {
    public:
        place(path_locks& owner, std::string key);
        ~place();
        place(const place&) = delete;
        place& operator=(const place&) = delete;

        [[nodiscard]] bool granted() const;
        /// Set when granted() is true; others may set it too, to wake the waiter for their own reasons.
        [[nodiscard]] core::shared_event& wake() noexcept { return wake_; }

    private:
        friend class path_locks;
        path_locks& owner_;
        const std::string key_;
        core::shared_event wake_;
    };

    /// Paths in use now.
    [[nodiscard]] std::size_t busy() const;

private:
    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::deque<place*>> lines_; ///< the first of each has the right
};

} // namespace sandboxd::session
