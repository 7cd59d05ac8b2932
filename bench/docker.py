"""bench/run's part about Docker: a command over both ways to an agent, beside the floor and beside the daemon's own exec."""

import http.client
import json
import socket
import statistics
import threading
import time

from harness.daemon import Daemon
from harness.service import ROOT, Service, free_port


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


def engine_execs(daemon, container, callers, seconds):
    """(p50 in ms, rate per second)"""
    spent, until = [], time.perf_counter() + seconds

    def caller():
        while time.perf_counter() < until:
            begin = time.perf_counter()
            engine_exec(daemon, container)
            spent.append((time.perf_counter() - begin) * 1000)

    begin = time.perf_counter()
    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.median(spent), len(spent) / (time.perf_counter() - begin)


def measure(bench, scratch, table, quick):
    port = free_port()
    daemon = Daemon("--live-restore", "-H", f"tcp://127.0.0.1:{port}")
    try:
        daemon.start()
        daemon.load(scratch / "box", "box")
        with_seconds = 1 if quick else 3
        for way, host, most in (("dialled", daemon.host, 1.5), ("attached", f"tcp://127.0.0.1:{port}", 2.5)):
            service = Service(ROOT / "build/release/sandboxd", backend="docker", runtimes="box=box",
                              environment={"DOCKER_HOST": host})
            try:
                service.start()
                one_way(bench, daemon, service, table, way, most, with_seconds, quick)
                service.stop()
            finally:
                service.discard()
    finally:
        daemon.discard()


def one_way(bench, daemon, service, table, way, most, seconds, quick):
    opens = []
    for _ in range(3 if quick else 10):
        begin = time.perf_counter()
        session = service.open()
        session.sh("true")
        opens.append((time.perf_counter() - begin) * 1000)
        session.close()
    table.add(f"docker ({way}), open and first command, p50", f"{statistics.median(opens[1:]):.0f} ms")
    with service.open() as session:
        uuid = (service.state / "uuid").read_text().strip()
        (container,) = [c["Id"] for c in daemon.containers() if c["Labels"].get("sandboxd.service") == uuid]
        bench.put_floor(session)
        request = bench.exec_request(session, "true")
        bench.load(service, request, 1, 0.5)
        ours, base = [], []
        for _ in range(3 if quick else 7):
            base.append(bench.floor(session, 1, 1)["p50_us"])
            ours.append(bench.load(service, request, 1, 1)["p50_us"])
        raw, _ = engine_execs(daemon, container, 1, seconds)
        mine, least = statistics.median(ours), statistics.median(base)
        table.add(f"docker ({way}), exec true, p50", f"{mine / 1000:.2f} ms", f"{least / 1000:.2f} ms",
                  target=f"<= {most} x floor", ok=mine <= most * least)
        table.add("  ratio; the daemon's own exec", f"{mine / least:.2f}", f"{raw:.0f} ms", "docker exec")
        for callers in (1, 16):
            least = bench.floor(session, callers, seconds)["per_second"]
            mine = bench.load(service, request, callers, seconds)["per_second"]
            _, raw = engine_execs(daemon, container, callers, seconds)
            table.add(f"docker ({way}), exec true, {callers} callers", f"{mine:.0f}/s", f"{least:.0f}/s",
                      target=">= 0.7 x floor", ok=mine >= 0.7 * least)
            table.add("  ratio; the daemon's own exec", f"{mine / least:.2f}", f"{raw:.1f}/s", "docker exec")
