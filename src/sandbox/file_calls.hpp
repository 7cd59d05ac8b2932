#pragma once

// From file operations to the agent's frames and back. No I/O; what comes from the agent is checked here.

#include "protocol/files.hpp"
#include "sandbox/link_stream.hpp"
#include "sandbox/sandbox_host.hpp"
#include "sandboxd/sandbox.hpp"

namespace sandboxd::sandboxes {

/// One operation for an agent (protocol/files.hpp). `input` travels in the frame where it is small.
struct file_spec {
    run_id_bytes id{};
    protocol::file_operation operation{};
    std::string path;
    std::optional<std::string> pattern;
    std::optional<std::string> second_path;
    std::string input;
    std::optional<std::uint64_t> length;
    std::optional<std::uint64_t> offset;
    std::optional<std::uint64_t> limit_bytes;
    std::uint32_t options = 0;
    std::optional<command_user> user;
    std::chrono::milliseconds timeout{0};

    [[nodiscard]] bool streams() const { return input.size() > protocol::inline_content; }
};

/// The whole `start` frame, for a stream number that is put in later. errc::invalid: a NUL in a path or
/// pattern, or too long for an agent.
[[nodiscard]] result<std::string> encode_file_start(const file_spec& spec);

/// What is wrong with an end, in words for sandbox.hpp's file operations; nothing when it is a success.
[[nodiscard]] std::optional<error> file_error(const end_record& record);

/// Listing records; nothing when they are malformed or hold a name with a NUL, a slash in the name of a
/// directory's entry, or more than `most`. `prefix` comes before each name in the path of an entry; the name
/// of one with slashes is what comes behind the last.
[[nodiscard]] std::optional<std::vector<file_entry>> read_listing(std::string_view bytes, std::size_t most,
                                                                  std::string_view prefix, bool flat);

/// Match records, the same way. A record may leave its path to the one before, so what all paths and lines
/// come to is bounded too: by `most_bytes`.
[[nodiscard]] std::optional<std::vector<grep_match>> read_matches(std::string_view bytes, std::size_t most,
                                                                  std::size_t most_bytes);

} // namespace sandboxd::sandboxes
