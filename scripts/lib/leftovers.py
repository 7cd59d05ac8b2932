"""What a test run may leave behind on a host: processes, mounts, cgroups, claims of uid ranges, files.

Other runs may be going on beside this one, so only what can be traced to this run counts: by its scratch directory
(which every state directory of the tests lies in) or by being new, ours by name, and used by nobody."""

import os
import time
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
CLAIMS = Path("/run/sandboxd")


def _cgroups():
    """Those below `sandboxd`, which itself is shared by all services of the host."""
    return {directory for directory, _, _ in os.walk(CGROUPS) if "/sandboxd/" in directory}


def _read(path):
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _identity(pid):
    """The pid and when it started, in ticks since boot: together never used twice."""
    return pid, _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19:20]


def snapshot():
    """The processes count because a service of this very build may run already: scripts/quickstart leaves one."""
    running = [_identity(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return {"cgroups": _cgroups(), "processes": running}


def processes_of(scratch, build=None, before=()):
    """Processes that run a program of `build` and did not before, or whose mounts, environment or arguments name
    `scratch`."""
    marks = [str(scratch).encode()]
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        proc = f"/proc/{entry}"
        try:
            program = os.readlink(f"{proc}/exe")
        except OSError:
            continue
        arguments = _read(f"{proc}/cmdline")
        texts = arguments + _read(f"{proc}/environ") + _read(f"{proc}/mountinfo")
        ours = any(mark in texts for mark in marks)
        if build is not None and program.startswith(str(build) + "/") and _identity(entry) not in before:
            ours = True
        if ours:
            found.append(f"pid {entry}: {program} {arguments.replace(bytes(1), b' ').decode(errors='replace')[:200]}")
    return found


def _mounts(scratch):
    lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    return [line for line in lines if str(scratch) in line]


def _abandoned_cgroups(before):
    def in_use(path):
        return any(_read(os.path.join(directory, "cgroup.procs")).strip() for directory, _, _ in os.walk(path))

    return sorted(path for path in _cgroups() - before if os.path.isdir(path) and not in_use(path))


def _claims(scratch):
    """A claim of a uid range names the state directory of its service."""
    return sorted(f"{path}: {text.decode(errors='replace')}" for path in CLAIMS.glob("**/*") if path.is_file()
                  for text in [_read(path)] if str(scratch).encode() in text)


def compare(before, scratch, root, patience=10, without=()):
    """(name, what is left) for each kind but some, after giving what is just ending `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        kinds = [
            ("processes", processes_of(scratch, Path(root) / "build", before["processes"])),
            ("mounts", _mounts(scratch)),
            ("cgroups", _abandoned_cgroups(before["cgroups"])),
            ("claims of uid ranges", _claims(scratch)),
            ("temporary files", sorted(str(path) for path in Path(scratch).iterdir())),
        ]
        kinds = [(name, found) for name, found in kinds if name not in without]
        if not any(found for _, found in kinds) or time.monotonic() > deadline:
            return kinds
        time.sleep(0.5)
