#include "docker/json_stream.hpp"

namespace sandboxd::docker {

namespace {

json::parse_options limits() {
    json::parse_options options;
    options.max_depth = 64;
    return options;
}

bool blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

} // namespace

json_stream::json_stream(std::size_t largest) : parser_({}, limits()), largest_(largest) {}

answer<void> json_stream::feed(std::string_view bytes, const sink& each) {
    while (true) {
        if (size_ == 0) {
            while (!bytes.empty() && blank(bytes.front())) {
                bytes.remove_prefix(1);
            }
            if (bytes.empty()) {
                return {};
            }
            // Anything but an object would be a scalar whose end can't be seen.
            if (bytes.front() != '{') {
                return no_answer(errc::protocol,
                                 "the daemon's stream holds something that is no JSON object: " +
                                     words_of(bytes.substr(0, 100)));
            }
            parser_.reset();
        }
        if (bytes.empty()) {
            return {};
        }
        boost::system::error_code failed;
        const std::size_t used = parser_.write_some(bytes.data(), bytes.size(), failed);
        size_ += used;
        if (failed) {
            return no_answer(errc::protocol, "the daemon's stream holds invalid JSON: " + failed.message());
        }
        if (size_ > largest_) {
            return no_answer(errc::protocol, "the daemon's stream holds an object of more than " +
                                                 std::to_string(largest_) + " bytes");
        }
        bytes.remove_prefix(used);
        if (parser_.done()) {
            size_ = 0;
            each(std::move(parser_.release().get_object()));
        } else if (used == 0) {
            return {};
        }
    }
}

answer<void> json_stream::finish() const {
    if (size_ != 0) {
        return no_answer(errc::protocol, "the daemon's stream ended in the middle of an object");
    }
    return {};
}

} // namespace sandboxd::docker
