#include "sandbox/docker/turns.hpp"

namespace sandboxd::sandboxes::docker_backend {

task<turns::turn> turns::take(std::string key) {
    for (;;) {
        std::shared_ptr<core::shared_event> others;
        {
            const std::lock_guard lock(mutex_);
            auto& holder = taken_[key];
            if (!holder) {
                holder = std::make_shared<core::shared_event>();
                break;
            }
            others = holder;
        }
        co_await others->wait();
    }
    co_return turn(shared_from_this(), std::move(key));
}

void turns::release(const std::string& key) {
    std::shared_ptr<core::shared_event> done;
    {
        const std::lock_guard lock(mutex_);
        done = std::move(taken_.extract(key).mapped());
    }
    done->set();
}

} // namespace sandboxd::sandboxes::docker_backend
