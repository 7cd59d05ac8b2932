#include "launcher/client.hpp"

#include "core/deadline.hpp"
#include "core/event.hpp"
#include "core/gate.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "launcher/message.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace sandboxd::launcher {

namespace asio = boost::asio;

namespace {

using namespace std::chrono_literals;

constexpr auto attach_deadline = 10s;
constexpr auto remove_deadline = 30s;
constexpr auto list_deadline = 10s;
constexpr auto forget_deadline = 60s;
constexpr auto probe_deadline = 30s;
constexpr auto overrun = 40s; ///< the launcher ends a worker 30 s after its deadline

struct reply {
    answer_body body;
    std::vector<core::unique_fd> descriptors;
};

/// One request that waits for its answer.
struct pending {
    core::shared_event answered;
    std::optional<reply> answer; ///< written once, before `answered` is set
    progress_line tell;
};

error gone() {
    return {errc::unavailable, "the launcher process is gone: restart the service"};
}

class socket_client;

/// While somebody waits for the answer to a request. Left unanswered, be it by a cancellation or a deadline,
/// the launcher is told, where that makes a difference.
class waiting_place {
public:
    waiting_place(socket_client& of, std::uint64_t id, bool told) : of_(of), id_(id), told_(told) {}
    waiting_place(const waiting_place&) = delete;
    waiting_place& operator=(const waiting_place&) = delete;
    ~waiting_place();
    void answered() { told_ = false; }

private:
    socket_client& of_;
    std::uint64_t id_;
    bool told_;
};

class socket_client final : public client, public std::enable_shared_from_this<socket_client> {
public:
    socket_client(const asio::any_io_executor& executor, core::unique_fd socket)
        : strand_(asio::make_strand(executor)), socket_(strand_, socket.release()) {}

    void begin() { core::spawn(strand_, "the launcher's answers", running_, read_answers()); }

    task<result<live_sandbox>> start(start_sandbox request, std::chrono::milliseconds deadline) override {
        auto got = co_await call(std::move(request), deadline);
        co_return to_sandbox(std::move(got));
    }

    task<result<live_sandbox>> attach(std::string slot) override {
        attach_sandbox request{std::move(slot)};
        auto got = co_await call(std::move(request), attach_deadline);
        co_return to_sandbox(std::move(got));
    }

    task<result<void>> remove(std::string slot) override {
        remove_slot request{std::move(slot)};
        auto got = co_await call(std::move(request), remove_deadline);
        auto body = take<done>(std::move(got));
        co_return body ? result<void>() : result<void>(body.error());
    }

    task<result<void>> stop(std::string slot) override {
        stop_slot request{std::move(slot)};
        auto got = co_await call(std::move(request), remove_deadline);
        auto body = take<done>(std::move(got));
        co_return body ? result<void>() : result<void>(body.error());
    }

    task<result<std::vector<std::string>>> list() override {
        std::vector<std::string> all;
        while (true) {
            list_slots request{all.empty() ? std::string() : all.back()};
            auto got = co_await call(std::move(request), list_deadline);
            auto page = take<slot_list>(std::move(got));
            if (!page) {
                co_return page.error();
            }
            all.insert(all.end(), page->slots.begin(), page->slots.end());
            if (page->slots.size() < slots_page) {
                co_return all;
            }
        }
    }

    task<result<image_info>> import(import_image request, progress_line tell,
                                    std::chrono::milliseconds deadline) override {
        auto got = co_await call(std::move(request), deadline, std::move(tell));
        co_return take<image_info>(std::move(got));
    }

    task<result<image_info>> keep(keep_image request, std::chrono::milliseconds deadline) override {
        auto got = co_await call(std::move(request), deadline);
        co_return take<image_info>(std::move(got));
    }

    task<result<std::vector<std::string>>> images() override {
        std::vector<std::string> all;
        while (true) {
            list_images request{all.empty() ? std::string() : all.back()};
            auto got = co_await call(std::move(request), list_deadline);
            auto page = take<image_names>(std::move(got));
            if (!page) {
                co_return page.error();
            }
            all.insert(all.end(), page->references.begin(), page->references.end());
            if (page->references.size() < images_page) {
                co_return all;
            }
        }
    }

    task<result<void>> forget(std::vector<std::string> references) override {
        std::size_t at = 0;
        do { // as many as a message holds; none at all is a request too
            const auto end = std::min(references.size(), at + images_page);
            forget_images request;
            request.references.assign(references.begin() + static_cast<std::ptrdiff_t>(at),
                                      references.begin() + static_cast<std::ptrdiff_t>(end));
            at = end;
            auto got = co_await call(std::move(request), forget_deadline);
            if (auto body = take<done>(std::move(got)); !body) {
                co_return body.error();
            }
        } while (at < references.size());
        co_return result<void>();
    }

    task<result<host_features>> probe() override {
        auto got = co_await call(probe_host{}, probe_deadline);
        co_return take<host_features>(std::move(got));
    }

    std::shared_ptr<core::shared_event> lost() const override { return lost_; }

    task<void> close() override {
        running_.close();
        asio::dispatch(strand_, [self = shared_from_this()] {
            boost::system::error_code ignored;
            self->socket_.close(ignored);
        });
        co_await running_.drained();
        fail_all();
    }

