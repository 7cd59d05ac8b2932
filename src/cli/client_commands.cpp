#include "cli/client_arguments.hpp"

#include <algorithm>
#include <array>

namespace sandboxd::cli {

namespace {

constexpr std::array<flag_info, 7> shared{{
    {"--url", "URL", "the service; default SANDBOXD_URL, else http://127.0.0.1:8080"},
    {"--token", "TOKEN", "its token; default SANDBOXD_TOKEN (other users of this host can see arguments)"},
    {"--token-file", "FILE", "a file that holds the token; default SANDBOXD_TOKEN_FILE"},
    {"--ca-file", "FILE", "certificates (PEM) to believe instead of the system's"},
    {"--insecure", "", "do not check the service's certificate"},
    {"--json", "", "print JSON"},
    {"--help", "", "print this text"},
}};

const std::vector<command_info>& table() {
    static const std::vector<command_info> all{
        {"open",
         "[SESSION]",
         "open a session and print its id",
         "Without SESSION the service makes up an id. With --json the session's own token is printed too.",
         {{"--runtime", "NAME", "one of the service's runtimes; its default when left out"},
          {"--tenant", "NAME", "whom the session counts for"},
          {"--reuse", "", "attach when a session of that id is open"},
          {"--attach", "", "attach only: to an open session, or to the files that a closed one left"},
          {"--timeout", "SECONDS", "the longest wait for an answer; default 600, for it may build an image"}},
         "sandboxd open --runtime python",
         0,
         1,
         false},
        {"exec",
         "SESSION [--] PROGRAM [ARGUMENT...]",
         "run a program in a session; its exit status is passed on",
         "Its output is printed when it has ended; its standard input is empty. Ctrl-C stops it.\n"
         "Exit status: the program's own; 124 when it was stopped at its time limit; 128 and the number for "
         "a signal;\n"
         "125 when it could not be run, or printed more than the service allows.",
         {{"--shell", "", "PROGRAM is one line for /bin/sh"},
          {"--env", "NAME=VALUE", "a variable of its environment; may be repeated"},
          {"--timeout", "SECONDS", "stop it then; the service's ceiling when left out"}},
         "sandboxd exec demo -- python3 -c 'print(6 * 7)'",
         2,
         static_cast<std::size_t>(-1),
         true},
        {"cp",
         "FROM TO",
         "copy files into a session and out of it",
         "One of FROM and TO is SESSION:PATH; PATH begins at the work directory unless it begins with /. TO "
         "may be a\n"
         "directory. - is standard input or output. Executable files stay so on their way into a session.",
         {{"--recursive", "", "directories too, with what is in them"}},
         "sandboxd cp report.csv demo:data/\n  sandboxd cp --recursive demo:out ./results",
         2,
         2,
         false},
        {"ls",
         "SESSION[:PATH]",
         "list a directory of a session",
         "Of a closed session too, where the service keeps its files.",
         {},
         "sandboxd ls demo:src",
         1,
         1,
         false},
        {"rm",
         "SESSION[:PATH]...",
         "close sessions, or remove files in them",
         "SESSION closes it; its files are kept where the service keeps files. SESSION:PATH removes that "
         "file.",
         {{"--purge", "", "of a session: its files too"}, {"--recursive", "", "of a path: directories too"}},
         "sandboxd rm --purge demo",
         1,
         static_cast<std::size_t>(-1),
         false},
        {"sessions",
         "",
         "list the open sessions",
         "",
         {{"--usage", "", "with the memory each uses"}},
         "sandboxd sessions",
         0,
         0,
         false},
        {"events",
         "SESSION",
         "print what was done in a session",
         "With --json one object a line.",
         {{"--follow", "", "go on as more is done, until the session is closed"},
          {"--after", "NUMBER", "only those after this one"}},
         "sandboxd events --follow demo",
         1,
         1,
         false},
    };
    return all;
}

std::string flag_line(const flag_info& flag) {
    constexpr std::size_t column = 24;
    std::string line = "  " + std::string(flag.name);
    if (!flag.placeholder.empty()) {
        line += " " + std::string(flag.placeholder);
    }
    line.resize(std::max(line.size() + 1, column), ' ');
    return line + std::string(flag.text) + "\n";
}

} // namespace

const command_info* find_client_command(std::string_view name) {
    const auto found =
        std::find_if(table().begin(), table().end(), [&](const auto& one) { return one.name == name; });
    return found == table().end() ? nullptr : &*found;
}

std::vector<std::string_view> client_command_names() {
    std::vector<std::string_view> names;
    for (const auto& one : table()) {
        names.push_back(one.name);
    }
    return names;
}

std::span<const flag_info> common_flags() {
    return shared;
}

std::string client_help_text(const command_info& command) {
    std::string text = std::string(command.summary) + "\n\nUsage: sandboxd " + std::string(command.name) +
                       (command.usage.empty() ? "" : " ") + std::string(command.usage) + " [OPTION...]\n";
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
    if (command.takes_program) {
        text = text.substr(0, text.find("Usage:")) + "Usage: sandboxd " + std::string(command.name) +
               " [OPTION...] " + std::string(command.usage) + "\n";
    }
    if (!command.text.empty()) {
        text += "\n" + std::string(command.text) + "\n";
    }
    text += "\nOptions:\n";
    for (const auto& flag : command.flags) {
        text += flag_line(flag);
    }
    for (const auto& flag : shared) {
        text += flag_line(flag);
    }
    return text + "\nExample:\n  " + std::string(command.example) + "\n";
}

} // namespace sandboxd::cli
