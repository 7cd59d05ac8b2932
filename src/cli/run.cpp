#include "cli/run.hpp"

#include "cli/client_run.hpp"
#include "cli/texts.hpp"

#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace sandboxd::cli {
namespace {

int print(const std::string& text) {
    const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int print_config(const options& with) {
    const auto loaded = load_settings(with);
    if (!loaded) {
        complain(loaded.error().message);
        return exit_settings;
    }
    for (const std::string& note : loaded->notes) {
        complain(note);
    }
    return print(config_text(*loaded));
}

} // namespace

result<config::loaded_settings> load_settings(const options& with) {
    const auto host = config::this_host();
    std::optional<config::file_text> file;
    if (with.config_file) {
        auto opened = config::open_file(*with.config_file, host);
        if (!opened) {
            return opened.error();
        }
        file = std::move(*opened);
    }
    return config::load(config::this_environment(), file, with.given, host);
}

int run(const command& what) {
    return std::visit(
        [](const auto& one) {
            using T = std::decay_t<decltype(one)>;
            if constexpr (std::is_same_v<T, show_config>) {
                return print_config(one.with);
            } else if constexpr (std::is_same_v<T, show_help>) {
                return print(help_text());
            } else if constexpr (std::is_same_v<T, show_version>) {
                return print(version_text());
            } else if constexpr (std::is_same_v<T, client_call>) {
                return run_client(one);
            } else if constexpr (std::is_same_v<T, usage_error>) {
                std::fprintf(stderr, "%s\n", one.text.c_str());
                return exit_usage;
            } else {
                complain("serve and prepare are not commands of this function");
                return exit_usage;
            }
        },
        what);
}

void complain(const std::string& message) {
    std::fprintf(stderr, "sandboxd: %s\n", message.c_str());
}

} // namespace sandboxd::cli
