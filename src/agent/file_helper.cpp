#include "agent/file_helper.hpp"

#include "agent/file_call.hpp"
#include "agent/passwd.hpp"
#include "agent/system.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

namespace sandboxd::agent {

namespace {

/// What no operation needs: a backstop, the bounds of each are far below.
constexpr rlim_t most_memory = rlim_t{1} << 30;

/// 0, or why the user can't be changed.
int become(const file_user& whose) {
    if (!whose.user && !whose.group) {
        return 0;
    }
    const uid_t user = whose.user.value_or(geteuid());
    const auto passwd = read_small_file("/etc/passwd");
    const auto entry = find_user(passwd, user);
    const gid_t group = whose.group ? *whose.group : entry ? entry->group : whose.user ? gid_t{0} : getegid();
    std::vector<gid_t> groups;
    if (entry) {
        groups = groups_of(read_small_file("/etc/group"), entry->name);
    }
    const bool same = user == getuid() && group == getgid();
    if ((syscall(SYS_setgroups, groups.size(), groups.data()) != 0 && !same) ||
        syscall(SYS_setresgid, group, group, group) != 0 || syscall(SYS_setresuid, user, user, user) != 0) {
        return errno;
    }
    return 0;
}

void carry_out(file_call& call) {
    using protocol::file_operation;
    switch (call.request().operation) {
    case file_operation::read:
        return read_file(call);
    case file_operation::stat:
        return stat_file(call);
    case file_operation::list:
        return list_directory(call);
    case file_operation::write:
        return write_file(call);
    case file_operation::glob:
        return glob_files(call);
    case file_operation::grep:
        return grep_files(call);
    case file_operation::edit:
        return edit_file(call);
    default:
        call.refuse(protocol::failure_kind::unsupported, "this agent does not know the file operation");
    }
}

void serve(int socket, int locks, std::string_view payload, int no_user) {
    const auto request = read_file_request(payload);
    file_call call(socket, locks, request.value_or(file_request()));
    if (!request) {
        call.refuse(protocol::failure_kind::invalid, "the request is malformed");
    } else if (no_user != 0) {
        call.fail(no_user);
    } else {
        carry_out(call);
    }
}

} // namespace

void serve_files(const file_helper_setup& setup) {
    int kept[] = {setup.socket, setup.locks};
    keep_only(kept, setup.null);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr); // only KILL ends it: it leaves no half of a file behind
    const rlimit memory{most_memory, most_memory};
    setrlimit(RLIMIT_AS, &memory);
    umask(022);
    if (setup.reset_oom_score) {
        const descriptor file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
        [[maybe_unused]] const auto count = write(file.get(), "0", 1);
    }
    const int no_user = become(setup.whose);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); // again: a change of user resets it
    std::string packet(sizeof(file_order) + largest_order, '\0');
    for (;;) {
        const auto count = recv(kept[0], packet.data(), packet.size(), 0);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        file_order head;
        if (count < static_cast<ssize_t>(sizeof head)) {
            _exit(0);
        }
        std::memcpy(&head, packet.data(), sizeof head);
        if (head.kind == file_order_kind::run) { // else the rest of an input that was not read to its end
            const std::string_view bytes(packet.data(), static_cast<std::size_t>(count));
            serve(kept[0], kept[1], bytes.substr(sizeof head), no_user);
        }
    }
}

} // namespace sandboxd::agent
