#include "core/turns.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace sandboxd::core {

struct turns::state {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<shared_event>> taken; ///< set when it is given back
};

turns::turns() : state_(std::make_shared<state>()) {}

task<turns::turn> turns::take(std::string key) {
    const auto all = state_;
    for (;;) {
        std::shared_ptr<shared_event> others;
        {
            const std::lock_guard lock(all->mutex);
            auto& holder = all->taken[key];
            if (!holder) {
                holder = std::make_shared<shared_event>();
                break;
            }
            others = holder;
        }
        co_await others->wait();
    }
    co_return turn(all, std::move(key));
}

turns::turn::turn(std::shared_ptr<state> of, std::string key) : of_(std::move(of)), key_(std::move(key)) {}

turns::turn::~turn() {
    if (!of_) {
        return;
    }
    std::shared_ptr<shared_event> done;
    {
        const std::lock_guard lock(of_->mutex);
        done = std::move(of_->taken.extract(key_).mapped());
    }
    done->set();
}

} // namespace sandboxd::core