    /// Nobody waits for that request any more.
    void leave(std::uint64_t id, bool told) {
        const std::lock_guard lock(mutex_);
        pending_.erase(id);
        if (told && !closed_) {
            // Where the socket is full the request's own deadline ends it.
            static_cast<void>(
                send_packet(socket_.native_handle(), encode(request{++last_id_, {}, give_up{id}}), {}));
        }
    }

private:
    /// A failure on the way is an answer too.
    task<reply> call(request_body body, std::chrono::milliseconds deadline, progress_line tell = {}) {
        const auto self = shared_from_this();
        request message;
        message.id = ++last_id_;
        message.deadline = deadline;
        message.body = std::move(body);
        auto waiting = std::make_shared<pending>();
        waiting->tell = std::move(tell);
        {
            const std::lock_guard lock(mutex_);
            if (closed_) {
                co_return reply{gone(), {}};
            }
            pending_[message.id] = waiting;
        }
        waiting_place place(*this, message.id, std::holds_alternative<import_image>(message.body));
        const auto text = encode(message);
        if (auto sent = co_await send(text); !sent) {
            co_return reply{sent.error(), {}};
        }
        const bool in_time = co_await waiting->answered.wait_for(deadline + overrun);
        if (!in_time) {
            co_return reply{error{errc::timeout, "the launcher does not answer"}, {}};
        }
        place.answered();
        co_return std::move(*waiting->answer);
    }

    /// A packet goes out whole or not at all, so senders need no turn; a full socket is waited out.
    task<result<void>> send(const std::string& text) {
        while (true) {
            {
                const std::lock_guard lock(mutex_);
                if (closed_) {
                    co_return gone();
                }
                switch (send_packet(socket_.native_handle(), text, {})) {
                case transfer::complete:
                    co_return result<void>();
                case transfer::closed:
                    co_return gone();
                case transfer::failed:
                    co_return error{errc::invalid,
                                    "a request of " + std::to_string(text.size()) +
                                        " bytes is too long for the launcher (environment, paths)"};
                case transfer::would_block:
                    break;
                }
            }
            static_cast<void>(co_await core::sleep_for(2ms));
        }
    }

    task<void> read_answers() {
        const auto self = shared_from_this();
        packet received;
        while (socket_.is_open()) {
            const auto [failed] = co_await socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                                                              asio::as_tuple(asio::use_awaitable));
            if (failed || !read_all(received)) {
                break;
            }
        }
        fail_all();
    }

    /// False at the end.
    bool read_all(packet& received) {
        while (true) {
            switch (receive_packet(socket_.native_handle(), received)) {
            case transfer::would_block:
                return true;
            case transfer::complete:
                break;
            case transfer::closed:
                return false;
            case transfer::failed:
                core::log::error("the launcher's socket failed");
                return false;
            }
            auto message = decode_answer(received.text);
            if (!message) {
                core::log::error("{}", message.error().message);
                return false;
            }
            deliver(std::move(*message), std::move(received.descriptors));
        }
    }

    void deliver(answer message, std::vector<core::unique_fd> descriptors) {
        if (const auto* line = std::get_if<progress>(&message.body)) {
            tell(message.id, line->text);
            return;
        }
        std::shared_ptr<pending> waiting;
        {
            const std::lock_guard lock(mutex_);
            const auto found = pending_.find(message.id);
            if (found == pending_.end()) {
                return; // nobody waits any more; the descriptors close here
            }
            waiting = found->second;
            pending_.erase(found);
        }
        waiting->answer = reply{std::move(message.body), std::move(descriptors)};
        waiting->answered.set();
    }

    void tell(std::uint64_t id, const std::string& line) {
        std::shared_ptr<pending> waiting;
        {
            const std::lock_guard lock(mutex_);
            const auto found = pending_.find(id);
            waiting = found == pending_.end() ? nullptr : found->second;
        }
        if (waiting && waiting->tell) {
            waiting->tell(line);
        } else {
            core::log::info("{}", line);
        }
    }

    void fail_all() {
        std::map<std::uint64_t, std::shared_ptr<pending>> left;
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            left.swap(pending_);
        }
        for (auto& [id, waiting] : left) {
            waiting->answer = reply{gone(), {}};
            waiting->answered.set();
        }
        lost_->set();
    }

    template <class T>
    static result<T> take(reply got) {
        if (auto* failure = std::get_if<error>(&got.body)) {
            return std::move(*failure);
        }
        if (auto* body = std::get_if<T>(&got.body)) {
            return std::move(*body);
        }
        return error{errc::protocol, "the launcher answered something else"};
    }

    static result<live_sandbox> to_sandbox(reply got) {
        auto descriptors = std::move(got.descriptors);
        auto facts = take<sandbox_started>(std::move(got));
        if (!facts) {
            return facts.error();
        }
        if (descriptors.size() != 2) {
            return error{errc::protocol, "the launcher sent no descriptors"};
        }
        live_sandbox made;
        made.facts = *facts;
        made.pidfd = std::move(descriptors[0]);
        made.socket = std::move(descriptors[1]);
        return made;
    }

    asio::strand<asio::any_io_executor> strand_;
    asio::posix::stream_descriptor socket_;
    std::atomic<std::uint64_t> last_id_{0};
    std::mutex mutex_;
    bool closed_ = false;
    std::map<std::uint64_t, std::shared_ptr<pending>> pending_;
    std::shared_ptr<core::shared_event> lost_ = std::make_shared<core::shared_event>();
    core::gate running_;
};

waiting_place::~waiting_place() {
    of_.leave(id_, told_);
}

} // namespace

std::shared_ptr<client> create_client(asio::any_io_executor executor, core::unique_fd socket) {
    auto made = std::make_shared<socket_client>(executor, std::move(socket));
    made->begin();
    return made;
}

} // namespace sandboxd::launcher
