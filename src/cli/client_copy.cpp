#include "cli/client_run.hpp"
#include "cli/local_files.hpp"
#include "cli/terminal.hpp"
#include "client/failure.hpp"
#include "client/session_files.hpp"
#include "client/shell_files.hpp"

#include <boost/json/object.hpp>

namespace sandboxd::cli {

using client::failed;
using client::fault;
using client::outcome;

namespace {

constexpr int deepest = 200;

/// One run of cp.
struct copying {
    session_place session;
    bool recursive = false;
    std::uint64_t files = 0;
    std::uint64_t skipped = 0;
    std::vector<std::string> executable; ///< paths in the session
};

void skip(copying& run, const std::string& what) {
    ++run.skipped;
    complain_safely(what);
}

/// A link of its own for each file, so that the progress names it.
client::link_ptr link_for(const copying& run, copy_progress& progress) {
    auto made = std::make_shared<client::session_link>(*run.session.link);
    made->sent = made->received = [&progress](std::uint64_t moved, std::optional<std::uint64_t> of) {
        progress.show(moved, of);
    };
    return made;
}

/// By the service, or piece by piece where the file is larger than it takes.
task<outcome<void>> put_file(copying& run, std::string from, std::string to) {
    auto data = local::read(from);
    if (!data) {
        co_return data.error();
    }
    copy_progress progress(from);
    const auto link = link_for(run, progress);
    const bool native = data->size() <= run.session.native_limit;
    auto done = native ? co_await client::write_file(link, to, std::move(*data))
                       : co_await client::by_shell::write(link, to, std::move(*data));
    if (done) {
        ++run.files;
        if (from != "-" && local::is_executable(from)) {
            run.executable.push_back(to);
        }
    }
    co_return done;
}

task<outcome<void>> put(copying& run, std::string from, std::string to, int depth) {
    const auto kind = from == "-" ? local::kind::file : local::kind_of(from);
    if (kind == local::kind::missing) {
        co_return failed(fault::invalid, from + ": no such file or directory");
    }
    if (kind == local::kind::other && depth == 0) {
        co_return failed(fault::invalid, from + " is neither a file nor a directory");
    }
    if (kind != local::kind::directory) {
        co_return co_await put_file(run, std::move(from), std::move(to));
    }
    if (!run.recursive) {
        co_return failed(fault::invalid, from + " is a directory: --recursive copies it");
    }
    if (depth > deepest) {
        co_return failed(fault::invalid,
                         from + " is deeper than " + std::to_string(deepest) + " directories");
    }
    const auto names = local::names_in(from);
    if (!names) {
        co_return names.error();
    }
    auto made = co_await client::make_directory(run.session.link, to);
    if (!made) {
        co_return made.error();
    }
    for (const auto& name : *names) {
        const auto path = local::joined(from, name);
        const auto what = local::kind_of(path);
        if (what == local::kind::missing || what == local::kind::other) {
            skip(run, "left out " + path + ": neither a file nor a directory");
            continue;
        }
        auto done = co_await put(run, path, local::joined(to, name), depth + 1);
        if (!done) {
            co_return done.error();
        }
    }
    co_return outcome<void>();
}

task<outcome<void>> mark_executable(copying& run) {
    constexpr std::size_t at_once = 100;
    for (std::size_t at = 0; at < run.executable.size(); at += at_once) {
        std::vector<std::string> argv{"chmod", "+x", "--"};
        const auto end = std::min(at + at_once, run.executable.size());
        for (std::size_t i = at; i < end; ++i) {
            argv.push_back(run.executable[i]);
        }
        const auto done = co_await client::run_command(run.session.link, std::move(argv), {});
        if (!done || done->exit_code != 0) {
            complain_safely("the copies can't be made executable: " +
                            (done ? done->err : done.error().message));
        }
    }
    co_return outcome<void>();
}

task<outcome<void>> get(copying& run, std::string from, std::string to, int depth);

task<outcome<void>> get_directory(copying& run, std::string from, std::string to, int depth) {
    if (!run.recursive) {
        co_return failed(fault::invalid, from + " is a directory: --recursive copies it");
    }
    if (depth > deepest) {
        co_return failed(fault::invalid,
                         from + " is deeper than " + std::to_string(deepest) + " directories");
    }
    const auto rows = co_await client::list_directory(run.session.link, from);
    if (!rows) {
        co_return rows.error();
    }
    auto made = local::make_directory(to);
    if (!made) {
        co_return made.error();
    }
    for (const auto& row : *rows) {
        // A name is whatever a service says: it must not lead out of the directory.
        if (row.name.empty() || row.name == "." || row.name == ".." ||
            row.name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
            skip(run, "left out a file of the odd name '" + row.name + "' in " + from);
            continue;
        }
        if (!row.is_dir && !row.size) {
            skip(run, "left out " + row.path + ": neither a file nor a directory");
            continue;
        }
        auto done = co_await get(run, local::joined(from, row.name), local::joined(to, row.name), depth + 1);
        if (!done && done.error().kind == fault::not_found) {
            skip(run, "left out " + row.path + ": it is gone");
            continue;
        }
        if (!done) {
            co_return done.error();
        }
    }
    co_return outcome<void>();
}

task<outcome<void>> get(copying& run, std::string from, std::string to, int depth) {
    const auto found = co_await client::stat_path(run.session.link, from);
    if (!found) {
        co_return found.error();
    }
    if (found->is_dir) {
        co_return co_await get_directory(run, std::move(from), std::move(to), depth);
    }
    copy_progress progress(from);
    auto data = co_await client::read_file(link_for(run, progress), from);
    if (!data) {
        co_return data.error();
    }
    progress.finish();
    auto done = local::write(to, *data);
    run.files += done ? 1 : 0;
    co_return done;
}

/// Into the directory when the target is one, or is said to be.
task<outcome<std::string>> target_in_session(const copying& run, std::string given, std::string name) {
    const auto path = run.session.absolute(given);
    bool into = given.empty() || given.ends_with('/') || given == ".";
    if (!into) {
        const auto found = co_await client::stat_path(run.session.link, path);
        into = found && found->is_dir;
    }
    if (into && name.empty()) {
        co_return failed(fault::invalid, "name the file in the session: SESSION:PATH");
    }
    co_return into ? local::joined(path, name) : path;
}

outcome<int> ended(const service& of, const copying& run) {
    if (of.json && !print(json_line(boost::json::object{{"files", run.files}, {"skipped", run.skipped}}))) {
        return failed(fault::invalid, "cannot write to standard output");
    }
    return run.skipped == 0 ? 0 : 1;
}

} // namespace

status_task copy_files(const service& of, const client_call& call) {
    const auto from = parse_place(call.words[0]);
    const auto to = parse_place(call.words[1]);
    if (from.session.has_value() == to.session.has_value()) {
        co_return failed(fault::invalid, from.session
                                             ? "one of the two must be of this host: copy in two steps"
                                             : "one of the two must be SESSION:PATH");
    }
    copying run;
    run.recursive = call.has("--recursive");
    auto session = co_await reach(of, from.session ? *from.session : *to.session);
    if (!session) {
        co_return session.error();
    }
    run.session = std::move(*session);
    if (to.session) {
        const auto target =
            co_await target_in_session(run, to.path, from.path == "-" ? "" : local::base_name(from.path));
        if (!target) {
            co_return target.error();
        }
        auto done = co_await put(run, from.path, *target, 0);
        if (!done) {
            co_return done.error();
        }
        (void)co_await mark_executable(run);
        co_return ended(of, run);
    }
    auto target = to.path;
    if (target != "-" && (target.ends_with('/') || local::kind_of(target) == local::kind::directory)) {
        auto name = local::base_name(from.path);
        target = local::joined(target, name.empty() ? *from.session : name);
    }
    auto done = co_await get(run, run.session.absolute(from.path), target, 0);
    if (!done) {
        co_return done.error();
    }
    co_return ended(of, run);
}

} // namespace sandboxd::cli
