#pragma once

#include "sandboxd/client.hpp"

#include <string>

namespace sandboxd::client {

[[nodiscard]] inline failure failed(fault kind, std::string message, std::optional<int> status = {}) {
    failure made;
    made.kind = kind;
    made.message = std::move(message);
    made.status = status;
    return made;
}

} // namespace sandboxd::client
