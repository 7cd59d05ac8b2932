#pragma once

// A keeper over images that are only names.

#include "core/clock.hpp"
#include "core/deadline.hpp"
#include "core/event.hpp"
#include "core/gate.hpp"
#include "images/keeper.hpp"
#include "support/run.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace images_tests {

namespace asio = boost::asio;
namespace images = sandboxd::images;
using namespace std::chrono_literals;
using sandboxd::errc;
using sandboxd::error;
using sandboxd::result;
using sandboxd::task;
using std::string;

inline images::recipe recipe_of(string name, bool cache = true) {
    sandboxd::runtime_definition d;
    d.name = std::move(name);
    d.base_image = "debian:12";
    d.cache_image = cache;
    return *images::make_recipe(std::move(d));
}

/// Images by name; what is asked of it is written down.
class made_up_source final : public images::image_source {
public:
    std::set<string> here;
    std::map<string, int> failures; ///< of the next pulls or builds of that image
    std::vector<string> asked;
    std::vector<string> last_kept;
    bool hangs = false;
    bool throws = false; ///< what no source should
    std::shared_ptr<sandboxd::core::shared_event> begun = std::make_shared<sandboxd::core::shared_event>();
    std::shared_ptr<sandboxd::core::shared_event> go_on;    ///< waited for by pulls and builds
    std::shared_ptr<sandboxd::core::shared_event> prune_on; ///< by the removal of older images

    task<result<bool>> present(string reference) override {
        asked.push_back("present " + reference);
        co_return here.count(reference) != 0;
    }
    task<result<void>> pull(string reference, images::progress_sink tell) override {
        asked.push_back("pull " + reference);
        co_return co_await work(reference, tell, false);
    }
    task<result<void>> build(images::recipe what, images::progress_sink tell) override {
        asked.push_back("build " + what.tag);
        co_return co_await work(what.tag, tell, true);
    }
    task<void> prune(string runtime, std::vector<string> kept) override {
        asked.push_back("prune " + runtime);
        last_kept = std::move(kept);
        if (prune_on) {
            co_await prune_on->wait();
        }
        asked.push_back("pruned " + runtime);
    }
    task<void> sweep(std::vector<string> kept) override {
        asked.push_back("sweep");
        last_kept = std::move(kept);
        co_return;
    }

    [[nodiscard]] long times(const string& what) const {
        return std::count(asked.begin(), asked.end(), what);
    }

private:
    task<result<void>> work(const string& name, const images::progress_sink& tell, bool steps) {
        tell({"half of it", 1, 2, steps});
        begun->set();
        if (hangs) {
            co_await sandboxd::core::sleep_for(1h);
            co_return error{errc::start_failed, "cut short"};
        }
        if (throws) {
            throw std::runtime_error("a bug");
        }
        if (go_on) {
            co_await go_on->wait();
        }
        if (failures[name] > 0) {
            --failures[name];
            co_return error{errc::start_failed, "no network for " + name};
        }
        here.insert(name);
        co_return result<void>();
    }
};

struct fixture {
    asio::io_context context;
    sandboxd::core::gate background;
    std::shared_ptr<made_up_source> source = std::make_shared<made_up_source>();
    std::shared_ptr<sandboxd::core::manual_clock> clock = sandboxd::core::create_manual_clock(1000);
    std::vector<std::chrono::steady_clock::duration> pauses;
    std::shared_ptr<images::keeper> keeper;
    images::keeper_options options;

    fixture() {
        options.executor = context.get_executor();
        options.background = &background;
        options.source = source;
        options.clock = clock;
        options.pause = [this](std::chrono::steady_clock::duration time) { return pause(time); };
    }
    ~fixture() {
        if (keeper) {
            keeper->close();
        }
        background.close();
        sandboxd::test::run(context, background.drained());
    }
    fixture(const fixture&) = delete;
    fixture& operator=(const fixture&) = delete;

    void make(std::vector<images::wanted_image> allowed = {}) {
        options.allowed = std::move(allowed);
        keeper = images::create_keeper(options);
    }
    task<bool> pause(std::chrono::steady_clock::duration time) {
        pauses.push_back(time);
        clock->advance(std::chrono::duration_cast<std::chrono::milliseconds>(time));
        co_return true;
    }
    template <class T>
    T get(task<T> body) {
        return sandboxd::test::get(context, std::move(body));
    }
};

inline std::vector<images::wanted_image> allowlist(const images::recipe& built) {
    return {
        {"zeta", "busybox", std::nullopt}, {"coding", built.tag, built}, {"also", "busybox", std::nullopt}};
}

} // namespace images_tests
