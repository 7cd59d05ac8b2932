#include "agent/file_call.hpp"
#include "agent/file_paths.hpp"
#include "agent/glob_pattern.hpp"
#include "agent/regex.hpp"
#include "agent/tree_walk.hpp"
#include "agent/utf8.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sandboxd::agent {

namespace {

constexpr std::size_t read_size = 128 * 1024;
/// A longer line is nothing that anybody reads: the file is left out from there on.
constexpr std::size_t longest_line = 4 * 1024 * 1024;

bool is_ascii(std::string_view text) {
    unsigned char all = 0;
    for (const char byte : text) {
        all = static_cast<unsigned char>(all | static_cast<unsigned char>(byte));
    }
    return all < 0x80;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto one = first_character(text);
        if (!one.valid) {
            return false;
        }
        text.remove_prefix(one.size);
    }
    return true;
}

std::size_t digits(std::uint64_t number) {
    std::size_t out = 1;
    for (; number >= 10; number /= 10) {
        ++out;
    }
    return out;
}

/// One search: the pattern, and what has come out so far.
class search {
public:
    search(file_call& call, regex_parts parts)
        : call_(call), parts_(std::move(parts)), bytes_(parts_.bytes), characters_(parts_.characters) {
        buffer_.resize(read_size);
    }

    /// An open file; false when the search is to end.
    bool look_into(int fd, std::uint64_t size, std::string_view path);
    [[nodiscard]] bool truncated() const { return truncated_; }

private:
    [[nodiscard]] bool matches(std::string_view line);
    void look_through(std::string_view lines);
    void add(std::string_view line);
    [[nodiscard]] std::size_t next_candidate(std::string_view lines, std::size_t from) const;

    file_call& call_;
    regex_parts parts_;
    regex_search bytes_;
    regex_search characters_;
    std::string buffer_;
    std::string_view path_;
    bool path_told_ = false;
    std::uint64_t line_number_ = 0; ///< lines before the one at hand
    std::uint64_t matches_ = 0;
    std::uint64_t printed_ = 0;
    bool truncated_ = false;
    bool over_ = false;
    std::string record_;
};

/// UTF-8 is told by the bytes of the line.
bool search::matches(std::string_view line) {
    const bool wide = !parts_.characters.steps.empty() && !is_ascii(line) && is_utf8(line);
    const auto answer = (wide ? characters_ : bytes_).matches(line);
    truncated_ = truncated_ || !answer;
    return answer.value_or(false);
}

/// Where the next line may match; the end when there is none.
std::size_t search::next_candidate(std::string_view lines, std::size_t from) const {
    if (parts_.literal.empty()) {
        return from;
    }
    const void* const at =
        memmem(lines.data() + from, lines.size() - from, parts_.literal.data(), parts_.literal.size());
    return at == nullptr ? lines.size()
                         : static_cast<std::size_t>(static_cast<const char*>(at) - lines.data());
}

void search::look_through(std::string_view lines) {
    std::size_t counted = 0; // lines up to here are in line_number_
    for (std::size_t at = 0; at < lines.size() && !over_;) {
        const auto candidate = next_candidate(lines, at);
        if (candidate == lines.size()) {
            break;
        }
        const auto before = candidate == 0 ? std::string_view::npos : lines.rfind('\n', candidate - 1);
        const auto begin = before == std::string_view::npos ? 0 : before + 1;
        const auto end = std::min(lines.find('\n', candidate), lines.size());
        const auto line = lines.substr(begin, end - begin);
        if (parts_.only_literal || matches(line)) {
            const auto* const first = lines.data();
            line_number_ += static_cast<std::uint64_t>(std::count(first + counted, first + begin, '\n'));
            counted = begin;
            add(line);
        }
        at = end + 1;
        over_ = over_ || call_.expired_now_and_then();
    }
    const auto rest = lines.substr(counted);
    line_number_ += static_cast<std::uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
}

void search::add(std::string_view line) {
    const auto& request = call_.request();
    const auto head = path_.size() + 1 + digits(line_number_ + 1) + 1 + 1;
    if (matches_ == request.length || printed_ + head > request.limit_bytes) {
        over_ = truncated_ = true;
        return;
    }
    const auto room = request.limit_bytes - printed_ - head;
    if (line.size() > room) {
        line = line.substr(0, static_cast<std::size_t>(room));
        over_ = truncated_ = true;
    }
    printed_ += head + line.size();
    ++matches_;
    record_.clear();
    protocol::append_record(record_, protocol::match_record{.line_number = line_number_ + 1,
                                                            .path = path_told_ ? std::string_view() : path_,
                                                            .line = line});
    path_told_ = true;
    call_.put(record_);
}

