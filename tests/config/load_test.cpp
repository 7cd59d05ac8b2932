#include "config/fixture.hpp"

#include "config/catalogue.hpp"

BOOST_AUTO_TEST_SUITE(config_load)
using namespace config_test;

BOOST_AUTO_TEST_CASE(only_a_token_gives_every_default) {
    const settings got = values_of(load_from({}));
    const settings shipped;
    BOOST_TEST(got.token == "t");
    BOOST_TEST((got.runtimes == default_runtimes()));
    BOOST_TEST(got.default_runtime == "coding");
    BOOST_TEST((got.max_sessions == 20));
    BOOST_TEST(!got.max_open_sessions.has_value());
    BOOST_TEST(!got.max_sessions_per_tenant.has_value());
    BOOST_TEST(!got.evict_idle_after.has_value());
    BOOST_TEST((got.mem_limit == "1g"));
    BOOST_TEST(!got.memswap_limit.has_value());
    BOOST_TEST((got.cpus == 2.0));
    BOOST_TEST(!got.cpu_shares.has_value());
    BOOST_TEST((got.pids_limit == 512));
    BOOST_TEST((got.tmpfs_size == "64m"));
    BOOST_TEST((got.network_mode == "none"));
    BOOST_TEST(!got.oci_runtime.has_value());
    BOOST_TEST(got.work_dir == "/workspace");
    BOOST_TEST(!got.workspace_root.has_value());
    BOOST_TEST(got.persist_containers == false);
    BOOST_TEST(got.prewarm == true);
    BOOST_TEST(got.idle_timeout == 1800);
    BOOST_TEST(got.cleanup_interval == 300);
    BOOST_TEST(!got.workspace_ttl.has_value());
    BOOST_TEST(!got.container_ttl.has_value());
    BOOST_TEST(!got.sandbox_uid.has_value());
    BOOST_TEST(got.max_read_bytes == 8'388'608);
    BOOST_TEST(got.execute_timeout == 300);
    BOOST_TEST(got.max_workers == 32);
    BOOST_TEST(got.ui_enabled == false);
    BOOST_TEST(!got.policy_overrides.has_value());
    BOOST_TEST(got.native_files == true);
    BOOST_TEST(got.max_running_commands == 256);
    BOOST_TEST(got.host == "127.0.0.1");
    BOOST_TEST(got.port == 8080);
    BOOST_TEST(!got.backend.has_value());
    BOOST_TEST(!got.user.has_value());
    BOOST_TEST((got.uid_range == shipped.uid_range));
    BOOST_TEST(got.uid_range.first == 0x10000000U);
    BOOST_TEST(got.uid_range.second == 0x6FFFFFFFU);
    BOOST_TEST(got.on_shutdown == "keep");
    BOOST_TEST(got.io_threads == 4);
    BOOST_TEST(got.max_body_bytes == 134'217'728);
    BOOST_TEST(got.max_inflight_bytes == 536'870'912);
    BOOST_TEST(got.shutdown_grace == 10);
    BOOST_TEST(got.log_level == "info");
    BOOST_TEST(got.log_format == "text");
    BOOST_TEST(got.state_dir == "/h/.local/state/sandboxd");
}

