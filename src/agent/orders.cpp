#include "agent/orders.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sandboxd::agent {

received receive_order(int socket, order& head, descriptor (&files)[most_descriptors], std::span<char> text) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * most_descriptors)];
    iovec pieces[2] = {{&head, sizeof head}, {text.data(), text.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (length < 0) {
        return errno == EAGAIN || errno == EINTR ? received::nothing : received::end;
    }
    for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        const auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count && i < most_descriptors; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            files[i].reset(fd);
        }
    }
    const auto size = static_cast<std::size_t>(length);
    if (size < sizeof head) {
        return received::end;
    }
    const bool here = head.kind == order_kind::run && (head.flags & payload_file) == 0;
    return size == sizeof head + (here ? head.size : 0) ? received::order : received::end;
}

void send_report(int socket, const report& head, std::string_view text) {
    report copy = head;
    copy.text_size = static_cast<std::uint32_t>(text.size());
    iovec pieces[2] = {{&copy, sizeof copy}, {const_cast<char*>(text.data()), text.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = text.empty() ? 1 : 2;
    sendmsg(socket, &message, MSG_NOSIGNAL);
}

} // namespace sandboxd::agent
