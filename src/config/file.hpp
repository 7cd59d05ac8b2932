#pragma once

#include "sandboxd/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::config {

/// A configuration file's text and the name errors call it by.
struct file_text {
    std::string name;
    std::string text;
};

/// One key of a configuration file: its value as the text a variable would hold, and "sandboxd.jsonc:3:5:
/// cpus" for errors about it.
struct file_entry_text {
    std::string key;
    std::string raw;
    std::string label;
};

/// Reads a configuration file: one JSON object whose keys are settings' names in lower case; comments and
/// trailing commas are fine. Values are of the setting's own JSON type, or strings as in the environment;
/// null means none. An unknown key, a key given twice and a value of a wrong type are errors that name file,
/// line, column and key; the first of them suggests the nearest name.
[[nodiscard]] result<std::vector<file_entry_text>> read_file(const file_text& file);

} // namespace sandboxd::config
