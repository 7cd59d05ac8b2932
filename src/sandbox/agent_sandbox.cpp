#include "sandbox/agent_sandbox.hpp"

#include "core/log.hpp"
#include "core/random.hpp"
#include "core/spawn.hpp"
#include "sandbox/collector.hpp"
#include "sandbox/outcome.hpp"
#include "sandbox/start_frame.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <mutex>

namespace sandboxd::sandboxes {

namespace asio = boost::asio;

namespace {

/// The one callback of a sandbox's death: called at most once, never after a stop has begun.
class death_notice {
public:
    void set(std::function<void()> callback) {
        {
            const std::lock_guard lock(mutex_);
            if (stopping_ || told_) {
                return;
            }
            if (!dead_) {
                callback_ = std::move(callback);
                return;
            }
            told_ = true;
        }
        callback();
    }

    void tell() {
        std::function<void()> callback;
        {
            const std::lock_guard lock(mutex_);
            dead_ = true;
            if (stopping_ || told_ || !callback_) {
                return;
            }
            told_ = true;
            callback = std::move(callback_);
        }
        callback();
    }

    void stop() {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        callback_ = nullptr;
    }

    [[nodiscard]] bool is_dead() const noexcept { return dead_; }

private:
    std::mutex mutex_;
    std::function<void()> callback_;
    std::atomic<bool> dead_{false};
    bool told_ = false;
    bool stopping_ = false;
};

class agent_sandbox final : public sandbox, public std::enable_shared_from_this<agent_sandbox> {
public:
    agent_sandbox(std::shared_ptr<sandbox_host> host, const asio::any_io_executor& executor,
                  core::gate& background, const agent_sandbox_options& options)
        : host_(std::move(host)), executor_(executor), background_(background), options_(options) {}
    ~agent_sandbox() override {
        if (link_) {
            link_->detach();
        }
    }

    [[nodiscard]] task<result<void>> open();

    std::string_view type() const noexcept override { return host_->type(); }
    task<result<exec_result>> exec(exec_request request) override;
    task<result<run_result>> run(run_request request) override;
    task<void> stop_run(std::string run_id) override;
    task<result<file_content>> read(std::string path, std::uint64_t max_bytes) override {
        return files_->read(std::move(path), max_bytes);
    }
    task<result<void>> write(std::string path, std::string content) override {
        return files_->write(std::move(path), std::move(content));
    }
    task<result<edit_result>> edit(edit_request request) override { return files_->edit(std::move(request)); }
    task<result<bool>> exists(std::string path) override { return files_->exists(std::move(path)); }
    task<result<file_listing>> ls(std::string path) override { return files_->ls(std::move(path)); }
    task<result<file_listing>> glob(glob_request request) override {
        return files_->glob(std::move(request));
    }
    task<result<grep_result>> grep(grep_request request) override { return files_->grep(std::move(request)); }
    task<result<usage_sample>> usage() override { return host_->usage(); }
    std::size_t inherited_commands() const noexcept override { return link_->inherited(); }
    bool alive() const noexcept override { return !death_->is_dead() && host_->alive(); }
    void on_death(std::function<void()> callback) override { death_->set(std::move(callback)); }
    task<void> stop(bool purge) override;
    std::string handle() const override { return host_->handle(); }

private:
    using clock = std::chrono::steady_clock;

    /// What is known of a command beside its end record.
    struct facts {
        bool oom_killed = false;
        bool overdue = false;
    };

    void make_link();
    [[nodiscard]] result<std::shared_ptr<collector>> prepare(const command_spec& spec,
                                                             std::uint64_t keep) const;
    [[nodiscard]] task<result<end_record>> perform(std::shared_ptr<collector> command, facts& seen);
    [[nodiscard]] command_spec base_spec(const run_id_bytes& id, std::chrono::milliseconds timeout) const;

