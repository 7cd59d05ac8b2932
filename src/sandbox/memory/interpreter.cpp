#include "sandbox/memory/interpreter.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>

namespace sandboxd::sandboxes::memory {

namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

/// The state of one command: everything but sleeping happens at once.
class machine {
public:
    machine(environment env, bool merged, output_limits limits)
        : env_(std::move(env)), merged_(merged), limits_(limits) {}

    finished result;
    bool over = false;

    /// The words mean nothing that takes time: do it and set the status.
    void perform(const step& what) {
        to_stderr_ = what.to_stderr;
        const auto& words = what.words;
        const auto& name = words.front();
        status_ = 0;
        if (name == "echo") {
            echo(words);
        } else if (name == "false") {
            status_ = 1;
        } else if (name == "exit") {
            status_ = words.size() > 1 ? static_cast<int>(number_of(words[1]).value_or(2) & 255U) : last_;
            over = true;
        } else if (name == "env") {
            for (const auto& [key, value] : env_) {
                write(key + "=" + value + "\n");
            }
        } else if (name == "head" && words.size() == 4 && words[1] == "-c") {
            zeros(number_of(words[2]).value_or(0));
        } else if (name == "kill" && words.size() == 3 && words[2] == "$$") {
            result.signal = static_cast<int>(number_of(words[1].substr(1)).value_or(9));
            over = true;
        } else if (name != "true" && name != ":" && name != "cat" && name != "sleep") {
            to_stderr_ = true;
            write("sandboxd: " + name + ": the program does not exist in the sandbox\n");
            status_ = 127;
        }
        last_ = status_;
    }

    [[nodiscard]] bool due(const step& what) const {
        return what.condition == step::when::always ||
               (what.condition == step::when::on_success) == (last_ == 0);
    }
    [[nodiscard]] int status() const { return last_; }

private:
    void echo(const std::vector<std::string>& words) {
        const bool bare = words.size() > 1 && words[1] == "-n";
        std::string line;
        for (std::size_t i = bare ? 2 : 1; i < words.size(); ++i) {
            line += line.empty() && i == (bare ? 2U : 1U) ? words[i] : " " + words[i];
        }
        write(bare ? line : line + "\n");
    }

    void zeros(std::uint64_t count) {
        const std::string block(64 * 1024, '\0');
        while (count > 0 && !over) {
            const auto now = std::min<std::uint64_t>(count, block.size());
            write(std::string_view(block).substr(0, static_cast<std::size_t>(now)));
            count -= now;
        }
    }

    void write(std::string_view bytes) {
        if (bytes.size() > limits_.limit - total_) {
            bytes = bytes.substr(0, limits_.limit - total_);
            result.limited = true;
            over = true;
        }
        total_ += bytes.size();
        auto& to = to_stderr_ && !merged_ ? result.err : result.out;
        const auto kept = std::min(bytes.size(), limits_.keep - std::min(limits_.keep, to.size()));
        to.append(bytes.substr(0, kept));
        result.dropped += bytes.size() - kept;
    }

    environment env_;
    bool merged_;
    output_limits limits_;
    bool to_stderr_ = false;
    std::size_t total_ = 0;
    int status_ = 0;
    int last_ = 0;
};

std::chrono::nanoseconds sleep_time(const step& what) {
    const double seconds = what.words.size() > 1 ? std::atof(what.words[1].c_str()) : 0.0;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e6) * 1e9));
}

} // namespace

task<finished> interpret(std::vector<step> steps, environment env, bool merged, output_limits limits,
                         std::chrono::milliseconds timeout, std::shared_ptr<running_command> command) {
    using clock = std::chrono::steady_clock;
    const auto deadline = timeout.count() > 0 ? clock::now() + timeout : clock::time_point::max();
    machine run(std::move(env), merged, limits);
    std::deque<step> left(std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
    while (!left.empty() && !run.over && command->reason() == interruption::none) {
        const auto now = std::move(left.front());
        left.pop_front();
        if (!run.due(now)) {
            continue;
        }
        if (now.words.front() == "sh" && now.words.size() == 3 && now.words[1] == "-c") {
            auto inner = parse_script(now.words[2]);
            left.insert(left.begin(), inner.begin(), inner.end());
            continue;
        }
        run.perform(now);
        if (now.words.front() == "sleep") {
            const auto start = clock::now();
            const auto wanted = sleep_time(now);
            const bool late = deadline - start < wanted;
            const bool interrupted = co_await command->sleep(late ? deadline - start : wanted);
            run.result.timed_out = late && !interrupted;
            run.over = run.over || run.result.timed_out;
        }
    }
    if (!run.result.signal) {
        run.result.exit_code = run.status();
    }
    co_return std::move(run.result);
}

} // namespace sandboxd::sandboxes::memory
