#include "agent_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace sandboxd::test {

namespace {

task<void> keep_answer(std::shared_ptr<sandbox> box, exec_request request,
                       std::optional<result<exec_result>>& to) {
    to.emplace(co_await box->exec(std::move(request)));
}

task<std::shared_ptr<sandbox>> make(sandboxes::agent_sandbox_factory factory, std::shared_ptr<door> host,
                                    bool adopted) {
    auto made = co_await factory(std::move(host), adopted);
    co_return std::move(made).value();
}

/// Parent and command line of every process.
struct process {
    int parent = 0;
    std::string name;
};

std::map<int, process> processes() {
    std::map<int, process> out;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) {
            continue;
        }
        std::ifstream file(entry.path() / "stat");
        std::string text;
        std::getline(file, text);
        const auto open = text.find('(');
        const auto close = text.rfind(')');
        if (close == std::string::npos || text.substr(close + 2, 1) == "Z") {
            continue;
        }
        out[std::stoi(name)] = {std::stoi(text.substr(close + 4)), text.substr(open + 1, close - open - 1)};
    }
    return out;
}

} // namespace

exec_request exec_of(std::string command, std::size_t cap, std::chrono::milliseconds timeout) {
    exec_request request;
    request.run_id = fresh_id();
    request.command = std::move(command);
    request.timeout = timeout;
    request.output_cap = cap;
    return request;
}

agent_fixture::agent_fixture()
    : host(real_agent::start(context)),
      flag_((std::filesystem::temp_directory_path() / ("go-" + fresh_id())).string()) {
    open(false);
}

agent_fixture::~agent_fixture() {
    std::filesystem::remove(flag_);
    box.reset();
    test::run(context, host->terminate(std::chrono::milliseconds(0), false));
    background.close();
    test::run(context, background.drained());
    way.reset();
    host.reset();
}

void agent_fixture::open(bool adopted) {
    way = std::make_shared<door>(host);
    const auto factory = sandboxes::create_agent_sandbox_factory(context.get_executor(), background, options);
    box = get(context, make(factory, way, adopted));
}

void agent_fixture::restart() {
    way->close();
    open(true);
}

std::string agent_fixture::held(const std::string& more) const {
    return "while [ ! -e " + flag_ + " ]; do sleep 0.02; done; " + more;
}

void agent_fixture::let_go() {
    std::ofstream{flag_};
}

result<exec_result> agent_fixture::exec(std::string command, std::size_t cap,
                                        std::chrono::milliseconds timeout) {
    return get(context, box->exec(exec_of(std::move(command), cap, timeout)));
}

result<run_result> agent_fixture::run(std::vector<std::string> argv, std::chrono::milliseconds timeout,
                                      std::size_t limit) {
    run_request request;
    request.run_id = fresh_id();
    request.argv = std::move(argv);
    request.timeout = timeout;
    request.output_limit = limit;
    return get(context, box->run(std::move(request)));
}

void agent_fixture::start(std::string command, std::optional<result<exec_result>>& to, std::string id,
                          std::chrono::milliseconds timeout) {
    auto request = exec_of(std::move(command), 100'000, timeout);
    request.run_id = std::move(id);
    core::spawn(context.get_executor(), "command", background, keep_answer(box, std::move(request), to));
}

void agent_fixture::until(const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    while (!done() && std::chrono::steady_clock::now() < limit) {
        context.restart();
        context.run_one_for(std::chrono::milliseconds(20));
    }
    BOOST_REQUIRE(done());
}

int agent_fixture::descendants() const {
    const auto all = processes();
    int count = 0;
    for (const auto& [pid, one] : all) {
        int at = pid;
        while (at > 1 && at != host->pid()) {
            const auto found = all.find(at);
            at = found == all.end() ? 0 : found->second.parent;
        }
        count += at == host->pid() && one.name != "sandboxd-agent" ? 1 : 0;
    }
    return count;
}

} // namespace sandboxd::test
