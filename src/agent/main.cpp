#include "agent/agent.hpp"
#include "agent/bridge.hpp"
#include "agent/filter.hpp"
#include "agent/system.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int usage_error = 2;
constexpr int no_filter = 3;

int usage() {
    std::fputs("usage: sandboxd-agent serve --listen-fd N | --stdio | --dial PATH  [--filter]\n"
               "                            [--bridge NAME] [--entrypoint ARG...]\n"
               "       sandboxd-agent bridge NAME\n"
               "       sandboxd-agent --version\n",
               stderr);
    return usage_error;
}

} // namespace

int main(int argc, char** argv) {
    using sandboxd::agent::agent_options;
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
        std::printf("sandboxd-agent, protocol %u\n", sandboxd::protocol::version);
        return 0;
    }
    if (argc == 3 && std::strcmp(argv[1], "bridge") == 0) {
        return sandboxd::agent::run_bridge(argv[2]);
    }
    if (argc < 3 || std::strcmp(argv[1], "serve") != 0) {
        return usage();
    }
    agent_options options;
    int at = 3;
    if (std::strcmp(argv[2], "--stdio") == 0) {
        options.how = agent_options::transport::standard_streams;
    } else if (argc > 3 && std::strcmp(argv[2], "--listen-fd") == 0) {
        options.listen_fd = std::atoi(argv[at++]);
    } else if (argc > 3 && std::strcmp(argv[2], "--dial") == 0) {
        options.how = agent_options::transport::dial;
        options.dial_path = argv[at++];
    } else {
        return usage();
    }
    if (at < argc && std::strcmp(argv[at], "--filter") == 0) {
        ++at;
        if (const int failed = sandboxd::agent::load_filter(); failed != 0) {
            std::fprintf(stderr, "the system-call filter can't be loaded: %s\n", std::strerror(failed));
            return no_filter;
        }
    }
    if (options.how == agent_options::transport::listen) {
        sandboxd::agent::leave_standard_streams();
    }
    if (at + 1 < argc && std::strcmp(argv[at], "--bridge") == 0) {
        options.bridge_name = argv[at + 1];
        at += 2;
    }
    if (at < argc) {
        if (std::strcmp(argv[at], "--entrypoint") != 0 || at + 1 == argc) {
            return usage();
        }
        options.entrypoint = argv + at + 1;
    }
    return sandboxd::agent::agent(options).run();
}
