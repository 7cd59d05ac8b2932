"""The part of bench/run about sandboxes without a daemon: commands, health, memory, opening."""

import concurrent.futures
import json
import os
import platform
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import files
from harness.service import Service
from probes import (HEALTHZ, MIB, PROGRAM, exec_request, floor, floor_p50, in_turns, load, p50, put_floor, say)
from table import at_most, below


def sequential(service, table, quick):
    """`exec true` over HTTP beside the same spawn by a bare program in the same sandbox, in turns."""
    with service.open() as session:
        put_floor(session)
        request = exec_request(session)
        load(service, request, 1, 0.3)
        seen = in_turns(6 if quick else 14, floor=lambda: floor_p50(session, 0.4), ours=lambda: p50(service, request, 0.4))
        table.add("exec true, one caller, p50", "ms", **seen, targets=[at_most(1.3)])


def throughput(service, table, quick):
    with service.open() as session:
        put_floor(session)
        request = exec_request(session)
        for callers in (1, 16) if quick else (1, 4, 16, 64):
            seen = in_turns(3 if quick else 5, floor=lambda: floor(session, callers, 0.5)["per_second"],
                            ours=lambda: load(service, request, callers, 0.5)["per_second"])
            table.add(f"exec true, {callers} caller{'s' if callers > 1 else ''}", "/s", **seen)


def health(service, table, quick):
    idle = load(service, HEALTHZ, 1, 1)["p99_us"] / 1000
    with service.open() as session, concurrent.futures.ThreadPoolExecutor(64) as pool:
        sleeping = [pool.submit(session.exec, "sleep 4") for _ in range(64)]
        time.sleep(1)
        ours = load(service, HEALTHZ, 1, 2)["p99_us"] / 1000
        for task in sleeping:
            task.result()
    table.add("healthz beside 64 x sleep 4, p99", "ms", ours, floor=idle, name="idle", targets=[below(5, "ms")])
    table.add("healthz, 16 callers", "/s", load(service, HEALTHZ, 16, 1)["per_second"])


def available():
    """MemAvailable, settled: the highest of some looks, since short-lived work only lowers it."""
    looks = []
    for _ in range(10):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                looks.append(int(line.split()[1]) * 1024)
        time.sleep(0.2)
    return max(looks)


def resident(mark, excluded):
    """Bytes of the processes, PSS, that have one of these words in their command line."""
    total = 0
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if int(entry.name or 0) not in excluded and any(word in line for word in mark):
                rollup = (entry / "smaps_rollup").read_text()
                total += int(rollup.split("\nPss:")[1].split()[0]) * 1024
        except (OSError, ValueError, IndexError):
            continue
    return total


def memory(service, table, count, targets=(), processes=(b"sandboxd-agent",)):
    """Host memory of idle sessions: by MemAvailable, which counts what the kernel keeps for them and needs a machine that
    does nothing else, and by the memory of their processes, which does not."""
    mine = {service.pid, os.getpid()}
    with service.open() as session:
        session.sh("true")
    idle = available()
    before, grown, held = available(), service.rss(), resident(processes, mine)
    unrest = abs(before - idle)
    sessions = [service.open() for _ in range(count)]
    for session in sessions:
        session.sh("true")
    each = (before - available()) / count
    held = (resident(processes, mine) - held) / count
    grown = (service.rss() - grown) / count
    for session in sessions:
        session.close()
    if each > 0 and unrest < each * count / 10:
        table.add(f"host memory per idle session, of {count}", "MiB", each / MIB, targets=targets)
    else:
        table.add(f"host memory per idle session: not measured, others' moved by {unrest / MIB:.0f} MiB", "MiB")
    table.add("  of it in processes of its own", "MiB", held / MIB)
    table.add("  of it in the service", "MiB", grown / MIB)


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
    service = Service(PROGRAM, runtimes=f"box=dir:{scratch}/box")
    try:
        os.environ["PATH"] = f"{front}:{path}"
        service.start()
        service.open().close()
        service.stop()
    finally:
        os.environ["PATH"] = path
        service.discard()
    return json.loads(caught.read_text())


ENGINES_FILTER = Path("/usr/share/containers/seccomp.json")  # Debian: golang-github-containers-common


