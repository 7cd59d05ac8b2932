#pragma once

#include "sandboxd/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::text::blocking {

/// What a confined program may use.
struct allowance {
    std::chrono::milliseconds time{15'000};
    std::uint64_t memory = 1024ULL * 1024 * 1024; ///< bytes of address space
    std::size_t output =
        std::size_t{32} * 1024 * 1024; ///< bytes printed; it is stopped at the first one more
};

struct confined_end {
    std::string out;
    std::string complaints; ///< the start of what it wrote to its standard error
    std::optional<int> exit_code;
    bool timed_out = false;
    bool output_limited = false;
};

/// Runs a program on hostile input: `input` is its standard input, all it has besides is a pipe for its
/// output and the system's own files to read. It can't write a file, start a program, make a socket or see
/// this service: own namespaces, nobody's uid (where we are root), Landlock (where the kernel has it) and a
/// filter of system calls that allows what reading, computing and printing takes. Gone, with nothing left,
/// when this returns. errc::io when it can't be started. Blocks up to `time`.
[[nodiscard]] result<confined_end> run_confined(const std::vector<std::string>& argv, std::string_view input,
                                                const allowance& most);

} // namespace sandboxd::text::blocking
