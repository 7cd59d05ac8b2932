#pragma once

#include "core/fd.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::test {

struct answer {
    unsigned status = 0;
    std::vector<std::pair<std::string, std::string>> headers; ///< names in lower case
    std::string body;
    std::vector<unsigned> interim; ///< 1xx answers that came before

    /// Empty when absent.
    [[nodiscard]] std::string header(std::string_view name) const;
    [[nodiscard]] std::size_t count(std::string_view name) const;
};

/// A blocking client that says exactly what it is told, byte by byte. Reads fail after a minute.
class client {
public:
    explicit client(std::uint16_t port);

    void send(std::string_view bytes);
    /// As much as the other side takes; false when it broke the connection meanwhile.
    bool try_send(std::string_view bytes);
    /// The next whole answer, after any interim ones. Nothing at the end of the connection.
    std::optional<answer> read();
    answer expect(); ///< the same, required
    /// The status of the next answer that has a head only (1xx), once it comes. Nothing at the end of the
    /// connection.
    std::optional<unsigned> interim();
    /// Everything until the end; nothing when the connection was reset.
    std::optional<std::string> read_to_end();
    /// Whether the other side has closed (within the read timeout).
    bool at_end();
    void half_close();
    void reset(); ///< closes with RST

    [[nodiscard]] int fd() const { return socket_.get(); }

private:
    bool fill();
    std::optional<std::string> line();
    bool take(std::size_t bytes, std::string& into);
    std::optional<answer> read_one();

    core::unique_fd socket_;
    std::string input_;
    bool reset_ = false;
};

} // namespace sandboxd::test
