#include "launcher/blocking/runtime_beside.hpp"

#include "launcher/blocking/files.hpp"

#include <fcntl.h>

namespace sandboxd::launcher::blocking {

result<void> runtime_beside::begin_early(const std::string& bundle) {
    bundle_ = bundle;
    if (!runtime_.gets_ready_slowly()) {
        return {};
    }
    auto file = held_file::create(config_file(), 0600, context_.options.config_patience);
    if (!file) {
        return {}; // no leases here: it begins when the file is complete
    }
    config_.emplace(std::move(*file));
    return begin();
}

result<void> runtime_beside::configure(const std::string& text) {
    if (config_ && config_->holds()) {
        return config_->fill(text);
    }
    begun_.reset(); // it may have seen an empty file: it begins again
    config_.reset();
    return write_file_at(AT_FDCWD, config_file(), text, 0600);
}

result<void> runtime_beside::begin() {
    if (runtime_.door() == agent_door::handed_in && !listener_) {
        auto listener = listen_handed_in(slot_.directory.get(), context_);
        if (!listener) {
            return error{errc::start_failed, std::move(listener.error().message)};
        }
        listener_ = std::move(*listener);
    }
    auto begun =
        runtime_start::begin(context_, runtime_, request_, bundle_, listener_.get(), slot_.lock.get());
    if (!begun) {
        return begun.error();
    }
    begun_.emplace(std::move(*begun));
    return {};
}

result<void> runtime_beside::finish(deadline until) {
    if (!begun_) {
        if (auto begun = begin(); !begun) {
            return begun;
        }
    }
    listener_.reset();
    return begun_->finish(until);
}

} // namespace sandboxd::launcher::blocking
