#include "sandbox/oci/image_build.hpp"

#include "core/log.hpp"
#include "core/random.hpp"
#include "core/spawn.hpp"
#include "launcher/cgroups.hpp"
#include "sandbox/oci/host.hpp"

#include <algorithm>

namespace sandboxd::sandboxes::oci {

namespace {

using namespace std::chrono_literals;
using kind = images::step::kind;

constexpr auto start_limit = 60s;
constexpr int removals = 4;        ///< tries, each of half a minute
constexpr auto step_limit = 30min; ///< the keeper's own limit of a whole build comes first
constexpr auto keep_limit = 10min;
constexpr std::size_t most_output = 64 * 1024 * 1024;
constexpr std::size_t shown_lines = 20;
constexpr std::size_t shown_bytes = 2000;
constexpr std::uint64_t most_processes = 8192;
constexpr const char* build_runtime = "runc";

/// The build may have been cut off in the middle of its start, which has the slot until it ends: together the
/// tries wait longer than that.
task<void> remove_slot(std::shared_ptr<launcher::client> launcher, std::string slot,
                       std::shared_ptr<sandbox> box) {
    if (box) {
        co_await box->stop(true);
    }
    for (int left = removals; left > 0; --left) {
        const auto done = co_await launcher->remove(slot);
        if (done) {
            co_return;
        }
        if (done.error().code != errc::timeout || left == 1) {
            core::log::error("what is left of a build, {}, is not removed before the next start: {}", slot,
                             done.error().message);
            co_return;
        }
    }
}

bool is_name(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

std::string value_in(const launcher::environment& env, const std::string& name) {
    const auto found =
        std::find_if(env.begin(), env.end(), [&](const auto& one) { return one.first == name; });
    return found == env.end() ? std::string() : found->second;
}

std::string expanded(const launcher::environment& env, std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const bool braces = text.substr(at, 2) == "${";
        const auto begin = at + (braces ? 2 : 1);
        auto end = begin;
        while (text[at] == '$' && end < text.size() && is_name(text[end], end == begin)) {
            ++end;
        }
        const bool whole = end > begin && (!braces || text.substr(end, 1) == "}");
        if (text[at] != '$' || !whole) {
            out += text[at++];
            continue;
        }
        out += value_in(env, std::string(text.substr(begin, end - begin)));
        at = end + (braces ? 1 : 0);
    }
    return out;
}

/// One build, from an empty slot to an image.
class image_builder {
public:
    image_builder(image_source_options with, images::recipe what, launcher::image_info base,
                  std::shared_ptr<images::build_steps> steps)
        : with_(std::move(with)),
          what_(std::move(what)),
          base_(std::move(base)),
          steps_(std::move(steps)),
          slot_(std::string(build_slot_prefix) + core::random_hex(12)) {}
    image_builder(const image_builder&) = delete;
    image_builder& operator=(const image_builder&) = delete;

    /// Whatever has become of it: cancelled, failed, or done (then nothing is there any more).
    ~image_builder() {
        if (!kept_) {
            core::spawn(with_.executor, "removing what is left of a build", *with_.background,
                        remove_slot(with_.launcher, slot_, std::move(box_)));
        }
    }

    task<result<void>> run() {
        auto config = launcher::decode_image_config(base_.config);
        if (!config) {
            co_return config.error();
        }
        if (base_.key.substr(0, 5) == "host-") {
            co_return failure(
                "the base image 'host' is the host's own files, which nothing can be installed in");
        }
        config_ = std::move(*config);
        launcher::add_usual_path(config_.env); // for steps that add to it
        work_dir_ = config_.work_dir.empty() ? "/" : config_.work_dir;
        if (auto begun = co_await begin(); !begun) {
            co_return begun.error();
        }
        for (std::size_t i = 0; i < what_.steps.size(); ++i) {
            steps_->begin(i + 2); // the first is FROM
            if (auto done = co_await perform(what_.steps[i]); !done) {
                co_return done.error();
            }
        }
        co_return co_await finish();
    }

private:
    error failure(const std::string& why) const {
        return {errc::start_failed, "the build of the image " + what_.tag + " failed: " + why};
    }

    task<result<void>> begin() {
        launcher::start_sandbox request;
        request.slot = slot_;
        request.hostname = "build";
        request.image = base_.key;
        request.runtime = build_runtime;
        request.limits.pids = most_processes;
        request.work_dir = work_dir_;
        request.env = with_.build_environment;
        request.keep = keeping::layer;
        request.network = true;
        request.run_entrypoint = false;
        auto live = co_await with_.launcher->start(request, start_limit);
        if (!live && live.error().code == errc::unsupported) {
            without_network_ = live.error().message;
            core::log::warning("building {} without a network: {}", what_.tag, without_network_);
            request.network = false;
            live = co_await with_.launcher->start(std::move(request), start_limit);
        }
        if (!live) {
            co_return failure(live.error().message);
        }
        auto host = create_host(with_.executor, with_.launcher, slot_,
                                launcher::cgroup_path(with_.service_uuid, slot_),
                                launcher::read_cgroup_layout(), std::move(*live));
        auto made = co_await with_.factory(host, false);
        if (!made) {
            co_await host->terminate(0ms, true);
            co_return failure(made.error().message);
        }
        box_ = std::move(*made);
        co_return result<void>();
    }

