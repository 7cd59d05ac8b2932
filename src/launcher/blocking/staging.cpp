#include "launcher/blocking/staging.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/blocking/mounts.hpp"
#include "launcher/bundle_config.hpp"

#include "core/random.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

error start_failed(error from) {
    from.code = errc::start_failed;
    return from;
}

result<core::unique_fd> open_path(const std::string& path, int flags) {
    core::unique_fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC | flags));
    if (!fd) {
        return os_error(path, errno);
    }
    return fd;
}

/// Clones what `source` is and mounts it on a new directory (or file) of the staging area.
result<void> put(int source, const std::string& name, const std::string& target, clone_options options) {
    auto copy = clone_mount(source, name, options);
    if (!copy) {
        return copy.error();
    }
    struct stat status{};
    ::fstat(source, &status);
    if (S_ISDIR(status.st_mode)) {
        ::mkdir(target.c_str(), 0755);
    } else {
        const core::unique_fd made(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    }
    auto place = open_path(target, 0);
    if (!place) {
        return place.error();
    }
    return attach_mount(copy->get(), place->get(), name);
}

/// upper and work; upper looks like the root of the image, shifted.
result<void> make_layer(int slot, int image_root, std::uint32_t uid_base, bool has_layer) {
    struct stat status{};
    if (::fstat(image_root, &status) != 0) {
        return os_error("the image's root", errno);
    }
    const auto shifted = [&](std::uint32_t id) { return id < ids_per_sandbox ? uid_base + id : uid_base; };
    for (const char* name : {"layer", "layer/upper", "layer/work"}) {
        if (::mkdirat(slot, name, 0700) != 0 && !(has_layer && errno == EEXIST)) {
            return os_error(name, errno);
        }
    }
    if (has_layer) {
        return {};
    }
    if (::fchownat(slot, "layer/upper", shifted(status.st_uid), shifted(status.st_gid), 0) != 0 ||
        ::fchmodat(slot, "layer/upper", status.st_mode & 07777, 0) != 0) {
        return os_error("layer/upper", errno);
    }
    return {};
}

struct layer_facts {
    bool kept = false;  ///< it outlives its sandbox
    bool there = false; ///< from an earlier one
};

/// The image's directories on "lower", "lower-1" and so on; their paths as an overlay wants them.
result<std::string> mount_lower(const staging& area, const local_image& image, int users) {
    clone_options options;
    options.read_only = true;
    options.user_namespace = users;
    std::string all;
    for (std::size_t i = 0; i < image.layers.size(); ++i) {
        auto root = open_path(image.layers[i], O_DIRECTORY);
        if (!root) {
            return root.error();
        }
        const auto target = area.directory + "/lower" + (i == 0 ? "" : "-" + std::to_string(i));
        if (auto done = put(root->get(), image.layers[i], target, options); !done) {
            return done.error();
        }
        all += (i == 0 ? "" : ":") + target;
    }
    return all;
}

result<void> mount_root(staging& area, const local_image& image, int slot, const std::string& slot_path,
                        int users, std::uint32_t uid_base, layer_facts keep) {
    auto image_root = open_path(image.layers.front(), O_DIRECTORY);
    if (!image_root) {
        return error{image_root.error().code, "the image's directory " + image_root.error().message};
    }
    if (auto done = make_layer(slot, image_root->get(), uid_base, keep.there); !done) {
        return done;
    }
    const auto lower = mount_lower(area, image, users);
    if (!lower) {
        return lower.error();
    }
    // By its path: the slot's descriptor belongs to the mount namespace that was left.
    const auto layer = open_path(slot_path + "/layer", O_DIRECTORY);
    if (!layer) {
        return layer.error();
    }
    if (auto done = put(layer->get(), "the layer", area.directory + "/layer", {}); !done) {
        return done;
    }
    ::mkdir(area.rootfs().c_str(), 0755);
    if (auto done = mount_overlay(area.rootfs(), *lower, area.directory + "/layer", keep.kept); !done) {
        return done;
    }
    auto root = open_path(area.rootfs(), O_DIRECTORY);
    if (!root) {
        return root.error();
    }
    area.root = std::move(*root);
    return image.host_directories ? mount_host_directories(area.root.get()) : result<void>();
}

/// Contract 4.6.4: the directory itself, its owner only.
result<void> give_workspace(int directory, const std::string& path, std::uint32_t uid) {
    if (::fchownat(directory, "", uid, static_cast<gid_t>(-1), AT_EMPTY_PATH) == 0) {
        return {};
    }
    auto failure =
        os_error("the workspace directory " + path + " can't be given to uid " + std::to_string(uid), errno);
    failure.message +=
        ": run sandboxd with the privilege to chown, give the directory to that uid yourself, or "
        "unset SANDBOXD_SANDBOX_UID";
    return failure;
}

/// `<root>/<id>` (0700) and `workspace` in it (0755), made where they are missing.
result<core::unique_fd> open_workspace(const std::string& path) {
    const auto parent = path.substr(0, path.rfind('/'));
    if (parent.empty() || path.front() != '/') {
        return error{errc::invalid, "the workspace directory '" + path + "' is no absolute path"};
    }
    if (auto made = make_directories(parent.substr(0, std::max<std::size_t>(parent.rfind('/'), 1)), 0755);
        !made) {
        return made.error();
    }
    if ((::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) ||
        (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)) {
        return os_error(path, errno);
    }
    return open_path(path, O_DIRECTORY | O_NOFOLLOW);
}

result<void> mount_workspace(const staging& area, const start_sandbox& request, int users) {
    auto directory = open_workspace(*request.workspace_dir);
    if (!directory) {
        return directory.error();
    }
    if (request.workspace_uid) {
        if (auto done = give_workspace(directory->get(), *request.workspace_dir, *request.workspace_uid);
            !done) {
            return done;
        }
    }
    clone_options options;
    options.user_namespace = users;
    return put(directory->get(), *request.workspace_dir, area.workspace(), options);
}

result<void> mount_agent(const std::string& target, const std::string& path) {
    auto agent = open_path(path, 0);
    if (!agent) {
        return agent.error();
    }
    clone_options options;
    options.read_only = true;
    return put(agent->get(), path, target, options);
}

/// `agent` and `socket`, the slot's door, in one directory.
result<void> mount_door(const staging& area, const std::string& agent, const std::string& slot_door) {
    if (::mkdir(area.door().c_str(), 0700) != 0) {
        return os_error(area.door(), errno);
    }
    if (auto done = mount_agent(area.door() + "/agent", agent); !done) {
        return done;
    }
    auto door = open_path(slot_door, O_DIRECTORY);
    if (!door) {
        return door.error();
    }
    clone_options options;
    options.read_only = true;
    return put(door->get(), slot_door, area.door() + "/socket", options);
}

} // namespace

