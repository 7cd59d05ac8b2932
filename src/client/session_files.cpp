#include "client/session_files.hpp"

#include "client/failure.hpp"
#include "client/shell_files.hpp"

namespace sandboxd::client {

namespace {

using native_answer = outcome<std::optional<http_answer>>;

/// Nothing where the service does not do such operations, or hands this one back. (A relative path is the
/// shell's: the service does not know where commands start.)
task<native_answer> try_native(link_ptr link, bool offered, std::string op, std::string path,
                               std::optional<std::string> content = {}) {
    if (!offered || !path.starts_with('/')) {
        co_return std::nullopt;
    }
    co_return co_await ask_native(std::move(link), std::move(op), std::move(path), std::move(content));
}

failure odd_answer() {
    return failed(fault::malformed, "the sandbox service answered a file operation with something else");
}

} // namespace

task<outcome<std::string>> read_file(link_ptr link, std::string path) {
    auto answer = co_await try_native(link, link->native_reads, "read", path);
    if (!answer) {
        co_return answer.error();
    }
    if (*answer) {
        co_return std::move((*answer)->body);
    }
    co_return co_await by_shell::read(std::move(link), std::move(path));
}

task<outcome<void>> write_file(link_ptr link, std::string path, std::string data) {
    auto answer = co_await try_native(link, link->native_writes, "write", path, data);
    if (!answer) {
        co_return answer.error();
    }
    if (*answer) {
        co_return outcome<void>();
    }
    co_return co_await by_shell::write(std::move(link), std::move(path), std::move(data));
}

task<outcome<file_info>> stat_path(link_ptr link, std::string path) {
    auto answer = co_await try_native(link, link->native_reads, "stat", path);
    if (!answer) {
        co_return answer.error();
    }
    if (!*answer) {
        co_return co_await by_shell::stat(std::move(link), std::move(path));
    }
    const auto parsed = json_of((*answer)->body);
    auto made = parsed ? file_info_of(*parsed) : std::nullopt;
    co_return made ? outcome<file_info>(std::move(*made)) : outcome<file_info>(odd_answer());
}

task<outcome<std::vector<file_info>>> list_directory(link_ptr link, std::string path) {
    auto answer = co_await try_native(link, link->native_reads, "list", path);
    if (!answer) {
        co_return answer.error();
    }
    if (!*answer) {
        co_return co_await by_shell::list(std::move(link), std::move(path));
    }
    const auto parsed = json_of((*answer)->body);
    auto made = parsed ? file_infos_of(*parsed) : std::nullopt;
    if (!made) {
        co_return odd_answer();
    }
    co_return std::move(*made);
}

task<outcome<void>> make_directory(link_ptr link, std::string path) {
    auto answer = co_await try_native(link, link->native_writes, "mkdir", path);
    if (!answer) {
        co_return answer.error();
    }
    if (*answer) {
        co_return outcome<void>();
    }
    co_return co_await by_shell::make_dir(std::move(link), std::move(path));
}

task<outcome<void>> remove_path(link_ptr link, std::string path) {
    auto answer = co_await try_native(link, link->native_writes, "remove", path);
    if (!answer) {
        co_return answer.error();
    }
    if (*answer) {
        co_return outcome<void>();
    }
    co_return co_await by_shell::remove(std::move(link), std::move(path));
}

task<outcome<bool>> path_exists(link_ptr link, std::string path) {
    const auto found = co_await stat_path(std::move(link), std::move(path));
    if (found) {
        co_return true;
    }
    const auto kind = found.error().kind;
    if (kind == fault::not_found || kind == fault::not_a_directory) {
        co_return false;
    }
    co_return found.error();
}

task<outcome<std::string>> resolve_path(link_ptr link, std::string path) {
    auto answer = co_await try_native(link, link->native_reads && link->native_realpath, "realpath", path);
    if (!answer) {
        co_return answer.error();
    }
    if (!*answer) {
        co_return co_await by_shell::realpath(std::move(link), std::move(path));
    }
    const auto parsed = json_of((*answer)->body);
    std::string found;
    if (!parsed || !fields(*parsed).read("path", found)) {
        co_return odd_answer();
    }
    co_return found;
}

} // namespace sandboxd::client
