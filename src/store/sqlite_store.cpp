#include "core/event.hpp"
#include "core/log.hpp"
#include "store/records.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace sandboxd::store {

namespace {

/// Something that waits for the store's thread. `answered` is set last.
struct request {
    std::vector<change> changes;
    bool is_load = false;
    std::optional<std::int64_t> events_of;
    result<void> outcome = error{errc::internal, "the session store did not answer"};
    contents loaded;
    std::vector<event_record> events;
    core::shared_event answered;
};
using request_ptr = std::shared_ptr<request>;

/// The thread that owns the database. Writers that are waiting when it comes round share one transaction, and
/// so one write to the disk.
class sqlite_store final : public session_store {
public:
    sqlite_store(database db, records all) : db_(std::move(db)), records_(std::move(all)) {
        thread_ = std::thread([this] { work(); });
    }
    ~sqlite_store() override { close(); }

    task<result<contents>> load() override {
        auto mine = std::make_shared<request>();
        mine->is_load = true;
        if (!push(mine)) {
            co_return closed();
        }
        co_await mine->answered.wait();
        if (!mine->outcome) {
            co_return mine->outcome.error();
        }
        co_return std::move(mine->loaded);
    }

    task<result<std::vector<event_record>>> events(std::int64_t order) override {
        auto mine = std::make_shared<request>();
        mine->events_of = order;
        if (!push(mine)) {
            co_return closed();
        }
        co_await mine->answered.wait();
        if (!mine->outcome) {
            co_return mine->outcome.error();
        }
        co_return std::move(mine->events);
    }

    task<result<void>> commit(std::vector<change> changes) override {
        auto mine = std::make_shared<request>();
        mine->changes = std::move(changes);
        if (!push(mine)) {
            co_return closed();
        }
        co_await mine->answered.wait();
        co_return mine->outcome;
    }

    void close() override {
        {
            const std::lock_guard lock(mutex_);
            closing_ = true;
        }
        wake_.notify_all();
        const std::lock_guard once(join_mutex_);
        if (thread_.joinable()) {
            thread_.join();
        }
    }

private:
    /// One transaction takes at most so many requests, so that the first of them does not wait for ever.
    static constexpr std::size_t group_limit = 1000;

    static error closed() { return {errc::unavailable, "the session store is closed"}; }

    bool push(const request_ptr& one) {
        {
            const std::lock_guard lock(mutex_);
            if (closing_) {
                return false;
            }
            queue_.push_back(one);
        }
        wake_.notify_one();
        return true;
    }

    void work() {
        for (;;) {
            std::deque<request_ptr> group;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [this] { return closing_ || !queue_.empty(); });
                if (queue_.empty()) {
                    break;
                }
                while (!queue_.empty() && group.size() < group_limit) {
                    group.push_back(std::move(queue_.front()));
                    queue_.pop_front();
                }
            }
            serve(group);
        }
        // The database itself is closed with its statements, in the destructor.
    }

    void serve(const std::deque<request_ptr>& group) {
        std::vector<request_ptr> writers;
        std::vector<request_ptr> readers; // they see what those before them wrote
        for (const auto& one : group) {
            if (one->is_load) {
                load_now(*one);
                one->answered.set();
            } else if (one->events_of) {
                readers.push_back(one);
            } else {
                writers.push_back(one);
            }
        }
        if (!writers.empty()) {
            write(writers);
        }
        for (const auto& one : writers) {
            one->answered.set();
        }
        for (const auto& one : readers) {
            read_events(*one);
            one->answered.set();
        }
    }

    void read_events(request& one) {
        auto all = records_.events(*one.events_of);
        if (all) {
            one.events = std::move(*all);
            one.outcome = result<void>();
        } else {
            one.outcome = all.error();
        }
    }

    void load_now(request& one) {
        auto all = records::load(db_.get());
        if (all) {
            one.loaded = std::move(*all);
            one.outcome = result<void>();
        } else {
            one.outcome = all.error();
        }
    }

    static bool only_puts_slots(const request_ptr& one) {
        return std::ranges::all_of(one->changes,
                                   [](const change& each) { return std::holds_alternative<put_slot>(each); });
    }

    /// Whether the next transaction is on the disk when it has ended: with it all before it are.
    result<void> sync(bool wanted) {
        if (wanted == syncs_) {
            return {};
        }
        auto set = execute(db_.get(), wanted ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
        if (set) {
            syncs_ = wanted;
        }
        return set;
    }

    void write(const std::vector<request_ptr>& writers) {
        auto done = sync(!std::ranges::all_of(writers, only_puts_slots));
        if (done) {
            done = execute(db_.get(), "BEGIN IMMEDIATE");
        }
        for (const auto& one : writers) {
            if (!done) {
                break;
            }
            one->outcome = apply_all(one->changes);
            // A full disk and the like end the whole transaction: what came before is undone too.
            if (::sqlite3_get_autocommit(db_.get()) != 0) {
                done = one->outcome ? result<void>(error{errc::io, "the session store lost its transaction"})
                                    : one->outcome;
            }
        }
        if (done) {
            done = execute(db_.get(), "COMMIT");
        }
        if (!done) {
            core::log::error("{}", done.error().message);
            if (::sqlite3_get_autocommit(db_.get()) == 0) {
                [[maybe_unused]] const auto undone = execute(db_.get(), "ROLLBACK");
            }
            for (const auto& one : writers) {
                one->outcome = done;
            }
        }
    }

    /// A savepoint each: what one request does wrong costs the others of its group nothing.
    result<void> apply_all(const std::vector<change>& changes) {
        if (auto begun = execute(db_.get(), "SAVEPOINT one"); !begun) {
            return begun;
        }
        result<void> done;
        for (const auto& one : changes) {
            if (done = records_.apply(one); !done) {
                [[maybe_unused]] const auto undone = execute(db_.get(), "ROLLBACK TO one");
                break;
            }
        }
        if (auto released = execute(db_.get(), "RELEASE one"); !released && done) {
            return released;
        }
        return done;
    }

    database db_;
    records records_;
    bool syncs_ = true; ///< as open_database() leaves it
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<request_ptr> queue_;
    bool closing_ = false;
    std::mutex join_mutex_;
    std::thread thread_;
};

} // namespace

result<std::unique_ptr<session_store>> open_sqlite_store(const std::string& path) {
    auto db = open_database(path);
    if (!db) {
        return db.error();
    }
    auto all = records::prepare(db->get());
    if (!all) {
        return all.error();
    }
    return std::unique_ptr<session_store>(std::make_unique<sqlite_store>(std::move(*db), std::move(*all)));
}

} // namespace sandboxd::store