/// A file with a NUL is binary and shows no lines, from where it is seen to be one (as GNU grep has it).
bool search::look_into(int fd, std::uint64_t size, std::string_view path) {
    path_ = path;
    path_told_ = false;
    line_number_ = 0;
    std::size_t held = 0; ///< of a line whose end has not come yet
    for (;;) {
        if (held == buffer_.size()) {
            if (held >= longest_line) {
                truncated_ = true;
                break;
            }
            buffer_.resize(2 * held);
        }
        // A small file is one read: that nothing comes behind its size needs no other.
        const bool small = held == 0 && size > 0 && size < buffer_.size();
        const auto count = small ? read(fd, buffer_.data(), buffer_.size())
                                 : read_fully(fd, buffer_.data() + held, buffer_.size() - held);
        if (count < 0) {
            break; // what can't be read, a file of /proc say, is passed over
        }
        const auto fresh = std::string_view(buffer_).substr(held, static_cast<std::size_t>(count));
        if (fresh.find('\0') != std::string_view::npos) {
            break;
        }
        const bool at_end = held + fresh.size() < buffer_.size();
        const auto all = std::string_view(buffer_).substr(0, held + fresh.size());
        const auto last = at_end ? all.size() : all.rfind('\n') + 1; // none: 0
        look_through(all.substr(0, last));
        held = all.size() - last;
        std::memmove(buffer_.data(), buffer_.data() + last, held);
        if (at_end || over_) {
            break;
        }
        if (call_.expired()) {
            over_ = true;
        }
    }
    if (buffer_.size() > read_size) {
        buffer_.resize(read_size);
    }
    truncated_ = truncated_ || over_;
    return !over_;
}

/// Which files: by base name (contract 3.10), or, where the pattern has a slash, as glob does by the path.
class file_filter {
public:
    explicit file_filter(const std::optional<std::string_view>& pattern)
        : by_path_(pattern && pattern->find('/') != std::string_view::npos) {
        if (pattern) {
            pattern_.emplace(by_path_ ? "*/" + std::string(*pattern) : std::string(*pattern));
        }
    }
    [[nodiscard]] bool wants(std::string_view name, std::string_view path) const {
        return !pattern_ || pattern_->matches(by_path_ ? "/" + std::string(path) : std::string(name));
    }

private:
    bool by_path_;
    std::optional<glob_pattern> pattern_;
};

void search_tree(file_call& call, tree_walk& walk, const file_filter& filter, search& in) {
    std::string path = call.request().path;
    path += path.ends_with('/') ? "" : "/";
    const auto root_size = path.size();
    constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    bool goes_on = true;
    while (goes_on && walk.next()) {
        path.resize(root_size);
        path.append(walk.path());
        if (!filter.wants(walk.name(), path)) {
            continue;
        }
        const descriptor file(openat(walk.directory(), walk.name().c_str(), flags));
        struct stat status{};
        if (file.valid() && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
            goes_on = in.look_into(file.get(), static_cast<std::uint64_t>(status.st_size), path);
        }
    }
}

} // namespace

void grep_files(file_call& call) {
    const auto& request = call.request();
    auto parts = compile_regex(request.pattern);
    if (parts.fault != nullptr) {
        call.refuse(protocol::failure_kind::invalid, parts.fault);
        return;
    }
    located where;
    descriptor file;
    struct stat status{};
    int failed = locate(request.path, where);
    failed = failed != 0 ? failed : open_regular(where, file, status);
    const bool is_tree = failed == EISDIR;
    tree_walk walk(call, {.sorted = true, .ignore_hidden = (request.options & protocol::ignore_hidden) != 0});
    failed = is_tree ? walk.open(where.at(), where.rest.c_str()) : failed;
    if (failed < 0) {
        call.refuse(protocol::failure_kind::invalid, not_a_file(status.st_mode));
        return;
    }
    if (failed != 0) {
        call.fail(failed);
        return;
    }
    const file_filter filter(request.second_path);
    search in(call, std::move(parts));
    if (is_tree) {
        search_tree(call, walk, filter, in);
    } else if (filter.wants(split(request.path).name, request.path)) {
        in.look_into(file.get(), static_cast<std::uint64_t>(status.st_size), request.path);
    }
    call.succeed(in.truncated() || walk.incomplete() ? protocol::truncated : 0U);
}

} // namespace sandboxd::agent
