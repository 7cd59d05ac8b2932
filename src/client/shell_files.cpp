#include "client/shell_files.hpp"

#include "client/failure.hpp"
#include "client/or_undo.hpp"
#include "client/shell_scripts.hpp"
#include "core/base64.hpp"
#include "core/deadline.hpp"
#include "core/random.hpp"
#include "core/utf8.hpp"

#include <algorithm>
#include <charconv>

namespace sandboxd::client::by_shell {

namespace {

constexpr std::size_t read_block = 65'536;
constexpr std::size_t blocks_a_run = 64;        ///< 4 MiB, whose base64 fits the output's limit
constexpr std::size_t raw_argument = 72 * 1024; ///< whose base64 is below the 128 KiB of one argument
constexpr std::chrono::seconds undo_grace{5};
constexpr std::size_t arguments_a_run = 6; ///< and a request below the 1 MiB that every service takes

failure fault_of(int exit_code, const std::string& path, const std::string& said) {
    const auto of = [&](fault kind, const char* why) { return failed(kind, std::string(why) + ": " + path); };
    switch (exit_code) {
    case exit_missing:
        return of(fault::not_found, "No such file or directory");
    case exit_denied:
        return of(fault::denied, "Permission denied");
    case exit_working_directory:
        return of(fault::invalid, "The working directory, or a directory that holds it, can't be removed");
    case exit_exists:
        return of(fault::exists, "File exists");
    case exit_not_a_directory:
        return of(fault::not_a_directory, "Not a directory");
    case exit_is_a_directory:
        return of(fault::is_a_directory, "Is a directory");
    case exit_not_regular:
        return of(fault::failed, "Not a regular file");
    default:
        break;
    }
    const auto last = said.find_last_not_of(" \n");
    const std::string shown = last == std::string::npos
                                  ? "a command in the sandbox ended with " + std::to_string(exit_code)
                                  : said.substr(0, last + 1);
    return of(fault::failed, shown.c_str());
}

/// Output of a script over `path`.
task<outcome<std::string>> perform(link_ptr link, std::string_view script, std::string path,
                                   std::vector<std::string> arguments = {}) {
    if (path.empty() || path.find('\0') != std::string::npos) {
        co_return failed(fault::invalid, path.empty() ? "the path is empty" : "the path holds a NUL");
    }
    const std::string shown = path;
    while (path.size() > 1 && path.ends_with('/')) {
        path.pop_back();
    }
    const bool text = core::is_utf8(path);
    std::vector<std::string> argv{
        "/bin/sh", "-c", whole(script), "sh", text ? path : core::base64(path), text ? "text" : "b64"};
    argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
                std::make_move_iterator(arguments.end()));
    auto ran = co_await run_command(link, std::move(argv), {});
    if (!ran) {
        co_return ran.error();
    }
    if (ran->exit_code != 0) {
        co_return fault_of(ran->exit_code, shown, ran->err);
    }
    co_return std::move(ran->out);
}

failure too_large(const std::string& path, std::uint64_t size, std::size_t most) {
    return failed(fault::failed, path + ": " + std::to_string(size) + " bytes, more than the " +
                                     std::to_string(most) + " that are read at most");
}

failure garbled() {
    return failed(fault::malformed, "a command in the sandbox printed something unexpected");
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, value);
    return failure == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<std::string> decoded(std::string text) {
    std::erase(text, '\n');
    return core::from_base64(text);
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
        text.remove_suffix(1);
    }
    while (!text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
    }
    return text;
}

std::string last_part(const std::string& path) {
    const auto end = path.find_last_not_of('/');
    if (end == std::string::npos) {
        return path.empty() ? "" : "/";
    }
    const auto slash = path.find_last_of('/', end);
    const auto begin = slash == std::string::npos ? 0 : slash + 1;
    return path.substr(begin, end - begin + 1);
}

} // namespace

task<outcome<std::string>> read(link_ptr link, std::string path) {
    auto said = co_await perform(link, read_script, path);
    const auto size = said ? number(trimmed(*said)) : std::nullopt;
    if (!size) {
        co_return said ? garbled() : said.error();
    }
    const auto most = link->http->max_answer();
    std::string content;
    while (true) {
        // A sandbox may say one thing and send another.
        if (const auto least = std::max<std::uint64_t>(*size, content.size()); least > most) {
            co_return too_large(path, least, most);
        }
        auto piece =
            co_await perform(link, read_script, path,
                             {std::to_string(blocks_a_run), std::to_string(content.size() / read_block)});
        if (!piece) {
            co_return piece.error();
        }
        const auto bytes = decoded(std::move(*piece));
        if (!bytes || bytes->size() > blocks_a_run * read_block) {
            co_return garbled();
        }
        content += *bytes;
        if (link->received) {
            link->received(content.size(), *size);
        }
        if (bytes->size() < blocks_a_run * read_block) {
            co_return content;
        }
    }
}

