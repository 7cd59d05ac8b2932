#include "launcher/blocking/slots.hpp"

namespace sandboxd::launcher::blocking {

host_features probe(const worker_context&, deadline) {
    return {};
}

} // namespace sandboxd::launcher::blocking
