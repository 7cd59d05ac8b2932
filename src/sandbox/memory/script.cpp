#include "sandbox/memory/script.hpp"

namespace sandboxd::sandboxes::memory {

namespace {

class parser {
public:
    explicit parser(std::string_view text) : text_(text) {}

    std::vector<step> parse() {
        while (at_ < text_.size()) {
            next();
        }
        end_step(step::when::always);
        return std::move(steps_);
    }

private:
    void next() {
        const char c = text_[at_];
        const auto two = text_.substr(at_, 2);
        if (c == '\'' || c == '"') {
            quoted(c);
        } else if (two == "&&" || two == "||") {
            at_ += 2;
            end_step(c == '&' ? step::when::on_success : step::when::on_failure);
        } else if (c == ';' || c == '\n') {
            ++at_;
            end_step(step::when::always);
        } else if (text_.substr(at_, 3) == ">&2") {
            at_ += 3;
            current_.to_stderr = true;
        } else if (c == ' ' || c == '\t') {
            ++at_;
            end_word();
        } else {
            ++at_;
            word_ += c;
            in_word_ = true;
        }
    }

    void quoted(char mark) {
        const auto end = text_.find(mark, at_ + 1);
        word_ += text_.substr(at_ + 1, end == std::string_view::npos ? end : end - at_ - 1);
        at_ = end == std::string_view::npos ? text_.size() : end + 1;
        in_word_ = true;
    }

    void end_word() {
        if (in_word_) {
            current_.words.push_back(std::move(word_));
            word_.clear();
            in_word_ = false;
        }
    }

    void end_step(step::when following) {
        end_word();
        if (!current_.words.empty()) {
            steps_.push_back(std::move(current_));
        }
        current_ = {};
        current_.condition = following;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string word_;
    bool in_word_ = false;
    step current_;
    std::vector<step> steps_;
};

} // namespace

std::vector<step> parse_script(std::string_view script) {
    return parser(script).parse();
}

} // namespace sandboxd::sandboxes::memory
