"""The file operations beside the spawn floor, GNU grep and find, all in one sandbox and one run."""

import base64
import json
import statistics

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


def request(session, operation, **body):
    text = json.dumps(body).encode()
    return (f"POST /sessions/{session.id}/{operation} HTTP/1.1\r\nHost: localhost\r\nX-Sandbox-Token: {session.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n").encode() + text


def small(tools, service, session, table, quick):
    """4 KiB: one caller, p50, in turns with the floor."""
    content = "".join(f"{n:063}\n" for n in range(64))
    session.exec("cat >small.txt <<'END'\n" + content.rstrip("\n") + "\nEND")
    requests = {
        "read": request(session, "read", path="small.txt"),
        "write": request(session, "write", path="small.txt",
                         content_b64=base64.b64encode(content.encode()).decode()),
        "exists": request(session, "exists", path="small.txt"),
        "ls": request(session, "ls", path="."),
        # The old text is there again afterwards.
        "edit": request(session, "edit", path="small.txt", old_string=f"{30:063}", new_string=f"{30:063}"),
    }
    rounds = 2 if quick else 5
    base = statistics.median(tools.floor(session, 1, 0.5)["p50_us"] for _ in range(rounds))
    target = max(400, 0.4 * base)
    for name, what in requests.items():
        tools.load(service, what, 1, 0.2)
        ours = statistics.median(tools.load(service, what, 1, 0.5)["p50_us"] for _ in range(rounds))
        table.add(f"{name}, 4 KiB, p50", f"{ours / 1000:.2f} ms", f"{base / 1000:.2f} ms",
                  target=f"<= {target / 1000:.2f} ms", ok=ours <= target)


def searches(tools, service, session, table, quick):
    session.exec("python3 - <<'END'\n" + MAKE_TREE + "\nEND")
    pairs = {
        "grep of a literal, 10 000 files": (request(session, "grep", pattern="needle", path="tree"),
                                            "grep -rn needle tree >/dev/null", "GNU grep"),
        "glob **/*.py, 10 000 files": (request(session, "glob", pattern="**/*.py", path="tree"),
                                       "find tree -type f -name '*.py' >/dev/null", "find"),
    }
    for name, (what, command, base_name) in pairs.items():
        ours, base = [], []
        for _ in range(3 if quick else 9):
            ours.append(tools.load(service, what, 1, 0.3)["p50_us"] / 1000)
            base.append(session.exec(command)["duration_ms"])
        mine, theirs = statistics.median(ours), statistics.median(base)
        table.add(name, f"{mine:.1f} ms", f"{theirs:.1f} ms", base_name, f"<= 1.5 x {base_name}", mine <= 1.5 * theirs)


def measure(tools, service, table, quick):
    with service.open() as session:
        tools.put_floor(session)
        small(tools, service, session, table, quick)
        searches(tools, service, session, table, quick)
