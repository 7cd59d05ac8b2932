"""The newest clients' way to files: `files/*` over one connection, and a large write by shell scripts where those can't
be used, beside the reference and beside the same scripts run by a bare program in the sandbox."""

import json
import subprocess
from pathlib import Path

from files import CONTENT
from probes import MIB, floor, in_turns, load, p50, put_floor, replay, request, run_request
from table import at_most, faster

CLIENT = Path(__file__).with_name("shell_client.py")


def requests_of(session):
    session.request("POST", "/files/write?path=/workspace/native.txt", CONTENT.encode(),
                    {"Content-Type": "application/octet-stream"})
    return {name: request(session, f"files/{name}", {"path": path}) for name, path in
            (("read", "/workspace/native.txt"), ("stat", "/workspace/native.txt"), ("list", "/workspace"))}


def measure(service, table, quick, theirs):
    with service.open() as session, theirs.open() as other:
        ours, others = requests_of(session), requests_of(other)
        for name in ours:
            load(service, ours[name], 1, 0.1)
            load(theirs, others[name], 1, 0.1)
            seen = in_turns(6 if quick else 15, ours=lambda: p50(service, ours[name], 0.1),
                            reference=lambda: p50(theirs, others[name], 0.2))
            table.add(f"files/{name}, one connection, p50", "ms", **seen, targets=[faster(10)])


def client_write(python, service, size, record=None):
    """Seconds that the client of release 0.2.37 takes for a write of `size` bytes by its shell scripts; `record` is where
    it leaves them."""
    done = subprocess.run([python, CLIENT, f"http://127.0.0.1:{service.port}", service.token, str(size),
                           *([record] if record else [])], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"the client of the reference: {done.stderr[-2000:]}\n{service.tail()}")
    return json.loads(done.stdout)["seconds"]


def shell_write(service, root, table, quick, theirs, python):
    record = service.directory / "scripts.json"
    size = MIB if quick else 9 * MIB
    mine = min(client_write(python, service, size, record) for _ in range(2))
    table.add(f"write of {size // MIB} MiB by the client's shell scripts", "s", mine,
              reference=client_write(python, theirs, size), targets=[faster(10)])
    commands = json.loads(record.read_text())
    with service.open() as session:
        put_floor(session)
        words = "".join(f"{len(argv)}\0" + "".join(word + "\0" for word in argv) for argv in commands)
        (root / session.id / "workspace/scripts").write_text(words)
        requests = [run_request(session, argv, id=f"{number:032x}") for number, argv in enumerate(commands)]
        seen = in_turns(3 if quick else 7, floor=lambda: floor(session, "--scripts", "/workspace/scripts")["seconds"],
                        ours=lambda: replay(service, requests))
    table.add(f"  its {len(commands)} scripts alone, in turn", "s", **seen, name="a bare program",
              targets=[at_most(1.5, name="a bare program")])
