#pragma once

#include <string>

namespace sandboxd::test {

/// The message of a failed result, for assertions; "" for a good one.
template <class R>
std::string words(const R& from) {
    return from.has_error() ? from.error().message : std::string();
}

} // namespace sandboxd::test
