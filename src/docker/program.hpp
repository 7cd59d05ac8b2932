#pragma once

#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace sandboxd::docker {

struct program_end {
    int exit_code = 0; ///< 128 + signal when killed
};

/// Runs a program with `input` as its standard input to its end; `line` gets both of its output streams, line
/// by line (at most 1 000 bytes each). Looked up in PATH, with our environment. It, and what it has started,
/// is told to end when the awaiting coroutine is cancelled or `limit` has passed: errc::timeout then.
/// errc::io when it can't be started. Needs a strand.
[[nodiscard]] task<result<program_end>> run_program(std::vector<std::string> argv, std::string input,
                                                    std::function<void(const std::string&)> line,
                                                    std::chrono::milliseconds limit);

} // namespace sandboxd::docker
