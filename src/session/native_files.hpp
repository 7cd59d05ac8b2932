#pragma once

// `files/*`: the files of a session through the host door (contract N4, N5), a part of the registry.

#include "hostfs/outcome.hpp"
#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::session {

/// What the host door may do for a session: decided when its sandbox is built, kept while it sleeps (N5.8,
/// N16 "Who serves files/*", N16.25).
enum class host_door : std::uint8_t {
    shut,   ///< the sandbox's directory is not known to be the host's
    reads,  ///< it is, but what the service writes is not the sandbox user's to change
    writes, ///< reads and writes
};

enum class native_op : std::uint8_t { read, write, stat, list, realpath, mkdir, remove };

/// As the event log has it: `list` is "ls" there.
[[nodiscard]] std::string_view name_of(native_op op) noexcept;
[[nodiscard]] constexpr bool changes(native_op op) noexcept {
    return op == native_op::write || op == native_op::mkdir || op == native_op::remove;
}

struct native_call {
    native_op op = native_op::stat;
    std::string path;    ///< as the client gave it
    std::string content; ///< write
};

struct native_answer {
    std::string text;                ///< read: the bytes; realpath: the path
    std::vector<file_entry> entries; ///< stat: one; list: all
};

using native_outcome = hostfs::native_result<native_answer>;

class native_files {
public:
    virtual ~native_files() = default;

    /// What `files/*` may do for a session now, settings included. not_found.
    [[nodiscard]] virtual result<host_door> door_of(std::string_view id) const = 0;

    /// One operation: never wakes, heals or starts anything (N4.2), counts as activity, is logged, takes 25 s
    /// at most (N16.27; what it changes meanwhile stays changed). An operation that door_of() doesn't allow
    /// is refused without a trace. not_found, unavailable, gone (closed meanwhile); what is wrong with the
    /// file is inside.
    [[nodiscard]] virtual task<result<native_outcome>> native(std::string id, native_call call) = 0;
};

} // namespace sandboxd::session
