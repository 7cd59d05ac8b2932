#include "core/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>
#include <utility>

namespace sandboxd::core::log {

namespace {

/// %* : the message as the inside of a JSON string.
class json_text final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
        static constexpr std::string_view digits = "0123456789abcdef";
        for (const char c : std::string_view(message.payload.data(), message.payload.size())) {
            const auto byte = static_cast<unsigned char>(c);
            if (c == '"' || c == '\\') {
                out.push_back('\\');
                out.push_back(c);
            } else if (byte < 0x20 || byte == 0x7F) {
                const std::array<char, 6> escaped{
                    '\\', 'u', '0', '0', digits[byte >> 4U], digits[byte & 15U]};
                out.append(escaped.data(), escaped.data() + escaped.size());
            } else {
                out.push_back(c);
            }
        }
    }
    [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
        return std::make_unique<json_text>();
    }
};

/// %~ : the message with control characters made visible, so that a hostile name can't forge a line.
class plain_text final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
        for (const char c : std::string_view(message.payload.data(), message.payload.size())) {
            const auto byte = static_cast<unsigned char>(c);
            out.push_back(byte < 0x20 || byte == 0x7F ? '?' : c);
        }
    }
    [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
        return std::make_unique<plain_text>();
    }
};

std::unique_ptr<spdlog::formatter> formatter(bool json) {
    auto made = std::make_unique<spdlog::pattern_formatter>();
    made->add_flag<json_text>('*').add_flag<plain_text>('~');
    made->set_pattern(json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%*"})"
                           : "%Y-%m-%d %H:%M:%S.%e %l %~");
    return made;
}

spdlog::logger& logger() {
    static const std::shared_ptr<spdlog::logger> shared = [] {
        auto made =
            std::make_shared<spdlog::logger>("sandboxd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_formatter(formatter(false));
        made->flush_on(spdlog::level::trace);
        return made;
    }();
    return *shared;
}

spdlog::level::level_enum translate(level severity) noexcept {
    switch (severity) {
    case level::debug:
        return spdlog::level::debug;
    case level::info:
        return spdlog::level::info;
    case level::warning:
        return spdlog::level::warn;
    case level::error:
        return spdlog::level::err;
    }
    return spdlog::level::err;
}

} // namespace

bool set_level(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, level>, 4> names{{{"debug", level::debug},
                                                                              {"info", level::info},
                                                                              {"warning", level::warning},
                                                                              {"error", level::error}}};
    for (const auto& [known, severity] : names) {
        if (known == name) {
            logger().set_level(translate(severity));
            return true;
        }
    }
    return false;
}

bool set_format(std::string_view name) {
    if (name != "text" && name != "json") {
        return false;
    }
    logger().set_formatter(formatter(name == "json"));
    return true;
}

bool enabled(level severity) noexcept {
    return logger().should_log(translate(severity));
}

void write(level severity, std::string_view message) {
    logger().log(translate(severity), spdlog::string_view_t(message.data(), message.size()));
}

} // namespace sandboxd::core::log
