#include "launcher/blocking/tools.hpp"

#include "core/random.hpp"
#include "launcher/blocking/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr rlim_t largest_file = 64ULL * 1024 * 1024 * 1024;
constexpr std::uint64_t most_reserved = 1024ULL * 1024 * 1024; ///< bytes that are left of a large disk

constexpr const char* nobody_waits = "nobody waits for it any more";

/// What reaches these programs of the service's environment: where registries are and how to get there.
constexpr std::array handed_on = {"HTTP_PROXY",  "HTTPS_PROXY", "NO_PROXY",  "ALL_PROXY",     "http_proxy",
                                  "https_proxy", "no_proxy",    "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"};

error failed(std::string why) {
    return {errc::start_failed, std::move(why)};
}

void lower_limit(__rlimit_resource which, rlim_t to) {
    const rlimit limit{to, to};
    ::setrlimit(which, &limit);
}

/// In the new process: becomes root of a user namespace, which is nobody outside.
bool enter(int users, bool network) {
    lower_limit(RLIMIT_FSIZE, largest_file);
    lower_limit(RLIMIT_CORE, 0);
    return ::setns(users, CLONE_NEWUSER) == 0 && ::setgroups(0, nullptr) == 0 && ::setresgid(0, 0, 0) == 0 &&
           ::setresuid(0, 0, 0) == 0 && (network || ::unshare(CLONE_NEWNET) == 0) &&
           ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

} // namespace

std::string message_of(std::string_view line) {
    auto at = line.find("msg=\"");
    if (at == std::string_view::npos) {
        return std::string(line);
    }
    std::string text;
    for (at += 5; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) {
            ++at;
            text += line[at] == 'n' ? ' ' : line[at];
        } else {
            text += line[at];
        }
    }
    return text;
}

std::optional<std::string> lack_of_room(const struct statvfs& disk) {
    const auto reserve = std::min<std::uint64_t>(disk.f_blocks * disk.f_frsize / 20, most_reserved);
    if (disk.f_bavail * disk.f_frsize < reserve) {
        return "the disk of the state directory (SANDBOXD_STATE_DIR) is nearly full: less than " +
               std::to_string(reserve / (1024 * 1024)) + " MiB would be left for everything else";
    }
    // A file system without a fixed number of inodes says 0.
    if (disk.f_files != 0 && disk.f_favail < disk.f_files / 20) {
        return "the disk of the state directory (SANDBOXD_STATE_DIR) has nearly no inodes left: fewer than " +
               std::to_string(disk.f_files / 20) + " would be left for everything else";
    }
    return std::nullopt;
}

image_tools::image_tools(const worker_context& context, std::string directory)
    : context_(context), directory_(std::move(directory)), inside_(directory_) {}

image_tools::~image_tools() {
    if (owner_) {
        context_.ranges.release(*owner_, uid_base_);
    }
}

result<void> image_tools::confine() {
    auto owner = context_.owner("image-" + core::random_hex(8));
    auto base = context_.ranges.claim(owner);
    if (!base) {
        return base.error();
    }
    owner_ = std::move(owner);
    uid_base_ = *base;
    auto users = create_user_namespace(uid_base_);
    auto source = open_directory(directory_);
    if (!users || !source) {
        return users ? source.error() : users.error();
    }
    clone_options options;
    options.user_namespace = users->fd.get();
    if (auto done = leave_mount_namespace(); !done) {
        return done;
    }
    source = open_directory(directory_); // of the namespace that this process is in now
    auto copy =
        source ? clone_mount(source->get(), directory_, options) : result<core::unique_fd>(source.error());
    inside_ = context_.options.run_dir + "/mnt";
    auto place = open_directory(inside_);
    if (!copy || !place) {
        return copy ? place.error() : copy.error();
    }
    users_ = std::move(users->fd);
    return attach_mount(copy->get(), place->get(), directory_);
}

std::optional<std::string> image_tools::short_of_room() const {
    struct statvfs disk{};
    if (::statvfs(directory_.c_str(), &disk) != 0) {
        return std::nullopt;
    }
    return lack_of_room(disk);
}

result<void> image_tools::run(tool_call call, deadline until) const {
    const auto name = call.argv[0];
    if (!find_program(name)) {
        return failed("the program '" + name + "' is not installed (on Debian: apt-get install " + name +
                      ")");
    }
    const char* path = std::getenv("PATH");
    child_program program;
    program.argv = std::move(call.argv);
    program.directory = inside_;
    program.passed = call.passed;
    program.env = {{"PATH", path != nullptr ? path : usual_path}, {"HOME", inside_}, {"TMPDIR", inside_}};
    for (const char* variable : handed_on) {
        if (const char* value = std::getenv(variable)) {
            program.env.emplace_back(variable, value);
        }
    }
    if (users_) {
        program.prepare = [users = users_.get(), network = call.network] { return enter(users, network); };
    }
    std::optional<std::string> full;
    const auto given_up = [this] { return context_.given_up && context_.given_up(); };
    if (given_up()) {
        return failed(nobody_waits);
    }
    program.watch = [&] {
        full = short_of_room();
        return !full && !given_up();
    };
    std::string last;
    const auto line = [&](std::string_view text) {
        last = message_of(text);
        if (call.line) {
            call.line(text);
        } else {
            context_.progress(name + ": " + last);
        }
    };
    const auto end = run_child_lines(std::move(program), until, line);
    if (!end) {
        return failed(end.error().message);
    }
    if (full) {
        return failed(*full);
    }
    if (given_up()) {
        return failed(nobody_waits);
    }
    if (end->timed_out) {
        return failed(name + " did not end in time");
    }
    return end->exit_code == 0 ? result<void>() : failed(name + " failed: " + last);
}

} // namespace sandboxd::launcher::blocking
