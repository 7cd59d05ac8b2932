#include "images/build_steps.hpp"

#include <utility>

namespace sandboxd::images {

build_steps::build_steps(const recipe& of, progress_sink tell) : tell_(std::move(tell)) {
    lines_.push_back("FROM " + of.from.base_image.value_or(""));
    counted_.push_back(1);
    for (const auto& one : of.steps) {
        lines_.push_back(one.line);
        if (one.what != step::kind::env) {
            counted_.push_back(lines_.size());
        }
    }
}

void build_steps::begin(std::size_t number) {
    {
        const std::lock_guard lock(mutex_);
        if (number <= number_ || number > lines_.size()) {
            return;
        }
        number_ = number;
    }
    if (tell_) {
        tell_({lines_[number - 1], static_cast<std::uint32_t>(number),
               static_cast<std::uint32_t>(lines_.size()), true});
    }
}

void build_steps::begin_as(builder by, const progress& told) {
    const auto whole = by == builder::classic ? lines_.size() : counted_.size();
    if (told.done == 0 || told.done > told.of || told.of != whole) {
        return;
    }
    begin(by == builder::classic ? told.done : counted_[told.done - 1]);
}

void build_steps::say(std::string text) {
    std::size_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = number_;
    }
    if (tell_) {
        tell_({std::move(text), static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(lines_.size()),
               false});
    }
}

} // namespace sandboxd::images
