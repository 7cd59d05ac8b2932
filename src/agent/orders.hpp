#pragma once

#include "agent/descriptor.hpp"
#include "agent/supervisor.hpp"

#include <span>
#include <string_view>

namespace sandboxd::agent {

// A supervisor's end of its socket: one packet is one order, or one report.

enum class received { order, nothing, end };

/// Takes an order without waiting. A payload that is not in a file goes into `text`; one that does not fit is
/// the end, as is what is no order.
[[nodiscard]] received receive_order(int socket, order& head, descriptor (&files)[most_descriptors],
                                     std::span<char> text);

void send_report(int socket, const report& head, std::string_view text);

} // namespace sandboxd::agent
