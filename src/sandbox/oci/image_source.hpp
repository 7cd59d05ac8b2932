#pragma once

#include "core/gate.hpp"
#include "docker/endpoint.hpp"
#include "images/source.hpp"
#include "launcher/client.hpp"
#include "sandbox/sandbox_host.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::sandboxes::oci {

struct image_source_options {
    std::string service_uuid;
    boost::asio::any_io_executor executor;
    core::gate* background = nullptr; ///< counts what clears up after a build that was cut off
    std::shared_ptr<launcher::client> launcher;
    agent_sandbox_factory factory; ///< of the sandboxes in which images are built
    std::vector<std::pair<std::string, std::string>> build_environment; ///< proxy settings
    std::vector<std::string> auth_files;                                ///< auth_files()
    docker::file_reader disk = docker::disk_files();
};

/// The images of this host: fetched and unpacked by the launcher, built in sandboxes of their own whose layer
/// becomes the image (design.md, "The oci backend").
[[nodiscard]] std::shared_ptr<images::image_source> create_image_source(image_source_options options);

/// Removes what is left of builds whose process was killed. Before the first build in this state directory.
[[nodiscard]] task<void> remove_cut_off_builds(std::shared_ptr<launcher::client> launcher);

/// Slots that hold a build begin so.
inline constexpr std::string_view build_slot_prefix = "build-";

} // namespace sandboxd::sandboxes::oci
