#include "session/fake_host.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>

namespace sandboxd::test {

namespace {
using namespace std::chrono_literals;

class fake_sandbox final : public sandbox {
public:
    fake_sandbox(fake_host& host, std::shared_ptr<fake_place> place)
        : host_(host), place_(std::move(place)) {}

    std::string_view type() const noexcept override { return "fake"; }

    task<result<exec_result>> exec(exec_request request) override {
        exec_result answer;
        auto status = co_await act(request.run_id, request.command, request.timeout, answer.output);
        if (!status) {
            co_return status.error();
        }
        answer.status = *status;
        co_return answer;
    }

    task<result<run_result>> run(run_request request) override {
        run_result answer;
        std::string line;
        for (const auto& word : request.argv) {
            line += (line.empty() ? "" : " ") + word;
        }
        auto status = co_await act(request.run_id, line, request.timeout, answer.out);
        if (!status) {
            co_return status.error();
        }
        answer.output_limited = line == "flood";
        if (answer.output_limited) {
            status->exit_code.reset();
        }
        answer.status = *status;
        co_return answer;
    }

    task<void> stop_run(std::string run_id) override {
        const std::lock_guard lock(place_->mutex);
        place_->stopped.insert(std::move(run_id));
        co_return;
    }

    task<result<file_content>> read(std::string path, std::uint64_t most) override {
        if (place_->directory.empty()) {
            co_return co_await sandbox::read(std::move(path), most);
        }
        std::ifstream file(inside(path), std::ios::binary);
        if (!file) {
            co_return error{errc::not_found, "No such file"};
        }
        file_content out;
        out.bytes.assign(std::istreambuf_iterator<char>(file), {});
        co_return out;
    }

    task<result<void>> write(std::string path, std::string content) override {
        if (place_->directory.empty()) {
            co_return co_await sandbox::write(std::move(path), std::move(content));
        }
        std::ofstream(inside(path), std::ios::binary) << content;
        co_return result<void>();
    }

    task<result<usage_sample>> usage() override {
        usage_sample sample;
        sample.pids = static_cast<std::uint64_t>(++usages_);
        co_return sample;
    }

    bool alive() const noexcept override { return place_->alive; }
    void on_death(std::function<void()>) override {}

    task<void> stop(bool purge) override {
        while (place_->frozen) {
            [[maybe_unused]] const bool slept = co_await core::sleep_for(1ms);
        }
        place_->alive = false;
        place_->keep = place_->keep && !purge;
    }

    std::string handle() const override { return place_->slot.handle; }

private:
    [[nodiscard]] std::string inside(std::string_view path) const {
        return place_->directory + std::string(path.substr(std::string_view("/workspace").size()));
    }

    /// "exit N", "echo TEXT", "sleep MS", "signal N", "held" (until let_go), "hang", "outlast" (prints, can't
    /// be stopped at its deadline); anything else ends with 0.
    task<result<exit_status>> act(std::string run_id, std::string command, std::chrono::milliseconds limit,
                                  std::string& output) {
        if (host_.dead_on_arrival.exchange(false)) {
            place_->alive = false;
            co_return error{errc::gone, "found dead", false};
        }
        if (!place_->alive) {
            co_return error{errc::gone, "the sandbox has ended"};
        }
        {
            const std::lock_guard lock(place_->mutex);
            if (!place_->started.insert(run_id).second) {
                co_return error{errc::exists, "twice"};
            }
        }
        ++host_.commands;
        const int now = ++place_->running;
        host_.most_running = std::max(host_.most_running.load(), now);
        exit_status status;
        const auto space = command.find(' ');
        const std::string verb = command.substr(0, space);
        const std::string rest = space == std::string::npos ? "" : command.substr(space + 1);
        int number = 0;
        std::from_chars(rest.data(), rest.data() + rest.size(), number);
        if (verb == "echo") {
            output = rest + "\n";
        }
        if (verb == "signal") {
            status.signal = number;
        } else {
            status.exit_code = verb == "exit" ? number : 0;
        }
        result<exit_status> how = status;
        if (verb == "held") {
            how = co_await wait_out(run_id, 1h, limit, &host_.let_go);
        }
        if (verb == "sleep" || verb == "hang") {
            how = co_await wait_out(run_id, verb == "hang" ? 1h : std::chrono::milliseconds(number), limit);
        }
        if (verb == "outlast") {
            output = "so far\n";
            how = co_await wait_out(run_id, 1h, limit);
            if (how) {
                how->overdue = true;
            }
        }
        --place_->running;
        co_return how;
    }

