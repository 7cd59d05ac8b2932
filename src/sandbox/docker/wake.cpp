#include "core/log.hpp"
#include "sandbox/docker/launch.hpp"

// Sandboxes that are kept between a stop and the next start (SANDBOXD_PERSIST_CONTAINERS): the container
// stays, ended, in its slot.

namespace sandboxd::sandboxes::docker_backend {

namespace {

using namespace std::chrono_literals;

constexpr auto list_limit = 15s;
constexpr auto kill_limit = 10s;

error as_start_failure(const error& from) {
    return {errc::start_failed, from.message, false};
}

/// Ended first where it still runs: a stop that the daemon did not hear, or half a start.
task<result<void>> make_sure_it_ended(std::shared_ptr<docker::engine> engine, std::string container) {
    const auto killed = co_await engine->kill(container, "KILL", kill_limit);
    if (!killed) {
        co_return as_start_failure(killed.error());
    }
    const auto ended = co_await engine->wait(std::move(container), "not-running", kill_limit);
    if (!ended) {
        co_return as_start_failure(ended.error());
    }
    co_return result<void>();
}

task<result<std::shared_ptr<sandbox>>> start_kept(std::shared_ptr<workshop> in, std::string slot,
                                                  std::string container) {
    auto door = door_of(*in, slot);
    if (!door) {
        co_return door.error();
    }
    const auto started = co_await in->options.engine->start(container, in->options.start_limit);
    if (!started) {
        co_return as_start_failure(started.error());
    }
    auto host = co_await host_of(in, std::move(slot), std::move(container), std::move(*door), nullptr);
    if (!host) {
        co_return as_start_failure(host.error());
    }
    auto made = co_await in->options.factory(*host, false);
    if (!made) {
        co_await (*host)->terminate(0ms, false);
        co_return as_start_failure(made.error());
    }
    co_return made;
}

} // namespace

task<result<std::shared_ptr<sandbox>>> wake(std::shared_ptr<workshop> in, sandbox_spec spec,
                                            std::string slot) {
    co_await in->watch->use_again(slot);
    auto listed = co_await in->options.engine->list(slot_filters(*in, slot), list_limit);
    if (!listed) {
        co_return as_start_failure(listed.error());
    }
    if (listed->empty()) {
        if (spec.keep == keeping::kept) {
            co_return error{errc::gone, "the container that was kept is not there any more"};
        }
        co_return co_await launch(in, std::move(spec), std::move(slot));
    }
    const auto& kept = listed->front();
    if (kept.state != "exited" && kept.state != "created") {
        if (auto ended = co_await make_sure_it_ended(in->options.engine, kept.id); !ended) {
            co_return ended.error();
        }
    }
    co_return co_await start_kept(in, std::move(slot), kept.id);
}

} // namespace sandboxd::sandboxes::docker_backend
