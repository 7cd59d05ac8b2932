#pragma once

#include <string>

namespace sandboxd::test {

struct pem_pair {
    std::string certificate;
    std::string key;
};

/// A self-signed certificate, good for an hour, that is its own authority and stands for `name` ("localhost")
/// as server and client.
[[nodiscard]] pem_pair self_signed(const std::string& name);

} // namespace sandboxd::test
