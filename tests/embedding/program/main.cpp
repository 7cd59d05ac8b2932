// A program that rents out sandboxes of its own making: they remember what was said to them.

#include <sandboxd/app.hpp>
#include <sandboxd/version.hpp>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

namespace {

using sandboxd::task;

class memory final : public sandboxd::sandbox {
public:
    explicit memory(sandboxd::slot_record slot) : slot_(std::move(slot)) {}

    std::string_view type() const noexcept override { return "memory of what was said"; }

    task<sandboxd::result<sandboxd::exec_result>> exec(sandboxd::exec_request request) override {
        const std::lock_guard lock(mutex_);
        said_ += request.command + "\n";
        sandboxd::exec_result done;
        done.output = said_;
        done.status.exit_code = 0;
        co_return done;
    }

    bool alive() const noexcept override { return alive_; }
    void on_death(std::function<void()>) override {}
    task<void> stop(bool) override {
        alive_ = false;
        co_return;
    }
    std::string handle() const override { return slot_.handle; }

private:
    sandboxd::slot_record slot_;
    std::mutex mutex_;
    std::string said_;
    std::atomic<bool> alive_{true};
};

class memories final : public sandboxd::sandbox_builder {
public:
    std::string_view name() const noexcept override { return "memories"; }
    std::vector<std::string> notes() const override { return {"memories hold nothing back"}; }

    task<sandboxd::result<sandboxd::slot_record>> prepare(const sandboxd::sandbox_spec& spec) override {
        co_return sandboxd::slot_record{"slot-" + spec.session_id, "memories", {}};
    }
    task<sandboxd::result<std::shared_ptr<sandboxd::sandbox>>> build(sandboxd::sandbox_spec,
                                                                     sandboxd::slot_record slot) override {
        std::shared_ptr<sandboxd::sandbox> made = std::make_shared<memory>(std::move(slot));
        co_return made;
    }
    task<sandboxd::result<std::shared_ptr<sandboxd::sandbox>>> adopt(sandboxd::slot_record) override {
        co_return sandboxd::error{sandboxd::errc::gone, "memories end with the program"};
    }
    task<sandboxd::result<void>> remove(sandboxd::slot_record) override {
        co_return sandboxd::result<void>();
    }
    task<sandboxd::result<std::vector<sandboxd::slot_record>>> owned() override {
        co_return std::vector<sandboxd::slot_record>();
    }
};

int fail(const sandboxd::error& why) {
    std::cerr << sandboxd::name_of(why.code) << ": " << why.message << '\n';
    return 1;
}

} // namespace

/// embedder STATE_DIRECTORY TOKEN: says where it listens, and serves until its standard input ends.
int main(int argc, char** argv) {
    sandboxd::settings config;
    config.state_dir = argc > 1 ? argv[1] : "";
    config.token = argc > 2 ? argv[2] : "";
    config.port = 0;
    config.shutdown_grace = 2;
    config.on_shutdown = "stop";
    sandboxd::runtime_entry runtime;
    runtime.alias = "memory";
    runtime.image = "any";
    config.runtimes.push_back(runtime);
    auto app = sandboxd::create_app(std::move(config), std::make_shared<memories>());
    if (!app) {
        return fail(app.error());
    }
    std::thread watch([&app] {
        while (std::getchar() != EOF) {
        }
        (*app)->stop();
    });
    const auto served = (*app)->run([](const std::string& address) {
        std::cout << sandboxd::version() << " listens on " << address << std::endl;
    });
    if (!served) {
        std::cerr << served.error().message << '\n';
        watch.detach();
        return 1;
    }
    watch.join();
    return 0;
}