    task<result<void>> perform(const images::step& step) {
        if (step.what == kind::env) {
            apply_env(config_.env, step);
            co_return result<void>();
        }
        if (step.what == kind::work_dir) {
            work_dir_ = step.text.substr(0, 1) == "/" ? step.text : work_dir_ + "/" + step.text;
            config_.work_dir = work_dir_;
            co_return co_await make_work_dir(step);
        }
        co_return co_await call(step, in_work_dir(step.argv));
    }

    /// In the directory that the steps so far have chosen.
    std::vector<std::string> in_work_dir(const std::vector<std::string>& argv) const {
        std::vector<std::string> made{"/bin/sh", "-c", "cd -- \"$0\" && exec \"$@\"", work_dir_};
        made.insert(made.end(), argv.begin(), argv.end());
        return made;
    }

    /// For a step after it; a session's own start makes it too.
    task<result<void>> make_work_dir(const images::step& step) {
        if (&step == &what_.steps.back()) {
            co_return result<void>();
        }
        co_return co_await call(step, {"/bin/sh", "-c", "mkdir -p -- \"$0\"", work_dir_});
    }

    task<result<void>> call(const images::step& step, std::vector<std::string> argv) {
        run_request request;
        request.run_id = core::random_hex(16);
        request.argv = std::move(argv);
        request.env = config_.env;
        request.timeout = step_limit;
        request.output_limit = most_output;
        request.kept_when_stopped = shown_bytes;
        const auto ended = co_await box_->run(std::move(request));
        if (!ended) {
            co_return failure("'" + step.line + "': " + ended.error().message);
        }
        if (ended->status.exit_code == 0 && !ended->output_limited) {
            co_return result<void>();
        }
        co_return failure("'" + step.line + "' " + how_it_ended(*ended) + hint() + "\n" +
                          last_lines(ended->out + ended->err));
    }

    static std::string how_it_ended(const run_result& ended) {
        if (ended.output_limited) {
            return "printed more than " + std::to_string(most_output / (1024 * 1024)) + " MiB";
        }
        if (ended.status.timed_out) {
            return "did not end in time";
        }
        if (ended.status.signal) {
            return "was ended by signal " + std::to_string(*ended.status.signal);
        }
        return ended.status.exit_code ? "returned " + std::to_string(*ended.status.exit_code)
                                      : std::string("was ended");
    }

    std::string hint() const {
        return without_network_.empty() ? "" : " (it had no network: " + without_network_ + ")";
    }

    /// The layer becomes the image.
    task<result<void>> finish() {
        co_await box_->stop(false);
        launcher::keep_image request;
        request.slot = slot_;
        request.reference = what_.tag;
        request.config = launcher::encode_image_config(config_);
        const auto done = co_await with_.launcher->keep(std::move(request), keep_limit);
        if (!done) {
            co_return failure(done.error().message);
        }
        kept_ = true;
        co_return result<void>();
    }

    image_source_options with_;
    images::recipe what_;
    launcher::image_info base_;
    std::shared_ptr<images::build_steps> steps_;
    std::string slot_;
    std::shared_ptr<sandbox> box_;
    launcher::image_config config_;
    std::string work_dir_;
    std::string without_network_; ///< why
    bool kept_ = false;
};

} // namespace

void apply_env(launcher::environment& env, const images::step& step) {
    const auto before = env;
    for (const auto& [name, value] : step.env) {
        auto text = step.expands ? expanded(before, value) : value;
        const auto found = std::find_if(env.begin(), env.end(),
                                        [&, &key = name](const auto& one) { return one.first == key; });
        if (found == env.end()) {
            env.emplace_back(name, std::move(text));
        } else {
            found->second = std::move(text);
        }
    }
}

std::string last_lines(std::string_view output) {
    while (!output.empty() && output.back() == '\n') {
        output.remove_suffix(1);
    }
    auto begin = output.size();
    for (std::size_t lines = 0; begin > 0 && output.size() - begin < shown_bytes; --begin) {
        if (output[begin - 1] == '\n' && ++lines == shown_lines) {
            break;
        }
    }
    std::string text;
    for (const char c : output.substr(begin)) {
        if (c == '\n' || c == '\t' || (c >= ' ' && c < 0x7f)) {
            text += c;
        }
    }
    return text;
}

task<result<void>> build_image(image_source_options with, images::recipe what, launcher::image_info base,
                               std::shared_ptr<images::build_steps> steps) {
    image_builder builder(std::move(with), std::move(what), std::move(base), std::move(steps));
    co_return co_await builder.run();
}

} // namespace sandboxd::sandboxes::oci
