#pragma once

#include "core/fd.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::launcher {

enum class transfer { complete, would_block, closed, failed };

struct packet {
    std::string text;
    std::vector<core::unique_fd> descriptors;
};

/// One packet out of a SEQPACKET socket, without waiting where the socket is non-blocking. `closed` at the
/// end of the other side; `failed` (errno) also for one that was cut, because it or its descriptors were too
/// many (EMSGSIZE). Descriptors come close-on-exec.
[[nodiscard]] transfer receive_packet(int socket, packet& into);

/// One packet into it. Descriptors stay the caller's.
[[nodiscard]] transfer send_packet(int socket, std::string_view text, std::span<const int> descriptors);

} // namespace sandboxd::launcher
