#include "docker/program.hpp"

#include "core/deadline.hpp"
#include "docker/child.hpp"
#include "docker/line_cutter.hpp"
#include "net/connect.hpp"

#include <boost/asio/write.hpp>

#include <array>

namespace sandboxd::docker {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds end_grace{5000};
constexpr auto tuple = asio::as_tuple(asio::use_awaitable);

/// Runs "$@" with both streams in one, and ends it when its own input 3 ends: we are gone then, by kill -9
/// say, and nobody would be left to end it. It waits for the program even when told to end, so that no
/// process becomes an orphan, which nobody might reap where we are process 1.
constexpr const char* keeper = R"sh(
trap : TERM
exec 2>&1 4<&0
"$@" <&4 3<&- 4<&- &
program=$!
( trap - TERM; read -r nothing; kill -TERM 0 ) <&3 >/dev/null 2>&1 3<&- 4<&- &
guard=$!
exec 3<&- 4<&-
while wait "$program"; status=$?; kill -0 "$program"; do :; done 2>/dev/null
kill -KILL "$guard" 2>/dev/null
wait "$guard" 2>/dev/null
exit "$status"
)sh";

/// Tells the program to end when it is left before its end, however that comes.
struct leash {
    asio::any_io_executor executor;
    std::shared_ptr<child> process;
    ~leash() { child::retire(executor, std::move(process), end_grace); }
};

task<bool> talk(net::stream& stream, std::string input, std::function<void(const std::string&)> line) {
    (void)co_await asio::async_write(stream, asio::buffer(input), tuple);
    stream.shutdown_send();
    line_cutter lines(std::move(line));
    std::array<char, 8192> part{};
    for (;;) {
        const auto [failed, size] = co_await stream.async_read_some(asio::buffer(part), tuple);
        lines.add({part.data(), size});
        if (failed) {
            lines.end();
            co_return true;
        }
    }
}

} // namespace

task<result<program_end>> run_program(std::vector<std::string> argv, std::string input,
                                      std::function<void(const std::string&)> line,
                                      std::chrono::milliseconds limit) {
    const auto executor = co_await asio::this_coro::executor;
    const auto until = std::chrono::steady_clock::now() + limit;
    std::vector<std::string> kept{"/bin/sh", "-c", keeper, "sh"};
    kept.insert(kept.end(), argv.begin(), argv.end());
    auto program = start_program(kept, true);
    if (!program) {
        co_return program.error();
    }
    const leash held{executor, program->process};
    auto stream = net::adopt(executor, std::move(program->socket));
    if (!stream) {
        co_return stream.error();
    }
    auto words = talk(**stream, std::move(input), std::move(line));
    const auto said = co_await core::with_timeout(std::move(words), limit);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const auto code = said && left.count() > 0 ? co_await program->process->wait(left) : std::nullopt;
    if (!code) {
        co_return error{errc::timeout,
                        argv.front() + " did not end within " + std::to_string(limit.count() / 1000) + " s"};
    }
    co_return program_end{*code};
}

} // namespace sandboxd::docker
