#include "api/told.hpp"
#include "wire/requests.hpp"
#include "wire/workspace_models.hpp"

namespace sandboxd::api::told {

using openapi::access;
using openapi::json_of;
using openapi::list_of;
using openapi::refusal;

namespace {

constexpr std::string_view native_tag = "native files";
constexpr std::string_view archive_tag = "stored workspaces";

constexpr std::string_view native_says = "Done by the service itself, below the work directory and through "
                                         "no link; starts and wakes nothing. 409 means: "
                                         "do it in the sandbox.";

constexpr refusal of_native[]{
    {400, "The file is not of the kind that is wanted, or the path is malformed.", refusal::shape::file},
    {404, "There is no such file.", refusal::shape::file},
    {409, "The service can't or may not do it: ask the sandbox."},
    {503, "The service is shutting down."},
    {504, "It took longer than 25 seconds."}};

constexpr refusal no_root{409, "The service keeps no workspaces (no `workspace_root`)."};
constexpr refusal denied{403, "The service may not read it."};
constexpr refusal outside{400, "The path leads outside the workspace or over a link, or is no file to read."};
constexpr refusal missing{404, "There is no such workspace, file or directory."};
constexpr refusal leaving{503, "The service is shutting down."};
constexpr refusal too_long{504, "It took longer than 25 seconds."};

constexpr refusal of_archive[]{outside, denied, missing, no_root, leaving, too_long};

} // namespace

const operation native_read{.id = "native_read",
                            .tag = native_tag,
                            .summary = "A file's bytes",
                            .says = native_says,
                            .who = access::session,
                            .takes = json_of<wire::path_body>,
                            .answers = openapi::bytes,
                            .answer = "The bytes, as they are.",
                            .large = true,
                            .refusals = of_native};

const operation native_write{.id = "native_write",
                             .tag = native_tag,
                             .summary = "Write a file",
                             .says = native_says,
                             .who = access::session,
                             .takes = openapi::bytes,
                             .answer = "It is written.",
                             .query = wire::path_query,
                             .refusals = of_native};

const operation native_stat{.id = "native_stat",
                            .tag = native_tag,
                            .summary = "Look at a file",
                            .says = native_says,
                            .who = access::session,
                            .takes = json_of<wire::path_body>,
                            .answers = json_of<wire::file_entry>,
                            .answer = "What it is.",
                            .refusals = of_native};

const operation native_list{.id = "native_list",
                            .tag = native_tag,
                            .summary = "List a directory",
                            .says = native_says,
                            .who = access::session,
                            .takes = json_of<wire::path_body>,
                            .answers = list_of<wire::file_entry>,
                            .answer = "Its entries, sorted by name.",
                            .large = true,
                            .refusals = of_native};

const operation native_realpath{.id = "native_realpath",
                                .tag = native_tag,
                                .summary = "Where a path leads",
                                .says = native_says,
                                .who = access::session,
                                .takes = json_of<wire::path_body>,
                                .answers = json_of<wire::realpath_answer>,
                                .answer = "The path.",
                                .refusals = of_native};

const operation native_mkdir{.id = "native_mkdir",
                             .tag = native_tag,
                             .summary = "Make a directory",
                             .says = native_says,
                             .who = access::session,
                             .takes = json_of<wire::path_body>,
                             .answer = "It is there, its parents too.",
                             .refusals = of_native};

const operation native_remove{.id = "native_remove",
                              .tag = native_tag,
                              .summary = "Remove a file, or a directory with everything in it",
                              .says = native_says,
                              .who = access::session,
                              .takes = json_of<wire::path_body>,
                              .answer = "It is gone.",
                              .refusals = of_native};

const operation list_workspace{.id = "list_workspace",
                               .tag = archive_tag,
                               .summary = "List a directory of a stored workspace",
                               .who = access::service,
                               .takes = json_of<wire::path_body>,
                               .answers = list_of<wire::file_entry>,
                               .answer = "Directories first, then by name.",
                               .large = true,
                               .can_be_cut = true,
                               .refusals = of_archive};

const operation read_workspace{.id = "read_workspace",
                               .tag = archive_tag,
                               .summary = "Lines of a text file in a stored workspace",
                               .who = access::service,
                               .takes = json_of<wire::read_body>,
                               .answers = json_of<wire::read_answer>,
                               .answer = "The lines.",
                               .large = true,
                               .refusals = of_archive};

const operation read_workspace_bytes{.id = "read_workspace_bytes",
                                     .tag = archive_tag,
                                     .summary = "A file's bytes in a stored workspace",
                                     .who = access::service,
                                     .takes = json_of<wire::path_body>,
                                     .answers = json_of<wire::read_bytes_answer>,
                                     .answer = "The bytes.",
                                     .large = true,
                                     .refusals = of_archive};

const operation walk_workspace{.id = "walk_workspace",
                               .tag = archive_tag,
                               .summary = "A stored workspace, or a directory of it, with what is below",
                               .who = access::service,
                               .takes = json_of<wire::tree_body>,
                               .answers = json_of<wire::tree_answer>,
                               .answer = "Breadth first.",
                               .large = true,
                               .refusals = of_archive};

const operation walk_workspaces{.id = "walk_workspaces",
                                .tag = archive_tag,
                                .summary = "The same of several workspaces at once",
                                .who = access::service,
                                .takes = json_of<wire::trees_body>,
                                .answers = json_of<wire::trees_answer>,
                                .answer = "One result for each, also for those that could not be had.",
                                .large = true};

} // namespace sandboxd::api::told
