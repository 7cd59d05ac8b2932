#pragma once

#include "agent/deadlines.hpp"
#include "agent/file_helper.hpp"

#include <string>
#include <string_view>

namespace sandboxd::agent {

/// What a file operation's `start` holds. Views into its payload.
struct file_request {
    protocol::file_operation operation{};
    std::string path;
    std::string_view pattern;
    std::optional<std::string_view> second_path;
    std::string_view content;
    bool streamed = false; ///< the input comes in packets
    std::uint64_t length = 0;
    std::uint64_t offset = 0;
    std::uint64_t limit_bytes = UINT64_MAX;
    std::uint32_t options = 0;
    std::optional<std::uint64_t> timeout_ms;
};

/// Nothing when a field has the wrong width or a path holds a NUL.
[[nodiscard]] std::optional<file_request> read_file_request(std::string_view payload);

/// One operation from the side of the helper: its request, its input and output, its end. Output is gathered,
/// so that a small answer is one packet.
class file_call {
public:
    /// `locks` as in file_helper_setup.
    file_call(int socket, int locks, file_request request);
    file_call(const file_call&) = delete;
    file_call& operator=(const file_call&) = delete;

    [[nodiscard]] const file_request& request() const { return request_; }
    [[nodiscard]] int locks() const { return locks_; }
    /// Past its time: it should answer with what it has.
    [[nodiscard]] bool expired() const;
    /// The same, for the innermost loops: looks at the clock every so many calls.
    [[nodiscard]] bool expired_now_and_then();

    enum class input : std::uint8_t {
        piece,
        end,
        broken, ///< it will not come, or not in time
    };
    /// The next piece of the input, valid until the next call.
    [[nodiscard]] input next_input(std::string_view& piece);

    /// Output, in order.
    void put(std::string_view bytes);
    [[nodiscard]] std::uint64_t put_so_far() const { return total_; }

    /// The end, exactly once.
    void succeed(std::uint32_t marks = 0, std::uint64_t length = 0);
    void fail(int os_errno, std::uint32_t marks = 0);
    void refuse(protocol::failure_kind kind, std::string_view text);

private:
    void finish(const file_answer& answer, std::string_view text);
    void send(const file_report& head, std::string_view text, std::string_view bytes) const;
    [[nodiscard]] input receive(std::string_view& piece);

    int socket_;
    int locks_;
    file_request request_;
    instant until_;
    unsigned calls_ = 0;
    bool input_over_ = false;
    std::string output_;
    std::uint64_t total_ = 0;
};

/// Carries it out: file_read.cpp, file_write.cpp, file_edit.cpp, file_glob.cpp, file_grep.cpp.
void read_file(file_call& call);
void stat_file(file_call& call);
void list_directory(file_call& call);
void write_file(file_call& call);
void edit_file(file_call& call);
void glob_files(file_call& call);
void grep_files(file_call& call);

} // namespace sandboxd::agent
