#include "cli/texts.hpp"

#include "config/table.hpp"
#include "sandboxd/version.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sandboxd::cli {

std::string help_text() {
    return R"(sandboxd rents out sandboxes over HTTP, and is a client of itself.

Usage: sandboxd [COMMAND] [OPTION...]

Commands:
  serve                 run the service (the default)
  config                print the settings in force and where each came from
  prepare               make the images of all runtimes ready (pull, build), then exit

Commands for a running service (sandboxd COMMAND --help tells more):
  open                  open a session and print its id
  exec                  run a program in a session
  cp, ls, rm            copy, list and remove files; rm also closes sessions
  sessions, events      list the open sessions; print what was done in one

Options:
  --config FILE         read settings from a JSON file (comments are fine)
  --listen HOST:PORT    listen there: 127.0.0.1:8080, [::1]:8080, :8080 for all interfaces
  --backend NAME        what makes the sandboxes: docker or oci
  --help                print this text
  --version             print release and commit

Settings are SANDBOXD_* variables; the environment wins over the file, options win over both.
SANDBOXD_TOKEN or SANDBOXD_TOKEN_FILE is required. docs/configuration.md lists them all.

Exit status: 0 stopped as told, 1 a setting is wrong or the service could not start, 2 the command line is wrong.
Of prepare: 0 all images are ready, 1 some are not, 2 a setting or the command line is wrong,
128 and the number for a signal.
)";
}

std::string version_text() {
    return fmt::format("sandboxd {} ({})\n", version(), commit());
}

std::string config_text(const config::loaded_settings& loaded) {
    std::size_t name_width = 0;
    for (const auto& info : config::table()) {
        name_width = std::max(name_width, info.name.size());
    }
    std::string out;
    for (std::size_t i = 0; i < config::table().size(); ++i) {
        const auto& info = config::table()[i];
        out += fmt::format("{:<{}}  {:<11}  {}{}\n", info.name, name_width,
                           config::name_of(loaded.sources[i]), config::value_text(info, loaded.values),
                           info.in_effect ? "" : "  [not yet in effect]");
    }
    return out;
}

} // namespace sandboxd::cli
