#include "sandboxd/sandbox.hpp"

// What a kind of sandbox leaves out answers errc::unsupported.

namespace sandboxd {

namespace {
error cannot(const sandbox& one, const char* what) {
    return {errc::unsupported, std::string(one.type()) + " cannot " + what};
}
} // namespace

task<result<run_result>> sandbox::run(run_request) {
    co_return cannot(*this, "run commands");
}

task<void> sandbox::stop_run(std::string) {
    co_return;
}

task<result<std::string>> sandbox::read_bytes(std::string, std::uint64_t) {
    co_return cannot(*this, "read files");
}

task<result<void>> sandbox::write(std::string, std::string) {
    co_return cannot(*this, "write files");
}

task<result<bool>> sandbox::exists(std::string) {
    co_return cannot(*this, "look up files");
}

task<result<std::vector<file_entry>>> sandbox::ls(std::string) {
    co_return cannot(*this, "list files");
}

task<result<std::vector<file_entry>>> sandbox::glob(std::string, std::string) {
    co_return cannot(*this, "find files");
}

task<result<std::vector<grep_match>>> sandbox::grep(std::string, std::string, std::string, bool) {
    co_return cannot(*this, "search files");
}

task<result<usage_sample>> sandbox::usage() {
    co_return cannot(*this, "tell its usage");
}

} // namespace sandboxd
