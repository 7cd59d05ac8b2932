#include "openapi/models.hpp"
#include "wire/file_answers.hpp"
#include "wire/requests.hpp"
#include "wire/workspace_models.hpp"

namespace sandboxd::openapi {

namespace {

/// Strict base64, whose last character holds no stray bits (contract 1.5.4).
constexpr std::string_view base64 =
    R"({"contentEncoding":"base64","pattern":"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"})";

constexpr std::string_view path = "Relative paths begin at the work directory.";
constexpr std::string_view failure = "What is wrong, for people; null: nothing.";

void add_searches(schema_book& book) {
    using enum direction;
    book.add<wire::glob_body>(
        "GlobRequest", request, "Which files.",
        {{"pattern", "`*`, `?` and `[...]` stay within a name, `**` crosses directories."},
         {"path", "Where to begin."}});
    book.add<wire::grep_body>(
        "GrepRequest", request, "Which lines of which files.",
        {{"pattern", "A POSIX basic regular expression."},
         {"path", "A file, or a directory to search; the work directory when there is none."},
         {"glob", "Only files whose name fits."},
         {"ignore_hidden", "What begins with a dot is left out."}});
    book.add<wire::grep_match>(
        "GrepMatch", answer, "A line that fits.",
        {{"path", "The file."}, {"line_number", "From 1."}, {"line", "Without its end."}});
    book.add<wire::grep_answer>("GrepResponse", answer, "What was found.",
                                {{"matches", "In the order of files and lines."},
                                 {"error", "Why the search failed; null: it did not."},
                                 {"truncated", "There are more matches than these."}});
}

} // namespace

void add_file_models(schema_book& book) {
    using enum direction;
    book.add<wire::file_entry>(
        "FileEntry", answer, "A row of a listing.",
        {{"name", "Its last component."},
         {"path", "Where it is."},
         {"is_dir", "A directory, not a link to one."},
         {"size", "In bytes; null for directories."},
         {"modified_at", "ISO 8601, UTC, in listings of stored workspaces; null elsewhere."}});
    book.add<wire::path_body>(
        "FilePathRequest", request, "A file or directory.",
        {{"path", "`files/*` want an absolute path; elsewhere relative ones begin at the work "
                  "directory or, in stored workspaces, at the workspace."}});
    book.add<wire::read_body>("ReadRequest", request, "Lines of a text file.",
                              {{"path", "Text in any common encoding, or PDF."},
                               {"offset", "Lines to skip."},
                               {"limit", "Lines to show."}});
    book.add<wire::read_answer>(
        "ReadResponse", answer, "The text to show.",
        {{"content", "Lines, a footer where there are more, or what is wrong: `Error: ...`."}});
    book.add<wire::read_bytes_answer>(
        "ReadBytesResponse", answer, "A file's bytes.",
        {{"content_b64", "Empty as well when the file can't be read.", R"({"contentEncoding":"base64"})"}});
    book.add<wire::write_body>("WriteRequest", request, "A file's new content, whole.",
                               {{"path", path}, {"content_b64", "Its bytes; empty: an empty file.", base64}});
    book.add<wire::write_answer>("WriteResponse", answer, "What became of it.",
                                 {{"path", "The absolute path; null when it failed."}, {"error", failure}});
    book.add<wire::edit_body>("EditRequest", request, "Text to replace in a file; every other byte stays.",
                              {{"path", path},
                               {"old_string", "Must be there: once, unless `replace_all`."},
                               {"new_string", "Takes its place."},
                               {"replace_all", "Wherever it stands."}});
    book.add<wire::edit_answer>("EditResponse", answer, "What became of it.",
                                {{"path", "The absolute path; null when it failed."},
                                 {"error", failure},
                                 {"occurrences", "How many were replaced; null when it failed."}});
    book.add<wire::exists_answer>("ExistsResponse", answer, "Whether it is there.",
                                  {{"exists", "A regular file, links followed."}});
    add_searches(book);
    book.add<wire::realpath_answer>("RealpathResponse", answer, "Where a path leads.",
                                    {{"path", "Absolute, without links and dots."}});
}

void add_archive_models(schema_book& book) {
    using enum direction;
    constexpr std::string_view depth = "1: the directory itself.";
    constexpr std::string_view start = "Below the workspace.";
    book.add<wire::tree_body>("TreeRequest", request, "A directory with what is below it.",
                              {{"path", start}, {"max_depth", depth}, {"max_entries", "Rows at most."}});
    book.add<wire::trees_body>("TreesRequest", request, "The same of several workspaces.",
                               {{"sessions", "Their ids, in the order of the answer."},
                                {"path", start},
                                {"max_depth", depth},
                                {"max_entries", "Rows at most, of each workspace."}});
    book.add<wire::tree_answer>(
        "TreeResponse", answer, "Breadth first: directories, then files, by name.",
        {{"entries", "Links are left out."}, {"truncated", "There is more below than these rows."}});
    book.add<wire::tree_result>("TreeResult", answer, "Of one workspace: its tree, or why there is none.",
                                {{"session_id", "As asked."},
                                 {"tree", "Null when it could not be had."},
                                 {"error", "What the request for this one alone would have been told."},
                                 {"status_code", "The status it would have had."}});
    book.add<wire::trees_answer>("TreesResponse", answer, "One result for each id.",
                                 {{"results", "In the order asked, repeats included."}});
}

void add_fault_models(schema_book& book) {
    using enum direction;
    book.add<wire::file_error>(
        "FileError", answer, "What is wrong with a file.",
        {{"error", "The exception a client raises.",
          R"({"enum":["FileNotFoundError","IsADirectoryError","NotADirectoryError","FileExistsError","ValueError"]})"},
         {"message", "For people."}});
    book.add<wire::file_error_answer>("FileErrorResponse", answer, "The operation reached the file system.",
                                      {{"detail", "What is wrong."}});
    using object = boost::json::object;
    book.add_plain("Refusal",
                   {{"type", "object"},
                    {"description", "Why the request was refused."},
                    {"properties", object{{"detail", object{{"type", "string"},
                                                            {"description", "A sentence for people."}}}}},
                    {"required", {"detail"}}});
    const object loc{
        {"type", "array"},
        {"items", object{{"anyOf", {object{{"type", "string"}}, object{{"type", "integer"}}}}}},
        {"description", "Where: `body`, `path` or `query`, then the field's name, an item's index."}};
    book.add_plain(
        "Fault",
        {{"type", "object"},
         {"description", "One thing that is wrong with a request."},
         {"properties",
          object{{"type", object{{"type", "string"}, {"description", "What kind of fault."}}},
                 {"loc", loc},
                 {"msg", object{{"type", "string"}, {"description", "For people."}}},
                 {"input", object{{"description", "What was sent, shortened when long."}}},
                 {"ctx", object{{"type", "object"}, {"description", "The bound that was not kept."}}}}},
         {"required", {"type", "loc", "msg", "input"}}});
    book.add_plain("Faults",
                   {{"type", "object"},
                    {"description", "Everything that is wrong with a request, the first hundred of it."},
                    {"properties",
                     object{{"detail", object{{"type", "array"},
                                              {"items", object{{"$ref", "#/components/schemas/Fault"}}}}}}},
                    {"required", {"detail"}}});
}

schema_book all_models() {
    schema_book book;
    add_fault_models(book);
    add_session_models(book);
    add_command_models(book);
    add_policy_models(book);
    add_file_models(book);
    add_archive_models(book);
    return book;
}

} // namespace sandboxd::openapi
