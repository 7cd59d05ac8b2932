#include "cli/service.hpp"

#include "client/failure.hpp"

#include <array>
#include <boost/json/object.hpp>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace sandboxd::cli {

namespace json = boost::json;
using client::failed;
using client::fault;

namespace {

std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

result<std::string> token_in(const std::string& file, const char* named_by) {
    std::ifstream in(file, std::ios::binary);
    constexpr std::size_t longest = 4096;
    std::string text(longest + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad() || (!in && in.gcount() == 0 && !in.eof())) {
        return error{errc::invalid,
                     std::string(named_by) + ": cannot read " + file + ": " + std::strerror(errno)};
    }
    text.resize(static_cast<std::size_t>(in.gcount()));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
        text.pop_back();
    }
    if (text.empty() || text.size() > longest) {
        return error{errc::invalid, std::string(named_by) + ": " + file + " holds no token"};
    }
    return text;
}

} // namespace

result<client::connection_options> connection_of(const client_call& call) {
    client::connection_options made;
    made.url = call.value("--url").value_or(variable("SANDBOXD_URL").value_or("http://127.0.0.1:8080"));
    made.ca_file = call.value("--ca-file").value_or("");
    made.verify = !call.has("--insecure");
    made.max_answer_bytes = std::size_t{1} << 30U;
    return made;
}

result<std::string> token_of(const client_call& call) {
    if (auto given = call.value("--token")) {
        return *given;
    }
    if (auto file = call.value("--token-file")) {
        return token_in(*file, "--token-file");
    }
    if (auto given = variable("SANDBOXD_TOKEN")) {
        return *given;
    }
    if (auto file = variable("SANDBOXD_TOKEN_FILE")) {
        return token_in(*file, "SANDBOXD_TOKEN_FILE");
    }
    return error{errc::invalid,
                 "no token: set SANDBOXD_TOKEN or SANDBOXD_TOKEN_FILE, or give --token-file FILE"};
}

task<client::outcome<json::value>> ask(const service& of, std::string method, std::string target,
                                       std::optional<json::value> body, std::chrono::milliseconds silence) {
    const std::string method_and_target = method + " " + target;
    client::http_request what;
    what.method = std::move(method);
    what.target = std::move(target);
    what.token = of.token;
    what.silence = silence;
    what.repeatable = what.method != "POST";
    if (body) {
        auto text = client::json_text(*body);
        if (!text) {
            co_return failed(fault::invalid, "an argument is not valid UTF-8");
        }
        what.content_type = "application/json";
        what.body = std::move(*text);
    }
    const auto answer = co_await of.http->call(std::move(what));
    if (!answer) {
        co_return answer.error();
    }
    if (answer->status >= 300) {
        const auto detail = client::detail_of(*answer);
        // A path that is not there; what the service itself does not find has other words.
        if (answer->status == 404 && (!client::json_of(answer->body) || detail == "Not Found")) {
            co_return failed(fault::malformed,
                             of.http->where().text + " answers " + method_and_target +
                                 " with 404: is it sandboxd? --url or SANDBOXD_URL says where it is.");
        }
        const bool lost = answer->status == 404 || answer->status == 410;
        co_return failed(lost ? fault::gone : fault::refused, detail, answer->status);
    }
    if (answer->body.empty()) {
        co_return json::value();
    }
    auto parsed = client::json_of(answer->body);
    if (!parsed) {
        co_return failed(fault::malformed, of.http->where().text + " answers with no JSON: is it sandboxd?");
    }
    co_return std::move(*parsed);
}

task<client::outcome<session_place>> reach(const service& of, std::string session) {
    if (!client::is_session_id(session)) {
        co_return failed(fault::invalid, "'" + session + "' is no session id");
    }
    session_place made;
    made.link = std::make_shared<client::session_link>();
    made.link->http = of.http;
    made.link->id = session;
    made.link->token = of.token;
    // What holds for a session's own token, to which the policy is not told: the service says what it can't
    // do.
    constexpr std::chrono::hours untold_ceiling{1};
    made.link->execute_timeout = untold_ceiling;
    made.link->native_reads = made.link->native_writes = made.link->native_realpath = true;
    made.work_dir = "/workspace";
    made.native_limit = 1U << 20U;
    const auto policy = co_await ask(of, "GET", "/policy");
    if (!policy && policy.error().status != 401) {
        co_return policy.error();
    }
    if (policy) {
        const client::fields in(*policy);
        double seconds = 0;
        constexpr double longest = 365.0 * 24 * 3600;
        if (!in.read("execute_timeout", seconds) || seconds <= 0 || seconds > longest ||
            !in.read_if_there("native_files", made.link->native_reads) ||
            !in.read_if_there("native_writes", made.link->native_writes) ||
            !in.read("max_read_bytes", made.native_limit) || !in.read("work_dir", made.work_dir)) {
            co_return failed(fault::malformed, of.http->where().text + " has an odd policy: is it sandboxd?");
        }
        made.link->execute_timeout = std::chrono::milliseconds(std::llround(seconds * 1000));
    }
    co_return made;
}

std::string session_place::absolute(const std::string& path) const {
    if (path.starts_with('/')) {
        return path;
    }
    std::string made = work_dir;
    std::string_view rest = path;
    while (rest.starts_with("./")) {
        rest.remove_prefix(2);
    }
    if (rest.empty() || rest == ".") {
        return made;
    }
    return made + (made.ends_with('/') ? "" : "/") + std::string(rest);
}

std::string advice(const client::failure& why) {
    const auto says = [&why](const char* part) { return why.message.find(part) != std::string::npos; };
    if (why.kind == fault::unreachable && says("the certificate of ")) {
        return why.message + ". --ca-file FILE says which certificates to believe, --insecure believes any.";
    }
    if (why.kind == fault::unreachable && says("the TLS handshake with ")) {
        return why.message + ". Does the service speak TLS there? If not, its URL begins with http://.";
    }
    if (why.kind == fault::unreachable) {
        return why.message + ". Is the service running there? --url or SANDBOXD_URL says where it is.";
    }
    if (why.status == 401) {
        return "the service does not accept the token (401): check SANDBOXD_TOKEN, --token or --token-file; "
               "a "
               "session's own token is good for that session only";
    }
    if (why.kind == fault::gone && why.status == 404 &&
        why.message.find("No such session") != std::string::npos) {
        return why.message + " (sandboxd sessions lists those that are open)";
    }
    if (why.status == 409 && why.message.starts_with("Session exists: ")) {
        return why.message + " (HTTP 409; --reuse attaches to it)";
    }
    return why.status && why.kind == fault::refused && !why.message.starts_with("the sandbox service")
               ? why.message + " (HTTP " + std::to_string(*why.status) + ")"
               : why.message;
}

} // namespace sandboxd::cli
