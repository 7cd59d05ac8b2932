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

task<result<file_content>> sandbox::read(std::string, std::uint64_t) {
    co_return cannot(*this, "read files");
}

task<result<void>> sandbox::write(std::string, std::string) {
    co_return cannot(*this, "write files");
}

task<result<edit_result>> sandbox::edit(edit_request) {
    co_return cannot(*this, "edit files");
}

task<result<bool>> sandbox::exists(std::string) {
    co_return cannot(*this, "look up files");
}

task<result<file_listing>> sandbox::ls(std::string) {
    co_return cannot(*this, "list files");
}

task<result<file_listing>> sandbox::glob(glob_request) {
    co_return cannot(*this, "find files");
}

task<result<grep_result>> sandbox::grep(grep_request) {
    co_return cannot(*this, "search files");
}

task<result<usage_sample>> sandbox::usage() {
    co_return cannot(*this, "tell its usage");
}

} // namespace sandboxd
