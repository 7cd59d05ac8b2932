#pragma once

#include "protocol/fields.hpp"

#include <span>
#include <vector>

namespace sandboxd::agent {

/// What the agent itself needs of a `start`.
struct start_options {
    std::string_view run_id; ///< 16 bytes, or empty
    protocol::start_mode mode = protocol::start_mode::merged;
    bool open_stdin = false;
    std::optional<protocol::file_operation> operation; ///< not a command then
    std::uint16_t rows = 24;
    std::uint16_t columns = 80;
    std::optional<std::uint64_t> timeout_ms;
    std::uint64_t keep_bytes = UINT64_MAX;
    std::uint64_t limit_bytes = UINT64_MAX;
    std::uint32_t grace_ms = 2000;
    std::optional<std::uint32_t> user;
    std::optional<std::uint32_t> group;
};

/// Reads them. Nothing when the payload is not a list of fields, or a field has the wrong width: a lie.
[[nodiscard]] std::optional<start_options> read_start_options(std::string_view payload);

/// The longest string that execve takes.
inline constexpr std::size_t longest_string = 128 * 1024 - 1;

/// What a supervisor needs of a `start`: strings that end in a NUL, inside the payload itself.
struct command {
    std::vector<char*> arguments; ///< ends in a null pointer
    std::vector<char*> variables; ///< the whole environment, ends in a null pointer
    const char* directory = nullptr;
    std::string_view script; ///< to be handed over by descriptor: it is too long for an argument
    bool shell = false;      ///< the program is `sh` because a script was asked for
    bool has_home = false;   ///< HOME is among what the start asked for
    std::optional<std::uint32_t> user;
    std::optional<std::uint32_t> group;
};

/// Builds it in place: `payload` is changed (a NUL after each value, the last of them in the one byte that
/// must follow the payload) and must outlive the result. `base` is the environment below the start's
/// variables. On failure returns a sentence, else a null pointer.
[[nodiscard]] const char* build_command(std::span<char> payload, char* const* base, command& out);

/// The value of a variable in an environment; a null pointer when it is absent.
[[nodiscard]] const char* find_variable(char* const* environment, std::string_view name);

} // namespace sandboxd::agent
