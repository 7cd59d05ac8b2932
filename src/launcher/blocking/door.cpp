#include "launcher/blocking/files.hpp"
#include "launcher/blocking/slots.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr int backlog = 16;

result<core::unique_fd> listen_in(int directory, uid_t owner, gid_t group) {
    core::unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // Through the descriptor: the state directory's path may be longer than an address.
    const auto path = "/proc/self/fd/" + std::to_string(directory) + "/agent.sock";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::fchmodat(directory, "agent.sock", 0600, 0) != 0 ||
        ::fchownat(directory, "agent.sock", owner, group, 0) != 0 || ::listen(socket.get(), backlog) != 0) {
        return os_error("the agent's socket", errno);
    }
    return socket;
}

} // namespace

result<core::unique_fd> listen_handed_in(int slot_directory, const worker_context& context) {
    return listen_in(slot_directory, context.options.service_uid, context.options.service_gid);
}

result<core::unique_fd> listen_at_door(int slot_directory) {
    if (::mkdirat(slot_directory, "door", 0700) != 0 && errno != EEXIST) {
        return os_error("door", errno);
    }
    auto door = open_directory_at(slot_directory, "door");
    if (!door) {
        return door.error();
    }
    if (::unlinkat(door->get(), "agent.sock", 0) != 0 && errno != ENOENT) {
        return os_error("agent.sock", errno);
    }
    return listen_in(door->get(), 0, 0); // who connects is gVisor's process for files, as root
}

} // namespace sandboxd::launcher::blocking