    task<result<exit_status>> wait_out(std::string run_id, std::chrono::milliseconds time,
                                       std::chrono::milliseconds limit,
                                       const std::atomic<bool>* let_go = nullptr) {
        const auto began = std::chrono::steady_clock::now();
        exit_status status;
        for (;;) {
            const auto passed = std::chrono::steady_clock::now() - began;
            if (!place_->frozen) {
                const std::lock_guard lock(place_->mutex);
                if (!place_->alive) {
                    co_return error{errc::gone, "the sandbox has ended"};
                }
                if (place_->stopped.contains(run_id)) {
                    status.stopped = true;
                    co_return status;
                }
                if (passed >= limit) {
                    status.timed_out = true;
                    co_return status;
                }
                if (passed >= time || (let_go != nullptr && *let_go)) {
                    status.exit_code = 0;
                    co_return status;
                }
            }
            [[maybe_unused]] const bool slept = co_await core::sleep_for(1ms);
        }
    }

    fake_host& host_;
    std::shared_ptr<fake_place> place_;
    int usages_ = 0;
};
} // namespace

task<result<slot_record>> fake_host::prepare(const sandbox_spec&) {
    if (fail_prepare) {
        co_return error{errc::start_failed, "no such image"};
    }
    const std::lock_guard lock(mutex_);
    const auto name = "slot-" + std::to_string(++next_);
    co_return slot_record{name, "fake", "handle of " + name};
}

task<result<std::shared_ptr<sandbox>>> fake_host::build(sandbox_spec spec, slot_record slot) {
    std::shared_ptr<fake_place> place;
    {
        const std::lock_guard lock(mutex_);
        auto& there = places_[slot.slot];
        if (spec.keep == keeping::kept && (!there || !there->keep)) {
            places_.erase(slot.slot);
            co_return error{errc::gone, "nothing is kept there"};
        }
        if (!there) {
            there = std::make_shared<fake_place>();
            there->slot = slot;
        }
        place = there;
        place->session_id = spec.session_id;
        place->directory = spec.workspace_dir.value_or("");
        place->keep = spec.keep != keeping::nothing;
        place->alive = true;
        last_cpus = spec.limits.cpus;
    }
    ++builds;
    ++place->built;
    while (hold_builds) {
        [[maybe_unused]] const bool slept = co_await core::sleep_for(1ms);
    }
    if (fail_builds) {
        const std::lock_guard lock(mutex_);
        place->alive = false;
        if (!place->keep || place->built == 1) {
            places_.erase(slot.slot);
        }
        co_return error{errc::start_failed, "the daemon is on strike"};
    }
    co_return std::shared_ptr<sandbox>(std::make_shared<fake_sandbox>(*this, std::move(place)));
}

task<result<std::shared_ptr<sandbox>>> fake_host::adopt(slot_record slot) {
    const std::lock_guard lock(mutex_);
    const auto at = places_.find(slot.slot);
    if (mute) {
        co_return error{errc::unavailable, "who knows"};
    }
    if (at == places_.end() || !at->second->alive) {
        co_return error{errc::gone, "it has ended"};
    }
    co_return std::shared_ptr<sandbox>(std::make_shared<fake_sandbox>(*this, at->second));
}

task<result<void>> fake_host::remove(slot_record slot) {
    const std::lock_guard lock(mutex_);
    if (const auto at = places_.find(slot.slot); at != places_.end()) {
        at->second->alive = false;
        places_.erase(at);
    }
    co_return result<void>();
}

task<result<std::vector<slot_record>>> fake_host::owned() {
    const std::lock_guard lock(mutex_);
    std::vector<slot_record> all;
    for (const auto& [name, place] : places_) {
        all.push_back(place->slot);
    }
    co_return all;
}

std::shared_ptr<fake_place> fake_host::place_of(const std::string& session_id) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, place] : places_) {
        if (place->session_id == session_id) {
            return place;
        }
    }
    return nullptr;
}

std::vector<std::string> fake_host::places() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [name, place] : places_) {
        all.push_back(place->session_id);
    }
    std::ranges::sort(all);
    return all;
}

void fake_host::add_stray(const std::string& slot) {
    auto place = std::make_shared<fake_place>();
    place->slot = {slot, "fake", "handle of " + slot};
    place->session_id = "stray";
    const std::lock_guard lock(mutex_);
    places_[slot] = std::move(place);
}

} // namespace sandboxd::test
