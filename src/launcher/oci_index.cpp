#include "launcher/oci_index.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <vector>

namespace sandboxd::launcher {

namespace json = boost::json;

namespace {

#if defined(__aarch64__)
constexpr std::string_view machine = "arm64";
#else
constexpr std::string_view machine = "amd64";
#endif

error broken(const char* what) {
    return {errc::start_failed, std::string("the image is not what the OCI image format says: ") + what};
}

std::string text_of(const json::object& from, const char* name) {
    const auto* found = from.if_contains(name);
    const auto* text = found != nullptr ? found->if_string() : nullptr;
    return text != nullptr ? std::string(text->data(), text->size()) : std::string();
}

const json::object* object_of(const json::object& from, const char* name) {
    const auto* found = from.if_contains(name);
    return found != nullptr ? found->if_object() : nullptr;
}

result<blob_descriptor> to_descriptor(const json::object& from) {
    blob_descriptor made{text_of(from, "mediaType"), text_of(from, "digest"), 0};
    const auto* size = from.if_contains("size");
    if (size != nullptr && size->is_int64() && size->get_int64() >= 0) {
        made.size = static_cast<std::uint64_t>(size->get_int64());
    }
    const std::string_view digest = made.digest;
    if (digest.substr(0, 7) != "sha256:" || digest.size() != 7 + 64 ||
        digest.substr(7).find_first_not_of("0123456789abcdef") != std::string_view::npos) {
        return broken("a digest that is no sha256");
    }
    return made;
}

result<std::vector<json::object>> manifests_of(std::string_view index) {
    boost::system::error_code failed;
    const auto value = json::parse(json::string_view(index.data(), index.size()), failed);
    const auto* top = value.if_object();
    const auto* found = !failed && top != nullptr ? top->if_contains("manifests") : nullptr;
    const auto* list = found != nullptr ? found->if_array() : nullptr;
    if (list == nullptr) {
        return broken("an index without manifests");
    }
    std::vector<json::object> all;
    for (const auto& one : *list) {
        if (const auto* manifest = one.if_object()) {
            all.push_back(*manifest);
        }
    }
    return all;
}

std::string tag_of(const json::object& manifest) {
    const auto* annotations = object_of(manifest, "annotations");
    return annotations != nullptr ? text_of(*annotations, "org.opencontainers.image.ref.name")
                                  : std::string();
}

} // namespace

bool blob_descriptor::is_index() const {
    return media_type == "application/vnd.oci.image.index.v1+json" ||
           media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

result<blob_descriptor> choose_by_tag(std::string_view index, const std::string& tag) {
    const auto manifests = manifests_of(index);
    if (!manifests) {
        return manifests.error();
    }
    if (tag.empty() && manifests->size() == 1) {
        return to_descriptor(manifests->front());
    }
    const std::string wanted = tag.empty() ? "latest" : tag;
    std::string tags;
    for (const auto& manifest : *manifests) {
        const auto name = tag_of(manifest);
        if (name == wanted) {
            return to_descriptor(manifest);
        }
        if (!name.empty()) {
            tags += (tags.empty() ? "" : ", ") + name;
        }
    }
    return error{errc::start_failed, "the layout has no image with the tag '" + wanted +
                                         "'; it has: " + (tags.empty() ? "none with a tag" : tags)};
}

result<blob_descriptor> choose_by_platform(std::string_view index) {
    const auto manifests = manifests_of(index);
    if (!manifests) {
        return manifests.error();
    }
    for (const auto& manifest : *manifests) {
        const auto* platform = object_of(manifest, "platform");
        if (platform != nullptr && text_of(*platform, "os") == "linux" &&
            text_of(*platform, "architecture") == machine) {
            return to_descriptor(manifest);
        }
    }
    return error{errc::start_failed, "the image has nothing for linux on " + std::string(machine)};
}

result<blob_descriptor> config_of_manifest(std::string_view manifest) {
    boost::system::error_code failed;
    const auto value = json::parse(json::string_view(manifest.data(), manifest.size()), failed);
    const auto* top = value.if_object();
    const auto* config = !failed && top != nullptr ? object_of(*top, "config") : nullptr;
    if (config == nullptr) {
        return broken("a manifest without a configuration");
    }
    return to_descriptor(*config);
}

std::string index_of(const blob_descriptor& manifest) {
    json::object one{{"mediaType", manifest.media_type},
                     {"digest", manifest.digest},
                     {"size", manifest.size},
                     {"annotations", {{"org.opencontainers.image.ref.name", "image"}}}};
    json::array manifests;
    manifests.push_back(std::move(one));
    return json::serialize(json::object{{"schemaVersion", 2}, {"manifests", std::move(manifests)}});
}

} // namespace sandboxd::launcher
