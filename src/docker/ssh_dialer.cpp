#include "docker/child.hpp"
#include "docker/dialer.hpp"
#include "net/connect.hpp"

namespace sandboxd::docker {

namespace {

constexpr std::chrono::milliseconds grace{2000};

/// The socket to a program, which ends with it.
class program_stream final : public net::stream {
public:
    program_stream(net::stream_ptr inner, std::shared_ptr<child> process)
        : inner_(std::move(inner)), process_(std::move(process)) {}
    ~program_stream() override { close(); }

    boost::asio::any_io_executor get_executor() override { return inner_->get_executor(); }
    void read_some(boost::asio::mutable_buffer buffer, net::io_handler handler) override {
        inner_->read_some(buffer, std::move(handler));
    }
    void write_some(std::span<const boost::asio::const_buffer> buffers, net::io_handler handler) override {
        inner_->write_some(buffers, std::move(handler));
    }
    void shutdown_send() override { inner_->shutdown_send(); }
    void close() noexcept override {
        inner_->close();
        if (process_ != nullptr) {
            child::retire(inner_->get_executor(), std::move(process_), grace);
        }
    }
    int native_handle() const noexcept override { return inner_->native_handle(); }

private:
    net::stream_ptr inner_;
    std::shared_ptr<child> process_;
};

class ssh_dialer final : public dialer {
public:
    ssh_dialer(const endpoint& where, const dial_options& options) {
        // BatchMode: a service has nobody to ask for a password.
        argv_ = {options.ssh_program, "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-T"};
        if (!where.user.empty()) {
            argv_.insert(argv_.end(), {"-l", where.user});
        }
        if (!where.port.empty()) {
            argv_.insert(argv_.end(), {"-p", where.port});
        }
        argv_.insert(argv_.end(), {"--", where.host, "docker", "system", "dial-stdio"});
    }

    task<result<dialed>> dial(boost::asio::any_io_executor executor) override {
        auto program = start_program(argv_);
        if (!program) {
            co_return program.error();
        }
        auto socket = net::adopt(executor, std::move(program->socket));
        if (!socket) {
            co_return socket.error();
        }
        dialed made;
        made.complaint = [process = program->process] { return process->complaint(); };
        made.stream = std::make_unique<program_stream>(std::move(*socket), std::move(program->process));
        co_return made;
    }

    std::string host() const override { return "docker"; }

private:
    std::vector<std::string> argv_;
};

} // namespace

std::shared_ptr<dialer> create_ssh_dialer(const endpoint& where, const dial_options& options) {
    return std::make_shared<ssh_dialer>(where, options);
}

} // namespace sandboxd::docker
