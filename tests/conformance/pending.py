"""Tests of what this service does not do yet: what is missing, to the tests that show it. Each of them must fail (a strict
expected failure): take it out here when it starts to pass. A name with a case in brackets stands for that case only;
`reference-g1::` and the like stand before those of a release of the reference."""

MISSING = {
    "a run with the id of one that has ended": [
        "reference-g3::test_operations_are_recorded_in_order",
        "reference-g3::test_after_returns_only_newer_entries",
    ],
    "a sandbox_uid of 0": [
        "reference-g1::test_it_is_visible_in_the_policy",
        "reference-g3::test_it_is_visible_in_the_policy",
    ],
    "opening a session whose container was kept": [
        "test_8_1_108_what_was_installed_is_kept",
        "test_8_1_234_238_one_stopped_recently_or_without_a_ttl_is_kept",
    ],
    "the dashboard": [
        "test_8_1_010_the_dashboard_is_one_page",
        "test_8_1_011_the_index_advertises_the_dashboard",
        "test_8_1_012_the_dashboard_needs_no_token_and_its_calls_do",
        "test_n_113_the_dashboard_speaks_run",
        "reference-g1::test_ui_is_served_when_enabled",
        "reference-g3::test_ui_is_served_when_enabled",
        "reference-g1::test_index_advertises_the_ui_when_enabled",
        "reference-g3::test_index_advertises_the_ui_when_enabled",
        "reference-g1::test_ui_needs_no_token_but_its_api_calls_do",
        "reference-g3::test_ui_needs_no_token_but_its_api_calls_do",
    ],
}

PENDING = {test: what for what, tests in MISSING.items() for test in tests}
