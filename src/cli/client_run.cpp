#include "cli/client_run.hpp"

#include "cli/arguments.hpp"
#include "cli/terminal.hpp"
#include "client/connections.hpp"
#include "client/failure.hpp"
#include "wire/json_text.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/signal_set.hpp>

#include <cmath>
#include <csignal>
#include <cstdlib>

namespace sandboxd::cli {

namespace asio = boost::asio;

namespace {

status_task dispatch(const service& of, const client_call& call) {
    const auto name = call.command->name;
    if (name == "open") {
        return open_session(of, call);
    }
    if (name == "exec") {
        return exec_program(of, call);
    }
    if (name == "cp") {
        return copy_files(of, call);
    }
    if (name == "ls") {
        return list_files(of, call);
    }
    if (name == "rm") {
        return remove_things(of, call);
    }
    return name == "sessions" ? list_sessions(of, call) : print_events(of, call);
}

/// Runs the command; SIGINT and SIGTERM cancel it (which stops a program it runs), and the status is then 128
/// and the signal's number. A second one ends this program at once.
int perform(asio::io_context& context, const service& of, const client_call& call) {
    int status = EXIT_FAILURE;
    int caught = 0;
    asio::cancellation_signal cancel;
    asio::signal_set signals(context, SIGINT, SIGTERM);
    signals.async_wait([&](const boost::system::error_code& cut_short, int number) {
        if (!cut_short) {
            caught = number;
            signals.clear(); // back to what the system does
            cancel.emit(asio::cancellation_type::terminal);
        }
    });
    auto done = [&](const std::exception_ptr& escaped, client::outcome<int> ended) {
        signals.cancel();
        if (escaped && caught == 0) {
            std::rethrow_exception(escaped);
        }
        if (escaped) {
            return;
        }
        if (ended) {
            status = *ended;
            return;
        }
        complain_safely(advice(ended.error()));
        status = call.command->takes_program ? exit_cannot_run : EXIT_FAILURE;
    };
    asio::co_spawn(of.http->strand(), dispatch(of, call),
                   asio::bind_cancellation_slot(cancel.slot(), std::move(done)));
    context.run();
    return caught != 0 && status == EXIT_FAILURE ? exit_by_signal + caught : status;
}

} // namespace

int run_client(const client_call& call) {
    if (call.help) {
        return print(client_help_text(*call.command)) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    std::signal(SIGPIPE, SIG_IGN);
    const int cannot = call.command->takes_program ? exit_cannot_run : EXIT_FAILURE;
    const auto where = connection_of(call);
    const auto token = token_of(call);
    if (!where || !token) {
        complain_safely((where ? token.error() : where.error()).message);
        return cannot;
    }
    if (!client::is_token(*token)) {
        complain_safely("the token holds a blank or a control character, or is longer than 4096 bytes");
        return cannot;
    }
    asio::io_context context{1};
    const auto shared = client::connections::create(context.get_executor(), *where);
    if (!shared) {
        complain_safely(shared.error().message);
        return cannot;
    }
    const service of{(*shared)->parts().http, *token, call.has("--json")};
    return perform(context, of, call);
}

client::outcome<std::chrono::milliseconds> seconds_in(const client_call& call, std::string_view flag,
                                                      std::chrono::milliseconds otherwise) {
    const auto text = call.value(flag);
    if (!text) {
        return otherwise;
    }
    constexpr double longest = 365.0 * 24 * 3600;
    char* end = nullptr;
    const double value = std::strtod(text->c_str(), &end);
    if (end == text->c_str() || *end != '\0' || !std::isfinite(value) || value < 0.001 || value > longest) {
        return client::failed(client::fault::invalid,
                              std::string(flag) + " " + *text + " is no number of seconds above 0");
    }
    return std::chrono::milliseconds(std::llround(value * 1000));
}

std::string json_line(const boost::json::value& value) {
    std::string text;
    wire::append_value(text, value);
    return text + "\n";
}

} // namespace sandboxd::cli
