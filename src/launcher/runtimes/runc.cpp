#include "launcher/runtimes/runtime.hpp"

namespace sandboxd::launcher {

namespace {

class runc final : public oci_runtime {
public:
    std::string_view name() const noexcept override { return "runc"; }

    bool gets_ready_slowly() const noexcept override { return true; }

    std::vector<std::string> arguments(const runtime_call& call) const override {
        return {"--log", call.log,     "--root",      call.records, "run",       "--detach", "--preserve-fds",
                "1",     "--pid-file", call.pid_file, "--bundle",   call.bundle, call.slot};
    }

    /// A line is `time=... level=... msg="..."`.
    std::string complaint(std::string_view log) const override {
        const auto line = last_line(log);
        const auto message = line.find("msg=\"");
        if (message != std::string_view::npos && line.back() == '"') {
            return std::string(line.substr(message + 5, line.size() - message - 6));
        }
        return std::string(line);
    }
};

} // namespace

const oci_runtime& runc_runtime() noexcept {
    static const runc one;
    return one;
}

} // namespace sandboxd::launcher
