#pragma once

// The protocol between the service (host) and the agent, the program inside a sandbox. This room has no
// dependencies: both sides share it, and the agent is built without exceptions.
//
// A channel is any duplex byte stream. Frames go over it back to back:
//
//     u32 length of the payload (at most max_payload) | u8 type | u8 flags | u16 zero | u32 stream | payload
//
// little endian, 12 bytes of header. A stream is one command or one file operation; its number is chosen by
// the host, never 0, never used twice while the agent remembers it. Frames about the channel itself have
// stream 0.
//
// Opening a channel: the host sends `hello` with a fresh nonce and reads until it has found `welcome` with
// that nonce (whatever came before it belongs to an earlier channel and is thrown away: handshake.hpp). The
// agent then tells every stream that it still holds with one `stream_state` each, then sends `ready`. For
// each of them the host answers `resume` (go on, my offsets are these) or `forget`; until then the agent
// sends nothing of that stream. A new `hello` ends the channel before it: the agent serves one channel at a
// time. The end of a channel never ends a stream. `start` may be sent as soon as `ready` has arrived.
//
// Flow: each output channel of a stream has a window of `window` bytes beyond what the host has acknowledged
// with `credit` (an absolute count, so that repeating it is harmless). The agent keeps what is not
// acknowledged, so that a resumed channel loses nothing, and stops reading the command's pipe while the
// window is full. stdin is limited the same way in the other direction: the host keeps what is not
// acknowledged, and after a cut goes on at the `in_offset` of stream_state (repeating its end_of_data, which
// is harmless). Control frames overtake data; streams with data take turns. A `resume` below what was
// acknowledged, or above what was ever sent, is a lie.
//
// The end of a stream: the agent sends `end` after all data, keeps it until `forget`, and sends it again
// after `resume`. `forget` of a stream that still runs drops its output from then on; the command goes on
// under its deadline, `stop` and `signal` still reach it, it is still told in stream_state, and its `end` is
// sent once, then dropped without a second `forget`. Frames about a stream that the receiver does not know
// (any more) are ignored, but `start` with a number in use is a lie. After a forget the host ignores what was
// already under way.
//
// Whatever comes from the agent is untrusted: the host checks every length and state and closes the channel
// at the first lie; a forged frame can only ever lie about its own sandbox.

#include <cstddef>
#include <cstdint>

namespace sandboxd::protocol {

inline constexpr std::uint32_t version = 1;        ///< spoken by this build
inline constexpr std::uint32_t oldest_version = 1; ///< the oldest still understood
inline constexpr std::size_t header_size = 12;
inline constexpr std::uint32_t max_payload = 64 * 1024;      ///< of `data` and everything else but `start`
inline constexpr std::uint32_t max_start = 16 * 1024 * 1024; ///< of `start`: a long script in argv
inline constexpr std::uint32_t window = 256 * 1024; ///< bytes in flight per output channel of a stream
inline constexpr std::uint32_t nonce_size = 16;
inline constexpr std::uint32_t run_id_size = 16;

enum class frame_type : std::uint8_t {
    hello = 1,    ///< host: version_min, version_max, nonce
    welcome = 2,  ///< agent: version, nonce (echoed), boot_id
    ready = 3,    ///< agent: all stream_state frames are sent
    ping = 4,     ///< either: payload of at most 8 bytes
    pong = 5,     ///< the same payload back
    shutdown = 6, ///< host: stop everything (TERM, KILL 2 s later) and exit
    start = 10,   ///< host: tags below
    /// agent: pid (inside the sandbox); may come right before `end`, absent if it never started
    started = 11,
    data = 12,        ///< either: flags = channel; bytes
    credit = 13,      ///< receiver of data: flags = channel; u64 count consumed so far
    end_of_data = 14, ///< sender of data: flags = channel; nothing more will come
    end = 15,         ///< agent: how it ended; sent after all data the host may have
    /// host: the end is recorded, or nobody wants the stream: drop its output, keep its run id known
    forget = 16,
    stop = 17,         ///< host: stop the whole tree, TERM then KILL after the grace
    signal = 18,       ///< host: u32 signal number to the command's process group
    resize = 19,       ///< host: u16 rows, u16 columns
    stream_state = 20, ///< agent: run_id, started_unix_us, channel offsets, whether it has ended
    resume = 21,       ///< host: offsets it has for each channel
};

/// Who wrote a frame; each may only send its own types.
enum class sender : std::uint8_t { host, agent };

/// Channels of a stream, in the flags of data, credit and end_of_data.
enum class channel : std::uint8_t {
    in = 0,  ///< stdin, or the upload of a file operation
    out = 1, ///< stdout; both streams when merged; the terminal; the download of a file operation
    err = 2, ///< stderr, when it is kept apart
};

/// Payloads are lists of fields: u16 tag, u32 length, value. Integers are little endian in the width given.
/// The exceptions are the fixed payloads, which hold just what is said above: data, credit, ping, pong,
/// signal, resize (and shutdown, ready, forget, stop and end_of_data, which are empty). Unknown tags are
/// skipped, repeated ones add to a list where the tag says so.
enum class tag : std::uint16_t {
    version_min = 1, ///< u32
    version_max = 2, ///< u32
    version = 3,     ///< u32
    nonce = 4,       ///< 16 bytes
    boot_id = 5,     ///< 16 bytes, new at every start of the agent

