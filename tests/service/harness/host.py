"""Looks at the host the service runs on."""

import contextlib
import os
import signal
import time
from pathlib import Path


def host_processes(argument):
    """Pids on the host that have `argument` as a whole word in their command line, shells with -c left out."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            except OSError:
                continue
            if argument.encode() in words and b"-c" not in words:
                found.append(int(entry))
    return found


def cgroup_of(pid, controller):
    """The directory of a process's cgroup: of a v1 controller, or of v2 when it is `unified`."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == ("" if controller == "unified" else controller):
            base = Path("/sys/fs/cgroup") / controller
            if controller == "unified" and not base.is_dir():
                base = Path("/sys/fs/cgroup")
            return base / path.lstrip("/")
    raise AssertionError(f"pid {pid} is in no cgroup of {controller}")


def process_tree(pid):
    """The pids of all processes in the pid namespace of `pid`."""
    namespace = os.readlink(f"/proc/{pid}/ns/pid")
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/ns/pid") == namespace:
                    found.append(int(entry))
            except OSError:
                continue
    return found


@contextlib.contextmanager
def frozen(pid):
    """Stops every process of the sandbox that `pid` lives in, its PID 1 included; lets them go on at the end."""
    assert os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid")
    pids = process_tree(pid)
    try:
        for one in pids:
            os.kill(one, signal.SIGSTOP)
        yield
    finally:
        for one in pids:
            try:
                os.kill(one, signal.SIGCONT)
            except ProcessLookupError:
                pass


def sandbox_init(pid):
    """The host pid of PID 1 of the sandbox that `pid` lives in: its agent."""
    for one in process_tree(pid):
        for line in Path(f"/proc/{one}/status").read_text().splitlines():
            if line.startswith("NSpid:") and line.split()[-1] == "1":
                return one
    raise AssertionError(f"no PID 1 beside {pid}")


def cgroup_mark(directory):
    """What the cgroups of an oci service's sandboxes have in their names."""
    return "/sandboxd/" + (Path(directory) / "state/uuid").read_text().split("-")[0] + "/"


def end_sandboxes_of(directory):
    """Kills what a service that can no longer do it has left on oci, with its cgroups and its claims of uid ranges."""
    try:
        mark = cgroup_mark(directory)
    except OSError:
        return  # it never got as far as that
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{entry}/cgroup").read_text(errors="replace"):
                os.kill(int(entry), signal.SIGKILL)
        except OSError:
            continue
    time.sleep(0.2)
    for cgroup in sorted(Path("/sys/fs/cgroup").glob(f"*{mark}**/"), key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):
            cgroup.rmdir()
    for claim in Path("/run/sandboxd/uids").glob("*"):
        with contextlib.suppress(OSError):
            if f'"{directory}/' in claim.read_text():
                claim.unlink()


def sandboxes_of(directory):
    """The sandboxes of a service, as their pid namespaces: told by their cgroups, which name the service's UUID, or, with
    docker, by the directory of theirs that is bound into them."""
    mark = cgroup_mark(directory)
    door = f"/{Path(directory).name}/state/docker/"  # below the root of its file system, wherever that is mounted
    own = os.readlink("/proc/self/ns/pid")
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            namespace = os.readlink(f"/proc/{entry}/ns/pid")
            if namespace != own and (mark in Path(f"/proc/{entry}/cgroup").read_text(errors="replace")
                                     or door in Path(f"/proc/{entry}/mountinfo").read_text(errors="replace")):
                found.add(namespace)
        except OSError:
            continue
    return found
