#include "sandbox/docker/images.hpp"

namespace sandboxd::sandboxes::docker_backend {

namespace {
constexpr std::chrono::seconds inspect_limit{10};
} // namespace

task<result<docker::image_details>> find_image(std::shared_ptr<docker::engine> engine,
                                               std::shared_ptr<images::keeper> keeper,
                                               std::string reference) {
    const bool anew = keeper->always_builds(reference);
    auto found = co_await engine->inspect_image(reference, inspect_limit);
    if (anew || (!found && found.error().status == 404)) {
        const auto made = co_await keeper->ready(reference);
        if (!made) {
            co_return error{errc::start_failed, made.error().message};
        }
        found = co_await engine->inspect_image(reference, inspect_limit);
    }
    if (!found) {
        co_return error{errc::start_failed, found.error().message};
    }
    if (!found->os.empty() && found->os != "linux") {
        co_return error{errc::start_failed,
                        "image " + reference + " is for " + found->os + ": sandboxes are Linux only"};
    }
    co_return std::move(*found);
}

} // namespace sandboxd::sandboxes::docker_backend
