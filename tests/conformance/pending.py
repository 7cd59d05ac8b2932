"""Tests of what this service does not do yet: what is missing, to the tests that show it. Each of them must fail (a strict
expected failure): take it out here when it starts to pass. A name with a case in brackets stands for that case only;
`reference-g1::` and the like stand before those of a release of the reference."""

MISSING = {
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
