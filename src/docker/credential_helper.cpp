#include "docker/credential_helper.hpp"

#include "core/deadline.hpp"
#include "docker/child.hpp"
#include "net/connect.hpp"

#include <boost/asio/write.hpp>

#include <array>

namespace sandboxd::docker {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds helper_limit{30'000};
constexpr std::chrono::milliseconds helper_grace{1000};
constexpr std::size_t longest_answer = 64 * 1024;
constexpr auto tuple = asio::as_tuple(asio::use_awaitable);

struct spoken {
    std::string output;
    bool whole = false;
};

task<spoken> speak(net::stream& stream, std::string question) {
    spoken heard;
    (void)co_await asio::async_write(stream, asio::buffer(question), tuple);
    stream.shutdown_send();
    std::array<char, 4096> part{};
    while (heard.output.size() <= longest_answer) {
        const auto [failed, size] = co_await stream.async_read_some(asio::buffer(part), tuple);
        heard.output.append(part.data(), size);
        if (failed) {
            heard.whole = true; // a helper that leaves its question unread ends with a reset
            break;
        }
    }
    co_return heard;
}

task<result<credentials>> ask_helper(std::string helper, std::string server) {
    const auto executor = co_await asio::this_coro::executor;
    auto program = start_program({"docker-credential-" + helper, "get"});
    if (!program) {
        co_return error{errc::denied, "registry credentials for " + server + ": " + program.error().message};
    }
    auto stream = net::adopt(executor, std::move(program->socket));
    if (!stream) {
        co_return stream.error();
    }
    auto talk = speak(**stream, server + "\n");
    const auto heard = co_await core::with_timeout(std::move(talk), helper_limit);
    const auto code = heard ? co_await program->process->wait(helper_limit) : std::nullopt;
    if (!heard || !heard->whole || !code) {
        child::retire(executor, std::move(program->process), helper_grace);
        co_return error{errc::denied, "the credential helper for " + server + " did not answer properly"};
    }
    co_return read_helper_answer(server, *code, heard->output);
}

} // namespace

task<result<std::string>> registry_header(std::string folder, std::string registry, file_reader files) {
    auto source = find_credentials(folder, registry, files);
    if (!source) {
        co_return source.error();
    }
    if (source->helper.empty()) {
        co_return auth_header(source->found);
    }
    const auto found = co_await ask_helper(source->helper, source->server);
    if (!found) {
        co_return found.error();
    }
    co_return auth_header(*found);
}

} // namespace sandboxd::docker
