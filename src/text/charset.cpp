#include "text/charset.hpp"

#include "core/utf8.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iconv.h>
#include <memory>
#include <uchardet.h>

namespace sandboxd::text {

namespace {

constexpr std::size_t sample_bytes = 32 * 1024;

/// Fewer bytes above ASCII tell no Latin alphabet from another: then it is the most common one.
constexpr std::ptrdiff_t telling_bytes = 10;
constexpr std::string_view western = "CP1252";

struct known_charset {
    std::string_view detected; ///< uchardet's name
    std::string_view name;     ///< iconv's, of the encoding or of one that contains it
    bool latin = false;        ///< a Latin alphabet in one byte per letter
};

// ISO-8859-1 and Windows-1252 differ in characters that text files hold only in the latter.
constexpr std::array known_charsets{
    known_charset{"BIG5", "BIG5-HKSCS"},
    known_charset{"EUC-JP", "EUC-JP"},
    known_charset{"EUC-KR", "UHC"},
    known_charset{"EUC-TW", "EUC-TW"},
    known_charset{"GB18030", "GB18030"},
    known_charset{"IBM852", "IBM852", true},
    known_charset{"IBM855", "IBM855"},
    known_charset{"IBM865", "IBM865", true},
    known_charset{"IBM866", "IBM866"},
    known_charset{"ISO-2022-JP", "ISO-2022-JP"},
    known_charset{"ISO-2022-KR", "ISO-2022-KR"},
    known_charset{"ISO-8859-1", western, true},
    known_charset{"ISO-8859-2", "ISO-8859-2", true},
    known_charset{"ISO-8859-3", "ISO-8859-3", true},
    known_charset{"ISO-8859-4", "ISO-8859-4", true},
    known_charset{"ISO-8859-5", "ISO-8859-5"},
    known_charset{"ISO-8859-6", "ISO-8859-6"},
    known_charset{"ISO-8859-7", "ISO-8859-7"},
    known_charset{"ISO-8859-8", "ISO-8859-8"},
    known_charset{"ISO-8859-9", "ISO-8859-9", true},
    known_charset{"ISO-8859-10", "ISO-8859-10", true},
    known_charset{"ISO-8859-11", "ISO-8859-11"},
    known_charset{"ISO-8859-13", "ISO-8859-13", true},
    known_charset{"ISO-8859-15", "ISO-8859-15", true},
    known_charset{"ISO-8859-16", "ISO-8859-16", true},
    known_charset{"JOHAB", "JOHAB"},
    known_charset{"KOI8-R", "KOI8-R"},
    known_charset{"MAC-CENTRALEUROPE", "MAC-CENTRALEUROPE", true},
    known_charset{"MAC-CYRILLIC", "MAC-CYRILLIC"},
    known_charset{"SHIFT_JIS", "CP932"},
    known_charset{"TIS-620", "TIS-620"},
    known_charset{"UHC", "UHC"},
    known_charset{"VISCII", "VISCII", true},
    known_charset{"WINDOWS-1250", "CP1250", true},
    known_charset{"WINDOWS-1251", "CP1251"},
    known_charset{"WINDOWS-1252", western, true},
    known_charset{"WINDOWS-1253", "CP1253"},
    known_charset{"WINDOWS-1255", "CP1255"},
    known_charset{"WINDOWS-1256", "CP1256"},
    known_charset{"WINDOWS-1257", "CP1257", true},
    known_charset{"WINDOWS-1258", "CP1258", true},
};

struct close_detector {
    void operator()(uchardet_t one) const noexcept { ::uchardet_delete(one); }
};

class converter {
public:
    explicit converter(std::string_view from) : handle_(::iconv_open("UTF-8", std::string(from).c_str())) {}
    ~converter() {
        if (*this) {
            ::iconv_close(handle_);
        }
    }
    converter(const converter&) = delete;
    converter& operator=(const converter&) = delete;
    explicit operator bool() const noexcept { return handle_ != reinterpret_cast<iconv_t>(-1); }

    /// Appends what can be converted and takes it off `bytes`; false when something is left.
    bool take(std::string_view& bytes, std::string& out) {
        std::array<char, 16 * 1024> buffer; // NOLINT: filled by iconv
        for (;;) {
            char* from = const_cast<char*>(bytes.data()); // iconv writes nothing there
            std::size_t from_left = bytes.size();
            char* to = buffer.data();
            std::size_t to_left = buffer.size();
            const std::size_t how = ::iconv(handle_, &from, &from_left, &to, &to_left);
            const int failure = errno;
            out.append(buffer.data(), buffer.size() - to_left);
            bytes.remove_prefix(bytes.size() - from_left);
            if (how != static_cast<std::size_t>(-1)) {
                return flush(out);
            }
            if (failure != E2BIG) {
                return false;
            }
        }
    }

private:
    /// Encodings that combine characters keep the last one back.
    bool flush(std::string& out) {
        std::array<char, 64> rest{};
        char* to = rest.data();
        std::size_t left = rest.size();
        const bool good = ::iconv(handle_, nullptr, nullptr, &to, &left) != static_cast<std::size_t>(-1);
        out.append(rest.data(), rest.size() - left);
        return good;
    }

    iconv_t handle_;
};

/// 0x80 to 0x9F; NEL, which some use as an end of line, aside.
bool is_upper_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 && byte < 0xA0 && byte != 0x85;
}

} // namespace

std::string_view detect(std::string_view bytes) {
    bytes = bytes.substr(0, sample_bytes);
    const std::unique_ptr<std::remove_pointer_t<uchardet_t>, close_detector> detector(::uchardet_new());
    if (!detector || ::uchardet_handle_data(detector.get(), bytes.data(), bytes.size()) != 0) {
        return {};
    }
    ::uchardet_data_end(detector.get());
    const std::string_view guess = ::uchardet_get_charset(detector.get());
    const auto* const known = std::ranges::find(known_charsets, guess, &known_charset::detected);
    if (known == known_charsets.end()) {
        return {};
    }
    const auto above_ascii =
        std::ranges::count_if(bytes, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    // The encodings of ISO 8859 have controls where those of Windows have quotes and dashes; no text has
    // those.
    const bool impossible =
        known->detected.starts_with("ISO-8859-") && std::ranges::any_of(bytes, is_upper_control);
    return impossible || (known->latin && above_ascii < telling_bytes) ? western : known->name;
}

std::optional<std::string> convert(std::string_view charset, std::string_view bytes) {
    converter through(charset);
    std::string out;
    if (!through || !through.take(bytes, out)) {
        return std::nullopt;
    }
    return out;
}

std::optional<std::string> convert_replacing(std::string_view charset, std::string_view bytes) {
    converter through(charset);
    if (!through) {
        return std::nullopt;
    }
    std::string out;
    while (!through.take(bytes, out) && !bytes.empty()) {
        out += core::replacement;
        bytes.remove_prefix(1);
    }
    return out;
}

std::string from_western(std::string_view bytes) {
    auto text = convert(western, bytes);
    return text ? std::move(*text) : from_latin1(bytes);
}

std::string from_latin1(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size() + bytes.size() / 8);
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) {
            out += c;
        } else {
            out += static_cast<char>(0xC0U | (byte >> 6U));
            out += static_cast<char>(0x80U | (byte & 0x3FU));
        }
    }
    return out;
}

} // namespace sandboxd::text