BOOST_AUTO_TEST_CASE(a_variable_that_is_no_setting_is_noted) {
    const auto notes = [](const environment& variables) {
        const auto loaded = load(variables, std::nullopt, {}, made_up_host());
        BOOST_REQUIRE(loaded.has_value());
        return loaded->notes;
    };
    const environment right{{"HOME", "/h"},
                            {"SANDBOXD_TOKEN", "t"},
                            {"SANDBOXD_MAX_SESSIONS", "3"},
                            {"SANDBOXD_URL", "http://x"},
                            {"SANDBOXD_QUICKSTART_DIR", "/q"},
                            {"SANDBOXD_TEST_LONG", "1"},
                            {"SANDBOX_TOKEN", "another program's"}};
    BOOST_TEST(notes(right).empty());
    auto wrong = right;
    wrong.insert({{"SANDBOXD_MAX_SESIONS", "3"}, {"SANDBOXD_NOTHING_LIKE_IT", ""}, {"SANDBOXD_url", "x"}});
    const std::vector<std::string> expected{
        "'SANDBOXD_MAX_SESIONS' is no setting and is ignored. Did you mean SANDBOXD_MAX_SESSIONS?",
        "'SANDBOXD_NOTHING_LIKE_IT' is no setting and is ignored.",
        "'SANDBOXD_url' is no setting and is ignored."};
    BOOST_TEST(notes(wrong) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_missing_or_empty_token_is_refused) {
    const std::string missing = message_of(load({{"HOME", "/h"}}, std::nullopt, {}, made_up_host()));
    BOOST_TEST(missing ==
               "SANDBOXD_TOKEN is required: the token must not be empty. Whoever has it can run commands on "
               "this host, so choose a long random one.");
    BOOST_TEST(message_of(load_from({{"TOKEN", ""}})) == missing);
}

BOOST_AUTO_TEST_CASE(a_token_is_taken_verbatim) {
    BOOST_TEST(values_of(load_from({{"TOKEN", " \xE9 x\t"}})).token == " \xE9 x\t");
}

BOOST_AUTO_TEST_CASE(an_empty_optional_setting_is_none) {
    const settings got = values_of(load_from({{"MAX_SESSIONS", ""},
                                              {"MEM_LIMIT", ""},
                                              {"CPUS", ""},
                                              {"PIDS_LIMIT", ""},
                                              {"TMPFS_SIZE", ""},
                                              {"NETWORK_MODE", ""},
                                              {"POLICY_OVERRIDES", ""},
                                              {"WORKSPACE_ROOT", ""},
                                              {"BACKEND", ""}}));
    BOOST_TEST(!got.max_sessions.has_value());
    BOOST_TEST(!got.mem_limit.has_value());
    BOOST_TEST(!got.cpus.has_value());
    BOOST_TEST(!got.pids_limit.has_value());
    BOOST_TEST(!got.tmpfs_size.has_value());
    BOOST_TEST(!got.network_mode.has_value());
    BOOST_TEST(!got.policy_overrides.has_value());
    BOOST_TEST(!got.workspace_root.has_value());
    BOOST_TEST(!got.backend.has_value());
}

BOOST_AUTO_TEST_CASE(an_empty_host_means_all_interfaces_and_an_empty_default_runtime_the_first) {
    const settings got = values_of(load_from({{"HOST", ""}, {"DEFAULT_RUNTIME", ""}}));
    BOOST_TEST(got.host == "");
    BOOST_TEST(got.default_runtime == "coding");
}

BOOST_AUTO_TEST_CASE(an_empty_required_setting_names_its_variable) {
    BOOST_TEST(message_of(load_from({{"WORK_DIR", ""}})) == "SANDBOXD_WORK_DIR must not be empty");
    BOOST_TEST(message_of(load_from({{"IDLE_TIMEOUT", ""}})) ==
               "SANDBOXD_IDLE_TIMEOUT='' is not valid: not a whole number");
    BOOST_TEST(message_of(load_from({{"PORT", ""}})) == "SANDBOXD_PORT='' is not valid: not a whole number");
    BOOST_TEST(message_of(load_from({{"MAX_RUNNING_COMMANDS", ""}})) ==
               "SANDBOXD_MAX_RUNNING_COMMANDS='' is not valid: not a whole number");
    BOOST_TEST(message_of(load_from({{"NATIVE_FILES", ""}})) ==
               "SANDBOXD_NATIVE_FILES='' is not a boolean. Use one of 0, 1, false, no, off, on, true, yes.");
}

BOOST_AUTO_TEST_CASE(booleans_take_eight_words_in_any_case_with_blanks) {
    for (const char* word : {"1", "true", "yes", "on", " YES ", "On\t"}) {
        BOOST_TEST(values_of(load_from({{"UI_ENABLED", word}})).ui_enabled == true);
    }
    for (const char* word : {"0", "false", "no", "off", " FALSE ", "oFF"}) {
        BOOST_TEST(values_of(load_from({{"PREWARM", word}})).prewarm == false);
    }
    BOOST_TEST(message_of(load_from({{"PREWARM", "maybe"}})) ==
               "SANDBOXD_PREWARM='maybe' is not a boolean. Use one of 0, 1, false, no, off, on, true, yes.");
}

namespace {
/// What is wrong with the value of a setting, after the words that name both.
std::string refusal_of(const std::string& name, const std::string& value) {
    const std::string message = message_of(load_from({{name, value}}));
    const std::string start = "SANDBOXD_" + name + "='" + value + "' is not valid: ";
    BOOST_TEST(message.starts_with(start), name << "=" << value << " gave: " << message);
    return message.starts_with(start) ? message.substr(start.size()) : message;
}
} // namespace

BOOST_AUTO_TEST_CASE(numbers_take_blanks_a_sign_and_separators) {
    BOOST_TEST((values_of(load_from({{"MAX_SESSIONS", " +1_0 "}})).max_sessions == 10));
    BOOST_TEST((values_of(load_from({{"CPUS", " 1_0.5 "}})).cpus == 10.5));
    BOOST_TEST(refusal_of("MAX_SESSIONS", "lots") == "not a whole number; empty means no ceiling");
    BOOST_TEST(refusal_of("MAX_SESSIONS", "1__0") == "not a whole number; empty means no ceiling");
    BOOST_TEST(refusal_of("MAX_SESSIONS", "99999999999999999999") ==
               "not a whole number; empty means no ceiling");
    BOOST_TEST(refusal_of("CPUS", "x") == "not a number; empty means no limit");
    BOOST_TEST(refusal_of("CPUS", "inf") == "not a number; empty means no limit");
    BOOST_TEST(refusal_of("CPUS", "nan") == "not a number; empty means no limit");
    BOOST_TEST(refusal_of("MAX_RUNNING_COMMANDS", "lots") == "not a whole number");
}

BOOST_AUTO_TEST_CASE(senseless_numbers_are_refused) {
    const std::pair<const char*, const char*> cases[]{{"MAX_SESSIONS", "-1"},
                                                      {"MAX_RUNNING_COMMANDS", "0"},
                                                      {"MAX_RUNNING_COMMANDS", "-3"},
                                                      {"CPUS", "0"},
                                                      {"CPUS", "-1"},
                                                      {"CPU_SHARES", "0"},
                                                      {"PIDS_LIMIT", "0"},
                                                      {"IDLE_TIMEOUT", "-1"},
                                                      {"CLEANUP_INTERVAL", "0"},
                                                      {"WORKSPACE_TTL", "-1"},
                                                      {"CONTAINER_TTL", "-1"},
                                                      {"SANDBOX_UID", "-1"},
                                                      {"MAX_READ_BYTES", "0"},
                                                      {"EXECUTE_TIMEOUT", "0"},
                                                      {"MAX_WORKERS", "0"},
                                                      {"PORT", "65536"},
                                                      {"PORT", "-1"},
                                                      {"IO_THREADS", "0"},
                                                      {"SHUTDOWN_GRACE", "-1"},
                                                      {"MAX_BODY_BYTES", "1000"},
                                                      {"EXECUTE_TIMEOUT", "9999999999999"},
                                                      {"EVICT_IDLE_AFTER", "-1"}};
    for (const auto& [name, value] : cases) {
        BOOST_TEST(refusal_of(name, value).starts_with("must be "), name << "=" << value);
    }
    BOOST_TEST(refusal_of("PORT", "65536") == "must be from 0 to 65535");
    // What other services take for "none" is answered with how to say it here.
    BOOST_TEST(refusal_of("PIDS_LIMIT", "-1") == "must be from 1 to 4194304; empty means no limit");
    BOOST_TEST(refusal_of("CPUS", "0") == "must be from 0.01 to 65536; empty means no limit");
    BOOST_TEST(refusal_of("CPU_SHARES", "0") == "must be from 1 to 262144; empty means none");
    BOOST_TEST((values_of(load_from({{"MAX_SESSIONS", "0"}})).max_sessions == 0));
    BOOST_TEST(values_of(load_from({{"IDLE_TIMEOUT", "0"}})).idle_timeout == 0);
}

BOOST_AUTO_TEST_CASE(sizes_are_checked_at_start) {
    BOOST_TEST((values_of(load_from({{"MEM_LIMIT", "1.5G"}, {"MEMSWAP_LIMIT", "2gb"}})).mem_limit == "1.5G"));
    BOOST_TEST(refusal_of("MEM_LIMIT", "1x") ==
               "not a size such as 512m, 1.5g or 1073741824; empty means no limit");
    BOOST_TEST(refusal_of("MEM_LIMIT", "1k") == "must be at least 6m; empty means no limit");
    BOOST_TEST(refusal_of("TMPFS_SIZE", "64m,suid") ==
               "not a size such as 64m, 1g or 50% (of memory); empty means `/tmp` on the image's layer");
    BOOST_TEST((values_of(load_from({{"TMPFS_SIZE", "50%"}})).tmpfs_size == "50%"));
    BOOST_TEST(message_of(load_from({{"MEM_LIMIT", "2g"}, {"MEMSWAP_LIMIT", "1g"}})) ==
               "SANDBOXD_MEMSWAP_LIMIT: memswap_limit '1g' is below mem_limit '2g'");
    BOOST_TEST(message_of(load_from({{"RUNTIMES", "a=b;mem_limit=2g"}, {"MEMSWAP_LIMIT", "1g"}})) ==
               "SANDBOXD_RUNTIMES: entry 'a': memswap_limit '1g' is below mem_limit '2g'");
}

BOOST_AUTO_TEST_CASE(refused_combinations) {
    BOOST_TEST(message_of(load_from({{"EVICT_IDLE_AFTER", "5"}})) ==
               "SANDBOXD_EVICT_IDLE_AFTER: evict_idle_after needs workspace_root: the files of a session put "
               "to sleep "
               "would be lost");
    BOOST_TEST(
        (values_of(load_from({{"EVICT_IDLE_AFTER", "5"}, {"WORKSPACE_ROOT", "/w"}})).evict_idle_after == 5));
    BOOST_TEST(message_of(load_from({{"MAX_OPEN_SESSIONS", "3"}})) ==
               "SANDBOXD_MAX_OPEN_SESSIONS: max_open_sessions (3) is below max_sessions (20): a resident "
               "session is an "
               "open one too");
    BOOST_TEST(
        (values_of(load_from({{"MAX_OPEN_SESSIONS", "3"}, {"MAX_SESSIONS", ""}})).max_open_sessions == 3));
    BOOST_TEST(message_of(load_from({{"DEFAULT_RUNTIME", "zz"}})) ==
               "SANDBOXD_DEFAULT_RUNTIME: default_runtime 'zz' is not in runtimes (coding, node, python)");
    BOOST_TEST(
        message_of(load_from({{"MAX_INFLIGHT_BYTES", "2000000"}})) ==
        "SANDBOXD_MAX_INFLIGHT_BYTES: max_inflight_bytes (2000000) is below max_body_bytes (134217728)");
}

BOOST_AUTO_TEST_CASE(what_the_reference_does_not_refuse_passes) {
    const settings got = values_of(load_from({{"WORKSPACE_TTL", "5"},
                                              {"CONTAINER_TTL", "5"},
                                              {"SANDBOX_UID", "1000"},
                                              {"NATIVE_FILES", "1"},
                                              {"NO_SUCH", "x"}}));
    BOOST_TEST((got.workspace_ttl == 5));
    BOOST_TEST((got.container_ttl == 5));
    BOOST_TEST((got.sandbox_uid == 1000));
}

BOOST_AUTO_TEST_CASE(there_are_two_backends) {
    BOOST_TEST((values_of(load_from({{"BACKEND", "oci"}})).backend == "oci"));
    BOOST_TEST((values_of(load_from({{"BACKEND", "docker"}})).backend == "docker"));
    BOOST_TEST(message_of(load_from({{"BACKEND", "oic"}})) ==
               "SANDBOXD_BACKEND='oic' is not valid: use one of docker, oci. Did you mean 'oci'?");
}

BOOST_AUTO_TEST_CASE(an_oci_runtime_is_a_plain_name) {
    BOOST_TEST((values_of(load_from({{"OCI_RUNTIME", "runsc"}})).oci_runtime == "runsc"));
    BOOST_TEST(message_of(load_from({{"OCI_RUNTIME", "../runc"}})) ==
               "SANDBOXD_OCI_RUNTIME='../runc' is not valid: must be a name of letters, digits, '-', '_' and "
               "'.'");
}

BOOST_AUTO_TEST_CASE(the_hosts_network_is_refused) {
    BOOST_TEST(message_of(load_from({{"NETWORK_MODE", "host"}})) ==
               "SANDBOXD_NETWORK_MODE='host' is not valid: a sandbox never gets the host's own network");
    BOOST_TEST((values_of(load_from({{"NETWORK_MODE", "bridge"}})).network_mode == "bridge"));
}

BOOST_AUTO_TEST_CASE(uid_ranges) {
    const settings got = values_of(load_from({{"UID_RANGE", "0x100000-2000000"}}));
    BOOST_TEST(got.uid_range.first == 0x100000U);
    BOOST_TEST(got.uid_range.second == 2'000'000U);
    BOOST_TEST(message_of(load_from({{"UID_RANGE", "5"}})) ==
               "SANDBOXD_UID_RANGE='5' is not valid: not FIRST-LAST, two user ids in decimal or 0x");
    BOOST_TEST(message_of(load_from({{"UID_RANGE", "0-99999999"}})) ==
               "SANDBOXD_UID_RANGE='0-99999999' is not valid: ids must be from 65536 to 4294967294");
    BOOST_TEST(message_of(load_from({{"UID_RANGE", "100000-165534"}})) ==
               "SANDBOXD_UID_RANGE='100000-165534' is not valid: the range holds less than the 65536 ids of "
               "one session");
    BOOST_TEST(values_of(load_from({{"UID_RANGE", "100000-165535"}})).uid_range.second == 165'535U);
    BOOST_TEST(message_of(load_from({{"UID_RANGE", "0x-0x"}})) ==
               "SANDBOXD_UID_RANGE='0x-0x' is not valid: not FIRST-LAST, two user ids in decimal or 0x");
}

BOOST_AUTO_TEST_CASE(words_with_fixed_choices) {
    BOOST_TEST(values_of(load_from({{"ON_SHUTDOWN", "stop"}})).on_shutdown == "stop");
    BOOST_TEST(message_of(load_from({{"ON_SHUTDOWN", "sotp"}})) ==
               "SANDBOXD_ON_SHUTDOWN='sotp' is not valid: use one of keep, stop. Did you mean 'stop'?");
    BOOST_TEST(message_of(load_from({{"LOG_FORMAT", "xml"}})) ==
               "SANDBOXD_LOG_FORMAT='xml' is not valid: use one of text, json.");
    BOOST_TEST(values_of(load_from({{"LOG_LEVEL", "warning"}})).log_level == "warning");
    BOOST_TEST(message_of(load_from({{"LOG_LEVEL", ""}})) == "SANDBOXD_LOG_LEVEL must not be empty");
}

BOOST_AUTO_TEST_CASE(work_directories) {
    BOOST_TEST(values_of(load_from({{"WORK_DIR", "/srv/work"}})).work_dir == "/srv/work");
    BOOST_TEST(message_of(load_from({{"WORK_DIR", "rel"}})) ==
               "SANDBOXD_WORK_DIR='rel' is not valid: must be an absolute path");
    BOOST_TEST(message_of(load_from({{"WORK_DIR", "//"}})) ==
               "SANDBOXD_WORK_DIR='//' is not valid: must not be the root directory");
    BOOST_TEST(message_of(load_from({{"WORK_DIR", "/a/../b"}})) ==
               "SANDBOXD_WORK_DIR='/a/../b' is not valid: must not hold '.' or '..'");
    BOOST_TEST(message_of(load_from({{"WORK_DIR", "/a\nb"}})) ==
               "SANDBOXD_WORK_DIR='/a\\x0ab' is not valid: it holds a control character");
}

BOOST_AUTO_TEST_CASE(token_files) {
    const auto host = made_up_host(
        {{"/run/token", "secret\n"}, {"/crlf", "secret\r\n"}, {"/empty", "\n"}, {"/two", "a\nb\n"}});
    const auto with = [&host](const char* path) {
        return load({{"HOME", "/h"}, {"SANDBOXD_TOKEN_FILE", path}}, std::nullopt, {}, host);
    };
    BOOST_TEST(values_of(with("/run/token")).token == "secret");
    BOOST_TEST((with("/run/token")->sources[index_of("token")] == source::environment));
    BOOST_TEST(values_of(with("/crlf")).token == "secret");
    BOOST_TEST(message_of(with("/empty")) ==
               "SANDBOXD_TOKEN_FILE: '/empty' is empty: the token must not be empty");
    BOOST_TEST(message_of(with("/two")) ==
               "SANDBOXD_TOKEN_FILE: '/two' holds more than one token of one line");
    BOOST_TEST(message_of(with("/none")) ==
               "SANDBOXD_TOKEN_FILE: '/none' can't be read: No such file or directory");
    BOOST_TEST(message_of(load_from({{"TOKEN_FILE", "/run/token"}}, host)) ==
               "SANDBOXD_TOKEN_FILE: token and token_file are both set; set one of them");
    BOOST_TEST(values_of(load_from({{"TOKEN", ""}, {"TOKEN_FILE", "/run/token"}}, host)).token == "secret");
}

BOOST_AUTO_TEST_CASE(tls_needs_both_files_and_both_readable) {
    const auto host = made_up_host({{"/c", "x"}, {"/k", "y"}, {"/e", ""}});
    BOOST_TEST((values_of(load_from({{"TLS_CERT", "/c"}, {"TLS_KEY", "/k"}}, host)).tls_key == "/k"));
    BOOST_TEST(message_of(load_from({{"TLS_CERT", "/c"}}, host)) ==
               "SANDBOXD_TLS_CERT: tls_cert and tls_key must be set together");
    BOOST_TEST(message_of(load_from({{"TLS_KEY", "/k"}}, host)) ==
               "SANDBOXD_TLS_KEY: tls_cert and tls_key must be set together");
    BOOST_TEST(message_of(load_from({{"TLS_CERT", "/c"}, {"TLS_KEY", "/no"}}, host)) ==
               "SANDBOXD_TLS_KEY: '/no' can't be read: No such file or directory");
    BOOST_TEST(message_of(load_from({{"TLS_CERT", "/e"}, {"TLS_KEY", "/k"}}, host)) ==
               "SANDBOXD_TLS_CERT: '/e' is empty");
}

BOOST_AUTO_TEST_CASE(the_state_directory) {
    auto root = made_up_host();
    root.is_root = true;
    BOOST_TEST(values_of(load_from({}, root)).state_dir == "/var/lib/sandboxd");
    const environment xdg{{"SANDBOXD_TOKEN", "t"}, {"HOME", "/h"}, {"XDG_STATE_HOME", "/x"}};
    BOOST_TEST(values_of(load(xdg, std::nullopt, {}, made_up_host())).state_dir == "/x/sandboxd");
    const environment relative{{"SANDBOXD_TOKEN", "t"}, {"HOME", "/h"}, {"XDG_STATE_HOME", "x"}};
    BOOST_TEST(values_of(load(relative, std::nullopt, {}, made_up_host())).state_dir ==
               "/h/.local/state/sandboxd");
    BOOST_TEST(message_of(load({{"SANDBOXD_TOKEN", "t"}}, std::nullopt, {}, made_up_host())) ==
               "SANDBOXD_STATE_DIR: neither XDG_STATE_HOME nor HOME is set; name a state directory");
    BOOST_TEST(values_of(load_from({{"STATE_DIR", "s"}, {"WORKSPACE_ROOT", "w"}})).state_dir == "/here/s");
    BOOST_TEST((values_of(load_from({{"WORKSPACE_ROOT", "w"}})).workspace_root == "/here/w"));
}

BOOST_AUTO_TEST_CASE(flags_win_over_file_and_environment) {
    flags given;
    given.host = "::1";
    given.port = 0;
    given.backend = "oci";
    const auto got = load_from({{"HOST", "0.0.0.0"}, {"PORT", "9"}}, made_up_host(), given);
    BOOST_TEST(values_of(got).host == "::1");
    BOOST_TEST(values_of(got).port == 0);
    BOOST_TEST((got->sources[index_of("host")] == source::flag));
    BOOST_TEST((got->sources[index_of("backend")] == source::flag));
    BOOST_TEST((got->sources[index_of("token")] == source::environment));
    BOOST_TEST((got->sources[index_of("cpus")] == source::fallback));
    given.backend = "dokcer";
    BOOST_TEST(message_of(load_from({}, made_up_host(), given)) ==
               "--backend='dokcer' is not valid: use one of docker, oci. Did you mean 'docker'?");
}

BOOST_AUTO_TEST_SUITE_END()
