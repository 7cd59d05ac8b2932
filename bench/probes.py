"""What the parts of bench/run measure with: requests, the load program, the floor's program in a sandbox, and turns."""

import base64
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/release/sandboxd"
MIB = 1 << 20
FRESH = "#" * 32  # the load program puts a number of its own here
STARTED = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", file=sys.stderr, flush=True)


def request(session, operation, body, method="POST", kind="application/json"):
    """The bytes of a request on a session, with the session's token."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"{method} /sessions/{session.id}/{operation} HTTP/1.1\r\nHost: localhost\r\nX-Sandbox-Token: {session.token}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data


def exec_request(session, command="true"):
    return request(session, "exec", {"command": command})


def run_request(session, argv=("sh", "-c", "true"), id=FRESH):
    return request(session, "run", {"argv": list(argv), "env": {}, "timeout_seconds": None, "run_id": id})


HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def load(service, what, callers, seconds):
    """What bench/load.cpp says about this request."""
    done = subprocess.run([ROOT / "build/bench/load", str(service.port), str(callers), str(seconds)], input=what,
                          capture_output=True, timeout=seconds + 90)
    if done.returncode != 0:
        raise SystemExit(f"load: {done.stderr.decode()}\n{service.tail()}")
    return json.loads(done.stdout)


def p50(service, what, seconds, callers=1):
    """ms"""
    return load(service, what, callers, seconds)["p50_us"] / 1000


def replay(service, requests):
    """Seconds that these requests take on one connection, one after the other."""
    done = subprocess.run([ROOT / "build/bench/load", "--replay", str(service.port)], capture_output=True, timeout=300,
                          input=b"".join(str(len(one)).encode() + b"\n" + one for one in requests))
    if done.returncode != 0:
        raise SystemExit(f"load: {done.stderr.decode()}\n{service.tail()}")
    return json.loads(done.stdout)["seconds"]


def put_floor(session):
    """Hands the floor's program over to the sandbox."""
    data = base64.b64encode((ROOT / "build/bench/floor").read_bytes()).decode()
    session.sh(": >/tmp/floor.b64")
    for start in range(0, len(data), 60_000):
        session.sh(f"printf %s '{data[start:start + 60_000]}' >>/tmp/floor.b64")
    session.sh("base64 -d </tmp/floor.b64 >/tmp/floor; chmod 755 /tmp/floor; rm /tmp/floor.b64")


def floor(session, *arguments):
    """What bench/floor.cpp says, run in the sandbox."""
    return json.loads(session.sh(" ".join(["/tmp/floor", *map(str, arguments)])))


def floor_p50(session, seconds):
    """ms"""
    return floor(session, 1, seconds)["p50_us"] / 1000


def in_turns(rounds, **measures):
    """The median of each measure; what happens on the machine meanwhile happens to all of them."""
    seen = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            seen[name].append(measure())
    return {name: statistics.median(values) for name, values in seen.items()}
