"""What the conformance tests run against: this service on one of its backends, or a release of the reference."""

import contextlib
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "service"))

from harness import client, host, rootfs  # noqa: E402,F401
from harness.service import Service, leftovers  # noqa: E402
from harness.wait import until  # noqa: E402


class Ours(Service):
    """This service."""

    def assert_nothing_left(self):
        until(lambda: not leftovers.processes_of(self.directory), 10, "the end of every process of the service")


class Reference(Service):
    """A release of the reference, in the Python that has it installed."""

    documents = False

    def command(self):
        return [self.program, "-m", "pydantic_ai_backends.remote.server"]

    def environment(self):
        values = {"token": self.token, "host": "127.0.0.1", "port": self.port, "prewarm": 0, **self.settings}
        variables = {f"SANDBOXD_{name.upper()}": str(value) for name, value in values.items() if value is not None}
        return {"PATH": os.environ["PATH"], "TMPDIR": str(self.directory), "PYTHONWARNINGS": "ignore", **self.extra,
                **variables}

    def stop(self):
        self.terminate()

    def assert_nothing_left(self):
        pass


class Target:
    """`images` maps the aliases `python` (has Python, a shell and git) and `node` (another image) to their images."""

    def __init__(self, kind, program, images, extra):
        self.kind = kind
        self.images = images
        self.reference = kind == "reference"
        self.daemon = kind in ("docker", "reference")
        self.program = program
        self.environment = extra

    def runtimes(self, *more, **fields):
        """The allowlist; fields such as python="mem_limit=64m" are added to that alias."""
        entries = [f"{alias}={image}" + (";" + fields[alias] if alias in fields else "")
                   for alias, image in self.images.items()]
        return ",".join([*entries, *more])

    def service(self, **settings):
        kind = Reference if self.reference else Ours
        return kind(self.program, backend=self.kind, environment=self.environment,
                    **{"runtimes": self.runtimes(), "cleanup_interval": 3600, **settings})


def sandbox_pid(session):
    """The host's pid of the sandbox's process 1."""
    mark = client.marker()
    command = f"sleep {mark} >/dev/null 2>&1 &"
    if session.request("POST", "/exec", {"command": command}).status != 200:  # no such route in later releases
        session.run(["sh", "-c", command])
    found = until(lambda: host.host_processes(mark), what="the sandbox's process on the host")
    return host.sandbox_init(found[0])


def kill_sandbox(session):
    """Ends the sandbox from outside, as a crash would; returns when it is gone."""
    pid = sandbox_pid(session)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}") or _is_zombie(pid), what="the end of the sandbox")


def _is_zombie(pid):
    with contextlib.suppress(OSError):
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    return True


def limit(session, controller, name, unified):
    """One limit of the sandbox's cgroup: the file `name` of a v1 controller, `unified` where only v2 has it."""
    pid = sandbox_pid(session)
    for file, where in ((name, controller), (unified, "unified")):
        with contextlib.suppress(AssertionError, OSError):
            return (host.cgroup_of(pid, where) / file).read_text().strip()
    raise AssertionError(f"no {name} for pid {pid}")
