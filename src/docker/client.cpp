#include "docker/client.hpp"

#include "core/deadline.hpp"
#include "docker/json.hpp"

namespace sandboxd::docker {

namespace {

bool safe_to_repeat(const request& what) {
    return what.method == "GET" || what.method == "HEAD";
}

engine_error named(engine_error e, const std::string& what) {
    e.message = "cannot " + what + ": " + e.message;
    return e;
}

} // namespace

client::client(boost::asio::any_io_executor strand, std::shared_ptr<dialer> dialer,
               std::optional<api_version> pinned, std::string path_prefix, client_options options)
    : strand_(std::move(strand)),
      dialer_(std::move(dialer)),
      pinned_(pinned),
      path_prefix_(std::move(path_prefix)),
      options_(std::move(options)),
      pool_(strand_, options_.pool),
      hijacked_(std::make_shared<std::atomic<std::size_t>>(0)) {}

template <class T>
task<answer<T>> client::bounded(task<answer<T>> work, std::string what, std::chrono::milliseconds limit,
                                std::shared_ptr<progress> state) {
    auto done = co_await core::with_timeout(std::move(work), limit);
    if (!done) {
        co_return no_answer(errc::timeout,
                            "cannot " + what + ": no answer from the daemon within " +
                                std::to_string(limit.count()) + " ms",
                            state->sent);
    }
    if (done->has_error() && done->error().status == 0) {
        co_return named(std::move(done->error()), what);
    }
    co_return std::move(*done);
}

task<answer<std::unique_ptr<connection>>> client::dial(boost::asio::any_io_executor executor) {
    auto link = co_await dialer_->dial(executor);
    if (!link) {
        // Which of our codes it is says little: a daemon that can't be reached is what matters.
        const auto code = link.error().code == errc::denied ? errc::denied : errc::unavailable;
        co_return no_answer(code, "cannot reach the docker daemon: " + link.error().message);
    }
    co_return std::make_unique<connection>(std::move(*link), dialer_->host());
}

task<answer<std::string>> client::read_body(connection& one) {
    std::string body;
    std::vector<char> part(16384);
    while (true) {
        auto got = co_await one.read_some(part);
        if (!got) {
            co_return got.error();
        }
        if (*got == 0) {
            co_return body;
        }
        if (body.size() + *got > options_.largest_body) {
            co_return no_answer(errc::protocol, "the daemon's answer is larger than " +
                                                    std::to_string(options_.largest_body) + " bytes");
        }
        body.append(part.data(), *got);
    }
}

task<answer<reply>> client::exchange(connection& one, const request& what, std::string prefix,
                                     std::shared_ptr<progress> state) {
    state->sent = true;
    const auto sent = co_await one.send(what, std::move(prefix));
    auto head = co_await one.read_head(what.method == "HEAD");
    if (!head) {
        auto failed = sent ? head.error() : sent.error();
        failed.may_have_happened = !safe_to_repeat(what);
        co_return failed;
    }
    auto body = co_await read_body(one);
    if (!body) {
        auto failed = body.error();
        failed.may_have_happened = !safe_to_repeat(what);
        co_return failed;
    }
    reply got;
    got.head = std::move(*head);
    got.body = std::move(*body);
    co_return got;
}

task<answer<reply>> client::ask(std::string method, std::string target) {
    request what;
    what.method = std::move(method);
    what.target = std::move(target);
    auto one = co_await dial(strand_);
    if (!one) {
        co_return one.error();
    }
    auto got = co_await exchange(**one, what, path_prefix_, std::make_shared<progress>());
    if (got) {
        pool_.keep(std::move(*one));
    }
    co_return got;
}

task<answer<api_version>> client::ask_version() {
    if (agreed_) {
        co_return *agreed_;
    }
    auto pinged = co_await ask("HEAD", "/_ping");
    if (!pinged || pinged->head.status >= 400) {
        pinged = co_await ask("GET", "/_ping");
    }
    if (!pinged) {
        co_return pinged.error();
    }
    if (pinged->head.status >= 400) {
        co_return from_answer("ping the daemon", pinged->head.status, pinged->body);
    }
    auto newest = parse_version(pinged->head.api_version);
    std::optional<api_version> oldest;
    // Only /version tells the oldest; a proxy may refuse it, then we go by the header alone.
    const auto asked = co_await ask("GET", "/version");
    if (asked && asked->head.status == 200) {
        if (const auto told = json_object(asked->body)) {
            const auto said = parse_version(text_at(*told, "ApiVersion").value_or(""));
            newest = newest ? newest : said;
            oldest = parse_version(text_at(*told, "MinAPIVersion").value_or(""));
        }
    }
    auto agreed = negotiate(newest, oldest, pinned_);
    if (agreed) {
        agreed_ = *agreed;
    }
    co_return agreed;
}

task<answer<api_version>> client::version(std::chrono::milliseconds limit) {
    return bounded(ask_version(), "agree on a version with the daemon", limit, std::make_shared<progress>());
}

task<answer<std::string>> client::prefix() {
    const auto agreed = co_await ask_version();
    if (!agreed) {
        co_return agreed.error();
    }
    co_return path_prefix_ + "/v" + agreed->text();
}

task<answer<reply>> client::call_now(request what, std::shared_ptr<progress> state) {
    auto slot = co_await pool_.enter();
    auto versioned = co_await prefix();
    if (!versioned) {
        co_return versioned.error();
    }
    auto one = pool_.take();
    while (true) {
        const bool kept = one != nullptr;
        if (!kept) {
            auto fresh = co_await dial(strand_);
            if (!fresh) {
                agreed_.reset(); // whatever comes back may be another version
                pool_.forget();
                co_return fresh.error();
            }
            one = std::move(*fresh);
        }
        auto got = co_await exchange(*one, what, *versioned, state);
        if (got) {
            pool_.keep(std::move(one));
            co_return got;
        }
        if (!kept || one->answered() || !safe_to_repeat(what)) {
            co_return got;
        }
        one.reset();
        pool_.forget();
    }
}

task<answer<reply>> client::call(request what, std::chrono::milliseconds limit) {
    auto state = std::make_shared<progress>();
    const std::string name = what.what;
    return bounded(call_now(std::move(what), state), name, limit, state);
}

task<answer<open_reply>> client::open_now(request what, std::shared_ptr<progress> state) {
    auto versioned = co_await prefix();
    if (!versioned) {
        co_return versioned.error();
    }
    auto one = co_await dial(strand_);
    if (!one) {
        agreed_.reset();
        pool_.forget();
        co_return one.error();
    }
    state->sent = true;
    const auto sent = co_await (*one)->send(what, *versioned);
    auto head = co_await (*one)->read_head(false);
    if (!head) {
        auto failed = sent ? head.error() : sent.error();
        failed.may_have_happened = !safe_to_repeat(what);
        co_return failed;
    }
    if (head->status >= 300) {
        const auto body = co_await read_body(**one);
        co_return from_answer(what.what, head->status, body ? *body : std::string());
    }
    open_reply opened(std::move(*head), std::move(*one));
    co_return opened;
}

task<answer<open_reply>> client::open(request what, std::chrono::milliseconds limit) {
    auto state = std::make_shared<progress>();
    const std::string name = what.what;
    return bounded(open_now(std::move(what), state), name, limit, state);
}

} // namespace sandboxd::docker
