#pragma once

#include "launcher/client.hpp"
#include "launcher/server.hpp"
#include "sandbox/oci/builder.hpp"
#include "support/run.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/tree/test_unit.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sandboxd::test {

/// Precondition of tests that start real sandboxes.
boost::test_tools::assertion_result can_run_sandboxes(boost::unit_test::test_unit_id);

/// A service's half of the oci backend with a state directory of its own, real sandboxes, and in place of the
/// agent a few lines of Perl that run what a connection sends (`exec` below). Everything is gone at its end,
/// and the test fails when it is not.
class oci_fixture {
public:
    oci_fixture();
    ~oci_fixture();

    /// Starts the launcher and makes the builder, as a service does when it starts.
    void start_service();
    /// Another builder, over that client.
    void make_builder(std::shared_ptr<launcher::client> over);
    /// Closes the launcher's socket and waits for it to leave.
    void stop_service();

    [[nodiscard]] sandbox_spec spec() const;
    [[nodiscard]] std::shared_ptr<sandbox> open(sandbox_spec wanted);
    [[nodiscard]] result<std::shared_ptr<sandbox>> try_open(sandbox_spec wanted);
    /// Output of a command line, both streams.
    [[nodiscard]] std::string exec(const std::shared_ptr<sandbox>& in, const std::string& line);
    void close(const std::shared_ptr<sandbox>& one);
    [[nodiscard]] std::vector<slot_record> owned();
    void remove_all();

    template <class T>
    T get(task<T> body) {
        return test::get(context, std::move(body), std::chrono::seconds(120));
    }

    /// What there is on this host of this service: cgroups, claims of uids, processes, directories. Empty
    /// when nothing is.
    [[nodiscard]] std::vector<std::string> remains() const;

    std::string directory; ///< a temporary one, short
    launcher::launcher_options options;
    std::chrono::milliseconds start_deadline = std::chrono::seconds(60);
    boost::asio::io_context context;
    std::shared_ptr<launcher::client> client;
    std::shared_ptr<sandbox_builder> builder;
    pid_t launcher_pid = -1;
};

/// A root file system with a shell and Perl, copied from this host.
void make_root(const std::string& path);

/// Those that this process sees of the fixture's; others of the host come and go.
[[nodiscard]] std::size_t count_mounts(const oci_fixture& of);
[[nodiscard]] std::size_t count_descriptors();
[[nodiscard]] std::string read_text(const std::string& path);
/// The host's pid of a sandbox's first process, from its slot's record.
[[nodiscard]] int pid_of(const oci_fixture& in, const std::shared_ptr<sandbox>& one);

} // namespace sandboxd::test
