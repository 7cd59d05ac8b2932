#include "app/runtimes.hpp"

#include "config/entry_text.hpp"
#include "config/resolve.hpp"

namespace sandboxd::app {

session::runtime_source runtimes_of(const settings& service) {
    session::runtime_source source;
    source.aliases = config::sorted_aliases(service);
    source.entry = [](const settings& service, const std::string& alias) -> result<std::string> {
        const runtime_entry* entry = config::resolve_runtime(service, alias);
        if (entry == nullptr) {
            return error{errc::invalid, config::unknown_runtime_text(service, alias)};
        }
        return config::entry_text(*entry);
    };
    source.spec = [](const settings& service, const std::string&,
                     const std::string& text) -> result<sandbox_spec> {
        const auto entry = config::parse_entry(text);
        if (!entry) {
            return error{errc::start_failed, entry.error().message};
        }
        return config::make_spec(service, *entry, {});
    };
    return source;
}

} // namespace sandboxd::app
