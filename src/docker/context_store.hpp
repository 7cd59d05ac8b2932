#pragma once

#include "docker/endpoint.hpp"

namespace sandboxd::docker {

/// The endpoint of a named context of the `docker` command: `contexts/meta/<sha256 of the name>/meta.json`
/// and `contexts/tls/<the same>/docker/*.pem` below `folder`. errc::invalid when there is none of that name.
[[nodiscard]] result<endpoint> read_context(const std::string& folder, const std::string& name,
                                            const file_reader& files);

/// `currentContext` of the folder's `config.json`; "" when unset. errc::invalid when the file is no JSON.
[[nodiscard]] result<std::string> current_context(const std::string& folder, const file_reader& files);

/// `ca.pem`, `cert.pem` and `key.pem` of a folder; missing ones stay empty, half a pair is errc::invalid.
[[nodiscard]] result<tls_material> read_tls(const std::string& folder, const file_reader& files);

} // namespace sandboxd::docker
