#include "images/keeper.hpp"

#include "core/deadline.hpp"
#include "core/log.hpp"
#include "images/jobs.hpp"
#include "images/pass.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sandboxd::images {

namespace {

using std::string;

/// With what a caller left out.
std::shared_ptr<const keeper_options> complete(keeper_options options) {
    if (!options.pause) {
        options.pause = [](std::chrono::steady_clock::duration time) { return core::sleep_for(time); };
    }
    if (!options.say) {
        options.say = [](const string& line) { core::log::info("{}", line); };
    }
    std::sort(options.allowed.begin(), options.allowed.end(),
              [](const auto& a, const auto& b) { return a.alias < b.alias; });
    return std::make_shared<const keeper_options>(std::move(options));
}

class live_keeper final : public keeper {
public:
    explicit live_keeper(std::shared_ptr<const keeper_options> options)
        : with_(std::move(options)),
          jobs_(std::make_shared<jobs>(with_)),
          pass_(std::make_shared<pass>(with_, jobs_)) {}

    void learn(recipe how) override { jobs_->learn(std::move(how)); }
    bool always_builds(const string& reference) const override { return jobs_->always_builds(reference); }
    task<result<void>> ready(string reference) override { return jobs_->attempt(std::move(reference), 1); }
    task<std::vector<string>> warm(std::uint32_t attempts) override { return pass_->run(attempts); }
    void begin_warming() override { pass_->begin(); }
    std::vector<warming> snapshot() const override;
    void close() override {
        jobs_->close();
        pass_->close();
    }

private:
    std::shared_ptr<const keeper_options> with_;
    std::shared_ptr<jobs> jobs_;
    std::shared_ptr<pass> pass_;
};

/// A job is shown under every alias that stands for its image, in the place of that one's turn in the pass.
std::vector<warming> live_keeper::snapshot() const {
    auto out = pass_->snapshot();
    auto under_way = jobs_->snapshot();
    std::set<string> named;
    for (const auto& entry : with_->allowed) {
        if (const auto found = under_way.find(entry.reference); found != under_way.end()) {
            named.insert(entry.reference);
            auto& shown = out[entry.alias] = found->second;
            shown.alias = entry.alias;
        }
    }
    for (auto& [reference, state] : under_way) {
        if (named.count(reference) == 0) {
            out[reference] = std::move(state);
        }
    }
    std::vector<warming> list;
    for (auto& [alias, one] : out) {
        list.push_back(std::move(one));
    }
    return list;
}

} // namespace

const char* name_of(warming::state doing) noexcept {
    switch (doing) {
    case warming::state::queued:
        return "queued";
    case warming::state::looking:
        return "looking";
    case warming::state::pulling:
        return "pulling";
    case warming::state::building:
        return "building";
    case warming::state::waiting:
        return "waiting";
    }
    return "";
}

std::shared_ptr<keeper> create_keeper(keeper_options options) {
    return std::make_shared<live_keeper>(complete(std::move(options)));
}

} // namespace sandboxd::images
