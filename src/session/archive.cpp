#include "session/archive.hpp"

#include "core/event.hpp"
#include "core/gate.hpp"
#include "core/spawn.hpp"
#include "hostfs/paths.hpp"
#include "session/bounded.hpp"
#include "session/read_limit.hpp"

#include <boost/asio/this_coro.hpp>

#include <atomic>
#include <cerrno>
#include <utility>

namespace sandboxd::session {

namespace {

namespace host = hostfs::blocking;

/// Below the client's 60 s (N13.7) and as `files/*` (N16.27).
constexpr std::chrono::seconds time_allowed{25};
/// Rows of one answer.
constexpr std::size_t most_rows = 200'000;
/// Walks of one request side by side: it must not take every worker.
constexpr std::size_t side_by_side = 4;

/// Where in which workspace, once the text of the path has been looked at.
struct place {
    std::string root;
    std::string id;
    std::string relative;
    host::time_limit until;
};

template <class T>
using job = std::function<result<T>(const host::workspace& in, const place& at)>;

template <class T>
result<T> in_workspace(const place& at, const job<T>& what) {
    const auto in = host::workspace::open(at.root, at.id);
    if (!in) {
        return in.error().value() == ENOENT
                   ? error{errc::not_found, "No such workspace: " + at.id}
                   : error{errc::io, "The workspace " + at.id + " can't be opened: " + in.error().message()};
    }
    return what(*in, at);
}

template <class T>
task<result<T>> on_worker(core::worker_pool& workers, place at, job<T> what) {
    auto work = [at = std::move(at), what = std::move(what)] { return in_workspace<T>(at, what); };
    co_return co_await workers.run(std::move(work));
}

/// The ids of one `trees`, taken one after the other by walks side by side.
struct forest {
    std::vector<std::string> ids;
    tree_command command;
    host::row_budget rows{most_rows};
    host::time_limit until;
    std::vector<result<archive_listing>> found;
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> walking{0};
    core::shared_event done;
};

class workspace_archive final : public archive {
public:
    workspace_archive(core::worker_pool& workers, text_extractor& texts,
                      std::function<std::shared_ptr<const settings>()> policy)
        : workers_(workers), texts_(texts), policy_(std::move(policy)) {}
    ~workspace_archive() override {
        calls_.abandon(); // a disk that never answers keeps its calls
    }

    task<result<archive_listing>> ls(std::string id, std::string path) override {
        job<archive_listing> what = [](const host::workspace& in, const place& at) {
            return host::ls(in, at.relative, at.until);
        };
        co_return co_await look<archive_listing>(std::move(id), std::move(path), soon(), std::move(what));
    }

    task<result<std::string>> read_bytes(std::string id, std::string path) override {
        co_return co_await content(std::move(id), std::move(path), soon());
    }

    task<result<std::string>> read(std::string id, archive_read command) override {
        const auto until = soon();
        const auto bytes = co_await content(std::move(id), command.path, until);
        if (!bytes) {
            co_return bytes.error();
        }
        auto shown = co_await texts_.lines(command.path, *bytes, command.offset, command.limit, until);
        co_return shown ? std::move(*shown) : too_long();
    }

    task<result<archive_listing>> tree(std::string id, tree_command command) override {
        auto rows = std::make_shared<host::row_budget>(most_rows);
        co_return co_await tree_within(std::move(id), std::move(command), std::move(rows), soon());
    }

    task<std::vector<result<archive_listing>>> trees(std::vector<std::string> ids,
                                                     tree_command command) override {
        auto all = std::make_shared<forest>();
        all->ids = std::move(ids);
        all->command = std::move(command);
        all->until = soon();
        all->found.resize(all->ids.size(), error{errc::unavailable, "The service is shutting down"});
        const std::size_t walkers = std::min(side_by_side, all->ids.size());
        all->walking = walkers;
        const auto executor = co_await boost::asio::this_coro::executor;
        for (std::size_t i = 0; i < walkers; ++i) {
            if (!core::spawn(executor, "walking workspaces", calls_, walk_some(all)) && --all->walking == 0) {
                all->done.set();
            }
        }
        co_await all->done.wait();
        co_return std::move(all->found);
    }

private:
    static host::time_limit soon() { return std::chrono::steady_clock::now() + time_allowed; }

    static error too_long() { return {errc::timeout, "Reading the workspace took too long"}; }

    task<result<std::string>> content(std::string id, std::string path, host::time_limit until) {
        const auto most = static_cast<std::uint64_t>(read_limit(*policy_()));
        job<std::string> what = [most](const host::workspace& in, const place& at) {
            return host::read_archived(in, at.relative, most, at.until);
        };
        co_return co_await look<std::string>(std::move(id), std::move(path), until, std::move(what));
    }

    template <class T>
    task<result<T>> look(std::string id, std::string path, host::time_limit until, job<T> what) {
        const auto now = policy_();
        auto relative = hostfs::parse_archive(path, now->work_dir);
        place at{now->workspace_root.value_or(""), std::move(id), "", until};
        if (!relative) {
            // An unknown workspace is told before a faulty path (contract 7.2).
            auto fault = relative.error();
            what = [fault](const host::workspace&, const place&) -> result<T> { return fault; };
        } else {
            at.relative = std::move(*relative);
        }
        auto answer = co_await bounded<result<T>>(
            calls_, nullptr, on_worker<T>(workers_, std::move(at), std::move(what)), until);
        if (!answer) {
            co_return too_long();
        }
        co_return std::move(*answer);
    }

    task<result<archive_listing>> tree_within(std::string id, tree_command command,
                                              std::shared_ptr<host::row_budget> rows,
                                              host::time_limit until) {
        const host::tree_limits limits{command.max_depth, command.max_entries};
        job<archive_listing> what = [limits, rows](const host::workspace& in, const place& at) {
            return host::tree(in, at.relative, limits, *rows, at.until);
        };
        co_return co_await look<archive_listing>(std::move(id), std::move(command.path), until,
                                                 std::move(what));
    }

    task<void> walk_some(std::shared_ptr<forest> all) {
        const std::shared_ptr<host::row_budget> rows(all, &all->rows);
        for (auto i = all->next++; i < all->ids.size(); i = all->next++) {
            all->found[i] = co_await tree_within(all->ids[i], all->command, rows, all->until);
        }
        if (--all->walking == 0) {
            all->done.set();
        }
    }

    core::worker_pool& workers_;
    text_extractor& texts_;
    std::function<std::shared_ptr<const settings>()> policy_;
    core::gate calls_;
};

} // namespace

std::unique_ptr<archive> create_archive(core::worker_pool& workers, text_extractor& texts,
                                        std::function<std::shared_ptr<const settings>()> policy) {
    return std::make_unique<workspace_archive>(workers, texts, std::move(policy));
}

} // namespace sandboxd::session
