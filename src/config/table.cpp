#include "config/table.hpp"

#include <algorithm>

namespace sandboxd::config {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
// 31 years. Longer intervals overflow the nanoseconds of a steady clock when added to "now".
constexpr std::int64_t most_seconds = 1'000'000'000;

std::vector<setting_info> make_table() {
    using s = settings;
    return {
        {.name = "token",
         .where = &s::token,
         .summary = "The service token: who has it may open sessions. Required, here or in `token_file`.",
         .computed_default = "required",
         .secret = true},
        {.name = "token_file",
         .where = &s::token_file,
         .summary = "A file that holds the service token; one line end at its end is dropped. Not together "
                    "with `token`."},
        {.name = "host",
         .where = &s::host,
         .summary = "The address to listen on.",
         .empty = when_empty::kept,
         .empty_meaning = "all interfaces"},
        {.name = "port",
         .where = &s::port,
         .summary = "The port to listen on; 0 takes any free one.",
         .min = 0,
         .max = 65'535},
        {.name = "tls_cert",
         .where = &s::tls_cert,
         .summary = "The certificate chain in PEM; turns TLS on. Needs `tls_key`."},
        {.name = "tls_key", .where = &s::tls_key, .summary = "The private key of `tls_cert` in PEM."},
        {.name = "backend",
         .where = &s::backend,
         .summary =
             "What makes the sandboxes: `docker` asks a Docker daemon (found as the `docker` command finds "
             "it), `oci` calls an OCI runtime directly, without a daemon.",
         .form = shape::backend,
         .empty_meaning = "chosen at the start",
         .computed_default =
             "what the state directory was used with before, else `docker` where a daemon answers, "
             "else `oci`"},
        {.name = "state_dir",
         .where = &s::state_dir,
         .summary = "Where the service keeps its identity, token key, session records and sandboxes.",
         .computed_default =
             "`/var/lib/sandboxd` for root, else `$XDG_STATE_HOME/sandboxd`, else `~/.local/state/sandboxd`"},
        {.name = "runtimes",
         .where = &s::runtimes,
         .summary = "The allowlist: what a session may be opened with.",
         .computed_default = "`coding` (with a network), `python`, `node`"},
        {.name = "default_runtime",
         .where = &s::default_runtime,
         .summary = "The alias used when a request names none.",
         .empty = when_empty::as_absent,
         .empty_meaning = "as absent",
         .computed_default = "the first of `runtimes`"},
        {.name = "max_sessions",
         .where = &s::max_sessions,
         .summary = "How many sandboxes may be resident at once; 0 refuses every open.",
         .min = 0,
         .empty_meaning = "no ceiling"},
        {.name = "max_open_sessions",
         .where = &s::max_open_sessions,
         .summary = "How many sessions may exist, sleeping ones included. Not below `max_sessions`.",
         .min = 0},
        {.name = "max_sessions_per_tenant",
         .where = &s::max_sessions_per_tenant,
         .summary = "How many sessions one tenant label may have.",
         .min = 0},
        {.name = "evict_idle_after",
         .where = &s::evict_idle_after,
         .summary = "At the ceiling, a session idle for this many seconds may be put to sleep. Needs "
                    "`workspace_root`.",
         .min = 0,
         .max = most_seconds,
         .empty_meaning = "never"},
        {.name = "mem_limit",
         .where = &s::mem_limit,
         .summary = "Memory of one sandbox, a size such as `512m`.",
         .form = shape::size,
         .empty_meaning = "no limit"},
        {.name = "memswap_limit",
         .where = &s::memswap_limit,
         .summary = "Memory and swap together, a size. Not below `mem_limit`.",
         .form = shape::size,
         .empty_meaning = "equal to memory"},
        {.name = "cpus",
         .where = &s::cpus,
         .summary = "Processor time of one sandbox, in cores.",
         .empty_meaning = "no limit"},
        {.name = "cpu_shares",
         .where = &s::cpu_shares,
         .summary = "Weight of one sandbox when processors are short (1024 is usual).",
         .min = 1,
         .max = 262'144},
        {.name = "pids_limit",
         .where = &s::pids_limit,
         .summary = "Processes and threads of one sandbox.",
         .min = 1,
         .max = 4'194'304,
         .empty_meaning = "no limit"},
        {.name = "tmpfs_size",
         .where = &s::tmpfs_size,
         .summary = "Size of an in-memory `/tmp`, or a percentage of memory.",
         .form = shape::tmpfs,
         .empty_meaning = "`/tmp` on the image's layer"},
        {.name = "network_mode",
         .where = &s::network_mode,
         .summary =
             "Network of one sandbox: `none`, `bridge` (connections out), on `docker` any network of the "
             "daemon.",
         .form = shape::network,
         .empty_meaning = "the daemon's default on `docker`, none on `oci`"},
        {.name = "oci_runtime",
         .where = &s::oci_runtime,
         .summary =
             "The OCI runtime that starts sandboxes: on `docker` one that the daemon has registered, on "
             "`oci` `runc`, `crun` or `runsc`.",
         .form = shape::oci_runtime,
         .empty_meaning = "the daemon's default on `docker`, `runc` on `oci`"},
        {.name = "work_dir",
         .where = &s::work_dir,
         .summary = "Where commands start inside a sandbox; absolute.",
         .form = shape::absolute},
        {.name = "workspace_root",
         .where = &s::workspace_root,
         .summary = "Host directory that keeps each session's work directory, `<root>/<id>/workspace`.",
         .empty_meaning = "workspaces end with their sandbox"},
        {.name = "sandbox_uid",
         .where = &s::sandbox_uid,
         .summary = "The user id that built runtimes run as, and that owns new workspaces.",
         .min = 0,
         .max = 4'294'967'294,
         .empty_meaning = "root inside the sandbox"},
        {.name = "persist_containers",
         .where = &s::persist_containers,
         .summary = "Keep a session's container, with what was installed in it, when it stops."},
        {.name = "prewarm",
         .where = &s::prewarm,
         .summary = "Make the images of all runtimes local in the background after start."},
        {.name = "idle_timeout",
         .where = &s::idle_timeout,
         .summary = "A session idle for longer is closed, in seconds.",
         .min = 0,
         .max = most_seconds},
        {.name = "cleanup_interval",
         .where = &s::cleanup_interval,
         .summary = "Seconds between two cleaning passes.",
         .min = 1,
         .max = most_seconds},
        {.name = "workspace_ttl",
         .where = &s::workspace_ttl,
         .summary = "Workspaces unused for this many seconds are deleted.",
         .min = 0,
         .max = most_seconds,
         .empty_meaning = "kept for ever"},
        {.name = "container_ttl",
         .where = &s::container_ttl,
         .summary = "Kept containers stopped for this many seconds are removed.",
         .min = 0,
         .max = most_seconds},
        {.name = "execute_timeout",
         .where = &s::execute_timeout,
         .summary = "The longest a command may run, in seconds.",
         .min = 1,
         .max = most_seconds},
        {.name = "max_running_commands",
         .where = &s::max_running_commands,
         .summary = "Commands that may run at once over all sessions; more wait.",
         .min = 1,
         .max = 1'000'000},
        {.name = "max_read_bytes",
         .where = &s::max_read_bytes,
         .summary = "The largest file that is read or written whole, in bytes; no larger than "
                    "`max_inflight_bytes` allows.",
         .min = 1},
        {.name = "native_files",
         .where = &s::native_files,
         .summary = "Serve `files/*` from the host where that is safe."},
        {.name = "policy_overrides",
         .where = &s::policy_overrides,
         .summary = "A JSON file of policy changes, read again when it changes."},
        {.name = "ui_enabled",
         .where = &s::ui_enabled,
         .summary = "Serve the dashboard at `/ui`.",
         .in_effect = false},
        {.name = "max_workers",
         .where = &s::max_workers,
         .summary = "Threads for work that blocks.",
         .min = 1,
         .max = 1024},
        {.name = "io_threads",
         .where = &s::io_threads,
         .summary = "Threads that serve connections, at most: a further one joins while the others are busy.",
         .min = 1,
         .max = 1024,
         .computed_default = "the number of cores"},
        {.name = "user",
         .where = &s::user,
         .summary = "The account the service changes to after start, when started as root.",
         .empty_meaning = "stays as started"},
        {.name = "uid_range",
         .where = &s::uid_range,
         .summary =
             "Host user ids for sandboxes, `FIRST-LAST`, decimal or `0x`; each session takes 65536 of them."},
        {.name = "on_shutdown",
         .where = &s::on_shutdown,
         .summary = "What happens to sandboxes when the service is told to stop: kept for the next start, or "
                    "stopped.",
         .choices = {"keep", "stop"}},
        {.name = "shutdown_grace",
         .where = &s::shutdown_grace,
         .summary = "Seconds that requests in progress get when the service is told to stop.",
         .min = 0,
         .max = 3600},
        {.name = "max_body_bytes",
         .where = &s::max_body_bytes,
         .summary = "The largest request body; beyond it the answer is 413.",
         .min = 1'048'576,
         .max = most},
        {.name = "max_inflight_bytes",
         .where = &s::max_inflight_bytes,
         .summary =
             "All bodies and buffered answers together; beyond it requests wait. Not below `max_body_bytes`.",
         .min = 1'048'576,
         .max = most},
        {.name = "log_level",
         .where = &s::log_level,
         .summary = "The least severe lines to write.",
         .choices = {"debug", "info", "warning", "error"}},
        {.name = "log_format",
         .where = &s::log_format,
         .summary = "How log lines look.",
         .choices = {"text", "json"}},
    };
}

} // namespace

std::span<const setting_info> table() {
    static const std::vector<setting_info> all = make_table();
    return all;
}

const setting_info* find_setting(std::string_view name) {
    const auto all = table();
    const auto found =
        std::find_if(all.begin(), all.end(), [name](const setting_info& i) { return i.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::size_t index_of(std::string_view name) {
    return static_cast<std::size_t>(find_setting(name) - table().data());
}

std::span<const std::string_view> setting_names() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> out;
        for (const auto& info : table()) {
            out.push_back(info.name);
        }
        return out;
    }();
    return names;
}

std::string variable_name(std::string_view name) {
    std::string out = "SANDBOXD_";
    for (const char c : name) {
        out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return out;
}

} // namespace sandboxd::config
