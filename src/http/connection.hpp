#pragma once

// Private to the room: one connection, from its first byte to its last. Its coroutine owns it; everything
// runs on the stream's strand.

#include "http/budget.hpp"
#include "http/check.hpp"
#include "http/exchange.hpp"
#include "http/format.hpp"
#include "http/server.hpp"
#include "http/watchdog.hpp"
#include "net/stream.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::http {

/// What all connections of a server share; outlives them.
struct connection_context {
    handler on_request;
    memory_budget& budget;
    limits bounds;
};

class connection final : public exchange, private body_reader, private responder {
public:
    connection(const connection_context& shared, net::stream_ptr stream, std::string peer, bool secure);
    ~connection() override;

    /// Serves requests until the connection ends. Called once.
    [[nodiscard]] task<void> run();

    /// The server stops: an idle connection is closed, a busy one after its answer.
    void wind_down();

    /// The grace is over: everything ends now. The coroutine is to be cancelled as well.
    void abort() noexcept;

private:
    using time_point = std::chrono::steady_clock::time_point;
    using parser_type = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

    enum class phase { idle, head, handler, closing };

    // exchange
    [[nodiscard]] const request_head& head() const noexcept override { return head_; }
    [[nodiscard]] body_reader& body() noexcept override { return *this; }
    [[nodiscard]] responder& answer() noexcept override { return *this; }
    [[nodiscard]] task<body_result<void>> hold(std::uint64_t bytes) override;

    // body_reader (connection_body.cpp)
    [[nodiscard]] std::optional<std::uint64_t> declared_length() const noexcept override;
    [[nodiscard]] task<body_result<std::string>> read_all(std::uint64_t limit) override;
    [[nodiscard]] task<body_result<std::size_t>> read_some(std::span<char> into) override;
    [[nodiscard]] task<body_result<void>> drain(std::uint64_t limit) override;

    // responder (connection_answer.cpp)
    [[nodiscard]] task<void> send(reply answer) override;
    [[nodiscard]] task<bool> interim(unsigned status) override;
    [[nodiscard]] task<bool> begin(unsigned status, header_list headers) override;
    [[nodiscard]] task<bool> write(std::string_view piece) override;
    [[nodiscard]] task<bool> end() override;
    [[nodiscard]] bool started() const noexcept override { return answer_ != answer_state::none; }
    [[nodiscard]] bool gone() const noexcept override;
    [[nodiscard]] bool half_closed() const noexcept override;

    // The loop (connection.cpp)
    void renew_parser();
    void begin_request();
    [[nodiscard]] task<bool> read_head();
    [[nodiscard]] task<bool> parse_head();
    [[nodiscard]] std::optional<head_fault> understand(std::size_t raw_bytes);
    [[nodiscard]] task<void> serve();
    [[nodiscard]] task<void> call_handler();
    [[nodiscard]] task<void> finish_body();
    [[nodiscard]] task<void> reject(head_fault fault);
    [[nodiscard]] task<void> linger();
    void log_access() const;
    void expired();

    // Input and output (connection_io.cpp)
    /// Bytes read; 0 when the peer sends no more, the deadline passed or the connection is broken.
    [[nodiscard]] task<std::size_t> receive(boost::asio::mutable_buffer into);
    /// The same into the input buffer.
    [[nodiscard]] task<std::size_t> receive_more();
    /// All of the buffers; false when the client has gone.
    [[nodiscard]] task<bool> transmit(std::span<boost::asio::const_buffer> buffers);
    [[nodiscard]] task<bool> transmit(std::string_view one);

    // The body's way in
    [[nodiscard]] task<body_result<std::size_t>> pull(char* into, std::size_t size);
    [[nodiscard]] task<body_result<std::size_t>> pull_counted(char* into, std::size_t size);
    [[nodiscard]] task<body_result<std::size_t>> pull_chunked(char* into, std::size_t size);
    /// In the budget: for bytes that are there already, or for those to come.
    [[nodiscard]] task<body_result<void>> make_room(std::uint64_t bytes, bool present);
    [[nodiscard]] task<body_result<std::string>> read_counted();
    [[nodiscard]] task<body_result<std::string>> read_chunked(std::uint64_t limit);
    [[nodiscard]] bool body_left() const noexcept;
    [[nodiscard]] bool body_drainable() const noexcept;
    void set_body_deadline();
    body_fault broken_body();

    // The answer's way out
    [[nodiscard]] std::string_view connection_field();
    void start_answer(unsigned status, const header_list& headers, answer_framing framing,
                      std::uint64_t length);

    const connection_context& shared_;
    net::stream_ptr stream_;
    std::string peer_;
    bool secure_;
    std::shared_ptr<watchdog> watch_;
    boost::beast::flat_buffer input_;
    phase phase_ = phase::idle;
    bool winding_down_ = false;
    bool aborted_ = false;
    bool late_ = false;    ///< the watchdog cut the input
    bool ended_ = false;   ///< the peer sends no more
    bool broken_ = false;  ///< writing failed
    bool writing_ = false; ///< the watchdog guards a write
    bool keep_ = true;     ///< another request may follow
    bool linger_ = false;  ///< the peer may still be sending

    // Of the request at hand
    std::optional<parser_type> parser_;
    std::size_t head_looked_at_ = 0; ///< bytes of an unfinished head
    std::vector<header_view> fields_;
    request_head head_;
    std::string request_id_;
    time_point began_;
    head_facts facts_;
    std::uint64_t body_remaining_ = 0; ///< of a counted body
    std::uint64_t body_received_ = 0;
    time_point body_began_;
    time_point body_until_ = time_point::max(); ///< whatever its pace
    bool body_begun_ = false;
    bool chunks_done_ = false;
    std::optional<body_fault> body_fault_; ///< after which nothing more can be read
    memory_budget::lease lease_;

    enum class answer_state { none, open, done };
    answer_state answer_ = answer_state::none;
    answer_framing framing_ = answer_framing::length;
    std::string output_; ///< head of the answer, reused
    unsigned status_ = 0;
    std::uint64_t sent_ = 0;
};

} // namespace sandboxd::http
