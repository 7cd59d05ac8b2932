#include "agent/orders.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace sandboxd::agent {

namespace {

/// A file in memory that holds the payload and one byte more, for the supervisor to build strings in.
descriptor payload_in_memory(std::string_view payload) {
    descriptor file(memfd_create("start", MFD_CLOEXEC));
    iovec pieces[2] = {{const_cast<char*>(payload.data()), payload.size()}, {const_cast<char*>(""), 1}};
    if (!file.valid() || writev(file.get(), pieces, 2) != static_cast<ssize_t>(payload.size() + 1)) {
        return {};
    }
    return file;
}

/// With at most most_descriptors files. False with errno.
bool send_order(int socket, const order& head, std::string_view text, std::span<const int> files) {
    iovec pieces[2] = {{const_cast<order*>(&head), sizeof head},
                       {const_cast<char*>(text.data()), text.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = text.empty() ? 1 : 2;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * most_descriptors)] = {};
    if (!files.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(files.size_bytes());
        auto* const rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(files.size_bytes());
        std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

} // namespace

bool send_command(int socket, order head, std::string_view payload, std::span<const int> files) {
    head.size = static_cast<std::uint32_t>(payload.size());
    if (payload.size() <= inline_payload) {
        // The host's setting for sockets may be low, or its memory in pieces.
        const bool sent = send_order(socket, head, payload, files);
        if (sent || (errno != EMSGSIZE && errno != ENOBUFS)) {
            return sent;
        }
    }
    const auto memory = payload_in_memory(payload);
    if (!memory.valid()) {
        return false;
    }
    head.flags |= payload_file;
    std::vector<int> passed{memory.get()};
    passed.insert(passed.end(), files.begin(), files.end());
    return send_order(socket, head, {}, passed);
}

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
