#include "sandbox/oci/builder.hpp"

#include "core/event.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
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
        auto image = co_await find_image(spec.image);
        if (!image && spec.keep == keeping::kept) {
            image = std::string(); // the kept layer says itself what it stands on
        }
        if (!image) {
            co_return as_start_failure(image.error());
        }
        auto request = to_request(spec, slot, std::move(*image), options_.workspace_uid);
        auto live = co_await options_.launcher->start(std::move(request), options_.start_deadline);
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
    static error as_start_failure(error from) {
        if (from.code != errc::unavailable && from.code != errc::capacity) {
            from.code = errc::start_failed;
        }
        return from;
    }

    /// The key of an image. Archives and layouts may change under their name: they are looked at every time,
    /// which is quick once they are unpacked.
    task<result<std::string>> find_image(std::string name) {
        using kind = launcher::image_reference::kind;
        const auto reference = launcher::parse_image_reference(name);
        if (reference && reference->what == kind::directory) {
            co_return "dir:" + reference->path;
        }
        if (reference && reference->what == kind::host) {
            co_return co_await find_host_image(std::move(name));
        }
        const auto& keeper = options_.images;
        auto found = keeper && keeper->always_builds(name) ? result<std::string>(error{errc::not_found, ""})
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
        std::shared_ptr<core::shared_event> made;
        while (!made) {
            std::shared_ptr<core::shared_event> others;
            {
                const std::lock_guard lock(mutex_);
                if (!host_image_.empty()) {
                    co_return host_image_;
                }
                others = host_image_made_;
                if (!others) {
                    made = host_image_made_ = std::make_shared<core::shared_event>();
                }
            }
            if (others) {
                co_await others->wait();
            }
        }
        const turn mine{*this, made};
        auto key = co_await import(std::move(name), true);
        if (key) {
            const std::lock_guard lock(mutex_);
            host_image_ = *key;
        }
        co_return key;
    }

    /// Lets the next one try, whatever becomes of this one.
    struct turn {
        oci_builder& of;
        std::shared_ptr<core::shared_event> made;

        ~turn() {
            {
                const std::lock_guard lock(of.mutex_);
                of.host_image_made_.reset();
            }
            made->set();
        }
    };

    std::shared_ptr<sandbox_host> host_of(const std::string& slot, launcher::live_sandbox live) {
        return create_host(options_.executor, options_.launcher, slot,
                           launcher::cgroup_path(options_.service_uuid, slot), cgroups_, std::move(live));
    }

    builder_options options_;
    std::vector<std::string> notes_;
    launcher::cgroup_layout cgroups_;
    std::mutex mutex_;
    std::string host_image_;
    std::shared_ptr<core::shared_event> host_image_made_; ///< while somebody makes it
};

} // namespace

namespace {

/// Builds that a crash has cut off. None of this service's own can run yet.
task<void> remove_builds(std::shared_ptr<launcher::client> launcher) {
    const auto slots = co_await launcher->list();
    if (!slots) {
        co_return;
    }
    for (const auto& slot : *slots) {
        if (slot.starts_with(build_slot_prefix)) {
            static_cast<void>(co_await launcher->remove(slot));
        }
    }
}

} // namespace

task<result<std::shared_ptr<sandbox_builder>>> create_builder(builder_options options) {
    auto features = co_await options.launcher->probe();
    if (!features) {
        co_return features.error();
    }
    if (features->fatal) {
        co_return error{errc::start_failed, *features->fatal};
    }
    co_await remove_builds(options.launcher);
    std::shared_ptr<sandbox_builder> made =
        std::make_shared<oci_builder>(std::move(options), std::move(features->notes));
    co_return made;
}

} // namespace sandboxd::sandboxes::oci
