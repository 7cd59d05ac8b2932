#include "openapi/models.hpp"
#include "wire/answers.hpp"

namespace sandboxd::openapi {

namespace {

constexpr std::string_view memory = "Memory, such as `512m` or `2g`; null: no ceiling.";
constexpr std::string_view swap = "Memory and swap together; null: as the backend has it.";
constexpr std::string_view cores = "Cores; fractions count.";
constexpr std::string_view shares =
    "Weight against other sandboxes when cores are short; 1024 is the usual one.";
constexpr std::string_view processes = "Processes and threads at once.";
constexpr std::string_view network = "`none`, `bridge`, or a network of the daemon's.";
constexpr std::string_view runtime = "The OCI runtime: `runc`, `crun`, `runsc`...";
constexpr std::string_view resident = "How many sandboxes may run at once; null: no ceiling.";
constexpr std::string_view open = "How many sessions may be open, sleeping ones included; null: no ceiling.";
constexpr std::string_view per_tenant = "How many of one tenant's; null: no ceiling.";
constexpr std::string_view evict =
    "A session idle for so many seconds may be put to sleep for another; null: none ever is.";
constexpr std::string_view idle = "Seconds without an operation after which a session is closed.";
constexpr std::string_view ceiling = "Seconds that any command may take.";
constexpr std::string_view read_limit = "Bytes of the largest file that is read.";
constexpr std::string_view workspaces =
    "Seconds that the files of a closed session are kept; null: for ever.";
constexpr std::string_view containers = "Seconds that a stopped sandbox is kept; null: for ever.";
constexpr std::string_view temporary = "Size of `/tmp`, such as `64m`; null: as the image has it.";

void add_changes(schema_book& book) {
    using enum direction;
    book.add<wire::runtime_change_body>(
        "RuntimePolicyUpdate", request,
        "New ceilings of one runtime. Absent: as it is; null: none of its own.",
        {{"mem_limit", memory},
         {"memswap_limit", swap},
         {"cpus", cores},
         {"cpu_shares", shares},
         {"pids_limit", processes}});
    book.add<wire::policy_change_body>(
        "PolicyUpdate", request,
        "What may change while the service runs. Absent: as it is; null: none. Holds for sandboxes that are "
        "built from now on, and over restarts of the service.",
        {{"default_runtime", "One of the allowed aliases."},
         {"max_sessions", resident},
         {"max_open_sessions", open},
         {"max_sessions_per_tenant", per_tenant},
         {"evict_idle_after", evict},
         {"idle_timeout", idle},
         {"workspace_ttl", workspaces},
         {"container_ttl", containers},
         {"execute_timeout", ceiling},
         {"max_read_bytes", read_limit},
         {"cpus", cores},
         {"cpu_shares", shares},
         {"pids_limit", processes},
         {"mem_limit", memory},
         {"memswap_limit", swap},
         {"tmpfs_size", temporary},
         {"runtimes", "By alias."}});
}

} // namespace

void add_policy_models(schema_book& book) {
    using enum direction;
    book.add<wire::runtime_policy>("RuntimePolicy", answer,
                                   "A runtime that may be asked for, with the ceilings in force for it.",
                                   {{"alias", "The name to ask for."},
                                    {"image", "What it is made from."},
                                    {"description", "For people."},
                                    {"builds", "The image is built by the service."},
                                    {"mem_limit", memory},
                                    {"memswap_limit", swap},
                                    {"cpus", cores},
                                    {"cpu_shares", shares},
                                    {"pids_limit", processes},
                                    {"network_mode", network},
                                    {"oci_runtime", runtime}});
    book.add<wire::service_policy>(
        "ServicePolicy", answer, "The rules in force.",
        {{"runtimes", "Sorted by alias."},
         {"default_runtime", "The alias for a session that names none."},
         {"max_sessions", resident},
         {"max_open_sessions", open},
         {"max_sessions_per_tenant", per_tenant},
         {"evict_idle_after", evict},
         {"mem_limit", memory},
         {"memswap_limit", swap},
         {"cpus", cores},
         {"cpu_shares", shares},
         {"pids_limit", processes},
         {"network_mode", network},
         {"oci_runtime", runtime},
         {"work_dir", "Where commands start and relative paths begin."},
         {"idle_timeout", idle},
         {"execute_timeout", ceiling},
         {"max_read_bytes", read_limit},
         {"persist_containers", "A closed session's sandbox is kept for the next session of its id."},
         {"sandbox_uid", "The user of the commands; null: the image's own."},
         {"workspace_ttl", workspaces},
         {"container_ttl", containers},
         {"tmpfs_size", temporary},
         {"prewarm", "Images are made ready before the first session asks."},
         {"buildkit", "Images are built with BuildKit."},
         {"native_files", "`files/*` reads on the host where a session's files are there."},
         {"native_writes", "`files/*` writes there as well."},
         {"native_realpath", "`files/realpath` is served."},
         {"not_enforced", "What this host can't enforce, a sentence each."},
         {"overridden", "The fields that `PUT /policy` has set."}});
    add_changes(book);
    book.add<wire::warming_image>(
        "WarmingImage", answer, "A runtime whose image is being made ready.",
        {{"runtime", "Its alias."},
         {"state", "What is done about it.",
          R"({"enum":["queued","looking","pulling","building","waiting"]})"},
         {"step", "The step of a build that is under way, from 1, which is FROM; null when none is.",
          R"({"minimum":1})"},
         {"done", "Steps or layers that are done; null where they can't be counted.", R"({"minimum":0})"},
         {"total", "Of how many.", R"({"minimum":0})"},
         {"attempt", "The first, or a later one.", R"({"minimum":1})"},
         {"seconds", "In this state.", R"({"minimum":0})"}});
    book.add<wire::service_health>(
        "ServiceHealth", answer, "How the service is.",
        {{"status", "`ok` whenever it answers.", R"({"enum":["ok"]})"},
         {"sessions", "Resident ones.", R"({"minimum":0})"},
         {"limit", resident},
         {"open_sessions", "Open ones, sleeping ones included.", R"({"minimum":0})"},
         {"open_limit", open},
         {"runtimes", "The allowed aliases, sorted."},
         {"degraded", "Why sandboxes can't be opened or closed now; null: they can."},
         {"warming", "Images that are being made ready; empty when none is."}});
    book.add<wire::service_index>("ServiceIndex", answer, "Where to begin.",
                                  {{"service", "`sandboxd`."},
                                   {"health", "As `GET /healthz` answers."},
                                   {"docs_url", "An interactive page."},
                                   {"openapi_url", "This document."},
                                   {"ui_url", "The dashboard, where it is on."},
                                   {"endpoints", "Every path there is, sorted."}});
}

} // namespace sandboxd::openapi
