#pragma once

// The file operations of an agent-backed sandbox: each one a stream of its link (protocol/files.hpp).

#include "sandbox/agent_link.hpp"
#include "sandbox/collector.hpp"
#include "sandbox/file_calls.hpp"

namespace sandboxd::sandboxes {

/// Times and bounds of each. The agent keeps the time; without an answer `answer_grace` later it is
/// errc::timeout.
struct file_options {
    std::chrono::milliseconds exists_within{5'000};   ///< contract 3.7
    std::chrono::milliseconds list_within{30'000};    ///< 3.8
    std::chrono::milliseconds search_within{120'000}; ///< 3.9 and 3.10
    std::chrono::milliseconds transfer_within{60'000};
    std::chrono::milliseconds transfer_per_mib{1'000}; ///< on top, of what is sent or may come
    std::chrono::milliseconds answer_grace{4'000};
    std::size_t entries = 100'000; ///< of ls and glob
    std::size_t listing_bytes = 16 * 1024 * 1024;
    std::size_t matches = 10'000;
    std::size_t match_bytes = 100'000; ///< as a tool prints them, one line each (contract 3.10: as exec)
};

/// Safe to call from any executor. Cancelling an awaiting coroutine leaves a write or an edit going on where
/// all it needs is there; the rest is stopped.
class file_operations final : public std::enable_shared_from_this<file_operations> {
public:
    file_operations(std::shared_ptr<agent_link> link, std::shared_ptr<sandbox_host> host,
                    const file_options& options)
        : link_(std::move(link)), host_(std::move(host)), options_(options) {}

    [[nodiscard]] task<result<file_content>> read(std::string path, std::uint64_t max_bytes);
    [[nodiscard]] task<result<void>> write(std::string path, std::string content);
    [[nodiscard]] task<result<edit_result>> edit(edit_request request);
    [[nodiscard]] task<result<bool>> exists(std::string path);
    [[nodiscard]] task<result<file_listing>> ls(std::string path);
    [[nodiscard]] task<result<file_listing>> glob(glob_request request);
    [[nodiscard]] task<result<grep_result>> grep(grep_request request);

private:
    struct answer {
        std::string bytes;
        std::uint32_t marks = 0;
        std::uint64_t length = 0;
    };

    [[nodiscard]] task<result<answer>> perform(file_spec spec, std::uint64_t most_bytes);
    [[nodiscard]] task<result<file_listing>> listed(file_spec spec, std::string prefix, bool flat);
    [[nodiscard]] task<result<std::shared_ptr<collector>>> attempt(file_spec& spec, std::uint64_t most_bytes);
    [[nodiscard]] file_spec spec_of(protocol::file_operation operation, std::string path,
                                    std::chrono::milliseconds within) const;
    [[nodiscard]] std::chrono::milliseconds time_for(std::uint64_t bytes) const;

    std::shared_ptr<agent_link> link_;
    std::shared_ptr<sandbox_host> host_;
    file_options options_;
};

} // namespace sandboxd::sandboxes