    std::shared_ptr<sandbox_host> host_;
    asio::any_io_executor executor_;
    core::gate& background_;
    agent_sandbox_options options_;
    std::shared_ptr<agent_link> link_;
    std::shared_ptr<file_operations> files_;
    std::shared_ptr<death_notice> death_ = std::make_shared<death_notice>();
};

task<void> take_down(std::shared_ptr<sandbox_host> host) {
    co_await host->terminate(std::chrono::milliseconds(0), false);
}

task<result<net::stream_ptr>> connect_to(std::shared_ptr<sandbox_host> host, asio::any_io_executor executor) {
    co_return co_await host->connect(std::move(executor));
}

void log_found(const found_command& command) {
    const auto id =
        core::to_hex({reinterpret_cast<const unsigned char*>(command.id.data()), command.id.size()});
    core::log::info("command {} from before the restart {}", id,
                    command.ended ? "has ended" : "is still running, its output is dropped");
}

/// Callbacks hold the host and the notice, not the sandbox: nothing keeps itself alive in a circle.
void agent_sandbox::make_link() {
    auto connect = [host = host_](asio::any_io_executor executor) {
        return connect_to(host, std::move(executor));
    };
    auto broken = [host = host_, death = death_, executor = executor_,
                   background = &background_](const std::string& why) {
        core::log::error("sandbox {} is taken down: {}", host->handle(), why);
        core::spawn(executor, "take down a broken sandbox", *background, take_down(host));
        death->tell();
    };
    link_ = agent_link::create(executor_, background_, std::move(connect), options_.link,
                               {log_found, std::move(broken)});
    files_ = std::make_shared<file_operations>(link_, host_, options_.files);
    host_->on_death([link = std::weak_ptr(link_), death = death_] {
        if (const auto still = link.lock()) {
            still->close("the sandbox has ended");
        }
        death->tell();
    });
}

task<result<void>> agent_sandbox::open() {
    make_link();
    co_return co_await link_->open(options_.open_within);
}

command_spec agent_sandbox::base_spec(const run_id_bytes& id, std::chrono::milliseconds timeout) const {
    command_spec spec;
    spec.id = id;
    spec.timeout = timeout;
    spec.user = host_->default_user();
    return spec;
}

result<std::shared_ptr<collector>> agent_sandbox::prepare(const command_spec& spec,
                                                          std::uint64_t keep) const {
    auto frame = encode_start(spec);
    if (!frame) {
        return std::move(frame).error();
    }
    const bool separate = spec.mode == protocol::start_mode::separate;
    auto command = std::make_shared<collector>(spec.id, std::move(*frame), separate, keep);
    if (spec.timeout.count() > 0) {
        command->give_up_at(clock::now() + spec.timeout + options_.answer_grace);
    }
    return command;
}

task<result<end_record>> agent_sandbox::perform(std::shared_ptr<collector> command, facts& seen) {
    const auto self = shared_from_this();
    const auto began = clock::now();
    const auto kills = host_->oom_kills();
    co_await collector::perform(link_, command, asio::use_awaitable);
    if (command->failed && command->failed->code == errc::timeout && command->failed->may_have_started) {
        seen.overdue = true;
        end_record record;
        record.cause = protocol::end_cause::timed_out;
        record.duration = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - began);
        co_return record;
    }
    if (command->failed) {
        co_return std::move(*command->failed);
    }
    seen.oom_killed = kills && looks_oom_killed(*command->ended) && host_->oom_kills().value_or(0) > *kills;
    co_return std::move(*command->ended);
}

task<result<exec_result>> agent_sandbox::exec(exec_request request) {
    const auto id = parse_run_id(request.run_id);
    if (!id) {
        co_return id.error();
    }
    auto spec = base_spec(*id, request.timeout);
    spec.script = std::move(request.command);
    spec.keep_bytes = request.output_cap;
    auto command = prepare(spec, request.output_cap);
    if (!command) {
        co_return std::move(command).error();
    }
    facts seen;
    auto ended = co_await perform(*command, seen);
    if (!ended) {
        co_return std::move(ended).error();
    }
    auto answer = exec_outcome(std::move(*ended), std::move((*command)->out), seen.oom_killed);
    if (answer && seen.overdue) {
        answer->status.overdue = true;
        answer->truncated = answer->output.size() >= request.output_cap; // what was dropped is not known
    }
    co_return answer;
}

task<result<run_result>> agent_sandbox::run(run_request request) {
    const auto id = parse_run_id(request.run_id);
    if (!id) {
        co_return id.error();
    }
    auto spec = base_spec(*id, request.timeout);
    spec.mode = protocol::start_mode::separate;
    spec.argv = std::move(request.argv);
    spec.env = std::move(request.env);
    spec.keep_bytes = request.output_limit;
    spec.limit_bytes = request.output_limit;
    auto command = prepare(spec, request.output_limit);
    if (!command) {
        co_return std::move(command).error();
    }
    facts seen;
    auto ended = co_await perform(*command, seen);
    if (!ended) {
        co_return std::move(ended).error();
    }
    auto answer = run_outcome(std::move(*ended), std::move((*command)->out), std::move((*command)->err),
                              request.kept_when_stopped, seen.oom_killed);
    if (answer) {
        answer->status.overdue = seen.overdue;
    }
    co_return answer;
}

task<void> agent_sandbox::stop_run(std::string run_id) {
    const auto self = shared_from_this();
    if (const auto id = parse_run_id(run_id)) {
        co_await link_->stop(*id, options_.stop_run_within);
    }
}

task<void> agent_sandbox::stop(bool purge) {
    const auto self = shared_from_this();
    death_->stop();
    link_->shutdown("the sandbox was stopped");
    co_await host_->terminate(options_.stop_grace, purge);
    link_->detach();
}

task<result<std::shared_ptr<sandbox>>> make_sandbox(std::shared_ptr<sandbox_host> host,
                                                    asio::any_io_executor executor, core::gate& background,
                                                    agent_sandbox_options options) {
    auto made = std::make_shared<agent_sandbox>(std::move(host), executor, background, options);
    auto opened = co_await made->open();
    if (!opened) {
        const bool gone = opened.error().code == errc::gone;
        co_return error{gone ? errc::gone : errc::start_failed, std::move(opened).error().message, false};
    }
    co_return std::shared_ptr<sandbox>(std::move(made));
}

} // namespace

agent_sandbox_factory create_agent_sandbox_factory(asio::any_io_executor executor, core::gate& background,
                                                   agent_sandbox_options options) {
    return [executor, &background, options](std::shared_ptr<sandbox_host> host, bool) {
        return make_sandbox(std::move(host), executor, background, options);
    };
}

} // namespace sandboxd::sandboxes
