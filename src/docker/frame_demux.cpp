#include "docker/frame_demux.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <span>

namespace sandboxd::docker {

answer<void> frame_demux::take_header(std::string_view& bytes) {
    while (have_ < header_.size() && !bytes.empty()) {
        const auto byte = static_cast<unsigned char>(bytes.front());
        header_.at(have_++) = byte;
        bytes.remove_prefix(1);
        // Judged byte by byte: a short tail of stray bytes is told from a cut frame.
        if ((have_ == 1 && byte > 3) || (have_ > 1 && have_ <= 4 && byte != 0)) {
            broken_ = "the output stream is out of step: a frame cannot begin with the bytes " +
                      core::to_hex(std::span(header_.data(), have_));
            if (!bytes.empty()) {
                const auto* rest = reinterpret_cast<const unsigned char*>(bytes.data());
                broken_ += " " + core::to_hex(std::span(rest, std::min<std::size_t>(bytes.size(), 16)));
            }
            return no_answer(errc::protocol, broken_);
        }
    }
    if (have_ == header_.size()) {
        to_ = static_cast<channel>(header_[0]);
        left_ = std::uint32_t{header_[4]} << 24U | std::uint32_t{header_[5]} << 16U |
                std::uint32_t{header_[6]} << 8U | std::uint32_t{header_[7]};
        if (left_ == 0) {
            have_ = 0; // an empty frame is no end-of-file
        }
    }
    return {};
}

answer<void> frame_demux::feed(std::string_view bytes, const sink& each) {
    if (!broken_.empty()) {
        return no_answer(errc::protocol, broken_);
    }
    while (!bytes.empty()) {
        if (left_ == 0) {
            if (auto taken = take_header(bytes); !taken) {
                return taken;
            }
            continue;
        }
        const std::size_t part = std::min<std::size_t>(left_, bytes.size());
        each(to_, bytes.substr(0, part));
        bytes.remove_prefix(part);
        left_ -= static_cast<std::uint32_t>(part);
        if (left_ == 0) {
            have_ = 0;
        }
    }
    return {};
}

answer<void> frame_demux::finish() const {
    if (!broken_.empty()) {
        return no_answer(errc::protocol, broken_);
    }
    if (left_ != 0) {
        return no_answer(errc::protocol, "the output stream ended " + std::to_string(left_) +
                                             " bytes before the end of a frame");
    }
    if (have_ != 0) {
        return no_answer(errc::protocol, "the output stream ended in the middle of a frame's header: " +
                                             core::to_hex(std::span(header_.data(), have_)));
    }
    return {};
}

} // namespace sandboxd::docker
