#include "launcher/message.hpp"

#include "launcher/requests.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace sandboxd::launcher {

namespace {

constexpr std::size_t control_size = CMSG_SPACE(sizeof(int) * max_descriptors);

void take_descriptors(msghdr& header, packet& into) {
    for (auto* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            into.descriptors.emplace_back(fd);
        }
    }
}

transfer of_errno() {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return transfer::would_block;
    }
    return errno == EPIPE || errno == ECONNRESET ? transfer::closed : transfer::failed;
}

} // namespace

transfer receive_packet(int socket, packet& into) {
    into.descriptors.clear();
    into.text.resize(max_message);
    iovec data{into.text.data(), into.text.size()};
    alignas(cmsghdr) std::array<char, control_size> control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t count = 0;
    do {
        count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        into.text.clear();
        return of_errno();
    }
    take_descriptors(header, into);
    into.text.resize(static_cast<std::size_t>(count));
    if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        errno = EMSGSIZE;
        return transfer::failed;
    }
    return count == 0 ? transfer::closed : transfer::complete;
}

transfer send_packet(int socket, std::string_view text, std::span<const int> descriptors) {
    if (text.empty() || text.size() > max_message || descriptors.size() > max_descriptors) {
        errno = EMSGSIZE;
        return transfer::failed;
    }
    iovec data{const_cast<char*>(text.data()), text.size()};
    alignas(cmsghdr) std::array<char, control_size> control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        auto* part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
    }
    ssize_t count = 0;
    do {
        count = ::sendmsg(socket, &header, MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? of_errno() : transfer::complete;
}

} // namespace sandboxd::launcher
