#pragma once

#include "sandboxd/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd {

template <class T>
using task = boost::asio::awaitable<T>;

/// How a command ended. Exactly one of `exit_code` and `signal` is set when the program ended by itself or by
/// a signal that was not ours; neither when we stopped it (`timed_out`, `stopped`, or an output limit).
/// Neither and no flag: the process that watched it inside the sandbox was killed, its end can't be told.
struct exit_status {
    std::optional<int> exit_code;
    std::optional<int> signal;
    bool timed_out = false;
    bool stopped = false;    ///< by stop_run
    bool oom_killed = false; ///< only with evidence from the cgroup
    /// With timed_out: its end was not told within the grace after the deadline, it is still being stopped.
    bool overdue = false;
    std::chrono::microseconds duration{0};
    std::uint64_t output_dropped_bytes = 0; ///< produced by the command and not kept
};

/// Contract 3.2: `sh -c command` in the work directory, both streams in one, stdin at end-of-file.
struct exec_request {
    std::string run_id; ///< 32 lower-case hex digits, unique within the session
    std::string command;
    std::chrono::milliseconds timeout{0}; ///< from now; the whole process tree is stopped then
    std::size_t output_cap = 100'000;     ///< bytes kept; the rest is drained, counted and dropped
};

struct exec_result {
    std::string output; ///< raw bytes, at most output_cap
    bool truncated = false;
    exit_status status;
};

/// Contract 3.12: one program with literal arguments, streams apart, stdin at end-of-file.
struct run_request {
    std::string run_id;
    std::vector<std::string> argv;
    std::vector<std::pair<std::string, std::string>> env; ///< on top of the sandbox's own
    std::chrono::milliseconds timeout{0};
    std::size_t output_limit = 10'485'760;  ///< of both streams together; one byte more stops the command
    std::size_t kept_when_stopped = 65'536; ///< of each stream, when it was stopped by deadline or limit
};

struct run_result {
    std::string out;
    std::string err;
    bool output_limited = false;
    exit_status status;
};

struct usage_sample {
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t> memory_limit_bytes;
    std::optional<std::uint64_t> pids;
    std::optional<double> cpu_percent; ///< null at a first sample
};

/// One row of a listing (contract 1.2.4); bytes as the file system has them.
struct file_entry {
    std::string name;
    std::string path;
    bool is_dir = false; ///< a real directory, not a link to one
    std::optional<std::uint64_t> size;
};

/// A file read whole, or the reason it was not.
struct file_content {
    std::string bytes; ///< empty when over_limit
    bool over_limit = false;
    std::optional<std::uint64_t> size; ///< with over_limit: when it was known before the body was transferred
};

/// How the message of a write begins whose parent directories could not be made (contract 3.5); the cause
/// follows.
inline constexpr std::string_view parents_failed = "mkdir: ";

/// Contract 3.6, on bytes: `old_text` is replaced where it stands, every other byte stays ("Decided" 11: the
/// exact bytes first, then, in a file whose line ends are all CRLF, both texts with CRLF).
struct edit_request {
    std::string path;
    std::string old_text;
    std::string new_text;
    bool replace_all = false;
    std::uint64_t max_bytes = 0; ///< a larger file is refused (over_limit)
    /// The file's name says it is text (contract 3.3.3 a): else one that isn't (3.3.3 c) is refused (binary).
    bool any_bytes = false;
};

/// Applied when `occurrences` is 1, or more with replace_all; nothing was written otherwise.
struct edit_result {
    std::uint64_t occurrences = 0;
    bool empty = false; ///< the file has no bytes: contract 3.6 calls that missing
    bool binary = false;
    bool over_limit = false;
    std::optional<std::uint64_t> size; ///< with over_limit
};

/// Complete unless `truncated` (the bounds are the implementation's: entries, bytes, time). Sorted as
/// contract 3.8 and 3.9 say.
struct file_listing {
    std::vector<file_entry> entries;
    bool truncated = false;
};

