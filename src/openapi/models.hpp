#pragma once

#include "openapi/schema.hpp"

namespace sandboxd::openapi {

// The name and the texts of every model, below the names of the reference's own document where those are
// known. What a field's type, bounds and default are is said by the model itself.

void add_session_models(schema_book& book);
void add_policy_models(schema_book& book);
void add_command_models(schema_book& book);
void add_file_models(schema_book& book);
void add_archive_models(schema_book& book);
/// The answers that say what is wrong.
void add_fault_models(schema_book& book);

/// All of them.
[[nodiscard]] schema_book all_models();

} // namespace sandboxd::openapi
