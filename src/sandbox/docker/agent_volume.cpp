#include "sandbox/docker/agent_volume.hpp"

#include "core/log.hpp"
#include "core/random.hpp"
#include "docker/tar.hpp"

#include <openssl/evp.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>

namespace sandboxd::sandboxes::docker_backend {

namespace {

using namespace std::chrono_literals;

constexpr auto call_limit = 30s;
constexpr const char* native_architecture =
#if defined(__aarch64__)
    "arm64";
#else
    "amd64";
#endif
constexpr const char* proof_mount = "/.sandboxd/proof";
constexpr std::size_t slot_bytes = 12;

std::string short_digest(const std::string& content) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_Digest(content.data(), content.size(), digest.data(), &size, EVP_sha256(), nullptr);
    return core::to_hex({digest.data(), 6});
}

error as_start_failure(const docker::engine_error& from) {
    return {errc::start_failed, from.message};
}

std::string file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

docker::container_spec helper(const docker::image_details& image, const std::string& service_uuid) {
    docker::container_spec made;
    made.image = image.id;
    made.entrypoint = std::vector<std::string>{"/never-run"};
    made.command.emplace();
    made.labels = {{docker::label_service, service_uuid},
                   {docker::label_slot, "helper-" + core::random_hex(slot_bytes)}};
    made.network_mode = "none";
    made.healthcheck = false;
    made.log_driver = "none";
    return made;
}

docker::mount mounted(docker::mount::kind type, std::string source, std::string destination) {
    docker::mount made;
    made.type = type;
    made.source = std::move(source);
    made.destination = std::move(destination);
    return made;
}

} // namespace

result<std::shared_ptr<const agent_volume::agent_file>>
agent_volume::file_for(const std::string& architecture) {
    const std::lock_guard lock(mutex_);
    auto& known = files_[architecture];
    if (known) {
        return known;
    }
    const auto path = architecture == native_architecture || architecture.empty()
                          ? options_.program
                          : options_.program + "-" + architecture;
    auto content = file_text(path); // a megabyte, once
    if (content.empty()) {
        return error{errc::start_failed, "there is no agent for images of architecture '" + architecture +
                                             "': " + path + " is missing"};
    }
    agent_file made;
    made.volume = "sandboxd-agent-" + (architecture.empty() ? native_architecture : architecture) + "-" +
                  short_digest(content);
    made.content = std::move(content);
    known = std::make_shared<const agent_file>(std::move(made));
    return known;
}

task<result<std::string>> agent_volume::find(docker::image_details image) {
    auto file = file_for(image.architecture);
    if (!file) {
        co_return file.error();
    }
    const auto& volume = (*file)->volume;
    const auto is_known = [&] {
        const std::lock_guard lock(mutex_);
        return known_.contains(volume);
    };
    if (is_known()) {
        co_return volume;
    }
    const auto mine = co_await turns_->take("find");
    if (is_known()) {
        co_return volume;
    }
    const auto there = co_await options_.engine->inspect_volume(volume, call_limit);
    if (!there && there.error().status != 404) {
        co_return as_start_failure(there.error());
    }
    const bool prove = !options_.proof_directory.empty() && !proven_;
    if (!there || prove) {
        if (auto helped = co_await help(image, *file, !there, prove); !helped) {
            co_return helped.error();
        }
    }
    const std::lock_guard lock(mutex_);
    known_[volume] = true;
    co_return volume;
}

task<result<void>> agent_volume::refill(docker::image_details image, unsigned seen) {
    auto file = file_for(image.architecture);
    if (!file) {
        co_return file.error();
    }
    const auto mine = co_await turns_->take("find");
    if (filled_ != seen) {
        co_return result<void>();
    }
    core::log::warning("the agent's volume {} was empty: filling it again", (*file)->volume);
    co_return co_await help(image, *file, true, false);
}

task<result<void>> agent_volume::copy_into(std::string container, std::string image) {
    const auto found = co_await options_.engine->inspect_image(std::move(image), call_limit);
    // An image that was removed since leaves the usual architecture.
    auto file = file_for(found ? found->architecture : std::string());
    if (!file) {
        co_return file.error();
    }
    docker::tar_file program;
    program.name = std::string(agent_program).substr(1);
    program.content = (*file)->content;
    program.mode = 0755;
    const auto put = co_await options_.engine->put_archive(std::move(container), "/",
                                                           docker::make_tar({program}), call_limit);
    if (!put) {
        co_return as_start_failure(put.error());
    }
    co_return result<void>();
}

/// A container that is created and never started, from whatever image is at hand.
task<result<void>> agent_volume::help(docker::image_details image, std::shared_ptr<const agent_file> file,
                                      bool fill, bool prove) {
    auto spec = helper(image, options_.service_uuid);
    spec.mounts.push_back(mounted(docker::mount::kind::volume, file->volume, agent_mount));
    if (prove) {
        ::mkdir(options_.proof_directory.c_str(), 0700);
        spec.mounts.push_back(mounted(docker::mount::kind::bind, options_.proof_directory, proof_mount));
    }
    if (fill) {
        docker::text_pairs labels{{"sandboxd.agent", "1"}};
        const auto made =
            co_await options_.engine->create_volume(file->volume, std::move(labels), call_limit);
        if (!made) {
            co_return as_start_failure(made.error());
        }
    }
    auto created = co_await options_.engine->create(spec, call_limit);
    if (!created && prove && created.error().status >= 400) {
        // The directory is not there where the daemon looks: it runs elsewhere.
        prove = false;
        proven_ = true;
        spec.mounts.pop_back();
        created = co_await options_.engine->create(spec, call_limit);
    }
    if (!created) {
        co_return as_start_failure(created.error());
    }
    auto helped = co_await help_with(created->id, file, fill, prove);
    const auto removed = co_await options_.engine->remove(created->id, true, call_limit);
    if (!removed) {
        core::log::warning("a helper container was not removed: {}", removed.error().message);
    }
    co_return helped;
}

task<result<void>> agent_volume::help_with(std::string container, std::shared_ptr<const agent_file> file,
                                           bool fill, bool prove) {
    if (fill) {
        docker::tar_file program;
        program.name = "sandboxd-agent";
        program.content = file->content;
        program.mode = 0755;
        const auto put = co_await options_.engine->put_archive(container, agent_mount,
                                                               docker::make_tar({program}), call_limit);
        if (!put) {
            co_return as_start_failure(put.error());
        }
        ++filled_;
        core::log::info("the agent is in docker volume {}", file->volume);
    }
    if (prove) {
        docker::tar_file mark;
        mark.name = "mark";
        mark.content = core::random_hex(slot_bytes);
        mark.mode = 0644;
        const auto put = co_await options_.engine->put_archive(container, proof_mount,
                                                               docker::make_tar({mark}), call_limit);
        const auto seen = options_.proof_directory + "/mark";
        local_ = put && file_text(seen) == mark.content;
        proven_ = true;
        ::unlink(seen.c_str());
        ::rmdir(options_.proof_directory.c_str());
        core::log::info("the docker daemon is {}", local_ ? "on this host: agents dial a socket of ours"
                                                          : "not on this host: agents are attached to");
    }
    co_return result<void>();
}

} // namespace sandboxd::sandboxes::docker_backend
