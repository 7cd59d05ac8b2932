#pragma once

// A machine with sandboxes that do what their command says, for the tests of the registry: it outlives
// registries, as the real one outlives services.

#include "core/deadline.hpp"
#include "sandboxd/sandbox.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace sandboxd::test {

/// What one place on the host holds; survives the objects that stand for it.
struct fake_place {
    slot_record slot;
    std::string session_id;
    std::string directory; ///< of the host: what is /workspace inside; "" for none
    std::atomic<bool> alive{true};
    std::atomic<bool> frozen{false}; ///< nothing answers any more, the stop neither
    std::atomic<bool> keep{false};   ///< its layer outlives a stop
    std::atomic<int> built{0};       ///< sandboxes made over this layer
    std::mutex mutex;
    std::set<std::string> stopped; ///< run ids
    std::set<std::string> started;
    std::atomic<int> running{0};
};

class fake_host final : public sandbox_builder {
public:
    std::string_view name() const noexcept override { return "fake"; }
    std::vector<std::string> notes() const override { return {}; }
    task<result<slot_record>> prepare(const sandbox_spec& spec) override;
    task<result<std::shared_ptr<sandbox>>> build(sandbox_spec spec, slot_record slot) override;
    task<result<std::shared_ptr<sandbox>>> adopt(slot_record slot) override;
    task<result<void>> remove(slot_record slot) override;
    task<result<std::vector<slot_record>>> owned() override;

    // What tests do to it.
    std::atomic<bool> hold_builds{false}; ///< builds wait
    std::atomic<bool> let_go{false};      ///< ends the commands "held"
    std::atomic<bool> fail_builds{false};
    std::atomic<bool> fail_prepare{false};
    std::atomic<bool> mute{false};            ///< adopt() tells nothing
    std::atomic<bool> dead_on_arrival{false}; ///< exec and run find the sandbox dead once
    std::atomic<int> builds{0};
    std::atomic<int> most_running{0};
    std::atomic<int> commands{0}; ///< started, ever
    std::string last_environment;
    std::optional<double> last_cpus;

    [[nodiscard]] std::shared_ptr<fake_place> place_of(const std::string& session_id) const;
    [[nodiscard]] std::vector<std::string> places() const; ///< session ids, one per sandbox on the host
    void add_stray(const std::string& slot);

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<fake_place>> places_;
    int next_ = 0;
};

} // namespace sandboxd::test
