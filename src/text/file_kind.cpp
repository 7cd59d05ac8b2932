#include "text/file_kind.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace sandboxd::text {

namespace {

// Contract 3.3.3 a; sorted.
constexpr std::array<std::string_view, 41> text_types{
    "bat",  "c",   "cpp",  "cs",  "css",         "csv", "etx",  "go",  "h",    "htm", "html",
    "java", "js",  "json", "jsx", "ksh",         "log", "md",   "n3",  "php",  "pl",  "py",
    "rb",   "rs",  "rtx",  "sgm", "sgml",        "sh",  "sql",  "srt", "toml", "ts",  "tsv",
    "tsx",  "txt", "vcf",  "vtt", "webmanifest", "xml", "yaml", "yml"};

} // namespace

file_kind kind_of(std::string_view path) {
    while (!path.empty() && path.back() == '/') {
        path.remove_suffix(1);
    }
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) {
        return file_kind::unknown;
    }
    std::string extension(name.substr(dot + 1));
    std::ranges::transform(extension, extension.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (extension == "pdf") {
        return file_kind::pdf;
    }
    return std::ranges::binary_search(text_types, extension) ? file_kind::text : file_kind::unknown;
}

} // namespace sandboxd::text
