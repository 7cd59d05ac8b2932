#pragma once

#include <string>
#include <string_view>

namespace sandboxd::openapi {

/// A page with its script and its style inside, and the policy that lets a browser run those and nothing
/// else, nor load anything from elsewhere.
struct page {
    std::string_view html;
    std::string policy; ///< for Content-Security-Policy
};

/// `html` has one <script> and one <style>, without attributes. Throws std::logic_error where it has none.
[[nodiscard]] page strict_page(std::string_view html);

/// The page that shows the document and tries it out; the document is asked for at `openapi.json` beside it.
[[nodiscard]] const page& docs_page();

} // namespace sandboxd::openapi
