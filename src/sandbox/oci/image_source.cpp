#include "sandbox/oci/image_source.hpp"

#include "core/log.hpp"
#include "launcher/image_reference.hpp"
#include "sandbox/oci/image_build.hpp"
#include "sandbox/oci/registry_auth.hpp"

#include <algorithm>
#include <set>

namespace sandboxd::sandboxes::oci {

namespace {

using kind = launcher::image_reference::kind;

error as_start_failure(error from) {
    if (from.code != errc::unavailable) {
        from.code = errc::start_failed;
    }
    return from;
}

/// As the launcher knows it: what was fetched by its full name.
std::string known_name(const std::string& reference) {
    const auto parsed = launcher::parse_image_reference(reference);
    return parsed && parsed->what == kind::registry ? parsed->full() : reference;
}

class oci_image_source final : public images::image_source {
public:
    explicit oci_image_source(image_source_options options) : with_(std::move(options)) {}

    task<result<bool>> present(std::string reference) override {
        launcher::import_image ask;
        ask.reference = std::move(reference);
        ask.fetch = false;
        const auto found = co_await with_.launcher->import(std::move(ask), {}, launcher::import_deadline);
        if (found) {
            co_return true;
        }
        if (found.error().code == errc::not_found) {
            co_return false;
        }
        co_return as_start_failure(found.error());
    }

    task<result<void>> pull(std::string reference, images::progress_sink tell) override {
        auto found = co_await fetch(std::move(reference), std::move(tell));
        co_return found ? result<void>() : result<void>(found.error());
    }

    task<result<void>> build(images::recipe what, images::progress_sink tell) override {
        const auto steps = std::make_shared<images::build_steps>(what, std::move(tell));
        steps->begin(1);
        auto base = co_await fetch(what.from.base_image.value_or(""),
                                   [steps](images::progress news) { steps->say(std::move(news.text)); });
        if (!base) {
            co_return error{base.error().code, "the build of the image " + what.tag +
                                                   " failed: its base image: " + base.error().message};
        }
        co_return co_await build_image(with_, std::move(what), std::move(*base), steps);
    }

    task<void> prune(std::string runtime, std::vector<std::string> kept) override {
        co_await forget(std::move(kept),
                        [runtime](const std::string& name) { return images::is_image_of(name, runtime); });
    }

    task<void> sweep(std::vector<std::string> kept) override {
        co_await forget(std::move(kept), [](const std::string&) { return true; });
    }

private:
    /// The image, made ready from wherever it is.
    task<result<launcher::image_info>> fetch(std::string reference, images::progress_sink tell) {
        const auto parsed = launcher::parse_image_reference(reference);
        if (!parsed) {
            co_return parsed.error();
        }
        launcher::import_image ask;
        ask.reference = std::move(reference);
        if (parsed->what == kind::registry) {
            auto auth = co_await registry_auth(parsed->host(), with_.auth_files, with_.disk);
            if (!auth) {
                co_return as_start_failure(auth.error());
            }
            ask.auth = std::move(*auth);
        }
        launcher::progress_line line = [tell](const std::string& text) { tell({text, 0, 0, false}); };
        auto found =
            co_await with_.launcher->import(std::move(ask), std::move(line), launcher::import_deadline);
        if (!found) {
            co_return as_start_failure(found.error());
        }
        co_return found;
    }

    template <class Chosen>
    task<void> forget(std::vector<std::string> kept, Chosen chosen) {
        auto names = co_await with_.launcher->images();
        if (!names) {
            co_return;
        }
        std::set<std::string> stay;
        for (const auto& one : kept) {
            stay.insert(known_name(one));
            stay.insert(one);
        }
        std::erase_if(*names,
                      [&](const std::string& name) { return stay.count(name) != 0 || !chosen(name); });
        const auto done = co_await with_.launcher->forget(std::move(*names));
        if (!done) {
            core::log::debug("images were not removed: {}", done.error().message);
        }
    }

    image_source_options with_;
};

} // namespace

std::shared_ptr<images::image_source> create_image_source(image_source_options options) {
    return std::make_shared<oci_image_source>(std::move(options));
}

task<void> remove_cut_off_builds(std::shared_ptr<launcher::client> launcher) {
    const auto slots = co_await launcher->list();
    if (!slots) {
        co_return;
    }
    for (const auto& slot : *slots) {
        if (!slot.starts_with(build_slot_prefix)) {
            continue;
        }
        if (const auto done = co_await launcher->remove(slot); !done) {
            core::log::warning("a build that was cut off is not removed: {}", done.error().message);
        }
    }
}

} // namespace sandboxd::sandboxes::oci
