#include "sandbox/docker/image_source.hpp"

#include "core/log.hpp"
#include "docker/image_ref.hpp"
#include "docker/program.hpp"
#include "images/build_steps.hpp"
#include "sandbox/docker/build_output.hpp"
#include "sandbox/docker/pull_progress.hpp"

#include <algorithm>
#include <cstdlib>

namespace sandboxd::sandboxes::docker_backend {

namespace {

using namespace std::chrono_literals;
using std::string;

constexpr auto look_limit = 10s;
constexpr auto remove_limit = 60s;
constexpr auto probe_limit = 10s;
constexpr auto no_limit = std::chrono::hours(24); // whoever asks has a deadline of his own

error as_failure(const docker::engine_error& why) {
    return {why.code == errc::unavailable && why.status == 0 ? errc::unavailable : errc::start_failed,
            why.message};
}

class docker_images final : public images::image_source {
public:
    explicit docker_images(image_source_options options) : with_(std::move(options)) {}

    task<result<bool>> present(string reference) override {
        const auto found = co_await with_.engine->inspect_image(std::move(reference), look_limit);
        if (!found && found.error().status != 404) {
            co_return as_failure(found.error());
        }
        co_return found.has_value();
    }

    task<result<void>> pull(string reference, images::progress_sink tell) override {
        const auto count = std::make_shared<pull_count>(std::move(tell));
        auto done = co_await with_.engine->pull(
            std::move(reference), "", [count](const docker::pull_progress& step) { count->add(step); },
            no_limit);
        if (!done) {
            co_return error{errc::start_failed, done.error().message};
        }
        co_return result<void>();
    }

    task<result<void>> build(images::recipe what, images::progress_sink tell) override {
        const string base = *what.from.base_image;
        if (!docker::parse_image(base)) {
            co_return error{errc::start_failed, "the image of runtime '" + what.from.name +
                                                    "' can't be built: its base_image '" + base +
                                                    "' is no image of a registry"};
        }
        co_return with_.buildkit ? co_await build_with_buildx(std::move(what), std::move(tell))
                                 : co_await build_classic(std::move(what), std::move(tell));
    }

    task<void> prune(string runtime, std::vector<string> kept) override;

private:
    [[nodiscard]] task<result<void>> build_classic(images::recipe what, images::progress_sink tell);
    [[nodiscard]] task<result<void>> build_with_buildx(images::recipe what, images::progress_sink tell);

    image_source_options with_;
};

error build_failed(const string& tag, const string& words, const build_output& said) {
    const auto lines = said.last_lines();
    return {errc::start_failed,
            "Building " + tag + " failed: " + words + (lines.empty() ? "" : "\n" + lines)};
}

/// From what a builder says to the steps of the recipe.
images::progress_sink counted(std::shared_ptr<images::build_steps> steps, images::builder by) {
    return [steps = std::move(steps), by](const images::progress& told) { steps->begin_as(by, told); };
}

task<result<void>> docker_images::build_classic(images::recipe what, images::progress_sink tell) {
    const string base = *what.from.base_image;
    const auto steps = std::make_shared<images::build_steps>(what, std::move(tell));
    steps->begin(1);
    if (base != "scratch") {
        // By ourselves: with credentials and progress, which the daemon's own pull within a build has not.
        const auto here = co_await present(base);
        if (!here) {
            co_return here.error();
        }
        if (!*here) {
            core::log::info("pulling {}, the base of {}", base, what.tag);
            auto details = [steps](images::progress news) { steps->say(std::move(news.text)); };
            if (auto pulled = co_await pull(base, std::move(details)); !pulled) {
                co_return pulled;
            }
        }
    }
    docker::build_request asked;
    asked.tag = what.tag;
    asked.dockerfile = images::dockerfile(what, images::builder::classic);
    asked.arguments = with_.build_arguments;
    const auto said = std::make_shared<build_output>(counted(steps, images::builder::classic));
    auto done = co_await with_.engine->build(
        std::move(asked), [said](const string& line) { said->add(line); }, no_limit);
    if (!done) {
        co_return build_failed(what.tag, done.error().message, *said);
    }
    co_return result<void>();
}

task<result<void>> docker_images::build_with_buildx(images::recipe what, images::progress_sink tell) {
    std::vector<string> argv{"docker", "buildx", "build", "--load", "--progress", "plain", "--tag", what.tag};
    for (const auto& [name, value] : with_.build_arguments) {
        if (std::getenv(name.c_str()) != nullptr) {
            argv.insert(argv.end(),
                        {"--build-arg", name}); // with its value from the environment: not for all to see
        }
    }
    argv.emplace_back("-"); // the Dockerfile is the input, and there is nothing else in the context
    const auto steps = std::make_shared<images::build_steps>(what, std::move(tell));
    steps->begin(1);
    const auto said = std::make_shared<build_output>(counted(steps, images::builder::buildkit));
    auto done = co_await docker::run_program(
        std::move(argv), images::dockerfile(what, images::builder::buildkit),
        [said](const string& line) { said->add(line); }, no_limit);
    if (!done) {
        co_return error{errc::start_failed, "Building " + what.tag + " failed: " + done.error().message};
    }
    if (done->exit_code != 0) {
        co_return build_failed(what.tag, "docker buildx ended with " + std::to_string(done->exit_code),
                               *said);
    }
    co_return result<void>();
}

task<void> docker_images::prune(string runtime, std::vector<string> kept) {
    const auto listed = co_await with_.engine->list_images({{"reference", images::repository}}, look_limit);
    if (!listed) {
        co_return;
    }
    for (const auto& image : *listed) {
        for (const auto& tag : image.tags) {
            if (!images::is_image_of(tag, runtime) ||
                std::find(kept.begin(), kept.end(), tag) != kept.end()) {
                continue;
            }
            // Not by force: one that a container uses stays.
            if (const auto removed = co_await with_.engine->remove_image(tag, false, remove_limit)) {
                core::log::info("removed image {}: runtime {} has a newer one", tag, runtime);
            }
        }
    }
}

} // namespace

std::shared_ptr<images::image_source> create_image_source(image_source_options options) {
    return std::make_shared<docker_images>(std::move(options));
}

task<bool> has_buildkit() {
    const auto ended = co_await docker::run_program({"docker", "buildx", "version"}, "", {}, probe_limit);
    co_return ended && ended->exit_code == 0;
}

} // namespace sandboxd::sandboxes::docker_backend
