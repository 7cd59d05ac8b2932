#pragma once

#include "docker/registry_auth.hpp"
#include "sandboxd/sandbox.hpp"

namespace sandboxd::docker {

/// The X-Registry-Auth header for a registry, from `config.json` in `folder` and the helper programs it names
/// (`docker-credential-X get`, at most 30 s and 64 KiB). "" for an anonymous pull.
[[nodiscard]] task<result<std::string>> registry_header(std::string folder, std::string registry,
                                                        file_reader files);

} // namespace sandboxd::docker
