#pragma once

#include "images/source.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace sandboxd::images {

/// The one place where the steps of a build are counted, whoever performs them: 1 is FROM, then each of the
/// recipe's. A step is told once, when it begins. Thread-safe.
class build_steps {
public:
    build_steps(const recipe& of, progress_sink tell);

    /// Step `number` begins. Ignored for one that has begun before or does not exist.
    void begin(std::size_t number);

    /// A builder that works through dockerfile() has told that step `done` of `of` begins, by a count of its
    /// own: BuildKit leaves variables out of it. Ignored where the counts don't fit.
    void begin_as(builder by, const progress& told);

    /// What there is to say about the step under way: "3 of 7 layers, 12 MB".
    void say(std::string text);

private:
    std::vector<std::string> lines_;   ///< the instructions
    std::vector<std::size_t> counted_; ///< the numbers of those that BuildKit counts
    progress_sink tell_;
    std::mutex mutex_;
    std::size_t number_ = 0; ///< of the step under way
};

} // namespace sandboxd::images
