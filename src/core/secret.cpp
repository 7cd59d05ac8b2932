#include "core/secret.hpp"

#include <cstddef>

namespace sandboxd::core {

bool equal_secret(std::string_view a, std::string_view b) noexcept {
    // The loop always runs over b, whatever a is, so that a wrong length takes no less time.
    unsigned char difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < b.size(); ++i) {
        const auto left = static_cast<unsigned char>(i < a.size() ? a[i] : 0);
        difference = static_cast<unsigned char>(difference | (left ^ static_cast<unsigned char>(b[i])));
    }
    volatile unsigned char answer = difference;
    return answer == 0;
}

} // namespace sandboxd::core
