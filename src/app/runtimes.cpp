#include "app/runtimes.hpp"

#include "config/entry_text.hpp"
#include "config/resolve.hpp"
#include "core/log.hpp"

#include <optional>
#include <utility>

namespace sandboxd::app {

namespace {

/// The recipe of a runtime whose image has to be built.
result<std::optional<images::recipe>> recipe_of(const settings& service, const runtime_entry& entry) {
    auto definition = config::definition_to_build(service, entry);
    if (!definition) {
        return std::optional<images::recipe>();
    }
    auto made = images::make_recipe(std::move(*definition));
    if (!made) {
        return made.error();
    }
    return std::optional<images::recipe>(std::move(*made));
}

} // namespace

std::vector<images::wanted_image> allowed_images(const settings& service) {
    std::vector<images::wanted_image> out;
    for (const auto& entry : service.runtimes) {
        auto how = recipe_of(service, entry);
        if (!how) {
            core::log::error("Could not prepare runtime {}: {}", entry.alias, how.error().message);
            continue;
        }
        auto reference = *how ? (*how)->tag : config::image_of(entry).image;
        if (!reference.empty()) {
            out.push_back({entry.alias, std::move(reference), std::move(*how)});
        }
    }
    return out;
}

session::runtime_source runtimes_of(const settings& service, std::shared_ptr<images::keeper> keeper) {
    session::runtime_source source;
    source.aliases = config::sorted_aliases(service);
    source.entry = [](const settings& service, const std::string& alias) -> result<std::string> {
        const runtime_entry* entry = config::resolve_runtime(service, alias);
        if (entry == nullptr) {
            return error{errc::invalid, config::unknown_runtime_text(service, alias)};
        }
        return config::entry_text(*entry);
    };
    source.spec = [keeper = std::move(keeper)](const settings& service, const std::string&,
                                               const std::string& text) -> result<sandbox_spec> {
        const auto entry = config::parse_entry(text);
        if (!entry) {
            return error{errc::start_failed, entry.error().message};
        }
        std::optional<std::string> tag;
        if (keeper) {
            auto how = recipe_of(service, *entry);
            if (!how) {
                return how.error();
            }
            if (*how) {
                tag = (*how)->tag;
                keeper->learn(std::move(**how));
            }
        }
        return config::make_spec(service, *entry, {}, tag);
    };
    return source;
}

} // namespace sandboxd::app
