"""The file operations beside the spawn floor, GNU grep and find, all in one sandbox and one run."""

import base64

from probes import floor, floor_p50, in_turns, load, p50, put_floor, request
from table import at_most, below

MAKE_TREE = r"""
import os
for d in range(100):
    os.makedirs(f"tree/{d:02}/src", exist_ok=True)
    for f in range(100):
        name = f"tree/{d:02}/src/{f:02}." + ("py" if f % 2 else "txt")
        lines = [f"line {n} of file {f} in directory {d}" for n in range(40)]
        if f == 50:
            lines[20] += " needle"
        with open(name, "w") as out:
            out.write("\n".join(lines) + "\n")
"""


CONTENT = "".join(f"{n:063}\n" for n in range(64))  # 4 KiB


def small_requests(session):
    """One request for each operation on a file of 4 KiB, small.txt; the edit leaves it as it was."""
    session.write("small.txt", CONTENT)
    return {
        "read": request(session, "read", {"path": "small.txt"}),
        "write": request(session, "write", {"path": "small.txt",
                                            "content_b64": base64.b64encode(CONTENT.encode()).decode()}),
        "exists": request(session, "exists", {"path": "small.txt"}),
        "ls": request(session, "ls", {"path": "."}),
        "edit": request(session, "edit", {"path": "small.txt", "old_string": f"{30:063}", "new_string": f"{30:063}"}),
    }


def small(service, session, table, quick):
    requests = small_requests(session)
    for what in requests.values():
        load(service, what, 1, 0.1)
    seen = in_turns(4 if quick else 10, floor=lambda: floor_p50(session, 0.3),
                    **{name: lambda what=what: p50(service, what, 0.2) for name, what in requests.items()})
    target = max(0.4, 0.4 * seen["floor"])
    table.add("a spawn, the floor of this table's targets, p50", "ms", None, floor=seen["floor"])
    # Not in turn with the others: ext4 passes over what was deleted within a minute, so each write makes the next dearer.
    table.add("a write and a rename by a bare program, p50", "ms", None,
              floor=floor(session, "--write", "bare.txt", 0.4)["p50_us"] / 1000)
    for name in requests:
        table.add(f"{name}, 4 KiB, p50", "ms", seen[name],
                  targets=[below(target, "ms", "" if target == 0.4 else " (0.4 x a spawn)")])


def searches(service, session, table, quick):
    session.exec("python3 - <<'END'\n" + MAKE_TREE + "\nEND")
    pairs = {
        "grep of a literal, 10 000 files": (request(session, "grep", {"pattern": "needle", "path": "tree"}),
                                            "grep -rn needle tree >/dev/null", "GNU grep"),
        "glob **/*.py, 10 000 files": (request(session, "glob", {"pattern": "**/*.py", "path": "tree"}),
                                       "find tree -type f -name '*.py' >/dev/null", "find"),
    }
    for name, (what, command, base) in pairs.items():
        seen = in_turns(5 if quick else 11, ours=lambda: p50(service, what, 0.2),
                        floor=lambda: session.exec(command)["duration_ms"])
        table.add(name, "ms", **seen, name=base, targets=[at_most(1.5, name=base)])


def measure(service, table, quick):
    with service.open() as session:
        put_floor(session)
        small(service, session, table, quick)
        searches(service, session, table, quick)
