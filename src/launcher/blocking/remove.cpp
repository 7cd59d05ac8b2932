#include "launcher/blocking/files.hpp"
#include "launcher/blocking/network.hpp"
#include "launcher/blocking/runtime_start.hpp"
#include "launcher/blocking/slots.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr auto first_pause = std::chrono::microseconds(500);
constexpr auto longest_pause = std::chrono::milliseconds(20);

/// Sends KILL to everything in a cgroup.
void kill_all(const std::string& cgroup) {
    const auto text = read_file(cgroup + "/cgroup.procs", 4 * 1024 * 1024);
    if (!text) {
        return;
    }
    const char* at = text->data();
    const char* end = at + text->size();
    while (at < end) {
        pid_t pid = 0;
        const auto [next, failed] = std::from_chars(at, end, pid);
        if (failed == std::errc() && pid > 1) {
            ::kill(pid, SIGKILL);
        }
        at = next + 1;
    }
}

bool is_gone(const std::string& cgroup) {
    return ::rmdir(cgroup.c_str()) == 0 || errno == ENOENT;
}

/// Kills what is in the slot's cgroups until they can be removed.
result<void> remove_cgroups(const worker_context& context, const std::string& slot, deadline until) {
    auto left = context.cgroups.directories(context.cgroup(slot));
    auto more = context.cgroups.directories(network_cgroup(context, slot));
    left.insert(left.end(), more.begin(), more.end());
    std::chrono::microseconds pause = first_pause;
    while (true) {
        std::erase_if(left, is_gone);
        if (left.empty()) {
            return {};
        }
        if (std::chrono::steady_clock::now() >= until) {
            return error{errc::timeout,
                         "processes of slot " + slot + " do not end: " + left.front() + " is in use"};
        }
        for (const auto& cgroup : left) {
            kill_all(cgroup);
        }
        std::this_thread::sleep_for(pause);
        pause = std::min<std::chrono::microseconds>(pause * 2, longest_pause);
    }
}

void kill_first_process(int slot_directory, deadline until) {
    const auto state = read_state(slot_directory);
    if (!state) {
        return;
    }
    if (const auto pidfd = open_process(*state)) {
        ::syscall(SYS_pidfd_send_signal, pidfd->get(), SIGKILL, nullptr, 0);
        static_cast<void>(wait_for_end(pidfd->get(), until));
    }
}

/// What the runtime remembers of the container; its own `delete` does the same with a process and 100 ms of
/// waits. All of them are asked: a start that was cut off has left no word which it was.
result<void> forget_in_runtimes(const worker_context& context, const std::string& slot) {
    for (const auto* runtime : all_runtimes()) {
        auto records = open_directory(records_directory(*runtime, context.options));
        if (!records && records.error().code == errc::not_found) {
            continue;
        }
        if (!records) {
            return records.error();
        }
        for (const auto& name : runtime->records(slot)) {
            if (auto done = remove_tree(records->get(), name); !done) {
                return done;
            }
        }
    }
    return {};
}

} // namespace

result<void> end_locked(const worker_context& context, const std::string& slot, const slot_directory& held,
                        deadline until) {
    kill_first_process(held.directory.get(), until);
    if (auto done = remove_cgroups(context, slot, until); !done) {
        return done;
    }
    return forget_in_runtimes(context, slot);
}

result<void> stop_locked(const worker_context& context, const std::string& slot, const slot_directory& held,
                         deadline until) {
    const int directory = held.directory.get();
    if (!is_marked_kept(directory)) {
        return remove_locked(context, slot, held, until);
    }
    if (auto done = end_locked(context, slot, held, until); !done) {
        return done;
    }
    for (const char* name : {"state.json", "agent.sock"}) {
        if (::unlinkat(directory, name, 0) != 0 && errno != ENOENT) {
            return os_error(name, errno);
        }
    }
    return remove_tree(directory, "door");
}

result<void> remove_locked(const worker_context& context, const std::string& slot, const slot_directory& held,
                           deadline until) {
    if (auto done = end_locked(context, slot, held, until); !done) {
        return done;
    }
    if (auto done = remove_tree(held.directory.get(), "layer"); !done) {
        return done;
    }
    // The directory goes last: while it is there, owned() finds the slot again.
    context.ranges.release(context.owner(slot), read_uid_base(held.directory.get()));
    auto parent = open_directory(context.options.state_dir + "/oci");
    if (!parent) {
        return parent.error();
    }
    return remove_tree(parent->get(), slot);
}

result<void> remove(const worker_context& context, const std::string& slot, deadline until) {
    auto held = lock_slot(context, slot, until);
    if (held) {
        return remove_locked(context, slot, *held, until);
    }
    return held.error().code == errc::not_found ? result<void>() : held.error();
}

result<void> stop(const worker_context& context, const std::string& slot, deadline until) {
    auto held = lock_slot(context, slot, until);
    if (held) {
        return stop_locked(context, slot, *held, until);
    }
    return held.error().code == errc::not_found ? result<void>() : held.error();
}

} // namespace sandboxd::launcher::blocking
