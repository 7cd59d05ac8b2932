"""The part of bench/run under a Docker daemon: both ways to an agent, beside the floor, the daemon's own exec and releases
of the reference service on the same daemon and image."""

import http.client
import json
import shutil
import socket
import threading
import time

import files
import native
import oci
from harness import rootfs
from harness.daemon import Daemon
from harness.service import Service, free_port
from probes import (PROGRAM, exec_request, floor, floor_p50, in_turns, load, p50, put_floor, run_request, say)
from reference import Reference
from table import at_least, at_most

CALLERS = (1, 16)


class _Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("docker", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def engine_exec(daemon, container):
    """One command by the daemon's own exec, as `docker exec` does it: create, start and read, ask for its code."""
    calls = _Local(str(daemon.socket))
    headers = {"Content-Type": "application/json"}
    calls.request("POST", f"/containers/{container}/exec", headers=headers,
                  body=json.dumps({"AttachStdout": True, "AttachStderr": True, "Cmd": ["sh", "-c", "true"]}))
    id = json.loads(calls.getresponse().read())["Id"]
    stream = _Local(str(daemon.socket))
    stream.request("POST", f"/exec/{id}/start", headers=headers, body=json.dumps({"Detach": False, "Tty": False}))
    stream.getresponse().read()
    stream.close()
    calls.request("GET", f"/exec/{id}/json")
    code = json.loads(calls.getresponse().read())["ExitCode"]
    calls.close()
    assert code == 0, code


def engine_p50(daemon, container):
    """ms, of three"""
    spent = []
    for _ in range(3):
        begin = time.perf_counter()
        engine_exec(daemon, container)
        spent.append((time.perf_counter() - begin) * 1000)
    return sorted(spent)[1]


def engine_rate(daemon, container, callers, seconds):
    """Commands a second."""
    begin = time.perf_counter()
    done = []

    def caller():
        while time.perf_counter() - begin < seconds:
            engine_exec(daemon, container)
            done.append(None)

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(done) / (time.perf_counter() - begin)


def container_of(daemon, service):
    """The container of the one session that is open on a service of ours."""
    uuid = (service.state / "uuid").read_text().strip()
    (container,) = [c["Id"] for c in daemon.containers() if c["Labels"].get("sandboxd.service") == uuid]
    return container


def commands(daemon, service, table, quick, most, theirs):
    """`theirs` is an open session of the reference and its service, or None."""
    with service.open() as session:
        container = container_of(daemon, service)
        put_floor(session)
        # The reference's newest release has `run`, no `exec`: like is compared with like.
        exec_, run = exec_request(session), run_request(session)
        load(service, exec_, 1, 0.3)
        beside = {}
        if theirs:
            their_service, their_session = theirs
            their_run = run_request(their_session)
            beside["reference"] = lambda: p50(their_service, their_run, 0.5)
        seen = in_turns(3 if quick else 7, floor=lambda: floor_p50(session, 0.4), ours=lambda: p50(service, exec_, 0.4),
                        run=lambda: p50(service, run, 0.4), engine=lambda: engine_p50(daemon, container), **beside)
        run_time = seen.pop("run")
        their_time = seen.pop("reference", None)
        table.add("exec true, one caller, p50", "ms", **seen, targets=[at_most(most)])
        table.add("run true, one caller, p50", "ms", run_time, floor=seen["floor"], reference=their_time)
        for callers in CALLERS:
            seconds = 0.5 if quick else 1
            if theirs:
                beside["reference"] = lambda: load(their_service, their_run, callers, seconds)["per_second"]
            seen = in_turns(2 if quick else 5, floor=lambda: floor(session, callers, seconds)["per_second"],
                            ours=lambda: load(service, exec_, callers, seconds)["per_second"],
                            run=lambda: load(service, run, callers, seconds)["per_second"],
                            engine=lambda: engine_rate(daemon, container, callers, seconds), **beside)
            run_rate = seen.pop("run")
            their_rate = seen.pop("reference", None)
            many = f"{callers} caller{'s' if callers > 1 else ''}"
            table.add(f"exec true, {many}", "/s", **seen, targets=[at_least(0.7)])
            table.add(f"run true, {many}", "/s", run_rate, floor=seen["floor"], reference=their_rate,
                      targets=[at_least(20, "reference")] if theirs else [])


def opening(service, table, quick, theirs):
    beside = {"reference": lambda: theirs.first_command()} if theirs else {}
    oci.first_command(service)
    seen = in_turns(2 if quick else 6, ours=lambda: oci.first_command(service), **beside)
    table.add("open and first command, p50", "ms", **seen)


def operations(service, table, quick, theirs):
    """The nine operations beside the last release of the reference that has them."""
    with service.open() as session, theirs.service.open() as other:
        ours, others = files.small_requests(session), files.small_requests(other)
        ours["exec"], others["exec"] = exec_request(session), exec_request(other)
        for name in ours:
            rounds = 2 if quick else 5
            seen = in_turns(rounds, ours=lambda: p50(service, ours[name], 0.15),
                            reference=lambda: p50(theirs.service, others[name], 0.3))
            table.add(f"{name}, p50", "ms", **seen)


def measure(scratch, table, quick, python):
    """`python` tells the interpreter that has a generation of the reference; None where there is none."""
    port = free_port()
    daemon = Daemon("--live-restore", "-H", f"tcp://127.0.0.1:{port}")
    try:
        say("docker: a daemon and an image of its own")
        daemon.start()
        daemon.load(rootfs.debian(scratch / "debian", ("dash", "coreutils", "findutils", "grep")), "bench")
        newest = Reference(python("g3"), daemon, scratch / "theirs") if python else None
        try:
            for way, host, most in (("the agent dials", daemon.host, 1.5), ("attached", f"tcp://127.0.0.1:{port}", 2.5)):
                theirs = None if quick and way == "attached" else newest
                table.section(f"docker, {way}" + ("; reference: 0.2.37" if theirs else ""))
                one_way(daemon, host, scratch / way.replace(" ", "-"), table, quick, most, theirs, way != "attached" and python)
        finally:
            if newest:
                newest.discard()
        if python:
            say("docker: the nine operations, and release 0.2.29")
            older = Reference(python("g1"), daemon, scratch / "theirs-29")
            service = ours(daemon.host, scratch / "nine")
            try:
                service.start()
                table.section("docker, the nine operations; reference: 0.2.29, the last release that has them")
                operations(service, table, quick, older)
                service.stop()
            finally:
                service.discard()
                older.discard()
    finally:
        daemon.discard()
        shutil.rmtree(scratch / "debian", ignore_errors=True)


def ours(host, root, **settings):
    root.mkdir()
    return Service(PROGRAM, backend="docker", runtimes="box=bench", environment={"DOCKER_HOST": host}, workspace_root=root,
                   **settings)


def one_way(daemon, host, root, table, quick, most, newest, python):
    service = ours(host, root)
    try:
        service.start()
        say(f"docker ({root.name}): commands")
        opening(service, table, quick, newest)
        if newest:
            with newest.service.open() as session:
                commands(daemon, service, table, quick, most, (newest.service, session))
        else:
            commands(daemon, service, table, quick, most, None)
        if python:
            say(f"docker ({root.name}): files/*")
            native.measure(service, table, quick, newest.service)
            say(f"docker ({root.name}): a large write by shell scripts")
            native.shell_write(service, root, table, quick, newest.service, python("g3"))
            say(f"docker ({root.name}): memory")
            oci.memory(service, table, 5 if quick else 20, processes=(b"sandboxd-agent", b"containerd-shim"))
        service.stop()
    finally:
        service.discard()
