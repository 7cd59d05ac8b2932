#include "api/told.hpp"
#include "wire/answers.hpp"
#include "wire/file_answers.hpp"
#include "wire/requests.hpp"

namespace sandboxd::api::told {

using openapi::access;
using openapi::json_of;
using openapi::list_of;
using openapi::refusal;

namespace {

constexpr std::string_view commands_tag = "commands";
constexpr std::string_view files_tag = "files";

constexpr refusal asleep{429, "The session sleeps and there is no room to wake it."};
constexpr refusal not_able{501, "This kind of sandbox can't do it."};
constexpr refusal not_started{502, "A new sandbox was needed and could not be started."};
constexpr refusal leaving{503, "The service is shutting down."};
constexpr refusal too_long{504, "It outlasted the service's ceiling."};

constexpr refusal common[]{asleep, not_able, not_started, leaving, too_long};

constexpr refusal of_write[]{
    {400, "`content_b64` is not strict base64."}, asleep, not_able, not_started, leaving, too_long};

constexpr refusal of_run[]{
    {409, "The run id is in use, or was until a moment ago."},
    {410, "The sandbox is gone: before the command and its files with it, or while it ran."},
    asleep,
    not_able,
    not_started,
    leaving,
    {504, "The sandbox did not answer in time."}};

} // namespace

const operation exec{
    .id = "exec_command",
    .tag = commands_tag,
    .summary = "Run a line with `sh -c`",
    .says = "A client that leaves does not stop it. Nothing but files is kept from one command to "
            "the next.",
    .who = access::session,
    .takes = json_of<wire::exec_body>,
    .answers = json_of<wire::exec_answer>,
    .answer = "It ended, well or not.",
    .large = true,
    .refusals = common};

const operation run{.id = "run_program",
                    .tag = commands_tag,
                    .summary = "Run one program",
                    .says = "A client that leaves does not stop it; `stop` does.",
                    .who = access::session,
                    .takes = json_of<wire::run_body>,
                    .answers = json_of<wire::run_answer>,
                    .answer = "It ended, well or not.",
                    .large = true,
                    .refusals = of_run};

const operation stop_run{.id = "stop_run",
                         .tag = commands_tag,
                         .summary = "Stop a run and everything it started",
                         .says =
                             "A run that is still waiting never starts. An id that runs nothing is no error.",
                         .who = access::session,
                         .answer = "Nothing of it runs any more."};

const operation read_file{.id = "read_file",
                          .tag = files_tag,
                          .summary = "Lines of a text file",
                          .who = access::session,
                          .takes = json_of<wire::read_body>,
                          .answers = json_of<wire::read_answer>,
                          .answer = "The lines, or what is wrong.",
                          .large = true,
                          .refusals = common};

const operation read_file_bytes{.id = "read_file_bytes",
                                .tag = files_tag,
                                .summary = "A file's bytes",
                                .who = access::session,
                                .takes = json_of<wire::path_body>,
                                .answers = json_of<wire::read_bytes_answer>,
                                .answer = "The bytes; none when it can't be read.",
                                .large = true,
                                .refusals = common};

const operation write_file{.id = "write_file",
                           .tag = files_tag,
                           .summary = "Write a file",
                           .says = "Missing parents are made. Old content or new, never a part.",
                           .who = access::session,
                           .takes = json_of<wire::write_body>,
                           .answers = json_of<wire::write_answer>,
                           .answer = "It is written, or what is wrong.",
                           .large = true,
                           .refusals = of_write};

const operation edit_file{.id = "edit_file",
                          .tag = files_tag,
                          .summary = "Replace text in a file",
                          .who = access::session,
                          .takes = json_of<wire::edit_body>,
                          .answers = json_of<wire::edit_answer>,
                          .answer = "It is replaced, or what is wrong.",
                          .large = true,
                          .refusals = common};

const operation file_exists{.id = "file_exists",
                            .tag = files_tag,
                            .summary = "Is there such a file?",
                            .who = access::session,
                            .takes = json_of<wire::path_body>,
                            .answers = json_of<wire::exists_answer>,
                            .answer = "Whether it is there.",
                            .large = true,
                            .refusals = common};

const operation list_directory{.id = "list_directory",
                               .tag = files_tag,
                               .summary = "List a directory",
                               .says = "Empty when it can't be listed.",
                               .who = access::session,
                               .takes = json_of<wire::path_body>,
                               .answers = list_of<wire::file_entry>,
                               .answer = "Its entries, sorted by name.",
                               .large = true,
                               .can_be_cut = true,
                               .refusals = common};

const operation find_files{.id = "find_files",
                           .tag = files_tag,
                           .summary = "Find files by a pattern",
                           .who = access::session,
                           .takes = json_of<wire::glob_body>,
                           .answers = list_of<wire::file_entry>,
                           .answer = "What fits.",
                           .large = true,
                           .can_be_cut = true,
                           .refusals = common};

const operation search_files{.id = "search_files",
                             .tag = files_tag,
                             .summary = "Find lines by an expression",
                             .who = access::session,
                             .takes = json_of<wire::grep_body>,
                             .answers = json_of<wire::grep_answer>,
                             .answer = "What fits.",
                             .large = true,
                             .refusals = common};

} // namespace sandboxd::api::told
