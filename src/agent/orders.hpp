#pragma once

#include "agent/descriptor.hpp"
#include "agent/supervisor.hpp"

#include <span>
#include <string_view>

namespace sandboxd::agent {

// The socket of a supervisor: one packet is one order, or one report.

/// Sends the order to run what a `start` payload tells, without waiting: the payload follows in the packet,
/// or is in a file where the packet can't hold it. `files`, at most most_descriptors less one, in the order
/// of the flags of `head`. False with errno.
[[nodiscard]] bool send_command(int socket, order head, std::string_view payload, std::span<const int> files);

enum class received { order, nothing, end };

/// Takes an order without waiting. A payload that is not in a file goes into `text`; one that does not fit is
/// the end, as is what is no order.
[[nodiscard]] received receive_order(int socket, order& head, descriptor (&files)[most_descriptors],
                                     std::span<char> text);

void send_report(int socket, const report& head, std::string_view text);

} // namespace sandboxd::agent
