"""The measurements behind bench/run."""

import argparse
import base64
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/service"))
import docker  # noqa: E402
import files as file_operations  # noqa: E402
from harness import rootfs  # noqa: E402
from harness.service import Service  # noqa: E402

MIB = 1 << 20


def load(service, request, callers, seconds):
    """What bench/load.cpp says about this request."""
    done = subprocess.run([ROOT / "build/bench/load", str(service.port), str(callers), str(seconds)], input=request,
                          capture_output=True, timeout=seconds + 60)
    if done.returncode != 0:
        raise SystemExit(f"load: {done.stderr.decode()}\n{service.tail()}")
    return json.loads(done.stdout)


def exec_request(session, command):
    body = json.dumps({"command": command}).encode()
    return (f"POST /sessions/{session.id}/exec HTTP/1.1\r\nHost: localhost\r\nX-Sandbox-Token: {session.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def put_floor(session):
    """Hands the floor's program over to the sandbox."""
    data = base64.b64encode((ROOT / "build/bench/floor").read_bytes()).decode()
    session.sh(": >/tmp/floor.b64")
    for start in range(0, len(data), 60_000):
        session.sh(f"printf %s '{data[start:start + 60_000]}' >>/tmp/floor.b64")
    session.sh("base64 -d </tmp/floor.b64 >/tmp/floor; chmod 755 /tmp/floor; rm /tmp/floor.b64")


def floor(session, callers, seconds):
    return json.loads(session.sh(f"/tmp/floor {callers} {seconds}"))


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, ours, base=None, base_name="floor", target=None, ok=None):
        """Values are texts; `ok` is whether the target was met, None where there is none."""
        self.rows.append((what, ours, f"{base} ({base_name})" if base else "", target or "",
                          {True: "ok", False: "MISS", None: ""}[ok]))

    def show(self):
        heads = ("what", "ours", "beside", "target", "")
        widths = [max(len(str(row[i])) for row in [heads, *self.rows]) for i in range(len(heads))]
        for row in [heads, tuple("-" * width for width in widths), *self.rows]:
            print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def sequential(service, table, quick):
    """`exec true` over HTTP beside the same spawn by a bare program in the same sandbox, in turns."""
    with service.open() as session:
        put_floor(session)
        request = exec_request(session, "true")
        load(service, request, 1, 0.5)
        ours, base = [], []
        for _ in range(3 if quick else 7):
            base.append(floor(session, 1, 1))
            ours.append(load(service, request, 1, 1))
        middle = lambda rows, key: statistics.median(row[key] for row in rows)
        ratio = middle(ours, "p50_us") / middle(base, "p50_us")
        table.add("exec true, one caller, p50", f"{middle(ours, 'p50_us') / 1000:.2f} ms",
                  f"{middle(base, 'p50_us') / 1000:.2f} ms", target="<= 1.3 x floor", ok=ratio <= 1.3)
        table.add("  ratio", f"{ratio:.2f}")
        table.add("exec true, one caller, p99", f"{middle(ours, 'p99_us') / 1000:.2f} ms",
                  f"{middle(base, 'p99_us') / 1000:.2f} ms")


def throughput(service, table, quick):
    with service.open() as session:
        put_floor(session)
        request = exec_request(session, "true")
        for callers in (1, 4, 16, 64):
            seconds = 1 if quick else 3
            base = floor(session, callers, seconds)
            ours = load(service, request, callers, seconds)
            table.add(f"exec true, {callers} callers", f"{ours['per_second']:.0f}/s", f"{base['per_second']:.0f}/s")
            table.add("  ratio, p99", f"{ours['per_second'] / base['per_second']:.2f}, {ours['p99_us'] / 1000:.1f} ms",
                      f"p99 {base['p99_us'] / 1000:.1f} ms")


def health(service, table, quick):
    idle = load(service, HEALTHZ, 1, 1 if quick else 2)
    busiest = load(service, HEALTHZ, 16, 1 if quick else 2)
    with service.open() as session, concurrent.futures.ThreadPoolExecutor(64) as pool:
        sleeping = [pool.submit(session.exec, "sleep 5") for _ in range(64)]
        time.sleep(1)
        ours = load(service, HEALTHZ, 1, 3)
        for task in sleeping:
            task.result()
    table.add("healthz beside 64 x sleep 5, p99", f"{ours['p99_us'] / 1000:.2f} ms", f"{idle['p99_us'] / 1000:.2f} ms",
              "idle", "< 5 ms", ours["p99_us"] < 5000)
    table.add("healthz, 16 callers", f"{busiest['per_second']:.0f}/s")


def files(service, table, quick):
    file_operations.measure(sys.modules[__name__], service, table, quick)


def available():
    """MemAvailable, settled: the highest of some looks, since short-lived work only lowers it."""
    looks = []
    for _ in range(10):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                looks.append(int(line.split()[1]) * 1024)
        time.sleep(0.2)
    return max(looks)


