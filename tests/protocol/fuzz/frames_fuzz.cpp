// Frames and fields from hostile bytes, cut in two anywhere. Built by hand:
//
//     clang++-19 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Isrc
//     tests/protocol/fuzz/frames_fuzz.cpp
//         src/protocol/*.cpp -o frames_fuzz && ./frames_fuzz -max_total_time=60

#include "protocol/handshake.hpp"

#include <cstdlib>

namespace protocol = sandboxd::protocol;

namespace {

std::size_t take(protocol::frame_parser& parser, std::string_view piece) {
    std::size_t taken = 0;
    protocol::frame_view frame;
    parser.feed(piece);
    while (parser.next(frame) == protocol::parse_status::ok) {
        taken += protocol::header_size + frame.payload.size();
        protocol::field_reader reader(frame.payload);
        for (protocol::field one; reader.next(one);) {
            taken += one.u8() || one.u16() || one.u32() || one.u64() ? 0 : 0;
        }
        static_cast<void>(protocol::read_hello(frame.payload));
    }
    return taken;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
    const auto border = bytes.empty() ? 0 : (data[0] * 256U + data[1]) % bytes.size();
    for (const auto from : {protocol::sender::host, protocol::sender::agent}) {
        protocol::frame_parser whole(from);
        protocol::frame_parser cut(from);
        const auto expected = take(whole, bytes);
        const auto first = take(cut, bytes.substr(0, border));
        if (first + take(cut, bytes.substr(border)) != expected) {
            std::abort();
        }
    }
    protocol::welcome found;
    protocol::welcome_finder finder({});
    static_cast<void>(finder.feed(bytes, found));
    return 0;
}
