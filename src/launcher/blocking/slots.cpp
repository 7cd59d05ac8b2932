#include "launcher/blocking/slots.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/fields.hpp"
#include "launcher/runtimes/runtime.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace json = boost::json;

namespace {

constexpr auto lock_poll = std::chrono::milliseconds(5);

std::string slots_directory(const worker_context& context) {
    return context.options.state_dir + "/oci";
}

result<core::unique_fd> open_lock(int directory) {
    core::unique_fd lock(::openat(directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) {
        return os_error("lock", errno);
    }
    return lock;
}

/// A slot that holds nothing but what is kept. errc::not_found without one, errc::exists when something else
/// is there.
result<slot_directory> open_kept(const worker_context& context, const std::string& slot) {
    auto held = lock_slot(context, slot, std::chrono::steady_clock::now());
    if (!held) {
        return held;
    }
    const int directory = held->directory.get();
    const auto state = read_state(directory);
    if (!is_marked_kept(directory) || (state && open_process(*state))) {
        return error{errc::exists, "the slot " + slot + " is in use"};
    }
    held->has_layer = ::faccessat(directory, "layer/upper", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
                      read_uid_base(directory).has_value();
    return held;
}

} // namespace

result<slot_directory> create_slot(const worker_context& context, const std::string& slot, keeping keep) {
    const auto path = slots_directory(context) + "/" + slot;
    if (keep != keeping::nothing) {
        auto there = open_kept(context, slot);
        if (there || there.error().code != errc::not_found) {
            return there;
        }
        if (keep == keeping::kept) {
            return error{errc::gone, "nothing is kept in the slot " + slot};
        }
    }
    if (::mkdir(path.c_str(), 0700) != 0) {
        if (errno == EEXIST) {
            return error{errc::exists, "the slot " + slot + " is in use"};
        }
        return os_error(path, errno);
    }
    auto directory = open_directory(path);
    if (!directory) {
        return directory.error();
    }
    auto lock = open_lock(directory->get());
    if (!lock) {
        return lock.error();
    }
    if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
        return os_error("locking " + path, errno);
    }
    slot_directory made{std::move(*directory), std::move(*lock), false};
    if (keep != keeping::nothing) {
        if (auto marked = mark_kept(made.directory.get()); !marked) {
            return marked.error();
        }
    }
    return made;
}

result<slot_directory> lock_slot(const worker_context& context, const std::string& slot, deadline until) {
    auto directory = open_directory(slots_directory(context) + "/" + slot);
    if (!directory) {
        return directory.error();
    }
    auto lock = open_lock(directory->get());
    if (!lock) {
        return lock.error();
    }
    while (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
        if (std::chrono::steady_clock::now() >= until) {
            return error{errc::timeout, "the slot " + slot + " is still being started"};
        }
        std::this_thread::sleep_for(lock_poll);
    }
    return slot_directory{std::move(*directory), std::move(*lock), false};
}

result<void> mark_kept(int slot_directory) {
    return write_file_at(slot_directory, "kept", "", 0600);
}

bool is_marked_kept(int slot_directory) {
    return ::faccessat(slot_directory, "kept", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

result<void> write_state(int slot_directory, const slot_state& state) {
    json::object into{{"pid", state.pid},
                      {"start_ticks", state.start_ticks},
                      {"boot_id", state.boot_id},
                      {"uid_base", state.uid_base},
                      {"runtime", state.runtime}};
    if (state.user) {
        into["uid"] = state.user->uid;
        into["gid"] = state.user->gid;
    }
    return write_file_at(slot_directory, "state.json", json::serialize(into), 0600);
}

result<slot_state> read_state(int slot_directory) {
    const auto text = read_file_at(slot_directory, "state.json", 4096);
    if (!text) {
        return text.error();
    }
    boost::system::error_code failed;
    const auto value = json::parse(*text, failed);
    field_reader from(value);
    slot_state state;
    state.pid = static_cast<std::int32_t>(from.number("pid", std::numeric_limits<std::int32_t>::max()));
    state.start_ticks = from.number("start_ticks", std::numeric_limits<std::uint64_t>::max());
    state.boot_id = from.text("boot_id");
    state.uid_base = static_cast<std::uint32_t>(from.number("uid_base", UINT32_MAX));
    state.runtime = from.optional_text("runtime").value_or("runc");
    const auto uid = from.optional_number("uid", UINT32_MAX);
    const auto gid = from.optional_number("gid", UINT32_MAX);
    if (uid && gid) {
        state.user = account{static_cast<std::uint32_t>(*uid), static_cast<std::uint32_t>(*gid)};
    }
    if (failed || from.failed()) {
        return error{errc::io, "state.json is broken"};
    }
    return state;
}

result<void> write_uid_base(int slot_directory, std::uint32_t base) {
    return write_file_at(slot_directory, "uid_base", std::to_string(base), 0600);
}

std::optional<std::uint32_t> read_uid_base(int slot_directory) {
    const auto text = read_file_at(slot_directory, "uid_base", 32);
    std::uint32_t base = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), base).ec != std::errc()) {
        return std::nullopt;
    }
    return base;
}