/// Contract 3.9; `path` is the root as the client gave it, "." for the work directory.
struct glob_request {
    std::string pattern;
    std::string path;
};

/// Contract 3.10; `path` as above.
struct grep_request {
    std::string pattern; ///< a POSIX basic regular expression
    std::string path;
    std::optional<std::string> glob; ///< limits files by base name
    bool ignore_hidden = false;      ///< hidden below the root, not the root itself
};

struct grep_match {
    std::string path;
    std::uint64_t line_number = 0;
    std::string line;
};

struct grep_result {
    std::vector<grep_match> matches;
    bool truncated = false;
};

/// What a session holds: a place where commands run and files live. Implementations are safe to call from any
/// executor and several at a time. Every operation ends: by itself, at its timeout, or with errc::gone when
/// the sandbox dies. A failure inside the sandbox (a missing file, say) is a value of the result type's error
/// with errc::not_found, invalid or io; it is never thrown.
///
/// Errors common to all: errc::gone (the sandbox is dead; error::may_have_started tells the cases apart for
/// exec and run), errc::unsupported (this kind can't do it), errc::exists (run id in use), errc::busy (run
/// id used lately: another one is needed, nothing was started), errc::timeout (no
/// answer from the sandbox a fixed grace after the operation's own deadline; a command that had been started
/// answers with what it had printed, timed_out and overdue instead).
class sandbox {
public:
    virtual ~sandbox() = default;
    sandbox() = default;
    sandbox(const sandbox&) = delete;
    sandbox& operator=(const sandbox&) = delete;

    /// "oci", "memory": shown in `501 <type> cannot run commands`.
    virtual std::string_view type() const noexcept = 0;

    virtual task<result<exec_result>> exec(exec_request request) = 0;
    virtual task<result<run_result>> run(run_request request);

    /// Stops a command and everything it started: TERM, then KILL 2 s later. Returns when it is gone, at most
    /// 5 s later. An id that runs nothing is no error.
    virtual task<void> stop_run(std::string run_id);

    // The file operations (contract 3.3 to 3.10). Relative paths start at the work directory. What is wrong
    // with a file is an error: not_found (it, or a directory on its way, is missing), invalid (a directory,
    // FIFO, socket or device where a file is wanted; a bad pattern), denied, io (anything else of the
    // operating system's). `message` is then a short cause for a person ("Is a directory"), without the path
    // and without host paths. None waits on a FIFO or a device.

    virtual task<result<file_content>> read(std::string path, std::uint64_t max_bytes);
    /// Makes missing parents. "Decided" 10: through a link to its target, an existing file keeps its mode and
    /// owner, a new one is 0644; old content or new, never a part.
    virtual task<result<void>> write(std::string path, std::string content);
    virtual task<result<edit_result>> edit(edit_request request);
    /// A regular file, links followed.
    virtual task<result<bool>> exists(std::string path);
    virtual task<result<file_listing>> ls(std::string path);
    virtual task<result<file_listing>> glob(glob_request request);
    virtual task<result<grep_result>> grep(grep_request request);

    /// A sample of what the sandbox uses now; errc::unsupported where it can't be told.
    virtual task<result<usage_sample>> usage();

    /// Commands still running that were started before this service was (its predecessor crashed or was
    /// restarted). They count against the service's ceiling until they end. Never blocks.
    virtual std::size_t inherited_commands() const noexcept { return 0; }

    /// True while the sandbox can take commands. Never blocks, true to within a second.
    virtual bool alive() const noexcept = 0;

    /// Called once, on an unspecified executor, when the sandbox dies by itself; at once when it is dead
    /// already. The last callback set counts; not called after stop() has begun.
    virtual void on_death(std::function<void()> callback) = 0;

