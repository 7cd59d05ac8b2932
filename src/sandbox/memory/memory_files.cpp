#include "core/deadline.hpp"
#include "sandbox/memory/memory_sandbox.hpp"

#include <algorithm>

namespace sandboxd::sandboxes::memory {

task<result<void>> memory_sandbox::reach_files() {
    const std::chrono::milliseconds delay(counts_->file_delay_ms.load());
    if (delay.count() > 0 && alive_) {
        const std::size_t now = ++counts_->at_files;
        counts_->most_at_files = std::max(counts_->most_at_files.load(), now);
        co_await core::sleep_for(delay);
        --counts_->at_files;
    }
    if (!alive_) {
        co_return error{errc::gone, "the sandbox has ended", delay.count() > 0};
    }
    co_return result<void>();
}

task<result<file_content>> memory_sandbox::read(std::string path, std::uint64_t max_bytes) {
    const auto self = shared_from_this();
    if (auto reached = co_await reach_files(); !reached) {
        co_return reached.error();
    }
    co_return files_.read(path, max_bytes);
}

task<result<void>> memory_sandbox::write(std::string path, std::string content) {
    const auto self = shared_from_this();
    if (auto reached = co_await reach_files(); !reached) {
        co_return reached.error();
    }
    co_return files_.write(path, std::move(content));
}

task<result<edit_result>> memory_sandbox::edit(edit_request request) {
    const auto self = shared_from_this();
    if (auto reached = co_await reach_files(); !reached) {
        co_return reached.error();
    }
    co_return files_.edit(request);
}

task<result<bool>> memory_sandbox::exists(std::string path) {
    const auto self = shared_from_this();
    if (auto reached = co_await reach_files(); !reached) {
        co_return reached.error();
    }
    co_return files_.exists(path);
}

task<result<file_listing>> memory_sandbox::ls(std::string path) {
    const auto self = shared_from_this();
    if (auto reached = co_await reach_files(); !reached) {
        co_return reached.error();
    }
    co_return files_.ls(path);
}

task<result<file_listing>> memory_sandbox::glob(glob_request request) {
    const auto self = shared_from_this();
    if (auto reached = co_await reach_files(); !reached) {
        co_return reached.error();
    }
    co_return files_.glob(request);
}

task<result<grep_result>> memory_sandbox::grep(grep_request request) {
    const auto self = shared_from_this();
    if (auto reached = co_await reach_files(); !reached) {
        co_return reached.error();
    }
    co_return files_.grep(request);
}

} // namespace sandboxd::sandboxes::memory
