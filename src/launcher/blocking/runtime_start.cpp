#include "launcher/blocking/runtime_start.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/blocking/own_cgroups.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_complaint = 16 * 1024;

std::string complaint_in(const oci_runtime& runtime, const std::string& log) {
    const auto read = read_file(log, max_complaint);
    auto text = read ? runtime.complaint(*read) : std::string();
    return text.empty() ? "it gave no reason" : text;
}

} // namespace

result<void> agent_words::open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return os_error("pipe", errno);
    }
    reading_.reset(ends[0]);
    writing_.reset(ends[1]);
    return {};
}

result<void> agent_words::wait(deadline until) {
    if (!reading_) {
        return {};
    }
    std::string text;
    char buffer[512];
    while (text.size() < max_complaint) {
        if (!wait_readable(reading_.get(), until)) {
            return error{errc::start_failed, "the agent did not start in time"};
        }
        const auto count = ::read(reading_.get(), buffer, sizeof buffer);
        if (count <= 0) {
            break;
        }
        text.append(buffer, static_cast<std::size_t>(count));
    }
    const auto line = last_line(text);
    return line.empty() ? result<void>() : error{errc::start_failed, "the agent: " + std::string(line)};
}

std::string program_of(const oci_runtime& runtime, const launcher_options& options) {
    return &runtime == &runc_runtime() ? options.runtime : std::string(runtime.name());
}

std::vector<std::pair<std::string, std::string>> program_environment() {
    const char* path = std::getenv("PATH");
    return {{"PATH", path != nullptr ? path : usual_path}};
}

std::string records_directory(const oci_runtime& runtime, const launcher_options& options) {
    return options.state_dir + "/" + std::string(runtime.name());
}

std::string not_installed(const oci_runtime& runtime, const launcher_options& options) {
    return "the program '" + program_of(runtime, options) +
           "' is not installed (on Debian: apt-get install " + std::string(runtime.name()) + ")";
}

result<runtime_start> runtime_start::begin(const worker_context& context, const oci_runtime& runtime,
                                           const start_sandbox& request, const std::string& bundle,
                                           int listener, int lock) {
    const auto& options = context.options;
    auto found = find_program(program_of(runtime, options));
    if (!found) {
        return error{errc::start_failed, not_installed(runtime, options)};
    }
    const runtime_host host{context.cgroups};
    auto cgroups = made_cgroups::make(context.cgroups, context.cgroup(request.slot),
                                      runtime.makes_cgroups(host), runtime.own_limits(request.limits));
    if (!cgroups) {
        return cgroups.error();
    }
    // The log is a file of its own: the runtime's standard streams become the sandbox's.
    auto log = bundle + "/log";
    child_program program;
    program.file = std::move(*found);
    program.argv =
        runtime.arguments({records_directory(runtime, options), bundle, bundle + "/pid", log, request.slot});
    program.argv.insert(program.argv.begin(), program_of(runtime, options));
    program.env = program_environment();
    program.directory = bundle;
    agent_words words;
    if (listener >= 0) {
        program.passed = {listener};
        if (auto opened = words.open(); !opened) {
            return opened.error();
        }
        program.output = words.writing();
    }
    if (runtime.may_hold_lock()) {
        program.kept = {lock};
    }
    program.prepare = [&cgroups, plain = runtime.wants_plain_cgroup2(host)] {
        return cgroups->enter() && (!plain || show_plain_cgroup2());
    };
    auto child = child_process::start(program);
    if (!child) {
        return child.error();
    }
    words.leave_to_it();
    return runtime_start(runtime, std::move(log), std::move(*cgroups), std::move(words), std::move(*child));
}

result<void> runtime_start::finish(deadline until) {
    const auto end = child_.wait(until);
    if (!end) {
        return end.error();
    }
    if (end->timed_out) {
        return error{errc::start_failed, child_.name() + " did not start the sandbox in time"};
    }
    if (end->exit_code != 0) {
        return error{errc::start_failed, child_.name() + " failed: " + complaint_in(*runtime_, log_)};
    }
    if (auto serves = words_.wait(until); !serves) {
        return serves;
    }
    return cgroups_.settle();
}

} // namespace sandboxd::launcher::blocking
