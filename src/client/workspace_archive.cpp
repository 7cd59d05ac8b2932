#include "sandboxd/workspace_archive.hpp"

#include "client/archive_calls.hpp"
#include "client/connections.hpp"
#include "client/failure.hpp"
#include "client/strand_call.hpp"

namespace sandboxd::client {

struct async_workspace_archive::impl {
    std::shared_ptr<connections> owner;
    archive_ptr calls;
};

outcome<async_workspace_archive> async_workspace_archive::create(std::shared_ptr<connections> shared,
                                                                 workspace_archive_options options) {
    if (!is_token(options.token)) {
        return failed(fault::invalid,
                      "the token holds a blank or a control character, or is longer than 4096 bytes");
    }
    auto made = std::make_shared<impl>();
    made->owner = std::move(shared);
    made->calls =
        std::make_shared<archive_calls>(archive_calls{made->owner->parts().http, std::move(options)});
    return async_workspace_archive(std::move(made));
}

outcome<async_workspace_archive> async_workspace_archive::create(const boost::asio::any_io_executor& executor,
                                                                 const connection_options& where,
                                                                 workspace_archive_options options) {
    auto own = connections::create(executor, where);
    if (!own) {
        return own.error();
    }
    return create(std::move(*own), std::move(options));
}

task<outcome<std::vector<file_info>>> async_workspace_archive::ls(std::string session_id,
                                                                  std::string path) const {
    return on_strand(self_->calls, archived_listing(self_->calls, std::move(session_id), std::move(path)));
}
task<outcome<workspace_tree>> async_workspace_archive::tree(std::string session_id, std::string path,
                                                            tree_bounds bounds) const {
    return on_strand(self_->calls,
                     archived_tree_of(self_->calls, std::move(session_id), std::move(path), bounds));
}
task<outcome<std::vector<archived_tree>>> async_workspace_archive::trees(std::vector<std::string> session_ids,
                                                                         std::string path,
                                                                         tree_bounds bounds) const {
    return on_strand(self_->calls,
                     archived_trees_of(self_->calls, std::move(session_ids), std::move(path), bounds));
}
task<outcome<std::string>> async_workspace_archive::read(std::string session_id, std::string path,
                                                         std::uint64_t offset, std::uint64_t limit) const {
    return on_strand(self_->calls,
                     archived_text(self_->calls, std::move(session_id), std::move(path), offset, limit));
}
task<outcome<std::string>> async_workspace_archive::read_bytes(std::string session_id,
                                                               std::string path) const {
    return on_strand(self_->calls, archived_bytes(self_->calls, std::move(session_id), std::move(path)));
}

outcome<workspace_archive> workspace_archive::create(std::shared_ptr<connections> shared,
                                                     workspace_archive_options options) {
    if (!shared->parts().thread) {
        return failed(fault::invalid, "a client that blocks needs connections made without an executor");
    }
    auto made = async_workspace_archive::create(std::move(shared), std::move(options));
    if (!made) {
        return made.error();
    }
    return workspace_archive(std::move(*made));
}

outcome<workspace_archive> workspace_archive::create(const connection_options& where,
                                                     workspace_archive_options options) {
    auto own = connections::create(where);
    if (!own) {
        return own.error();
    }
    return create(std::move(*own), std::move(options));
}

template <class T>
T workspace_archive::wait(task<T> work) const {
    return block_on(awaited_.self_->calls->strand(), std::move(work));
}

outcome<std::vector<file_info>> workspace_archive::ls(std::string session_id, std::string path) const {
    return wait(awaited_.ls(std::move(session_id), std::move(path)));
}
outcome<workspace_tree> workspace_archive::tree(std::string session_id, std::string path,
                                                tree_bounds bounds) const {
    return wait(awaited_.tree(std::move(session_id), std::move(path), bounds));
}
outcome<std::vector<archived_tree>> workspace_archive::trees(std::vector<std::string> session_ids,
                                                             std::string path, tree_bounds bounds) const {
    return wait(awaited_.trees(std::move(session_ids), std::move(path), bounds));
}
outcome<std::string> workspace_archive::read(std::string session_id, std::string path, std::uint64_t offset,
                                             std::uint64_t limit) const {
    return wait(awaited_.read(std::move(session_id), std::move(path), offset, limit));
}
outcome<std::string> workspace_archive::read_bytes(std::string session_id, std::string path) const {
    return wait(awaited_.read_bytes(std::move(session_id), std::move(path)));
}

} // namespace sandboxd::client
