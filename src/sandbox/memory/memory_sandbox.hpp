#pragma once

#include "sandbox/memory/file_tree.hpp"
#include "sandbox/memory/interpreter.hpp"
#include "sandboxd/sandbox.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

namespace sandboxd::sandboxes::memory {

/// What all sandboxes of one builder count together.
struct tally {
    std::atomic<std::size_t> builds{0};
    std::atomic<std::size_t> stops{0};
    std::atomic<std::size_t> purges{0};
    std::atomic<std::size_t> commands{0};
    std::atomic<std::int64_t> stop_delay_ms{0};
    std::atomic<std::int64_t> file_delay_ms{0};
    std::atomic<std::size_t> most_at_files{0}; ///< operations on files at one moment
    std::atomic<std::size_t> at_files{0};
};

class memory_sandbox final : public sandbox, public std::enable_shared_from_this<memory_sandbox> {
public:
    memory_sandbox(sandbox_spec spec, std::string handle, std::shared_ptr<tally> counts)
        : spec_(std::move(spec)),
          handle_(std::move(handle)),
          counts_(std::move(counts)),
          files_(spec_.work_dir) {}

    std::string_view type() const noexcept override { return "memory"; }
    task<result<exec_result>> exec(exec_request request) override;
    task<result<run_result>> run(run_request request) override;
    task<void> stop_run(std::string run_id) override;
    task<result<file_content>> read(std::string path, std::uint64_t max_bytes) override;
    task<result<void>> write(std::string path, std::string content) override;
    task<result<edit_result>> edit(edit_request request) override;
    task<result<bool>> exists(std::string path) override;
    task<result<file_listing>> ls(std::string path) override;
    task<result<file_listing>> glob(glob_request request) override;
    task<result<grep_result>> grep(grep_request request) override;
    task<result<usage_sample>> usage() override;
    bool alive() const noexcept override { return alive_; }
    void on_death(std::function<void()> callback) override;
    task<void> stop(bool purge) override;
    std::string handle() const override { return handle_; }

    /// Dies by itself; false when it is dead already.
    bool die();
    [[nodiscard]] const std::string& session_id() const noexcept { return spec_.session_id; }

private:
    using command_ptr = std::shared_ptr<running_command>;

    [[nodiscard]] result<command_ptr> enter(const std::string& run_id);
    void leave(const std::string& run_id, const command_ptr& command);
    [[nodiscard]] environment environment_with(const environment& more) const;
    bool end_all();
    /// Before every operation on files: the turns of the test, and whether there still is a sandbox.
    [[nodiscard]] task<result<void>> reach_files();

    sandbox_spec spec_;
    std::string handle_;
    std::shared_ptr<tally> counts_;
    file_tree files_;
    mutable std::mutex mutex_;
    std::map<std::string, command_ptr> running_;
    std::function<void()> on_death_;
    bool stopping_ = false;
    bool told_ = false;
    std::atomic<bool> alive_{true};
};

} // namespace sandboxd::sandboxes::memory