def memory(service, table, quick):
    count = 30 if quick else 100
    with service.open() as session:
        session.sh("true")
    before = available()
    resident = service.rss()
    sessions = [service.open() for _ in range(count)]
    for session in sessions:
        session.sh("true")
    each = (before - available()) / count
    grown = (service.rss() - resident) / count
    for session in sessions:
        session.close()
    table.add(f"host memory per idle session, of {count}", f"{each / MIB:.2f} MiB", target="<= 1.5 MiB",
              ok=each <= 1.5 * MIB)
    table.add("  of it in the service", f"{grown / MIB:.3f} MiB")


def shipped_config(scratch):
    """The runtime's configuration as the service writes it, caught on its way by a runtime of that name in front."""
    caught, front = scratch / "caught.json", scratch / "front"
    front.mkdir()
    real = shutil.which("runc")
    (front / "runc").write_text("#!/bin/sh\n"
                                f"for word; do [ \"$last\" != --bundle ] || cp \"$word/config.json\" '{caught}'; last=$word; done\n"
                                f"exec {real} \"$@\"\n")
    (front / "runc").chmod(0o755)
    path = os.environ["PATH"]
    service = Service(ROOT / "build/release/sandboxd", runtimes=f"box=dir:{scratch}/box")
    try:
        os.environ["PATH"] = f"{front}:{path}"
        service.start()
        service.open().close()
        service.stop()
    finally:
        os.environ["PATH"] = path
        service.discard()
    return json.loads(caught.read_text())


def bundle(directory, config, box, with_filter):
    """The same bundle for the runtime alone: a plain root, `sleep` in the agent's place."""
    directory.mkdir()
    config = json.loads(json.dumps(config))
    config["root"]["path"] = str(box)
    config["process"]["args"] = ["sleep", "1000"]
    config["process"]["cwd"] = "/"
    config["mounts"] = [mount for mount in config["mounts"] if "agent" not in mount["destination"]]
    config["linux"]["cgroupsPath"] = f"/sandboxd-bench/{os.getpid()}"
    if not with_filter:
        del config["linux"]["seccomp"]
    (directory / "config.json").write_text(json.dumps(config))


def runtime_alone(directory, state, number):
    name = f"bench-{os.getpid()}-{number}"
    begin = time.perf_counter()
    subprocess.run(["runc", "--root", state, "run", "--detach", "-b", directory, name], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    spent = time.perf_counter() - begin
    subprocess.run(["runc", "--root", state, "delete", "-f", name], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return spent * 1000


def opening(service, table, scratch, quick):
    """Open and first command beside `runc run --detach` of the same bundle, in turns."""
    state = scratch / "runc"
    os.chmod(scratch, 0o755)
    config = shipped_config(scratch)
    same, bare = scratch / "same", scratch / "bare"
    bundle(same, config, scratch / "box", True)
    bundle(bare, config, scratch / "box", False)
    ours, alone, unfiltered = [], [], []
    for number in range(10 if quick else 30):
        alone.append(runtime_alone(same, state, number))
        begin = time.perf_counter()
        session = service.open(runtime="box")
        session.sh("true")
        ours.append((time.perf_counter() - begin) * 1000)
        session.close()
        unfiltered.append(runtime_alone(bare, state, number))
    mine, base = statistics.median(ours), statistics.median(alone)
    table.add("open and first command, p50", f"{mine:.1f} ms", f"{base:.1f} ms", "runc run", "<= runc + 20 ms",
              mine <= base + 20)
    table.add("  the runtime alone, without system-call filter", "", f"{statistics.median(unfiltered):.1f} ms", "runc run")
    table.add("  slowest", f"{max(ours):.1f} ms", f"{max(alone):.1f} ms", "runc run")


def main():
    parser = argparse.ArgumentParser(prog="bench/run")
    parser.add_argument("--quick", action="store_true", help="shorter, and less certain")
    parser.add_argument("--json", metavar="FILE", help="the table as JSON as well")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir="/var/tmp"))
    os.environ["TMPDIR"] = str(scratch)
    tempfile.tempdir = None
    rootfs.busybox(scratch / "box")
    service = Service(ROOT / "build/release/sandboxd", runtimes=f"host=host,box=dir:{scratch}/box", max_sessions=300)
    table = Table()
    try:
        service.start()
        for step in (sequential, throughput, files, health, memory):
            print(f"{step.__name__} ...", file=sys.stderr, flush=True)
            step(service, table, arguments.quick)
        print("opening ...", file=sys.stderr, flush=True)
        opening(service, table, scratch, arguments.quick)
        table.add("service, resident at the end", f"{service.rss() / MIB:.1f} MiB")
        service.stop()
        print("docker ...", file=sys.stderr, flush=True)
        docker.measure(sys.modules[__name__], scratch, table, arguments.quick)
    finally:
        service.discard()
        shutil.rmtree(scratch, ignore_errors=True)
    table.show()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(table.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
