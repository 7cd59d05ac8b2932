# What nearly every source of the service includes, parsed once. Only for targets with exactly the flags of
# sandboxd_options; the shipped agent is built without it.
add_library(sandboxd_precompiled STATIC "${CMAKE_SOURCE_DIR}/cmake/precompiled.cpp")
target_link_libraries(sandboxd_precompiled PUBLIC sandboxd_public)
target_precompile_headers(
    sandboxd_precompiled
    PRIVATE
    <boost/asio/any_completion_handler.hpp>
    <boost/asio/any_io_executor.hpp>
    <boost/asio/awaitable.hpp>
    <boost/asio/as_tuple.hpp>
    <boost/asio/co_spawn.hpp>
    <boost/asio/io_context.hpp>
    <boost/asio/ip/tcp.hpp>
    <boost/asio/local/stream_protocol.hpp>
    <boost/asio/post.hpp>
    <boost/asio/steady_timer.hpp>
    <boost/asio/strand.hpp>
    <boost/asio/this_coro.hpp>
    <boost/asio/use_awaitable.hpp>
    <boost/json.hpp>
    <boost/system/result.hpp>
    <spdlog/fmt/fmt.h>
    <algorithm>
    <array>
    <chrono>
    <functional>
    <map>
    <memory>
    <optional>
    <string>
    <string_view>
    <variant>
    <vector>)
