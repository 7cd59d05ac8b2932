#include "cli/client_run.hpp"
#include "cli/terminal.hpp"
#include "client/failure.hpp"
#include "client/or_null.hpp"
#include "core/deadline.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <ctime>

namespace sandboxd::cli {

namespace json = boost::json;
using client::failed;
using client::fault;
using client::fields;

namespace {

client::outcome<int> printed(bool written) {
    return written ? client::outcome<int>(0)
                   : client::outcome<int>(failed(fault::invalid, "cannot write to standard output"));
}

std::string age_text(double seconds) {
    const auto whole = static_cast<std::uint64_t>(std::max(0.0, seconds));
    if (whole < 120) {
        return fmt::format("{}s", whole);
    }
    return whole < 7200 ? fmt::format("{}m", whole / 60) : fmt::format("{}h", whole / 3600);
}

/// Columns as wide as their longest text; the last one is not filled up.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            text += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
        }
        text += '\n';
    }
    return text;
}

std::string event_line(const json::value& event) {
    const fields in(event);
    std::uint64_t number = 0;
    double at = 0;
    double took = 0;
    std::string op;
    std::string target;
    std::string detail;
    bool ok = false;
    const bool good = in.read("seq", number) && in.read("at", at) && in.read("op", op) &&
                      in.read("target", target) && in.read("ok", ok) && in.read("detail", detail) &&
                      in.read("duration_ms", took);
    constexpr double last_year = 253'402'300'799.0; // 9999-12-31
    if (!good || at < 0 || at > last_year) {
        return "(an event that is none)\n";
    }
    return fmt::format("{:>5}  {:%Y-%m-%d %H:%M:%S}  {:<10} {:<6} {:>8.1f} ms  {}{}{}\n", number,
                       fmt::localtime(static_cast<std::time_t>(at)), shown(op), ok ? "ok" : "failed", took,
                       safe_text(target), detail.empty() ? "" : "  # ", safe_text(detail));
}

client::outcome<std::uint64_t> number_after(const client_call& call) {
    const auto text = call.value("--after").value_or("0");
    std::uint64_t number = 0;
    const auto [stop, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wrong != std::errc() || stop != text.data() + text.size() || number > (std::uint64_t{1} << 62U)) {
        return failed(fault::invalid, "--after " + text + " is no event's number");
    }
    return number;
}

} // namespace

status_task open_session(const service& of, const client_call& call) {
    constexpr std::chrono::seconds patience{600};
    const auto timeout = seconds_in(call, "--timeout", patience);
    if (!timeout) {
        co_return timeout.error();
    }
    json::object body;
    body["session_id"] = call.words.empty() ? json::value(nullptr) : json::value(call.words.front());
    body["runtime"] = client::or_null(call.value("--runtime"));
    body["tenant"] = client::or_null(call.value("--tenant"));
    body["reuse"] = call.has("--reuse");
    body["attach"] = call.has("--attach");
    const auto answer = co_await ask(of, "POST", "/sessions", json::value(body), *timeout);
    if (!answer) {
        co_return answer.error();
    }
    const auto created = client::session_created_of(json_line(*answer));
    if (!created) {
        co_return failed(fault::malformed,
                         of.http->where().text + " answers with no session: is it sandboxd?");
    }
    co_return printed(print(of.json ? json_line(*answer) : created->session.session_id + "\n"));
}

status_task list_sessions(const service& of, const client_call& call) {
    const bool usage = call.has("--usage");
    const auto answer = co_await ask(of, "GET", std::string("/sessions") + (usage ? "?usage=true" : ""));
    if (!answer) {
        co_return answer.error();
    }
    if (of.json) {
        co_return printed(print(json_line(*answer)));
    }
    const auto* rows = fields(*answer).find("sessions");
    if (rows == nullptr || !rows->is_array()) {
        co_return failed(fault::malformed, of.http->where().text + " answers with no list of sessions");
    }
    std::vector<std::vector<std::string>> table{{"SESSION", "RUNTIME", "STATE", "IDLE"}};
    if (usage) {
        table.front().emplace_back("MEMORY");
    }
    table.front().emplace_back("TENANT");
    for (const auto& row : rows->get_array()) {
        const auto info = client::session_info_of(row);
        if (!info) {
            co_return failed(fault::malformed, of.http->where().text + " answers with an odd session");
        }
        auto& line = table.emplace_back(std::vector<std::string>{
            info->session_id, shown(info->runtime),
            info->state == "running" && !info->alive ? "dead" : info->state, age_text(info->idle_seconds)});
        if (usage) {
            line.push_back(info->usage && info->usage->memory_bytes ? size_text(*info->usage->memory_bytes)
                                                                    : "-");
        }
        line.push_back(shown(info->tenant.value_or("-")));
    }
    co_return printed(print(table_text(table)));
}

status_task print_events(const service& of, const client_call& call) {
    constexpr std::chrono::seconds between{1};
    const std::string session = call.words.front();
    if (!client::is_session_id(session)) {
        co_return failed(fault::invalid, "'" + session + "' is no session id");
    }
    auto after = number_after(call);
    if (!after) {
        co_return after.error();
    }
    for (bool first = true;; first = false) {
        const auto answer =
            co_await ask(of, "GET", "/sessions/" + session + "/events?after=" + std::to_string(*after));
        if (!answer) {
            const bool over = !first && answer.error().kind == fault::gone;
            co_return over ? client::outcome<int>(0) : client::outcome<int>(answer.error());
        }
        const auto* rows = fields(*answer).find("events");
        if (rows == nullptr || !rows->is_array()) {
            co_return failed(fault::malformed, of.http->where().text + " answers with no events");
        }
        std::string text;
        for (const auto& row : rows->get_array()) {
            std::uint64_t number = 0;
            (void)fields(row).read("seq", number);
            *after = std::max(*after, number);
            text += of.json ? json_line(row) : event_line(row);
        }
        if (!print(text)) {
            co_return printed(false);
        }
        if (!call.has("--follow")) {
            co_return 0;
        }
        if (!co_await core::sleep_for(between)) {
            co_return 0;
        }
    }
}

} // namespace sandboxd::cli
