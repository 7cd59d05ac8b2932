// A name server that does not answer, in the place of the C library's look-up.

#include "core/deadline.hpp"
#include "net/connect.hpp"
#include "support/run.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <latch>
#include <netdb.h>
#include <string>
#include <string_view>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

constexpr std::string_view silent = "silent.invalid";
std::latch answered(1);

} // namespace

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
    if (host != nullptr && host == silent) {
        answered.wait();
        return EAI_AGAIN;
    }
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    return real(host, port, hints, found);
}

namespace {

task<std::string> connect_within(std::chrono::milliseconds limit) {
    auto executor = co_await asio::this_coro::executor;
    auto made = co_await core::with_timeout(net::connect_tcp(executor, std::string(silent), "2375"), limit);
    if (!made) {
        co_return "given up";
    }
    co_return *made ? "connected" : made->error().message;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_name_server_that_does_not_answer_can_be_given_up) {
    asio::io_context context;
    BOOST_TEST(test::get(context, connect_within(50ms)) == "given up");
    answered.count_down(); // the look-up's thread ends with the context
}
