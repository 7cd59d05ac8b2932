"""The lines of the contract's list of what the reference's tests assert, what each is, and who answers for it.

A line is observable over HTTP (H), through a client (K), with a container daemon (D), or only from inside (U). Every line
that is not U has a test of its own here, named after it, or stands in ELSEWHERE with the place or the reason.
`python3 tests/conformance/lines.py` prints the table."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Area: (last line, the lines that are U). Lines that do not exist are in MISSING.
AREAS = {
    "8.1": (285, "1-5 13 24 44 45 61-69 71 75 91 99 107 113 121 122 124 131 132 135 159-162 175 177-181 185 186 188 193 "
                 "194 201 202 204 205 210 220 225 226 230 236 237 242 244 246-248 257 262 264 271 276 283-285"),
    "8.2": (32, "14 30"),
    "8.3": (25, "4 10 12-17 19 25"),
    "N": (113, "3-5 89 95"),
}
MISSING = {"N": "9 15-19 28 29 39 47-49 59 71-79 105-109"}

BUILDS = "tests/service/test_builds.py, on both backends"
PULLS = "tests/service/test_docker_images.py and test_images_oci.py: a pass that pulls and builds"
SANDBOXES = "one kind of sandbox here, always asynchronous: the lines on operations, usage, purge and reuse cover it"
EMBEDDING = "tests/embedding, by a program with a sandbox of its own"

ELSEWHERE = {
    "8.1": {
        "169-171": "tests/config, per-runtime ceilings; shown by 8.2 line 3", "172 173": BUILDS,
        "190-192 196": BUILDS, "195": PULLS, "272": BUILDS,
        "233": "the test of 231", "266-270": SANDBOXES,
        "275": "the service tests start as root, which may always chown",
        "283-285": "the client's own behaviour",
    },
    "8.2": {"30": "tests/session"},
    "8.3": {"22": EMBEDDING},
    "N": {
        "82": "the test of line 108 of 8.1 for a stopped one", "102": "takes longer than the suite may",
        "69": "the service tests start as root, which may read everything", "110-112": BUILDS, "36": "needs a file system of its own size",
    },
}


def numbers(text):
    found = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def lines(area):
    last, _ = AREAS[area]
    return [n for n in range(1, last + 1) if n not in numbers(MISSING.get(area, ""))]


def internal(area):
    return numbers(AREAS[area][1])


def elsewhere(area):
    return {n: text for those, text in ELSEWHERE[area].items() for n in numbers(those)}


def tests():
    """(area, line) to the names of its tests. `test_8_1_039_040_words` covers lines 39 and 40."""
    found = {}
    for path in sorted(HERE.glob("*/test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                match = re.match(r"test_(8_\d|n)((?:_\d{3})+)_[a-z]", node.name)
                if match:
                    area = match.group(1).upper().replace("_", ".")
                    for number in match.group(2).strip("_").split("_"):
                        found.setdefault((area, int(number)), []).append(f"{path.parent.name}/{path.name}::{node.name}")
    return found


def table():
    """Rows of (area, line, what answers for it)."""
    covered = tests()
    rows = []
    for area in AREAS:
        for number in lines(area):
            by = covered.get((area, number))
            text = ", ".join(by) if by else elsewhere(area).get(number)
            if text is None and number in internal(area):
                text = "from inside only: unit and start-up tests"
            rows.append((area, number, text))
    return rows


if __name__ == "__main__":
    for area, number, text in table():
        print(f"{area}.{number:<4} {text}")
