#include "sandbox/file_operations.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>

namespace sandboxd::sandboxes {

namespace asio = boost::asio;

using protocol::failure_kind;
using protocol::file_operation;

namespace {

constexpr std::uint64_t mib = 1024 * 1024;
constexpr std::uint64_t most_mib = 600; ///< that still add to the time

error nonsense() {
    return {errc::protocol, "The sandbox's agent gave an answer that makes no sense"};
}

run_id_bytes fresh_id() {
    std::array<unsigned char, protocol::run_id_size> bytes{};
    core::random_bytes(bytes);
    run_id_bytes out{};
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
}

/// Nothing was begun: it may be tried once more.
bool untouched(const collector& call) {
    return call.ended && call.ended->cause == protocol::end_cause::never_started &&
           call.ended->failure == failure_kind::no_process;
}

/// What comes before the name in the path of an entry below `directory`.
std::string prefix_of(std::string directory) {
    while (!directory.empty() && directory.back() == '/') {
        directory.pop_back();
    }
    directory.push_back('/');
    return directory;
}

/// How many entries an answer may hold whose paths all begin with `prefix`, the client's own text: they take
/// no more room than the names may.
std::size_t entries_below(std::string_view prefix, const file_options& options) {
    return std::min(options.entries, options.listing_bytes / (prefix.size() + 1));
}

bool has(std::uint32_t marks, protocol::file_mark mark) {
    return (marks & mark) != 0;
}

} // namespace

file_spec file_operations::spec_of(file_operation operation, std::string path,
                                   std::chrono::milliseconds within) const {
    file_spec spec;
    spec.operation = operation;
    spec.path = std::move(path);
    spec.timeout = within;
    spec.user = host_->default_user();
    return spec;
}

std::chrono::milliseconds file_operations::time_for(std::uint64_t bytes) const {
    return options_.transfer_within + options_.transfer_per_mib * std::min(bytes / mib, most_mib);
}

task<result<std::shared_ptr<collector>>> file_operations::attempt(file_spec& spec, std::uint64_t most_bytes) {
    spec.id = fresh_id();
    auto frame = encode_file_start(spec);
    if (!frame) {
        co_return std::move(frame).error();
    }
    auto call = std::make_shared<collector>(spec.id, std::move(*frame), false, most_bytes);
    call->give_up_at(std::chrono::steady_clock::now() + spec.timeout + options_.answer_grace);
    if (spec.streams()) {
        call->feed(std::move(spec.input));
    }
    co_await collector::perform(link_, call, asio::use_awaitable);
    co_return call;
}

task<result<file_operations::answer>> file_operations::perform(file_spec spec, std::uint64_t most_bytes) {
    const auto self = shared_from_this();
    const bool again = !spec.streams();
    auto call = co_await attempt(spec, most_bytes);
    if (call && again && untouched(**call)) {
        call = co_await attempt(spec, most_bytes);
    }
    if (!call) {
        co_return std::move(call).error();
    }
    auto& done = **call;
    if (done.failed) {
        co_return std::move(*done.failed);
    }
    if (auto wrong = file_error(*done.ended)) {
        if (has(done.ended->marks, protocol::parents)) {
            wrong->message.insert(0, parents_failed);
        }
        co_return std::move(*wrong);
    }
    answer out;
    out.bytes = std::move(done.out);
    out.marks = done.ended->marks;
    out.length = done.ended->length;
    co_return out;
}

task<result<file_content>> file_operations::read(std::string path, std::uint64_t max_bytes) {
    auto spec = spec_of(file_operation::read, std::move(path), time_for(max_bytes));
    spec.length = max_bytes;
    auto got = co_await perform(std::move(spec), max_bytes);
    if (!got) {
        co_return std::move(got).error();
    }
    file_content out;
    out.over_limit = has(got->marks, protocol::over_limit);
    if (!out.over_limit) {
        out.bytes = std::move(got->bytes);
    } else if (has(got->marks, protocol::size_known)) {
        out.size = got->length;
    }
    co_return out;
}

task<result<void>> file_operations::write(std::string path, std::string content) {
    auto spec = spec_of(file_operation::write, std::move(path), time_for(content.size()));
    spec.input = std::move(content);
    auto got = co_await perform(std::move(spec), 0);
    if (!got) {
        co_return std::move(got).error();
    }
    co_return result<void>();
}

task<result<edit_result>> file_operations::edit(edit_request request) {
    auto spec = spec_of(file_operation::edit, std::move(request.path), time_for(request.max_bytes));
    spec.length = request.max_bytes;
    spec.offset = request.old_text.size();
    spec.input = std::move(request.old_text);
    spec.input += request.new_text;
    spec.options =
        (request.replace_all ? protocol::replace_all : 0U) | (request.any_bytes ? protocol::any_bytes : 0U);
    auto got = co_await perform(std::move(spec), 0);
    if (!got) {
        co_return std::move(got).error();
    }
    edit_result out;
    out.empty = has(got->marks, protocol::empty_file);
    out.binary = has(got->marks, protocol::binary_file);
    out.over_limit = has(got->marks, protocol::over_limit);
    if (has(got->marks, protocol::size_known)) {
        out.size = got->length;
    } else if (!out.empty && !out.binary && !out.over_limit) {
        out.occurrences = got->length;
    }
    co_return out;
}

task<result<bool>> file_operations::exists(std::string path) {
    auto spec = spec_of(file_operation::stat, std::move(path), options_.exists_within);
    auto got = co_await perform(std::move(spec), 0);
    if (!got) {
        const auto code = got.error().code;
        if (code == errc::not_found || code == errc::invalid || code == errc::denied || code == errc::io) {
            co_return false;
        }
        co_return std::move(got).error();
    }
    co_return has(got->marks, protocol::regular);
}

/// The entries that `spec` finds below `prefix`; `flat`: in one directory.
task<result<file_listing>> file_operations::listed(file_spec spec, std::string prefix, bool flat) {
    const auto most = entries_below(prefix, options_);
    spec.length = most;
    spec.limit_bytes = options_.listing_bytes;
    auto got = co_await perform(std::move(spec), options_.listing_bytes);
    if (!got) {
        co_return std::move(got).error();
    }
    auto entries = read_listing(got->bytes, most, prefix, flat);
    if (!entries) {
        co_return nonsense();
    }
    file_listing out;
    out.entries = std::move(*entries);
    out.truncated = has(got->marks, protocol::truncated);
    co_return out;
}

task<result<file_listing>> file_operations::ls(std::string path) {
    if (path.empty()) {
        path = ".";
    }
    auto prefix = prefix_of(path);
    auto spec = spec_of(file_operation::list, std::move(path), options_.list_within);
    co_return co_await listed(std::move(spec), std::move(prefix), true);
}

task<result<file_listing>> file_operations::glob(glob_request request) {
    const bool here = request.path.empty() || request.path == ".";
    auto prefix = here ? std::string() : prefix_of(request.path);
    auto spec = spec_of(file_operation::glob, here ? "." : std::move(request.path), options_.search_within);
    spec.pattern = std::move(request.pattern);
    co_return co_await listed(std::move(spec), std::move(prefix), false);
}

task<result<grep_result>> file_operations::grep(grep_request request) {
    if (request.path.empty()) {
        request.path = ".";
    }
    auto spec = spec_of(file_operation::grep, std::move(request.path), options_.search_within);
    spec.pattern = std::move(request.pattern);
    spec.second_path = std::move(request.glob);
    spec.options = request.ignore_hidden ? protocol::ignore_hidden : 0U;
    spec.length = options_.matches;
    spec.limit_bytes = options_.match_bytes;
    const auto heads = options_.matches * protocol::match_head;
    auto got = co_await perform(std::move(spec), options_.match_bytes + heads);
    if (!got) {
        co_return std::move(got).error();
    }
    auto matches = read_matches(got->bytes, options_.matches, options_.match_bytes);
    if (!matches) {
        co_return nonsense();
    }
    grep_result out;
    out.matches = std::move(*matches);
    out.truncated = has(got->marks, protocol::truncated);
    co_return out;
}

} // namespace sandboxd::sandboxes
