"""docs/hard-cases.md is complete and true: no row is missing silently, every test it names is there."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "hard-cases.md"

# The rows of the areas that this release answers for in full.
NUMBERS = {
    "B1": "01 02 04 05 07 08 09 10 11 12 14 15 16 17 18 19 21",
    "B2": "01 03 04 05 06 07 08 09 10 11 12 13 15 16 18 19 21 22 23 24 25 27 28",
    "B3": "01 02 03 04 05 07 08 09 10 12 13 14 16 18 19 20 21 22 24",
    "B4": "02 03 04 05 06 07 09 10 12 13 14 15 16 17 18 19 20 21 23 24",
    "B5": "01 02 03 04 05 06 07 08 09 10 12 14 15 17 18 19 21 22 23 24 26 27 28 29 31 32 33 35 36 37 38 39 40 41 43 44 45 47 "
          "48 49 50",
    "B8": "01 03 05 07 08 09 10 12",
}


def table():
    """Row to what the last column says."""
    rows = {}
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if re.fullmatch(r"B\d-\d\d", cells[0]):
            assert cells[0] not in rows, f"{cells[0]} is there twice"
            rows[cells[0]] = cells[-1]
    return rows


def marked():
    """Test to the rows its marker names."""
    found = {}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                rows = {argument.value for mark in node.decorator_list if isinstance(mark, ast.Call)
                        and ast.unparse(mark.func) == "pytest.mark.row" for argument in mark.args}
                if rows:
                    found[f"{path.name}::{node.name}"] = rows
    return found


def test_every_row_is_in_the_table():
    rows = {f"{area}-{number}" for area, numbers in NUMBERS.items() for number in numbers.split()}
    assert rows - set(table()) == set()


def test_every_row_has_tests_or_a_reason():
    for row, text in table().items():
        if text.startswith("none"):
            assert len(text) > 20, f"{row} has no reason"
        else:
            assert re.fullmatch(r"\w+\.py::\w+(, \w+\.py::\w+)*", text), f"{row}: {text}"


def test_the_table_and_the_markers_agree():
    named = {(test, row) for row, text in table().items() if not text.startswith("none") for test in text.split(", ")}
    carried = {(test, row) for test, rows in marked().items() for row in rows}
    assert named == carried
