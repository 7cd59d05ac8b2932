"""No line of the contract is missing silently, and what is not there yet names tests that exist."""

import lines
from pending import PENDING


def test_every_line_has_a_test_or_a_reason():
    assert [(area, number) for area, number, text in lines.table() if not text] == []


def test_every_test_is_named_after_a_line_that_exists():
    unknown = [(area, number) for area, number in lines.tests() if number not in lines.lines(area)]
    assert unknown == []


def test_a_line_with_a_reason_has_no_test():
    covered = lines.tests()
    assert [(area, number) for area in lines.AREAS for number in lines.elsewhere(area) if (area, number) in covered] == []


def test_what_is_pending_exists():
    names = {name.split("::")[-1] for by in lines.tests().values() for name in by}
    names |= {name for name in PENDING if "::" in name}  # the shim looks after the reference's own
    assert {name.split("[")[0] for name in PENDING} - names == set()