    /// Ends the sandbox: TERM, then KILL. Never fails, idempotent. Pending operations end with errc::gone.
    /// A sandbox built with sandbox_spec::keep leaves what it changed outside the workspace in its slot
    /// (adopted ones too); `purge` removes that as well. The slot's record is the caller's to drop.
    virtual task<void> stop(bool purge) = 0;

    /// What adopt() needs to find this sandbox again after a restart of the service (sandbox_builder below).
    virtual std::string handle() const = 0;
};

/// Ceilings of one sandbox; absent means none.
struct sandbox_limits {
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t>
        memory_swap_bytes; ///< memory and swap together; equal to memory when unset there
    std::optional<double> cpus;
    std::optional<std::uint64_t> cpu_shares;
    std::optional<std::uint64_t> pids;
    std::optional<std::string> tmpfs_size; ///< options of /tmp as contract 4.2: "64m"
};

/// What a sandbox leaves in its slot at a stop without purge (SANDBOXD_PERSIST_CONTAINERS).
enum class keeping {
    nothing,
    layer, ///< what it changed outside the workspace; build() in a slot that holds such a layer finds it
           ///< again
    kept,  ///< the same, but build() fails with errc::gone where the slot holds none
};

/// Everything a builder needs; resolved from the service's settings and the runtime's entry when the session
/// opens.
struct sandbox_spec {
    std::string session_id;
    std::string image; ///< as the runtime names it: "host", "dir:/x", "oci:...", "python:3.12-slim"
    sandbox_limits limits;
    std::optional<std::string> network_mode;
    std::optional<std::string> oci_runtime;
    std::string work_dir;
    std::optional<std::string> workspace_dir; ///< host directory bound at work_dir, `<root>/<id>/workspace`
    std::optional<std::uint32_t> uid;         ///< the command's user; the image's own when unset
    std::vector<std::pair<std::string, std::string>> env; ///< contract 4.3 and the runtime's own
    keeping keep = keeping::nothing;
};

/// A place claimed for a sandbox, committed to the store before anything is started, so that a crash leaves
/// nothing without an owner.
struct slot_record {
    std::string slot;    ///< unique name of the place; names bundles, cgroups, labels
    std::string backend; ///< the builder's name
    std::string handle;  ///< opaque to everybody but the builder
};

/// Makes sandboxes of one kind. Safe to call from any executor.
class sandbox_builder {
public:
    virtual ~sandbox_builder() = default;

    /// "oci", "memory", ...
    virtual std::string_view name() const noexcept = 0;

    /// What this host can't enforce, one sentence each, said at start and in the log (never silently
    /// skipped).
    virtual std::vector<std::string> notes() const = 0;

    /// Why sandboxes can't be opened or taken down now (the daemon is away), in words; nothing while all is
    /// well. Shown by `GET /healthz`. Never blocks.
    virtual std::optional<std::string> degraded() const { return std::nullopt; }

    /// Claims a slot; cheap, starts nothing. errc::start_failed when the spec can't be met (unknown image,
    /// network).
    virtual task<result<slot_record>> prepare(const sandbox_spec& spec) = 0;

    /// Starts a sandbox in a slot whose record is committed. On failure (errc::start_failed, message fit for
    /// the 502) nothing of it is left but the slot itself, which the caller removes, and a layer that was
    /// kept in it.
    virtual task<result<std::shared_ptr<sandbox>>> build(sandbox_spec spec, slot_record slot) = 0;

    /// Finds the sandbox of a slot again after a restart of the service. errc::gone when it has ended
    /// meanwhile.
    virtual task<result<std::shared_ptr<sandbox>>> adopt(slot_record slot) = 0;

    /// Removes all that is left of a slot, running or not. Idempotent.
    virtual task<result<void>> remove(slot_record slot) = 0;

    /// The slots of this service that exist on the host, known to the store or not, running or kept.
    virtual task<result<std::vector<slot_record>>> owned() = 0;
};

} // namespace sandboxd