result<void> write_image_key(int slot_directory, const std::string& key) {
    return write_file_at(slot_directory, "image", key, 0600);
}

std::optional<std::string> read_image_key(int slot_directory) {
    auto text = read_file_at(slot_directory, "image", 8192);
    return text && !text->empty() ? std::optional(std::move(*text)) : std::nullopt;
}

std::string boot_id() {
    const auto text = read_file("/proc/sys/kernel/random/boot_id", 128);
    return text ? text->substr(0, text->find('\n')) : std::string();
}

std::optional<std::uint64_t> start_ticks(std::int32_t pid) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
    const auto name_end = text ? text->rfind(')') : std::string::npos;
    if (name_end == std::string::npos) {
        return std::nullopt;
    }
    // After the name comes field 3; the start time is field 22.
    std::istringstream fields(text->substr(name_end + 1));
    std::string skipped;
    for (int field = 3; field < 22; ++field) {
        fields >> skipped;
    }
    std::uint64_t ticks = 0;
    fields >> ticks;
    return fields ? std::optional(ticks) : std::nullopt;
}

result<core::unique_fd> open_process(const slot_state& state) {
    const error ended{errc::gone, "the sandbox has ended"};
    if (state.boot_id != boot_id()) {
        return ended;
    }
    core::unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, state.pid, 0)));
    if (!pidfd) {
        return errno == ESRCH ? ended : os_error("pidfd_open", errno);
    }
    // Read after the descriptor was opened: the number can't change hands any more.
    if (start_ticks(state.pid) != state.start_ticks || wait_for_end(pidfd.get(), deadline::min())) {
        return ended;
    }
    return pidfd;
}

bool wait_for_end(int pidfd, deadline until) {
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            std::max(until, std::chrono::steady_clock::now()) - std::chrono::steady_clock::now());
        pollfd one{pidfd, POLLIN, 0};
        const int ready = ::poll(&one, 1, static_cast<int>(std::min<long>(left.count(), 3'600'000)));
        if (ready > 0) {
            return true;
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

result<slot_list> list(const worker_context& context, const list_slots& request) {
    auto directory = open_directory(slots_directory(context));
    if (!directory) {
        return directory.error();
    }
    auto names = list_directory(directory->get());
    if (!names) {
        return names.error();
    }
    slot_list answer;
    for (auto& name : *names) {
        if (is_slot_name(name) && name > request.after) {
            answer.slots.push_back(std::move(name));
        }
    }
    std::sort(answer.slots.begin(), answer.slots.end());
    answer.slots.resize(std::min(answer.slots.size(), slots_page));
    return answer;
}

result<started> attach(const worker_context& context, const attach_sandbox& request) {
    const error ended{errc::gone, "the sandbox of slot " + request.slot + " has ended"};
    auto directory = open_directory(slots_directory(context) + "/" + request.slot);
    if (!directory) {
        return ended;
    }
    auto state = read_state(directory->get());
    if (!state) {
        return ended;
    }
    auto pidfd = open_process(*state);
    if (!pidfd) {
        return pidfd.error();
    }
    const auto* const runtime = find_runtime(state->runtime);
    if (runtime == nullptr) {
        return ended;
    }
    started answer;
    answer.facts.pid = state->pid;
    answer.facts.start_ticks = state->start_ticks;
    answer.facts.uid_base = state->uid_base;
    answer.facts.user = state->user;
    answer.facts.dials = runtime->door() == agent_door::dialled;
    answer.pidfd = std::move(*pidfd);
    if (answer.facts.dials) {
        auto listener = listen_at_door(directory->get());
        if (!listener) {
            return listener.error();
        }
        answer.socket = std::move(*listener);
    } else {
        answer.socket.reset(::openat(directory->get(), "agent.sock", O_PATH | O_CLOEXEC | O_NOFOLLOW));
    }
    if (!answer.socket) {
        return ended;
    }
    return answer;
}

} // namespace sandboxd::launcher::blocking
