#include "session/door_check.hpp"

#include "core/log.hpp"
#include "core/random.hpp"
#include "hostfs/blocking/content.hpp"
#include "hostfs/blocking/remove.hpp"
#include "session/bounded.hpp"

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

bool leave(const door_question& what, const marker& one) {
    const auto in = host::workspace::open(what.root, what.id);
    const auto top = in ? in->find("") : in.error();
    return top && !host::replace_content(*top, one.name, one.content, soon());
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
    if (!done || !*done) {
        co_return std::nullopt;
    }
    auto look = [what = with.what, one] { return owner_of(what, one); };
    co_return co_await with.workers.run(std::move(look));
}

task<bool> seen_by_sandbox(const conversation& with) {
    const marker one;
    auto put = [what = with.what, one] { return leave(what, one); };
    if (!co_await with.workers.run(std::move(put))) {
        co_return false;
    }
    const auto seen = co_await bounded<result<file_content>>(
        with.calls, with.box, with.box->read(with.inside(one), longest_content), with.until);
    auto clear = [what = with.what, one] { take_back(what, one); };
    co_await with.workers.run(std::move(clear));
    co_return seen && *seen && (*seen)->bytes == one.content;
}

} // namespace

task<host_door> prove_door(core::worker_pool& workers, core::gate& calls, std::shared_ptr<sandbox> box,
                           door_question what, std::chrono::milliseconds patience) {
    const conversation with{workers, calls, std::move(box), std::move(what),
                            std::chrono::steady_clock::now() + patience};
    const auto owner = co_await written_by_sandbox(with);
    if (owner) {
        const bool ours_to_share = *owner == 0 || *owner == ::geteuid();
        co_return with.what.may_write&& ours_to_share ? host_door::writes : host_door::reads;
    }
    co_return co_await seen_by_sandbox(with) ? host_door::reads : host_door::shut;
}

} // namespace sandboxd::session
