#pragma once

// images: how a runtime becomes an image, on either backend. A recipe says what is done (a value, no I/O), an
// image_source does it (the docker and oci backends each have one), the keeper sees to it that it is done
// once for all who wait. Safe to use from any executor.

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sandboxd::images {

/// Repository of every image that is built; those of the reference carry the same name (contract 4.4.2).
inline constexpr const char* repository = "pydantic-ai-backend-runtime";

/// One thing to do on top of the base image, in order.
struct step {
    enum class kind : unsigned char {
        run,     ///< a command, as the image's own user (root, commonly), in the work directory so far
        env,     ///< variables for the steps after it and for the image
        work_dir ///< becomes the work directory, made where it is missing
    };
    kind what = kind::run;
    std::string text;              ///< run: the shell line; work_dir: the path
    std::vector<std::string> argv; ///< run: the program to start, `/bin/sh -c <text>` unless the line is a
                                   ///< JSON array of strings, which is a program itself
    std::vector<std::pair<std::string, std::string>> env; ///< env: names and values
    bool expands = false; ///< env: `$NAME` in a value stands for the variable of the image so far
    std::string line;     ///< the instruction, as the classic builder gets it (contract 4.4.4, 4.4.5)

    friend bool operator==(const step&, const step&) = default;
};

/// Everything that is needed to build a runtime's image.
struct recipe {
    runtime_definition from; ///< with the service's work directory and uid
    std::string tag;         ///< "<repository>:<name>-<12 hex digits>"
    std::vector<step> steps;

    friend bool operator==(const recipe&, const recipe&) = default;
};

/// The recipe of a definition that names a base image and already holds the service's work directory and
/// uid (contract 4.4, 4.6.2). errc::start_failed when something in it would escape the instruction it lands
/// in (contract 4.4.6), or can't be part of a tag.
[[nodiscard]] result<recipe> make_recipe(runtime_definition from);

/// "<repository>:<name>-<digest>" (contract 4.4.2): equal definitions share a tag, any change makes another.
[[nodiscard]] result<std::string> tag_of(const runtime_definition& definition);

/// Compact JSON of all fields, what the digest is made of; byte for byte what the reference's models print.
[[nodiscard]] std::string canonical_json(const runtime_definition& definition);

enum class builder : unsigned char {
    classic,  ///< sees neither `--mount` nor the syntax line
    buildkit, ///< keeps the package managers' downloads between builds
};

/// The Dockerfile, without a line end after its last line; byte for byte the reference's, but that packages
/// with a version constraint are quoted.
[[nodiscard]] std::string dockerfile(const recipe& of, builder by);

/// Whether `tag` is an older image of the runtime called `name`: exactly "<repository>:<name>-<12 hex>"
/// (contract 4.4.8, 9.1.8).
[[nodiscard]] bool is_image_of(const std::string& tag, const std::string& name);

} // namespace sandboxd::images
