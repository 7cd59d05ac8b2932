#pragma once

#include "net/stream.hpp"

#include <atomic>
#include <memory>

namespace sandboxd::sandboxes::docker_backend {

/// `inner`, telling by `heard` whether anything was ever read from it.
[[nodiscard]] net::stream_ptr heard_stream(net::stream_ptr inner, std::shared_ptr<std::atomic<bool>> heard);

} // namespace sandboxd::sandboxes::docker_backend
