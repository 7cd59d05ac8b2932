#include "config/file.hpp"

#include "config/table.hpp"
#include "config/text.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <set>
#include <type_traits>

namespace sandboxd::config {
namespace {

using std::string;
using std::string_view;
namespace json = boost::json;

/// "name:line:column", both from 1; columns count characters.
string place(const file_text& file, std::size_t at) {
    const string_view before = string_view(file.text).substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto start = before.rfind('\n') + 1; // npos + 1 is 0: the first line
    const string_view on_line = before.substr(start);
    const auto column = 1 + std::count_if(on_line.begin(), on_line.end(), [](char c) {
                            return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
                        });
    return file.name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

struct key_place {
    std::size_t at = 0;
    std::size_t length = 0; ///< quotes included
};

/// Where the keys of the outermost object stand, in order. The text is known to parse.
class key_finder {
public:
    explicit key_finder(string_view text) : text_(text) {}

    std::vector<key_place> find() {
        while (at_ < text_.size()) {
            step();
        }
        return found_;
    }

private:
    void step() {
        const char c = text_[at_];
        if (c == '/') {
            skip_comment();
            return;
        }
        if (c == '"') {
            const std::size_t start = at_;
            skip_string();
            if (depth_ == 1 && key_next_) {
                found_.push_back({start, at_ - start});
                key_next_ = false;
            }
            return;
        }
        depth_ += c == '{' || c == '[' ? 1 : 0;
        depth_ -= c == '}' || c == ']' ? 1 : 0;
        if (depth_ == 1 && (c == '{' || c == ',')) {
            key_next_ = true;
        }
        ++at_;
    }

    void skip_comment() {
        const bool block = text_.substr(at_, 2) == "/*";
        const string_view end = block ? "*/" : "\n";
        const auto close = text_.find(end, at_ + 2);
        at_ = close == string_view::npos ? text_.size() : close + end.size();
    }

    void skip_string() {
        for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
            at_ += text_[at_] == '\\' ? 1 : 0;
        }
        ++at_;
    }

    string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool key_next_ = false;
    std::vector<key_place> found_;
};

template <class M>
constexpr bool is_text_member =
    std::is_same_v<M, string settings::*> || std::is_same_v<M, std::optional<string> settings::*> ||
    std::is_same_v<M, std::pair<std::uint32_t, std::uint32_t> settings::*>;
template <class M>
constexpr bool is_list_member = std::is_same_v<M, std::vector<runtime_entry> settings::*>;

/// The text an environment variable would hold for this value; nothing when its type does not fit the
/// setting.
std::optional<string> as_raw(const setting_info& info, const json::value& value) {
    if (value.is_string()) {
        return string(value.get_string());
    }
    if (value.is_null()) {
        return is_optional(info) ? std::optional<string>("") : std::nullopt;
    }
    return std::visit(
        [&value](auto member) -> std::optional<string> {
            using M = decltype(member);
            constexpr bool boolean = std::is_same_v<M, bool settings::*>;
            if constexpr (is_text_member<M>) {
                return std::nullopt;
            } else if constexpr (is_list_member<M>) {
                return value.is_object() ? std::optional(json::serialize(value)) : std::nullopt;
            } else {
                if (value.is_bool() != boolean || (!boolean && !value.is_number())) {
                    return std::nullopt;
                }
                return value.is_double() ? number_text(value.get_double()) : json::serialize(value);
            }
        },
        info.where);
}

/// What a value of the setting looks like in the file, after "must be".
string wanted(const setting_info& info) {
    const string type = type_text(info);
    if (type == "runtimes") {
        return "an object of aliases or a text";
    }
    const bool vowel = type.starts_with('i');
    return type.starts_with("one of ") ? type : (vowel ? "an " : "a ") + type;
}

result<json::value> parse(const file_text& file) {
    json::parse_options options;
    options.allow_comments = true;
    options.allow_trailing_commas = true;
    json::stream_parser parser({}, options);
    boost::system::error_code failed;
    std::size_t taken = parser.write_some(file.text, failed);
    if (!failed) {
        const auto rest = string_view(file.text).find_first_not_of(" \t\r\n", taken);
        if (rest != string_view::npos) {
            taken = rest;
            failed = json::error::extra_data;
        } else {
            parser.finish(failed);
        }
    }
    if (failed) {
        return error{errc::invalid, place(file, taken) + ": not valid JSON: " + failed.message()};
    }
    return parser.release();
}

} // namespace

result<std::vector<file_entry_text>> read_file(const file_text& file) {
    const auto parsed = parse(file);
    if (!parsed) {
        return parsed.error();
    }
    if (!parsed->is_object()) {
        return error{errc::invalid, place(file, 0) + ": must be one JSON object of settings"};
    }
    const auto positions = key_finder(file.text).find();
    const auto& object = parsed->get_object();
    std::vector<file_entry_text> out;
    std::set<string_view> seen;
    for (const auto [at, length] : positions) {
        const string key(json::parse(string_view(file.text).substr(at, length)).as_string());
        const string label = place(file, at) + ": " + key;
        const setting_info* info = find_setting(key);
        if (info == nullptr) {
            return error{errc::invalid, place(file, at) + ": there is no setting " + in_quotes(key) + "." +
                                            suggestion(key, setting_names())};
        }
        if (!seen.insert(info->name).second) {
            return error{errc::invalid, label + " is given twice"};
        }
        auto raw = as_raw(*info, object.at(key));
        if (!raw) {
            return error{errc::invalid,
                         label + " must be " + wanted(*info) + ", not " +
                             in_quotes(info->secret ? "***" : json::serialize(object.at(key)))};
        }
        out.push_back({key, std::move(*raw), label});
    }
    return out;
}

} // namespace sandboxd::config
