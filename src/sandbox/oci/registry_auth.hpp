#pragma once

#include "docker/endpoint.hpp"
#include "sandboxd/sandbox.hpp"

#include <string>
#include <vector>

namespace sandboxd::sandboxes::oci {

/// Where credentials for registries may be, in the order in which they are asked: `$REGISTRY_AUTH_FILE`,
/// `$XDG_RUNTIME_DIR/containers/auth.json` (`/run/containers/<uid>` where that is unset),
/// `~/.config/containers/auth.json`, and the `docker` command's `config.json`.
[[nodiscard]] std::vector<std::string> auth_files(const docker::environment& variables, unsigned uid);

/// An auth.json with nothing in it but the credentials for one registry, from the first of the files (or the
/// helper program that it names) that has some; "" for an anonymous pull. errc::invalid, naming the file,
/// where one is no JSON.
[[nodiscard]] task<result<std::string>> registry_auth(std::string host, std::vector<std::string> files,
                                                      docker::file_reader disk);

/// The text of that auth.json, from the header that an engine would get (docker::registry_header()).
[[nodiscard]] std::string auth_json(const std::string& host, const std::string& header);

} // namespace sandboxd::sandboxes::oci