    run_id = 10,       ///< 16 bytes
    argument = 11,     ///< list: argv; one over 128 KiB - 1 is refused: see script
    variable = 12,     ///< list: "NAME=value" on top of the agent's own environment
    directory = 13,    ///< working directory; the agent's own when absent
    script = 14,       ///< run as `sh -c SCRIPT`, of any length (argv is then ignored)
    mode = 15,         ///< u8 of start_mode
    open_stdin = 16,   ///< empty: keep stdin open for data; else it is at end-of-file
    rows = 17,         ///< u16, terminal
    columns = 18,      ///< u16, terminal
    timeout_ms = 19,   ///< u64: stop the tree this long after `start` arrived; absent: none
    keep_bytes = 20,   ///< u64 per channel: send this many, then drain, count and drop
    limit_bytes = 21,  ///< u64 of all output together: one byte more stops the tree
    grace_ms = 22,     ///< u32 between TERM and KILL; 2000 when absent
    operation = 23,    ///< u16 of file_operation: this stream is one, not a command
    path = 24,         ///< bytes
    second_path = 25,  ///< bytes
    pattern = 26,      ///< bytes
    file_mode = 27,    ///< u32
    offset = 28,       ///< u64
    length = 29,       ///< u64
    option_flags = 30, ///< u32
    user_id = 31,      ///< u32: run as this user; the image's own when absent
    group_id = 32,     ///< u32
    content = 33,      ///< bytes: input of a file operation that needs no `data`

    pid = 40,             ///< u32
    exit_code = 41,       ///< u32; 127 and 126 also come with the failures that shells give them for
    exit_signal = 42,     ///< u32
    cause = 43,           ///< u8 of end_cause
    out_total = 44,       ///< u64 bytes sent on out
    err_total = 45,       ///< u64
    dropped = 46,         ///< u64 bytes drained and not kept, both channels
    duration_us = 47,     ///< u64 from `start` to the end of the command's own process
    failure = 48,         ///< u16 of failure_kind: it never started
    text = 49,            ///< a sentence that goes with a failure
    os_errno = 50,        ///< u32
    started_unix_us = 51, ///< u64
    out_offset = 52,      ///< u64: first byte still held (stream_state), bytes received (resume)
    err_offset = 53,      ///< u64
    in_offset = 54,       ///< u64: bytes of stdin that have arrived (stream_state)
    ended = 55,           ///< empty: `end` follows once the host has resumed or forgotten it
};

enum class start_mode : std::uint8_t {
    merged = 1,   ///< one pipe for both, in the order written
    separate = 2, ///< two pipes
    terminal = 3, ///< a pseudo-terminal
};

enum class end_cause : std::uint8_t {
    exited = 1, ///< by itself, or by a signal that was not ours
    timed_out = 2,
    stopped = 3, ///< by `stop` or `shutdown`
    output_limit = 4,
    never_started = 5,
    lost = 6, ///< its supervisor was killed: how it ended can't be told
};

enum class failure_kind : std::uint16_t {
    none = 0,
    not_found = 1,      ///< exit code 127: no such program (or no shell)
    not_executable = 2, ///< exit code 126
    directory = 3,      ///< the working directory can't be entered
    no_process = 4,     ///< fork failed: the process limit
    duplicate = 5,      ///< the run id runs (os_errno is EBUSY), or ran within the last 10 minutes
    unsupported = 6,
    invalid = 7,
    os = 8, ///< see os_errno
};

/// File operations; what each takes and answers: files.hpp.
enum class file_operation : std::uint16_t {
    read = 1,
    write = 2,
    stat = 3,
    list = 4,
    edit = 5,
    glob = 6,
    grep = 7,
    make_directory = 8,
    remove = 9,
    real_path = 10,
};

struct frame_header {
    std::uint32_t length = 0;
    frame_type type{};
    std::uint8_t flags = 0;
    std::uint32_t stream = 0;
};

} // namespace sandboxd::protocol
