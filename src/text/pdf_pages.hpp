#pragma once

#include "sandboxd/error.hpp"

#include <string>
#include <string_view>

namespace sandboxd::text {

/// What `pdftotext -htmlmeta` printed: a head with the metadata, then the pages, each ended by a form feed.
/// As the text of contract 3.3.3 b; errc::invalid with the cause when there is no page or no text.
[[nodiscard]] result<std::string> pdf_pages(std::string_view printed);

/// Cleaning of contract 3.3.3 b.
[[nodiscard]] std::string clean_pdf_text(std::string_view text);

} // namespace sandboxd::text