namespace {

task<outcome<void>> write_whole(link_ptr link, const std::string& path, const std::string& temporary,
                                const std::string& data) {
    auto said = co_await perform(link, write_begin_script, path, {temporary});
    for (std::size_t at = 0; said && at < data.size();) {
        std::vector<std::string> arguments{temporary};
        for (std::size_t i = 0; i < arguments_a_run && at < data.size(); ++i) {
            const auto piece = std::string_view(data).substr(at, raw_argument);
            arguments.push_back(core::base64(piece));
            at += piece.size();
        }
        said = co_await perform(link, write_piece_script, path, std::move(arguments));
        if (said && link->sent) {
            link->sent(at, data.size());
        }
    }
    if (said) {
        said = co_await perform(link, write_end_script, path, {temporary, std::to_string(data.size())});
    }
    co_return said ? outcome<void>() : outcome<void>(said.error());
}

task<void> remove_temporary(link_ptr link, const std::string& path, const std::string& temporary) {
    (void)co_await core::with_timeout(perform(link, write_undo_script, path, {temporary}), undo_grace);
}

} // namespace

task<outcome<void>> write(link_ptr link, std::string path, std::string data) {
    const std::string temporary = "." + core::random_hex(8) + ".tmp";
    co_return co_await or_undo(write_whole(link, path, temporary, data),
                               [&] { return remove_temporary(link, path, temporary); });
}

task<outcome<file_info>> stat(link_ptr link, std::string path) {
    auto said = co_await perform(link, stat_script, path);
    if (!said) {
        co_return said.error();
    }
    const auto line = trimmed(*said);
    file_info made;
    made.name = last_part(path);
    made.path = path;
    made.is_dir = line == "d";
    if (line.starts_with("f ")) {
        made.size = number(trimmed(line.substr(2)));
    } else if (line != "d" && line != "o") {
        co_return garbled();
    }
    co_return made;
}

task<outcome<std::vector<file_info>>> list(link_ptr link, std::string path) {
    auto said = co_await perform(link, list_script, path);
    if (!said) {
        co_return said.error();
    }
    const auto line = said->find('\n');
    const auto names = line != std::string::npos ? decoded(said->substr(0, line)) : std::nullopt;
    if (!names) {
        co_return garbled();
    }
    std::vector<std::uint64_t> sizes;
    for (auto rest = trimmed(std::string_view(*said).substr(line + 1)); !rest.empty();) {
        const auto word = rest.substr(0, rest.find(' '));
        sizes.push_back(number(word).value_or(0));
        rest = trimmed(rest.substr(word.size()));
    }
    std::string folder = path;
    while (folder.ends_with('/')) {
        folder.pop_back();
    }
    std::vector<file_info> made;
    std::vector<std::size_t> files;
    for (std::size_t at = 0; at < names->size();) {
        const auto end = std::min(names->find('\0', at), names->size());
        if (end - at < 2) {
            co_return garbled();
        }
        file_info one;
        one.name = names->substr(at + 1, end - at - 1);
        one.path = folder + "/" + one.name;
        one.is_dir = (*names)[at] == 'd';
        if ((*names)[at] == 'f') {
            files.push_back(made.size());
        }
        made.push_back(std::move(one));
        at = end + 1;
    }
    // What came or went between the two passes leaves the sizes untold.
    for (std::size_t i = 0; i < files.size() && files.size() == sizes.size(); ++i) {
        made[files[i]].size = sizes[i];
    }
    std::sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    co_return made;
}

task<outcome<void>> make_dir(link_ptr link, std::string path) {
    auto said = co_await perform(link, make_dir_script, std::move(path));
    co_return said ? outcome<void>() : outcome<void>(said.error());
}

task<outcome<void>> remove(link_ptr link, std::string path) {
    auto said = co_await perform(link, remove_script, std::move(path));
    co_return said ? outcome<void>() : outcome<void>(said.error());
}

task<outcome<std::string>> realpath(link_ptr link, std::string path) {
    auto said = co_await perform(link, realpath_script, std::move(path));
    if (!said) {
        co_return said.error();
    }
    auto found = decoded(std::move(*said));
    co_return found ? outcome<std::string>(std::move(*found)) : outcome<std::string>(garbled());
}

} // namespace sandboxd::client::by_shell
