#pragma once

// net: type-erased byte streams and listeners. Everything above (HTTP server, agent channels, Engine client)
// is compiled once against `stream`, whatever carries it: TCP, TLS, a Unix socket. Objects run on the
// executor they were made with.

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace sandboxd::net {

namespace asio = boost::asio;

using io_handler = asio::any_completion_handler<void(boost::system::error_code, std::size_t)>;

/// One duplex byte stream. At most one read and one write at a time; calls come from its executor (a strand
/// where several threads run the context). Per-operation cancellation is passed through.
class stream {
public:
    static constexpr std::size_t max_buffers = 16;

    virtual ~stream() = default;

    virtual asio::any_io_executor get_executor() = 0;
    virtual void read_some(asio::mutable_buffer buffer, io_handler handler) = 0;
    virtual void write_some(std::span<const asio::const_buffer> buffers, io_handler handler) = 0;

    /// Sends what can be sent at once, and says how many bytes that was: 0 when it would have to wait, when
    /// it fails (write_some() then says why), and from streams that can't tell. Not during a write_some().
    virtual std::size_t write_now(std::span<const asio::const_buffer> /*buffers*/) { return 0; }

    /// Half-close: nothing more is sent. Errors are ignored.
    virtual void shutdown_send() = 0;

    /// Ends pending operations with operation_aborted and frees the descriptor. Idempotent.
    virtual void close() noexcept = 0;

    virtual int native_handle() const noexcept = 0;

    /// AsyncReadStream and AsyncWriteStream for Beast and asio::async_write.
    using executor_type = asio::any_io_executor;

    template <class Buffers, class Token>
    auto async_read_some(const Buffers& buffers, Token&& token) {
        return asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
            [this](auto handler, asio::mutable_buffer first) {
                read_some(first, io_handler(std::move(handler)));
            },
            token, first_of(buffers));
    }

    template <class Buffers, class Token>
    auto async_write_some(const Buffers& buffers, Token&& token) {
        std::array<asio::const_buffer, max_buffers> list;
        std::size_t count = 0;
        for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers); ++it) {
            asio::const_buffer buffer(*it);
            if (buffer.size() == 0) {
                continue;
            }
            if (count == max_buffers) {
                break;
            }
            list[count++] = buffer;
        }
        return asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
            [this](auto handler, std::array<asio::const_buffer, max_buffers> all, std::size_t used) {
                write_some(std::span(all.data(), used), io_handler(std::move(handler)));
            },
            token, list, count);
    }

private:
    template <class Buffers>
    static asio::mutable_buffer first_of(const Buffers& buffers) {
        for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers); ++it) {
            asio::mutable_buffer buffer(*it);
            if (buffer.size() != 0) {
                return buffer;
            }
        }
        return {};
    }
};

using stream_ptr = std::unique_ptr<stream>;

} // namespace sandboxd::net
