#include "sandbox/oci/builder.hpp"

#include "core/log.hpp"
#include "core/random.hpp"
#include "core/turns.hpp"
#include "launcher/cgroups.hpp"
#include "launcher/image_reference.hpp"
#include "sandbox/oci/host.hpp"
#include "sandbox/oci/image_source.hpp"

#include <algorithm>
#include <mutex>

namespace sandboxd::sandboxes::oci {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t slot_bytes = 12;
constexpr std::size_t longest_hostname = 63;

/// A session's id as a host name: what it may not hold becomes '-'.
std::string hostname_of(const std::string& session_id) {
    auto name = session_id.substr(0, longest_hostname);
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    };
    std::replace_if(name.begin(), name.end(), [&](char c) { return !plain(c); }, '-');
    const auto first = name.find_first_not_of('-');
    return first == std::string::npos ? "sandbox" : name.substr(first);
}

launcher::start_sandbox to_request(const sandbox_spec& spec, const slot_record& slot, std::string image,
                                   const std::optional<std::uint32_t>& workspace_uid) {
    launcher::start_sandbox request;
    request.slot = slot.slot;
    request.hostname = hostname_of(spec.session_id);
    request.image = std::move(image);
    request.runtime = spec.oci_runtime.value_or(request.runtime);
    request.limits = spec.limits;
    request.work_dir = spec.work_dir;
    request.workspace_dir = spec.workspace_dir;
    request.uid = spec.uid;
    request.workspace_uid = spec.uid ? spec.uid : workspace_uid;
    request.env = spec.env;
    request.keep = spec.keep;
    request.network = spec.network_mode == "bridge";
    return request;
}

class oci_builder final : public sandbox_builder {
public:
    oci_builder(builder_options options, std::vector<std::string> notes)
        : options_(std::move(options)), notes_(std::move(notes)), cgroups_(launcher::read_cgroup_layout()) {}

    std::string_view name() const noexcept override { return "oci"; }
    std::vector<std::string> notes() const override { return notes_; }

    task<result<slot_record>> prepare(const sandbox_spec& spec) override {
        if (auto ok = check_spec(spec); !ok) {
            co_return ok.error();
        }
        const auto slot = core::random_hex(slot_bytes);
        co_return slot_record{slot, "oci", slot};
    }

    task<result<std::shared_ptr<sandbox>>> build(sandbox_spec spec, slot_record slot) override {
        if (auto ok = check_spec(spec); !ok) {
            co_return ok.error();
        }
        auto live = co_await start(spec, slot);
        if (!live && live.error().code == errc::gone && spec.keep == keeping::kept) {
            co_return live.error();
        }
        if (!live) {
            co_return as_start_failure(live.error());
        }
        core::log::debug("sandbox {}: set up in {} us, runtime {} us", slot.slot, live->facts.setup_us,
                         live->facts.runtime_us);
        auto host = host_of(slot.slot, std::move(*live));
        auto made = co_await options_.factory(host, false);
        if (!made) {
            co_await host->terminate(0ms, spec.keep == keeping::nothing);
            co_return as_start_failure(made.error());
        }
        co_return made;
    }

    task<result<std::shared_ptr<sandbox>>> adopt(slot_record slot) override {
        if (!launcher::is_slot_name(slot.slot)) {
            co_return error{errc::gone, "the record names no slot of this backend"};
        }
        auto live = co_await options_.launcher->attach(slot.slot);
        if (!live) {
            co_return live.error();
        }
        auto host = host_of(slot.slot, std::move(*live));
        co_return co_await options_.factory(host, true);
    }

    task<result<void>> remove(slot_record slot) override {
        if (!launcher::is_slot_name(slot.slot)) {
            co_return result<void>();
        }
        co_return co_await options_.launcher->remove(slot.slot);
    }

