#include "sandbox/memory/builder.hpp"

#include "core/deadline.hpp"
#include "core/random.hpp"
#include "sandbox/memory/memory_sandbox.hpp"

#include <algorithm>

namespace sandboxd::sandboxes::memory {

namespace {

class builder final : public memory_builder {
public:
    std::string_view name() const noexcept override { return "memory"; }
    std::vector<std::string> notes() const override {
        return {"sandboxes of the kind \"memory\" are made up: they enforce nothing"};
    }
    task<result<slot_record>> prepare(const sandbox_spec& spec) override;
    task<result<std::shared_ptr<sandbox>>> build(sandbox_spec spec, slot_record slot) override;
    task<result<std::shared_ptr<sandbox>>> adopt(slot_record slot) override;
    task<result<void>> remove(slot_record slot) override;
    task<result<std::vector<slot_record>>> owned() override;

    void fail_next_build(std::string text) override {
        const std::lock_guard lock(mutex_);
        build_failure_ = std::move(text);
    }
    void fail_next_prepare(std::string text) override {
        const std::lock_guard lock(mutex_);
        prepare_failure_ = std::move(text);
    }
    void delay_builds(std::chrono::milliseconds by) override { build_delay_ms_ = by.count(); }
    void delay_stops(std::chrono::milliseconds by) override { counts_->stop_delay_ms = by.count(); }
    void delay_files(std::chrono::milliseconds by) override { counts_->file_delay_ms = by.count(); }
    std::size_t most_at_files() const override { return counts_->most_at_files; }
    bool kill(std::string_view session_id) override;

    std::size_t builds() const override { return counts_->builds; }
    std::size_t stops() const override { return counts_->stops; }
    std::size_t purges() const override { return counts_->purges; }
    std::size_t commands() const override { return counts_->commands; }
    std::size_t living() const override {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::count_if(slots_.begin(), slots_.end(), [](const auto& one) {
            return one.second.box && one.second.box->alive();
        }));
    }

private:
    struct place {
        slot_record record;
        std::shared_ptr<memory_sandbox> box;
    };

    std::shared_ptr<tally> counts_ = std::make_shared<tally>();
    mutable std::mutex mutex_;
    std::map<std::string, place> slots_;
    std::optional<std::string> build_failure_;
    std::optional<std::string> prepare_failure_;
    std::atomic<std::int64_t> build_delay_ms_{0};
};

task<result<slot_record>> builder::prepare(const sandbox_spec& spec) {
    const std::lock_guard lock(mutex_);
    if (prepare_failure_) {
        error refused{errc::start_failed, std::move(*prepare_failure_)};
        prepare_failure_.reset();
        co_return refused;
    }
    if (spec.image == "missing") {
        co_return error{errc::start_failed, "no such image: missing"};
    }
    const auto slot = core::random_hex(8);
    co_return slot_record{slot, "memory", "memory:" + slot};
}

task<result<std::shared_ptr<sandbox>>> builder::build(sandbox_spec spec, slot_record slot) {
    const std::chrono::milliseconds delay(build_delay_ms_.load());
    if (delay.count() > 0) {
        co_await core::sleep_for(delay);
    }
    const std::lock_guard lock(mutex_);
    if (build_failure_) {
        error failed{errc::start_failed, std::move(*build_failure_)};
        build_failure_.reset();
        co_return failed;
    }
    auto box = std::make_shared<memory_sandbox>(std::move(spec), slot.handle, counts_);
    const auto key = slot.slot;
    slots_[key] = place{std::move(slot), box};
    ++counts_->builds;
    co_return std::shared_ptr<sandbox>(std::move(box));
}

task<result<std::shared_ptr<sandbox>>> builder::adopt(slot_record slot) {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.find(slot.slot);
    if (found == slots_.end() || !found->second.box->alive()) {
        co_return error{errc::gone, "the sandbox has ended"};
    }
    co_return std::shared_ptr<sandbox>(found->second.box);
}

task<result<void>> builder::remove(slot_record slot) {
    std::shared_ptr<memory_sandbox> box;
    {
        const std::lock_guard lock(mutex_);
        const auto found = slots_.find(slot.slot);
        if (found == slots_.end()) {
            co_return result<void>();
        }
        box = std::move(found->second.box);
        slots_.erase(found);
    }
    box->die();
    co_return result<void>();
}

task<result<std::vector<slot_record>>> builder::owned() {
    const std::lock_guard lock(mutex_);
    std::vector<slot_record> out;
    for (const auto& [name, place] : slots_) {
        out.push_back(place.record);
    }
    co_return out;
}

bool builder::kill(std::string_view session_id) {
    std::shared_ptr<memory_sandbox> box;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, place] : slots_) {
            if (place.box->alive() && place.box->session_id() == session_id) {
                box = place.box;
            }
        }
    }
    return box && box->die();
}

} // namespace

std::shared_ptr<memory_builder> create_memory_builder() {
    return std::make_shared<builder>();
}

} // namespace sandboxd::sandboxes::memory
