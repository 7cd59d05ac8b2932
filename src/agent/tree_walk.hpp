#pragma once

#include "agent/directory.hpp"
#include "agent/file_call.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace sandboxd::agent {

/// The regular files below a directory, links not followed. It holds few descriptors and no path to the
/// kernel, so that depth and length of paths don't matter; memory does not grow with the files of a
/// directory. What may not be read is passed over.
class tree_walk {
public:
    struct options {
        bool sorted = false; ///< files of a directory by name, in batches; then its directories by name
        bool ignore_hidden = false;
    };

    /// The call tells when time is up.
    tree_walk(file_call& call, options how) : call_(call), how_(how) {}

    /// 0 or an errno.
    [[nodiscard]] int open(int at, const char* root);

    /// The next file; false at the end or when the time is up.
    [[nodiscard]] bool next();
    /// Of the file: its directory, its name there, and its path below the root.
    [[nodiscard]] int directory() const { return directory_; }
    [[nodiscard]] const std::string& name() const { return files_[file_at_ - 1]; }
    [[nodiscard]] const std::string& path();

    /// Something was left out: time is up, or a bound was met.
    [[nodiscard]] bool incomplete() const { return incomplete_; }

private:
    struct level {
        descriptor fd; ///< not set: it is reached again through ".."
        dev_t device = 0;
        ino_t inode = 0;
        std::vector<std::string> directories; ///< still to be walked, the next one last
        std::size_t path_size = 0;            ///< of path_, up to and with its slash
    };

    [[nodiscard]] bool push(descriptor fd, std::string_view name);
    void read_batch();
    void take(const directory_entry& entry);
    bool descend();
    [[nodiscard]] bool ascend();
    bool give_up();

    file_call& call_;
    options how_;
    std::vector<level> levels_;
    std::vector<std::string> files_;
    std::size_t file_at_ = 0;
    directory_reader reader_;
    bool reading_ = false;
    int directory_ = -1;
    std::size_t waiting_ = 0; ///< directories of all levels
    std::string path_;
    bool incomplete_ = false;
};

} // namespace sandboxd::agent
