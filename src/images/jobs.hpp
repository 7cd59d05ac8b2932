#pragma once

#include "images/job.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::images {

/// The images that are being made ready, each by one job that all who want it share. Any executor.
class jobs final : public std::enable_shared_from_this<jobs> {
public:
    explicit jobs(std::shared_ptr<const keeper_options> with);

    void learn(recipe how);
    [[nodiscard]] bool always_builds(const std::string& reference) const;

    /// keeper::ready(), as attempt `number` of whoever makes several.
    [[nodiscard]] task<result<void>> attempt(std::string reference, std::uint32_t number);

    /// The same, and waits for the removals after a build.
    [[nodiscard]] task<result<void>> attempt_whole(std::string reference, std::uint32_t number);

    /// By reference.
    [[nodiscard]] std::map<std::string, warming> snapshot() const;

    /// What a sweep, or the removals after a build, must leave: the allowlist's, what is being made ready and
    /// what that stands on, and what was made ready a moment ago for a sandbox that may not have begun.
    [[nodiscard]] std::vector<std::string> wanted() const;

    void close();
    [[nodiscard]] bool is_closed() const;

private:
    using self_pointer = std::shared_ptr<jobs>;

    [[nodiscard]] task<result<void>> wait(self_pointer self, std::string reference, std::uint32_t number,
                                          bool whole);
    [[nodiscard]] std::shared_ptr<job> start(const std::string& reference, std::uint32_t number);
    [[nodiscard]] task<void> life(self_pointer self, std::shared_ptr<job> one);
    [[nodiscard]] task<result<void>> work(std::shared_ptr<job> one);
    [[nodiscard]] task<result<void>> fetch(std::shared_ptr<job> one);
    [[nodiscard]] task<result<void>> make(std::shared_ptr<job> one);
    [[nodiscard]] task<result<void>> follow(std::shared_ptr<job> one, task<result<void>> work,
                                            const char* what, std::chrono::milliseconds limit);
    [[nodiscard]] task<void> prune(std::shared_ptr<job> one);
    void finish(const std::shared_ptr<job>& one, result<void> outcome);
    void settle(const std::shared_ptr<job>& one);
    [[nodiscard]] std::string known_as(const std::string& reference) const;

    std::shared_ptr<const keeper_options> with_;
    mutable std::mutex mutex_;
    std::map<std::string, recipe> recipes_;                               ///< by tag
    std::map<std::string, std::shared_ptr<job>> jobs_;                    ///< by reference
    std::set<std::shared_ptr<job>> settling_;                             ///< done, but for the removals
    std::map<std::string, std::chrono::steady_clock::time_point> lately_; ///< made ready: when
    bool closed_ = false;
};

} // namespace sandboxd::images
