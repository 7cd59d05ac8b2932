#include "app/serve.hpp"

#include "app/agent_path.hpp"
#include "app/backend.hpp"
#include "app/oci_parts.hpp"
#include "app/privileges.hpp"
#include "app/service.hpp"
#include "app/signals.hpp"
#include "cli/run.hpp"
#include "core/log.hpp"
#include "store/state_directory.hpp"

#include <cstdlib>
#include <malloc.h>
#include <sys/stat.h>

// The order of a start: what needs root and a single thread first (state directory, launcher, giving up
// root), then the service itself.

namespace sandboxd::app {

namespace {

result<void> prepare_and_run(const settings& config) {
    account service{::geteuid(), ::getegid(), {}};
    if (config.user) {
        auto found = find_account(*config.user);
        if (!found) {
            return found.error();
        }
        service = *found;
    }
    ::umask(022);
    if (config.workspace_root) {
        if (auto made = make_workspace_root(*config.workspace_root); !made) {
            return made.error();
        }
    }
    auto state = store::state_directory::open(config.state_dir);
    if (!state) {
        return state.error();
    }
    auto backend = choose_backend(config, (*state)->backend());
    if (!backend) {
        return backend.error();
    }
    auto agent = find_agent();
    if (!agent) {
        return agent.error();
    }
    core::unique_fd launcher;
    if (backend->name == "oci") {
        auto started = start_launcher(*agent, config, **state, service);
        if (!started) {
            return started.error();
        }
        launcher = std::move(*started);
    }
    if (auto remembered = (*state)->remember_backend(backend->name); !remembered) {
        return remembered.error();
    }
    if (config.user) {
        if (auto given = (*state)->give_to(service.uid, service.gid); !given) {
            return given.error();
        }
        if (auto dropped = become(service); !dropped) {
            return dropped.error();
        }
        core::log::info("gave up root: this process is {} now", service.name);
    }
    return run_service({config, **state, *backend, *agent, std::move(launcher)});
}

/// Large bodies and answers are mapped and given back one by one: with the allocator's moving thresholds one
/// big request would leave its memory with this process for ever.
void bound_the_heap() {
    constexpr int map_from = 256 * 1024;
    constexpr int trim_above = 4 * 1024 * 1024;
    constexpr int arenas = 4;
    ::mallopt(M_MMAP_THRESHOLD, map_from);
    ::mallopt(M_TRIM_THRESHOLD, trim_above);
    ::mallopt(M_ARENA_MAX, arenas);
}

} // namespace

int serve(const config::loaded_settings& loaded) {
    const settings& config = loaded.values;
    bound_the_heap();
    core::log::set_level(config.log_level);
    core::log::set_format(config.log_format);
    for (const std::string& note : loaded.notes) {
        core::log::warning("{}", note);
    }
    ignore_broken_pipes();
    if (auto done = prepare_and_run(config); !done) {
        cli::complain(done.error().message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

} // namespace sandboxd::app
