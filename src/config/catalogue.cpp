#include "config/catalogue.hpp"

#include <algorithm>
#include <utility>

namespace sandboxd::config {
namespace {

constexpr const char* python_image = "python:3.12-slim";
constexpr const char* node_image = "node:20-slim";

runtime_definition ready(std::string name, std::string description, std::string image, std::string work_dir) {
    runtime_definition out;
    out.name = std::move(name);
    out.description = std::move(description);
    out.image = std::move(image);
    out.work_dir = std::move(work_dir);
    return out;
}

runtime_definition built(std::string name, std::string description, std::vector<std::string> packages) {
    runtime_definition out;
    out.name = std::move(name);
    out.description = std::move(description);
    out.base_image = python_image;
    out.packages = std::move(packages);
    return out;
}

runtime_definition built_node(std::string name, std::string description, std::vector<std::string> packages) {
    runtime_definition out = built(std::move(name), std::move(description), std::move(packages));
    out.base_image = node_image;
    out.package_manager = "npm";
    out.work_dir = "/app";
    return out;
}

runtime_definition with_setup(runtime_definition definition, std::vector<std::string> commands) {
    definition.setup_commands = std::move(commands);
    return definition;
}

std::vector<runtime_definition> make_builtins() {
    std::vector<runtime_definition> out;
    out.push_back(with_setup(
        built("coding", "Python 3.12 with git, curl, ripgrep, fd, jq and uv, for work on code", {}),
        {"apt-get update && apt-get install -y --no-install-recommends git curl ca-certificates ripgrep "
         "fd-find jq less"
         " procps && ln -s \"$(command -v fdfind)\" /usr/local/bin/fd && rm -rf /var/lib/apt/lists/*",
         "curl -LsSf https://astral.sh/uv/install.sh | UV_INSTALL_DIR=/usr/local/bin "
         "INSTALLER_NO_MODIFY_PATH=1 sh"}));
    out.push_back(with_setup(
        built("polyglot", "Python 3.12 and Node.js side by side, with curl and git",
              {"numpy", "duckdb", "polars", "httpx"}),
        {"apt-get update && apt-get install -y --no-install-recommends curl ca-certificates git nodejs npm"
         " && rm -rf /var/lib/apt/lists/*",
         "npm install -g npm@10 && npm cache clean --force"}));
    out.push_back(
        ready("python-minimal", "Python 3.12 and its standard library", python_image, "/workspace"));
    out.push_back(built("python-datascience",
                        "Python 3.12 with pandas, numpy, matplotlib, scikit-learn and seaborn",
                        {"pandas", "numpy", "matplotlib", "scikit-learn", "seaborn"}));
    out.push_back(built("python-analytics", "Python 3.12 with DuckDB, Polars and PyArrow",
                        {"duckdb", "polars", "pyarrow"}));
    out.push_back(built("python-web", "Python 3.12 with FastAPI, Uvicorn, SQLAlchemy and httpx",
                        {"fastapi", "uvicorn", "sqlalchemy", "httpx"}));
    out.push_back(built("python-scraping", "Python 3.12 with httpx, Beautiful Soup, lxml and markdownify",
                        {"httpx", "beautifulsoup4", "lxml", "markdownify"}));
    out.push_back(built("python-documents", "Python 3.12 with pypdf, python-docx, openpyxl and Pillow",
                        {"pypdf", "python-docx", "openpyxl", "pillow"}));
    out.push_back(ready("node-minimal", "Node.js 20 alone", node_image, "/app"));
    out.push_back(built_node("node-typescript", "Node.js 20 with TypeScript, tsx and Vitest",
                             {"typescript", "tsx", "vitest"}));
    out.push_back(built_node("node-react", "Node.js 20 with TypeScript, Vite and React",
                             {"typescript", "vite", "react", "react-dom", "@types/react"}));
    out.push_back(ready("bun", "Bun", "oven/bun:1-slim", "/app"));
    out.push_back(ready("deno", "Deno", "denoland/deno:alpine", "/app"));
    out.push_back(ready("go", "The Go toolchain", "golang:1.23-alpine", "/src"));
    out.push_back(ready("rust", "The Rust toolchain with cargo", "rust:1-slim", "/src"));
    return out;
}

runtime_entry image_entry(std::string alias, std::string image) {
    runtime_entry out;
    out.alias = std::move(alias);
    out.image = std::move(image);
    return out;
}

/// An entry of the built-in's own name, with its ceilings.
runtime_entry builtin_entry(std::string name, std::optional<std::string> memory, std::optional<double> cpus,
                            std::optional<std::string> network) {
    runtime_entry out;
    out.definition = *find_builtin(name);
    out.alias = name;
    out.builtin = std::move(name);
    out.mem_limit = std::move(memory);
    out.cpus = cpus;
    out.network_mode = std::move(network);
    return out;
}

} // namespace

std::span<const runtime_definition> builtin_runtimes() {
    static const std::vector<runtime_definition> all = make_builtins();
    return all;
}

const runtime_definition* find_builtin(std::string_view name) {
    const auto all = builtin_runtimes();
    const auto found =
        std::find_if(all.begin(), all.end(), [name](const runtime_definition& d) { return d.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::span<const std::string_view> builtin_names() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> out;
        for (const auto& definition : builtin_runtimes()) {
            out.emplace_back(definition.name);
        }
        return out;
    }();
    return names;
}

std::vector<runtime_entry> default_runtimes() {
    std::vector<runtime_entry> out;
    out.push_back(builtin_entry("coding", std::nullopt, std::nullopt, "bridge"));
    out.push_back(image_entry("python", python_image));
    out.back().description = "Python 3.12, standard library only";
    out.push_back(image_entry("node", node_image));
    out.back().description = "Node.js 20, no extra packages";
    return out;
}

std::vector<runtime_entry> suggested_runtimes() {
    std::vector<runtime_entry> out;
    out.push_back(builtin_entry("coding", "1g", 2.0, "bridge"));
    out.push_back(builtin_entry("polyglot", "1g", 2.0, "bridge"));
    out.push_back(image_entry("python", python_image));
    out.back().description = "Python 3.12, standard library only";
    out.back().mem_limit = "1g";
    out.back().cpus = 1.0;
    out.push_back(builtin_entry("python-analytics", "1g", 2.0, std::nullopt));
    out.push_back(builtin_entry("python-datascience", "4g", 2.0, std::nullopt));
    out.push_back(builtin_entry("python-documents", "2g", std::nullopt, std::nullopt));
    out.push_back(builtin_entry("python-scraping", "1g", std::nullopt, "bridge"));
    out.push_back(image_entry("node", node_image));
    out.back().description = "Node.js 20, no extra packages";
    out.back().mem_limit = "1g";
    out.push_back(builtin_entry("node-typescript", "2g", std::nullopt, std::nullopt));
    out.push_back(builtin_entry("go", "2g", 2.0, std::nullopt));
    out.push_back(builtin_entry("rust", "4g", 2.0, std::nullopt));
    return out;
}

} // namespace sandboxd::config