result<staging> begin_staging(const worker_context& context, const staging_options& options) {
    // Before the namespace is left: /proc of the host is needed for the map.
    auto users = options.uid_base ? create_user_namespace(*options.uid_base)
                                  : result<user_namespace>(user_namespace());
    if (!users) {
        return start_failed(users.error());
    }
    staging area;
    area.directory = context.options.run_dir + "/mnt";
    area.users = std::move(*users);
    auto done = leave_mount_namespace();
    if (done) {
        done = mount_staging(area.directory);
    }
    if (!done) {
        return start_failed(done.error());
    }
    return area;
}

result<void> stage(staging& area, const worker_context& context, const start_sandbox& request,
                   const local_image& image, const slot_directory& slot, const staging_options& options) {
    const auto slot_path = context.options.state_dir + "/oci/" + request.slot;
    const int users = area.users.fd.get();
    auto done = mount_root(area, image, slot.directory.get(), slot_path, users, options.uid_base.value_or(0),
                           layer_facts{request.keep != keeping::nothing, slot.has_layer});
    if (done) {
        const auto& agent = context.options.agent_path;
        done = options.with_door ? mount_door(area, agent, slot_path + "/door")
                                 : mount_agent(area.agent(), agent);
    }
    if (done && request.workspace_dir) {
        done = mount_workspace(area, request, users);
    }
    return done ? done : start_failed(done.error());
}

result<void> try_staging(const worker_context& context, std::uint32_t uid_base) {
    const auto name = ".new-" + core::random_hex(8);
    const auto path = context.options.state_dir + "/images/" + name;
    if (::mkdir(path.c_str(), 0700) != 0 || ::mkdir((path + "/rootfs").c_str(), 0755) != 0) {
        return os_error(path, errno);
    }
    auto images = open_directory(context.options.state_dir + "/images");
    auto directory = open_directory(path);
    auto users = create_user_namespace(uid_base);
    auto done = images && directory && users ? leave_mount_namespace()
                                             : result<void>(users ? os_error(path, errno) : users.error());
    staging area;
    area.directory = context.options.run_dir + "/mnt";
    if (done) {
        done = mount_staging(area.directory);
    }
    if (done) {
        const local_image empty{{path + "/rootfs"}, {}, false};
        done = mount_root(area, empty, directory->get(), path, users->fd.get(), uid_base, {});
    }
    if (images) {
        static_cast<void>(remove_tree(images->get(), name));
    }
    return done;
}

} // namespace sandboxd::launcher::blocking
