#pragma once

#include "protocol/frame.hpp"
#include "sandbox/link_stream.hpp"
#include "sandbox/sandbox_host.hpp"
#include "sandboxd/error.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::sandboxes {

/// A command for an agent; see protocol::tag for each. Absent or empty means the agent's own or none.
struct command_spec {
    run_id_bytes id{};
    protocol::start_mode mode = protocol::start_mode::merged;
    std::optional<std::string> script; ///< run as `sh -c script`; else `argv` counts
    std::vector<std::string> argv;
    std::vector<std::pair<std::string, std::string>> env;
    std::string directory;
    std::optional<command_user> user;
    std::chrono::milliseconds timeout{0}; ///< none when 0
    std::optional<std::uint64_t> keep_bytes;
    std::optional<std::uint64_t> limit_bytes;
    bool open_stdin = false;
    std::uint16_t rows = 0; ///< with start_mode::terminal
    std::uint16_t columns = 0;
};

/// 32 hex digits as bytes; errc::invalid otherwise.
[[nodiscard]] result<run_id_bytes> parse_run_id(std::string_view hex);

/// The whole `start` frame, for a stream number that is put in later. errc::invalid: a NUL in the command or
/// its environment (contract N19.2), nothing to run, or more than a start frame holds.
[[nodiscard]] result<std::string> encode_start(const command_spec& spec);

/// Puts the stream's number into an encoded start frame.
void set_stream(std::string& start_frame, std::uint32_t number);

} // namespace sandboxd::sandboxes
