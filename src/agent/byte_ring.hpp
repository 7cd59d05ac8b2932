#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace sandboxd::agent {

/// Bytes of a stream from one absolute offset to another, at most `limit` of them. Memory grows with what is
/// really held and is given back when it empties.
class byte_ring {
public:
    explicit byte_ring(std::size_t limit) : limit_(limit) {}

    [[nodiscard]] std::uint64_t begin() const { return begin_; }
    [[nodiscard]] std::uint64_t end() const { return end_; }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
    [[nodiscard]] std::size_t room() const { return limit_ - size(); }

    /// Free space to write into, in one or two pieces of together at most `want` and at least 1 byte (none
    /// when room() is 0). Returns the number of pieces.
    [[nodiscard]] int prepare(std::size_t want, iovec (&pieces)[2]);
    /// The first `count` bytes of what prepare() gave are now held.
    void commit(std::size_t count) { end_ += count; }
    /// Appends a copy; the caller has checked room().
    void append(std::string_view bytes);

    /// Up to `want` held bytes from `offset` on (begin() <= offset <= end()). Returns the number of pieces.
    [[nodiscard]] int view(std::uint64_t offset, std::size_t want, iovec (&pieces)[2]) const;

    /// Drops what is before `offset` (at most end()).
    void release(std::uint64_t offset);

private:
    void grow(std::size_t least);
    /// The one or two pieces of memory where `count` (at least 1) bytes from `offset` on lie.
    [[nodiscard]] int locate(std::uint64_t offset, std::size_t count, iovec (&pieces)[2]) const;

    std::size_t limit_;
    std::size_t capacity_ = 0; ///< a power of two, or 0
    std::unique_ptr<char[]> bytes_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

} // namespace sandboxd::agent
