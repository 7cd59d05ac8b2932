#include "session/door_check.hpp"

#include "core/fd.hpp"
#include "core/random.hpp"
#include "hostfs/blocking/content.hpp"
#include "hostfs/blocking/remove.hpp"
#include "session/bounded.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace sandboxd::session {

namespace {

namespace host = hostfs::blocking;

struct marker {
    std::string name = ".sandboxd-" + core::random_hex(8);
    std::string content = core::random_hex(16);
};

constexpr std::size_t longest_content = 256;

host::time_limit soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(5);
}

void remove(const host::workspace& in, const std::string& name) {
    if (const auto top = in.find("")) {
        [[maybe_unused]] const auto failed = host::remove_entry(*top, name, soon());
    }
}

/// What the sandbox wrote, as the host sees it: its owner when it is the marker.
std::optional<uid_t> owner_of(const door_question& what, const marker& one) {
    const auto in = host::workspace::open(what.root, what.id);
    const auto found = in ? in->find(one.name) : in.error();
    if (!found) {
        return std::nullopt;
    }
    const auto bytes = host::read_content(*found, longest_content, soon());
    const uid_t owner = found->about.st_uid;
    remove(*in, one.name);
    return bytes && *bytes == one.content ? std::optional(owner) : std::nullopt;
}

/// Readable by every user, whatever the umask is.
bool leave(const door_question& what, const marker& one) {
    const auto in = host::workspace::open(what.root, what.id);
    const auto top = in ? in->find("") : in.error();
    if (!top) {
        return false;
    }
    const core::unique_fd file(::openat(top->handle.get(), one.name.c_str(),
                                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    return file && ::fchmod(file.get(), 0644) == 0 &&
           ::write(file.get(), one.content.data(), one.content.size()) ==
               static_cast<ssize_t>(one.content.size());
}

void take_back(const door_question& what, const marker& one) {
    if (const auto in = host::workspace::open(what.root, what.id)) {
        remove(*in, one.name);
    }
}

/// One of the sandbox's calls and what is needed around it.
struct conversation {
    core::worker_pool& workers;
    core::gate& calls;
    std::shared_ptr<sandbox> box;
    door_question what;
    std::chrono::steady_clock::time_point until;

    [[nodiscard]] std::string inside(const marker& one) const { return what.work_dir + "/" + one.name; }
};

task<std::optional<uid_t>> written_by_sandbox(const conversation& with) {
    const marker one;
    const auto done = co_await bounded<result<void>>(
        with.calls, with.box, with.box->write(with.inside(one), one.content), with.until);
    auto look = [what = with.what, one] { return owner_of(what, one); };
    const auto owner = co_await with.workers.run(std::move(look)); // what failed may have left something too
    co_return done && *done ? owner : std::nullopt;
}

task<bool> seen_by_sandbox(const conversation& with) {
    const marker one;
    auto put = [what = with.what, one] { return leave(what, one); };
    std::optional<result<file_content>> seen;
    if (co_await with.workers.run(std::move(put))) {
        seen = co_await bounded<result<file_content>>(
            with.calls, with.box, with.box->read(with.inside(one), longest_content), with.until);
    }
    auto clear = [what = with.what, one] { take_back(what, one); };
    co_await with.workers.run(std::move(clear));
    co_return seen && *seen && (*seen)->bytes == one.content;
}

} // namespace

task<host_door> prove_door(core::worker_pool& workers, core::gate& calls, std::shared_ptr<sandbox> box,
                           door_question what, std::chrono::milliseconds patience) {
    const conversation with{workers, calls, std::move(box), std::move(what),
                            std::chrono::steady_clock::now() + patience};
    // The host's file comes first. What a sandbox writes into a directory of its own stays there: it is asked
    // to write only where the host has seen that it can take the file away again.
    if (!co_await seen_by_sandbox(with)) {
        co_return host_door::shut;
    }
    if (!with.what.may_write) {
        co_return host_door::reads;
    }
    const auto owner = co_await written_by_sandbox(with);
    const bool ours_to_share = owner && (*owner == 0 || *owner == ::geteuid());
    co_return ours_to_share ? host_door::writes : host_door::reads;
}

} // namespace sandboxd::session
