#include "agent/output_channel.hpp"

#include <algorithm>

namespace sandboxd::agent {

int output_channel::prepare(iovec (&pieces)[2]) {
    return ring_.prepare(static_cast<std::size_t>(std::min<std::uint64_t>(keep_ - ring_.end(), SIZE_MAX)),
                         pieces);
}

void output_channel::forget() {
    keep_ = ring_.end();
    ring_.release(ring_.end());
    sent_ = highest_ = ring_.end();
}

void output_channel::take(std::string& out, std::uint32_t stream, protocol::channel which, std::size_t most) {
    iovec pieces[2];
    const int count = ring_.view(sent_, most, pieces);
    std::size_t length = 0;
    for (int i = 0; i < count; ++i) {
        length += pieces[i].iov_len;
    }
    const auto header =
        protocol::encode_header({static_cast<std::uint32_t>(length), protocol::frame_type::data,
                                 static_cast<std::uint8_t>(which), stream});
    out.append(header.data(), header.size());
    for (int i = 0; i < count; ++i) {
        out.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
    }
    sent_ += length;
    highest_ = std::max(highest_, sent_);
}

bool output_channel::credit(std::uint64_t count) {
    if (count > highest_) {
        return false;
    }
    ring_.release(count);
    sent_ = std::max(sent_, ring_.begin());
    return true;
}

bool output_channel::resume(std::uint64_t offset) {
    if (offset < ring_.begin() || offset > highest_) {
        return false;
    }
    sent_ = offset;
    return true;
}

} // namespace sandboxd::agent
