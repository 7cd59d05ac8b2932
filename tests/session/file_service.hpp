#pragma once

// A registry over the in-memory sandbox, which has files, and a way to wait for its answers on the test's
// thread.

#include "sandbox/memory/builder.hpp"
#include "session/service.hpp"

namespace sandboxd::test {

class file_service : public on_context {
public:
    explicit file_service(settings config = test_settings());
    ~file_service();
    file_service(const file_service&) = delete;
    file_service& operator=(const file_service&) = delete;

    session::registry& sessions() { return *registry_; }
    session::file_operations& files() { return registry_->files(); }
    sandboxes::memory::memory_builder& host() { return *host_; }

    void open(const std::string& id);
    void put(const std::string& path, const std::string& bytes); ///< in session "s"
    std::string read(const std::string& path, std::int64_t offset = 0, std::int64_t limit = 2000);
    session::edit_answer edit(const std::string& path, const std::string& old_text,
                              const std::string& new_text, bool all = false);
    session::event last_event();

private:
    settings config_;
    std::shared_ptr<sandboxes::memory::memory_builder> host_ = sandboxes::memory::create_memory_builder();
    std::shared_ptr<store::session_store> store_ = store::create_memory_store();
    std::shared_ptr<core::manual_clock> clock_ = core::create_manual_clock(1'700'000'000.5);
    core::worker_pool workers_{"test", 1};
    auth::token_authority authority_{"service-token", test_key};
    std::unique_ptr<session::registry> registry_;
};

} // namespace sandboxd::test
