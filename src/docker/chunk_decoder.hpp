#pragma once

#include "docker/error.hpp"

#include <cstdint>

namespace sandboxd::docker {

/// Undoes chunked transfer coding of a hijacked stream (a proxy's doing: hard-cases B7 06). Extensions and
/// trailers are dropped. No I/O.
class chunk_decoder {
public:
    /// Appends the decoded bytes to `out`. errc::protocol for bad framing.
    [[nodiscard]] answer<void> feed(std::string_view bytes, std::string& out);

    /// The last chunk and its trailer have been read; what follows is ignored.
    [[nodiscard]] bool done() const noexcept { return state_ == state::done; }

    /// At end-of-file: errc::protocol when the last chunk is missing.
    [[nodiscard]] answer<void> finish() const;

private:
    enum class state : std::uint8_t { size, data, data_end, trailer, done };

    [[nodiscard]] answer<void> take_line(char c);
    [[nodiscard]] answer<void> take_size();

    state state_ = state::size;
    std::string line_;
    std::uint64_t left_ = 0;
};

} // namespace sandboxd::docker
