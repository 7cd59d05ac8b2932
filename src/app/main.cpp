#include "app/prepare.hpp"
#include "app/serve.hpp"
#include "cli/run.hpp"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
    try {
        using namespace sandboxd;
        const cli::command asked = cli::parse(argc, argv);
        if (const auto* prepare = std::get_if<cli::prepare>(&asked)) {
            const auto loaded = cli::load_settings(prepare->with);
            if (!loaded) {
                cli::complain(loaded.error().message);
                return cli::exit_prepare_settings;
            }
            return app::prepare(*loaded);
        }
        const auto* serve = std::get_if<cli::serve>(&asked);
        if (serve == nullptr) {
            return cli::run(asked);
        }
        const auto loaded = cli::load_settings(serve->with);
        if (!loaded) {
            cli::complain(loaded.error().message);
            return cli::exit_settings;
        }
        return app::serve(*loaded);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "sandboxd: a fault of ours: %s\n", e.what());
        return 70;
    }
}
