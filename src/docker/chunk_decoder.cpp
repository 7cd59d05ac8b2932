#include "docker/chunk_decoder.hpp"

#include <algorithm>
#include <charconv>

namespace sandboxd::docker {

namespace {
constexpr std::size_t longest_line = 4096;

engine_error bad(std::string_view what) {
    return no_answer(errc::protocol, "the stream's chunked coding is broken: " + std::string(what));
}
} // namespace

answer<void> chunk_decoder::take_size() {
    const std::size_t digits = line_.find_first_of("; \t");
    const std::string_view number = std::string_view(line_).substr(0, digits);
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), left_, 16);
    if (failed != std::errc{} || end != number.data() + number.size() || number.empty()) {
        return bad("no chunk size");
    }
    state_ = left_ == 0 ? state::trailer : state::data;
    return {};
}

answer<void> chunk_decoder::take_line(char c) {
    if (c != '\n') {
        if (line_.size() == longest_line) {
            return bad("a line without an end");
        }
        line_.push_back(c);
        return {};
    }
    if (line_.empty() || line_.back() != '\r') {
        return bad("a line must end with CR LF");
    }
    line_.pop_back();
    answer<void> taken;
    if (state_ == state::size) {
        taken = take_size();
    } else if (state_ == state::data_end) {
        if (!line_.empty()) {
            return bad("a chunk is longer than its size");
        }
        state_ = state::size;
    } else if (line_.empty()) {
        state_ = state::done;
    }
    line_.clear();
    return taken;
}

answer<void> chunk_decoder::feed(std::string_view bytes, std::string& out) {
    while (!bytes.empty() && state_ != state::done) {
        if (state_ == state::data) {
            const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
            out.append(bytes.substr(0, part));
            bytes.remove_prefix(part);
            left_ -= part;
            if (left_ == 0) {
                state_ = state::data_end;
            }
            continue;
        }
        if (auto taken = take_line(bytes.front()); !taken) {
            return taken;
        }
        bytes.remove_prefix(1);
    }
    return {};
}

answer<void> chunk_decoder::finish() const {
    if (state_ != state::done) {
        return bad("the stream ended before the last chunk");
    }
    return {};
}

} // namespace sandboxd::docker