    task<result<std::vector<slot_record>>> owned() override {
        auto slots = co_await options_.launcher->list();
        if (!slots) {
            co_return slots.error();
        }
        std::vector<slot_record> records;
        for (auto& slot : *slots) {
            if (!slot.starts_with(build_slot_prefix)) {
                records.push_back({slot, "oci", slot});
            }
        }
        co_return records;
    }

private:
    /// A kept layer stands on its own image, whatever its name means by now and whether there is one: only
    /// where there is no layer yet an image is looked for.
    task<result<launcher::live_sandbox>> start(const sandbox_spec& spec, const slot_record& slot) {
        result<launcher::live_sandbox> live = error{errc::not_found, ""};
        if (spec.keep != keeping::nothing) {
            live = co_await launch(spec, slot, std::string());
        }
        // Twice: an image that nothing used yet may be removed between the two steps.
        for (const bool again : {false, true}) {
            if (live || live.error().code != errc::not_found) {
                break;
            }
            auto image = co_await find_image(spec.image, again);
            if (!image) {
                co_return as_start_failure(image.error());
            }
            live = co_await launch(spec, slot, std::move(*image));
        }
        co_return live;
    }

    task<result<launcher::live_sandbox>> launch(const sandbox_spec& spec, const slot_record& slot,
                                                std::string image) {
        auto request = to_request(spec, slot, std::move(image), options_.workspace_uid);
        co_return co_await options_.launcher->start(std::move(request), options_.start_deadline);
    }

    static error as_start_failure(error from) {
        if (from.code != errc::unavailable && from.code != errc::capacity) {
            from.code = errc::start_failed;
        }
        return from;
    }

    /// The key of an image. Archives and layouts may change under their name: they are looked at every time,
    /// which is quick once they are unpacked. `again`: one that was built a moment ago will do.
    task<result<std::string>> find_image(std::string name, bool again) {
        using kind = launcher::image_reference::kind;
        const auto reference = launcher::parse_image_reference(name);
        if (reference && reference->what == kind::directory) {
            co_return "dir:" + reference->path;
        }
        if (reference && reference->what == kind::host) {
            co_return co_await find_host_image(std::move(name));
        }
        const auto& keeper = options_.images;
        const bool builds = keeper && !again && keeper->always_builds(name);
        auto found = builds ? result<std::string>(error{errc::not_found, ""})
                            : co_await import(name, keeper == nullptr);
        if (keeper && !found && found.error().code == errc::not_found) {
            if (auto made = co_await keeper->ready(name); !made) {
                co_return made.error();
            }
            found = co_await import(name, false);
        }
        co_return found;
    }

    task<result<std::string>> import(std::string name, bool fetch) {
        launcher::import_image request;
        request.reference = std::move(name);
        request.fetch = fetch;
        auto found = co_await options_.launcher->import(std::move(request), {}, launcher::import_deadline);
        co_return found ? result<std::string>(std::move(found->key)) : result<std::string>(found.error());
    }

    /// Copying the host's /etc takes long enough that the first of those who ask at once does it for all.
    task<result<std::string>> find_host_image(std::string name) {
        if (auto known = host_image(); !known.empty()) {
            co_return known;
        }
        const auto mine = co_await host_image_turns_.take();
        if (auto known = host_image(); !known.empty()) {
            co_return known;
        }
        auto key = co_await import(std::move(name), true);
        if (key) {
            const std::lock_guard lock(mutex_);
            host_image_ = *key;
        }
        co_return key;
    }

    std::string host_image() {
        const std::lock_guard lock(mutex_);
        return host_image_;
    }

    std::shared_ptr<sandbox_host> host_of(const std::string& slot, launcher::live_sandbox live) {
        return create_host(options_.executor, options_.launcher, slot,
                           launcher::cgroup_path(options_.service_uuid, slot), cgroups_, std::move(live));
    }

    builder_options options_;
    std::vector<std::string> notes_;
    launcher::cgroup_layout cgroups_;
    std::mutex mutex_;
    std::string host_image_;
    core::turns host_image_turns_;
};

} // namespace

task<result<std::shared_ptr<sandbox_builder>>> create_builder(builder_options options) {
    auto features = co_await options.launcher->probe();
    if (!features) {
        co_return features.error();
    }
    if (features->fatal) {
        co_return error{errc::start_failed, *features->fatal};
    }
    co_await remove_cut_off_builds(options.launcher);
    std::shared_ptr<sandbox_builder> made =
        std::make_shared<oci_builder>(std::move(options), std::move(features->notes));
    co_return made;
}

} // namespace sandboxd::sandboxes::oci
