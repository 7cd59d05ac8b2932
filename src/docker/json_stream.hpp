#pragma once

#include "docker/error.hpp"
#include "docker/json.hpp"

#include <boost/json/stream_parser.hpp>

#include <functional>

namespace sandboxd::docker {

/// Cuts a byte stream into JSON objects, however they are spread over reads and whatever blanks stand between
/// them (engine-facts A10, A11). No I/O.
class json_stream {
public:
    /// One object may be at most `largest` bytes long.
    explicit json_stream(std::size_t largest = 1U << 20U);

    using sink = std::function<void(json::object)>;

    /// Hands every object that ends in `bytes` to `each`. errc::protocol for bytes that are no JSON object
    /// and for one that is too long; the reader is of no use after that.
    [[nodiscard]] answer<void> feed(std::string_view bytes, const sink& each);

    /// At end-of-file: errc::protocol when an object was cut.
    [[nodiscard]] answer<void> finish() const;

private:
    json::stream_parser parser_;
    std::size_t largest_;
    std::size_t size_ = 0; ///< bytes of the object under way; 0 between objects
};

} // namespace sandboxd::docker
