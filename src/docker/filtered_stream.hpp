#pragma once

#include "docker/frame_demux.hpp"
#include "net/stream.hpp"

#include <functional>

namespace sandboxd::docker {

/// Gets what the daemon's stream holds beside standard output: standard error and, as system_error, the
/// daemon's own words. Called on the stream's executor.
using side_sink = std::function<void(channel, std::string_view)>;

struct stream_filter {
    std::string leftover;     ///< read along with the answer's head: comes first
    bool chunked = false;     ///< undo chunked coding
    bool demultiplex = false; ///< give standard output only
    side_sink side;           ///< may be empty
};

/// `inner` seen through a filter; writing goes straight through. Reading reports errc::bad_message for a
/// stream that breaks its framing or ends in the middle of a frame, after what was whole.
[[nodiscard]] net::stream_ptr filtered(net::stream_ptr inner, stream_filter filter);

} // namespace sandboxd::docker