def engines_filter(capabilities):
    """The engines' default system-call filter for these capabilities, as a runtime's configuration has it."""
    profile = json.loads(ENGINES_FILTER.read_text())
    name, architecture = {"x86_64": ("amd64", "SCMP_ARCH_X86_64"), "aarch64": ("arm64", "SCMP_ARCH_AARCH64")}[platform.machine()]
    below = next(one["subArchitectures"] for one in profile["archMap"] if one["architecture"] == architecture)
    held = set(capabilities)

    def applies(rule):
        wanted, unwanted = rule.get("includes") or {}, rule.get("excludes") or {}
        return (held.issuperset(wanted.get("caps", ())) and held.isdisjoint(unwanted.get("caps", ()))
                and name in wanted.get("arches", [name]))

    rules = [{key: rule[key] for key in ("names", "action", "args", "errnoRet") if rule.get(key)}
             for rule in profile["syscalls"] if applies(rule)]
    return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": profile["defaultErrnoRet"],
            "architectures": [architecture, *below], "syscalls": rules}


def bundle(directory, config, box, filter=False):
    """The same bundle for the runtime alone: a plain root, `sleep` in the agent's place, and so no system-call filter, unless
    the runtime is given the engines'."""
    directory.mkdir()
    config = json.loads(json.dumps(config))
    config["root"]["path"] = str(box)
    config["process"]["args"] = ["sleep", "1000"]
    config["process"]["cwd"] = "/"
    config["mounts"] = [mount for mount in config["mounts"] if "agent" not in mount["destination"]]
    config["linux"]["cgroupsPath"] = f"/sandboxd-bench-{os.getpid()}"
    if filter:
        config["linux"]["seccomp"] = engines_filter(config["process"]["capabilities"]["bounding"])
    (directory / "config.json").write_text(json.dumps(config))


def runtime_alone(directory, state):
    """ms"""
    name = f"bench-{os.getpid()}-{time.monotonic_ns()}"
    begin = time.perf_counter()
    subprocess.run(["runc", "--root", state, "run", "--detach", "-b", directory, name], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    spent = time.perf_counter() - begin
    subprocess.run(["runc", "--root", state, "delete", "-f", name], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return spent * 1000


def first_command(service, **body):
    """ms from the open to the end of a first command"""
    begin = time.perf_counter()
    session = service.open(**body)
    session.sh("true")
    spent = (time.perf_counter() - begin) * 1000
    session.close()
    return spent


def opening(service, table, scratch, quick):
    """Open and first command beside `runc run --detach` of the same bundle, in turns."""
    state = scratch / "runc"
    config = shipped_config(scratch)
    same, filtered = scratch / "same", scratch / "filtered"
    bundle(same, config, scratch / "box")
    first_command(service, runtime="box")
    measures = {"alone": lambda: runtime_alone(same, state), "ours": lambda: first_command(service, runtime="box")}
    if ENGINES_FILTER.exists():
        bundle(filtered, config, scratch / "box", filter=True)
        measures["filtered"] = lambda: runtime_alone(filtered, state)
    seen = in_turns(6 if quick else 20, **measures)
    table.add("open and first command, p50", "ms", seen["ours"], floor=seen["alone"], name="runc run",
              targets=[below(seen["alone"] + 20, "ms", " (runc run + 20 ms)")])
    table.add("  runc run with a system-call filter, as ours has one" + ("" if "filtered" in seen else
              f": not measured, no {ENGINES_FILTER}"), "ms", floor=seen.get("filtered"), name="runc run, filter")


def measure(scratch, table, quick):
    table.section("oci (no daemon)")
    service = Service(PROGRAM, runtimes=f"host=host,box=dir:{scratch}/box", max_sessions=300)
    try:
        service.start()
        for name, step in (("commands, one caller", sequential), ("commands, many callers", throughput),
                           ("file operations", files.measure), ("health", health)):
            say(f"oci: {name}")
            step(service, table, quick)
        say("oci: memory")
        memory(service, table, 20 if quick else 100, [below(1.5, "MiB")])
        say("oci: opening")
        opening(service, table, scratch, quick)
        table.add("service, resident at the end", "MiB", service.rss() / MIB)
        service.stop()
    finally:
        service.discard()
