#include "agent/byte_ring.hpp"

#include <algorithm>
#include <cstring>

namespace sandboxd::agent {

namespace {

constexpr std::size_t first_capacity = 4096;
/// Kept when a ring empties, so that a busy stream does not allocate again and again.
constexpr std::size_t kept_capacity = 64 * 1024;

} // namespace

void byte_ring::grow(std::size_t least) {
    auto capacity = std::max(capacity_, first_capacity);
    while (capacity < least) {
        capacity *= 2;
    }
    std::unique_ptr<char[]> bytes(new char[capacity]);
    for (auto at = begin_; at < end_;) {
        iovec pieces[2];
        const int count = view(at, size(), pieces);
        for (int i = 0; i < count; ++i) {
            const auto* from = static_cast<const char*>(pieces[i].iov_base);
            for (std::size_t done = 0; done < pieces[i].iov_len;) {
                const auto to = static_cast<std::size_t>(at) & (capacity - 1);
                const auto step = std::min(pieces[i].iov_len - done, capacity - to);
                std::memcpy(bytes.get() + to, from + done, step);
                done += step;
                at += step;
            }
        }
    }
    bytes_ = std::move(bytes);
    capacity_ = capacity;
}

int byte_ring::prepare(std::size_t want, iovec (&pieces)[2]) {
    want = std::min(want, room());
    if (want == 0) {
        return 0;
    }
    if (capacity_ == size()) {
        grow(size() + 1);
    }
    want = std::min(want, capacity_ - size());
    return locate(end_, want, pieces);
}

void byte_ring::append(std::string_view bytes) {
    if (bytes.empty()) {
        return;
    }
    if (capacity_ - size() < bytes.size()) {
        grow(size() + bytes.size());
    }
    iovec pieces[2];
    const int count = prepare(bytes.size(), pieces);
    for (int i = 0; i < count; ++i) {
        std::memcpy(pieces[i].iov_base, bytes.data(), pieces[i].iov_len);
        bytes.remove_prefix(pieces[i].iov_len);
        commit(pieces[i].iov_len);
    }
}

int byte_ring::view(std::uint64_t offset, std::size_t want, iovec (&pieces)[2]) const {
    want = static_cast<std::size_t>(std::min<std::uint64_t>(want, end_ - offset));
    if (want == 0) {
        return 0;
    }
    return locate(offset, want, pieces);
}

int byte_ring::locate(std::uint64_t offset, std::size_t count, iovec (&pieces)[2]) const {
    const auto at = static_cast<std::size_t>(offset) & (capacity_ - 1);
    const auto first = std::min(count, capacity_ - at);
    pieces[0] = {bytes_.get() + at, first};
    if (first == count) {
        return 1;
    }
    pieces[1] = {bytes_.get(), count - first};
    return 2;
}

void byte_ring::release(std::uint64_t offset) {
    begin_ = std::max(begin_, std::min(offset, end_));
    if (begin_ == end_ && capacity_ > kept_capacity) {
        bytes_.reset();
        capacity_ = 0;
    }
}

} // namespace sandboxd::agent
