#include "images/recipe.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <string_view>

namespace sandboxd::images {

namespace {

using std::string;
using std::string_view;

constexpr const char* venv = "/opt/venv";
constexpr const char* account = "agent";
constexpr std::size_t longest_name = 115; // a tag holds 128 characters, dash and digest included

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}
bool is_control(char c) {
    return (c >= 0 && c < ' ') || c == 0x7f;
}

template <class Allowed>
bool consists_of(string_view text, Allowed allowed) {
    return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

/// As a POSIX shell needs it, the way the reference's language does it.
string shell_quoted(string_view text) {
    const auto plain = [](char c) {
        return is_word(c) || string_view("@%+=:,./-").find(c) != string_view::npos;
    };
    if (consists_of(text, plain)) {
        return string(text);
    }
    string out = "'";
    for (const char c : text) {
        out += c == '\'' ? string("'\"'\"'") : string(1, c);
    }
    return out + "'";
}

error refused(const runtime_definition& of, const string& why) {
    return {errc::start_failed, "the image of runtime '" + of.name + "' can't be built: " + why};
}

bool is_package(string_view name) {
    const auto inner = [](char c) {
        return is_letter(c) || is_digit(c) || string_view("._@/+=<>~![]-").find(c) != string_view::npos;
    };
    return consists_of(name, inner) && (is_letter(name[0]) || is_digit(name[0]) || name[0] == '@');
}

bool has_line_end(string_view text) {
    return text.find_first_of("\r\n") != string_view::npos;
}

/// A line that ends so takes the next instruction into itself.
bool goes_on(string_view line) {
    const auto last = line.find_last_not_of(" \t");
    return last != string_view::npos && line[last] == '\\';
}

std::optional<string> fault_in_name(const string& name) {
    const auto allowed = [](char c) { return is_word(c) || c == '.' || c == '-'; };
    if (!consists_of(name, allowed) || name[0] == '.' || name[0] == '-' || name.size() > longest_name) {
        return "its name becomes part of an image tag: at most " + std::to_string(longest_name) +
               " letters, digits, '_', '.' and '-', of which the last two can't be the first";
    }
    return std::nullopt;
}

std::optional<string> fault_in_lines(const runtime_definition& d) {
    for (const auto& command : d.setup_commands) {
        if (has_line_end(command)) {
            return "a setup command contains a newline";
        }
        if (goes_on(command)) {
            return "a setup command ends with a backslash, which would take the next instruction into it";
        }
        if (command.find_first_not_of(" \t") == string::npos) {
            return "a setup command is empty";
        }
    }
    for (const auto& name : d.packages) {
        if (!is_package(name)) {
            return "Invalid package name '" + name + "'";
        }
    }
    for (const auto& [name, value] : d.env_vars) {
        if (!consists_of(name, is_word) || is_digit(name[0])) {
            return "Invalid environment variable name '" + name + "'";
        }
        if (has_line_end(value)) {
            return "the value of environment variable '" + name + "' contains a newline";
        }
    }
    return std::nullopt;
}

std::optional<string> fault_in(const runtime_definition& d) {
    if (auto fault = fault_in_name(d.name)) {
        return fault;
    }
    if (!d.base_image || !consists_of(*d.base_image, [](char c) { return !is_control(c); }) ||
        d.base_image->front() == '-' || d.base_image->front() == ' ') {
        return "its base_image is none";
    }
    if (auto fault = fault_in_lines(d)) {
        return fault;
    }
    if (d.work_dir.find_first_of(";&|`$()<>\r\n") != string::npos) {
        return "its work_dir contains shell metacharacters";
    }
    if (d.run_as_uid && *d.run_as_uid == 0) {
        return "run_as_uid must be a positive uid, not 0";
    }
    return std::nullopt;
}

/// A line that is a JSON array of strings is a program, not a line for the shell.
std::vector<string> program_of(const string& line) {
    boost::system::error_code failed;
    const auto parsed = line.front() == '[' ? boost::json::parse(line, failed) : boost::json::value();
    std::vector<string> argv;
    if (!failed && parsed.is_array() && !parsed.get_array().empty()) {
        for (const auto& one : parsed.get_array()) {
            if (!one.is_string()) {
                argv.clear();
                break;
            }
            argv.emplace_back(one.get_string());
        }
    }
    return argv.empty() ? std::vector<string>{"/bin/sh", "-c", line} : argv;
}

step run_step(const string& text) {
    step out;
    out.text = text;
    out.argv = program_of(text);
    out.line = "RUN " + text;
    return out;
}

step work_dir_step(const string& path) {
    step out;
    out.what = step::kind::work_dir;
    out.text = path;
    out.line = "WORKDIR " + shell_quoted(path);
    return out;
}

step env_step(const string& name, const string& value) {
    step out;
    out.what = step::kind::env;
    out.env.emplace_back(name, value);
    out.line = "ENV " + name + "=" + shell_quoted(value);
    return out;
}

/// Quoted where a shell would read "numpy>=2" as an instruction to itself: the one place where a Dockerfile
/// differs from the reference's, which would install any version and write a file "=2".
string package_words(const std::vector<string>& packages) {
    string out;
    for (const auto& one : packages) {
        out += (out.empty() ? "" : " ") + shell_quoted(one);
    }
    return out;
}

void add_packages(std::vector<step>& out, const runtime_definition& d) {
    const auto packages = package_words(d.packages);
    if (d.package_manager == "pip") {
        out.push_back(run_step("pip install --no-cache-dir " + packages));
    } else if (d.package_manager == "npm") {
        out.push_back(work_dir_step(d.work_dir)); // beside the user's code, which finds them there
        out.push_back(run_step("npm install " + packages));
    } else if (d.package_manager == "apt") {
        out.push_back(run_step("apt-get update && apt-get install -y " + packages));
    } else {
        out.push_back(run_step("cargo install " + packages));
    }
}

/// An account, and an environment it may install into (contract 4.6.2).
void add_account(std::vector<step>& out, std::uint32_t uid) {
    const auto id = std::to_string(uid);
    out.push_back(run_step("useradd --uid " + id + " --create-home --shell /bin/bash " + account +
                           " && python -m venv --system-site-packages " + venv + " && chown -R " + id + ":" +
                           id + " " + venv));
    step env;
    env.what = step::kind::env;
    env.expands = true;
    env.env = {{"VIRTUAL_ENV", venv},
               {"HOME", string("/home/") + account},
               {"UV_SYSTEM_PYTHON", "0"},
               {"PATH", string(venv) + "/bin:$PATH"}};
    env.line = "ENV";
    for (const auto& [name, value] : env.env) {
        env.line += " " + name + "=" + value;
    }
    out.push_back(std::move(env));
}

std::vector<step> steps_of(const runtime_definition& d) {
    std::vector<step> out;
    for (const auto& command : d.setup_commands) {
        out.push_back(run_step(command));
    }
    if (!d.packages.empty()) {
        add_packages(out, d);
    }
    if (d.run_as_uid) {
        add_account(out, *d.run_as_uid);
    }
    for (const auto& [name, value] : d.env_vars) {
        out.push_back(env_step(name, value));
    }
    out.push_back(work_dir_step(d.work_dir));
    return out;
}

/// Where each package manager, run as root of the image, keeps what it downloads.
string cache_mounts(const string& manager) {
    std::vector<string> folders;
    if (manager == "pip") {
        folders = {"/root/.cache/pip"};
    } else if (manager == "npm") {
        folders = {"/root/.npm"};
    } else if (manager == "apt") {
        folders = {"/var/cache/apt", "/var/lib/apt/lists"};
    } else {
        folders = {"/usr/local/cargo/registry"};
    }
    string out;
    for (const auto& folder : folders) {
        out += "--mount=type=cache,target=" + folder + ",sharing=locked ";
    }
    return out;
}

/// The installing line with what is downloaded kept outside of the image.
string cached_install(const runtime_definition& d) {
    const auto start = "RUN " + cache_mounts(d.package_manager);
    const auto packages = package_words(d.packages);
    if (d.package_manager == "apt") {
        // Debian's images delete what apt has downloaded after every installation: that would empty the
        // cache.
        return "RUN rm -f /etc/apt/apt.conf.d/docker-clean\n" + start +
               "apt-get update && apt-get install -y --no-install-recommends " + packages;
    }
    return start + d.package_manager + " install " + packages;
}

} // namespace

result<recipe> make_recipe(runtime_definition from) {
    if (const auto fault = fault_in(from)) {
        return refused(from, *fault);
    }
    auto tag = tag_of(from);
    if (!tag) {
        return tag.error();
    }
    recipe out;
    out.tag = std::move(*tag);
    out.steps = steps_of(from);
    out.from = std::move(from);
    return out;
}

string dockerfile(const recipe& of, builder by) {
    const bool cached = by == builder::buildkit;
    string out = cached ? "# syntax=docker/dockerfile:1\n" : "";
    out += "FROM " + *of.from.base_image;
    const auto& d = of.from;
    // Where the package manager's own line is among the steps.
    const auto install =
        d.packages.empty() ? of.steps.size() : d.setup_commands.size() + (d.package_manager == "npm" ? 1 : 0);
    for (std::size_t i = 0; i < of.steps.size(); ++i) {
        out += "\n" + (cached && i == install ? cached_install(d) : of.steps[i].line);
    }
    return out;
}

} // namespace sandboxd::images
