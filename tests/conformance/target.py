"""What the conformance tests run against: this service on one of its backends, or a release of the reference."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "service"))

from harness import client, directories, host, rootfs  # noqa: E402,F401
from harness.daemon import Daemon, Engine  # noqa: E402
from harness.service import Service, leftovers, started_by  # noqa: E402
from harness.wait import until  # noqa: E402


SHIFTED = 300_000  # the host's uid of root under a daemon with a user namespace


@contextlib.contextmanager
def _subordinate_ids(directory):
    """A mount namespace in which `nobody` has ids from SHIFTED on; the command prefix that enters it."""
    table = directory / "subordinate-ids"
    table.write_text(f"nobody:{SHIFTED}:65536\nnogroup:{SHIFTED}:65536\n")
    script = 'mount --bind "$0" /etc/subuid && mount --bind "$0" /etc/subgid && echo ready && exec sleep 1000000'
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", script, table], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"ready\n"
            yield ["nsenter", "--target", str(holder.pid), "--mount"]
        finally:
            holder.kill()


@contextlib.contextmanager
def daemon_with_images(*arguments, shifted=False):
    """A Docker daemon, and the images for a Target on it, made of what this machine has. shifted: --userns-remap=nobody:nogroup
    works, and there is one image only."""
    base = Path(tempfile.mkdtemp(prefix="images-"))
    daemon = Daemon(*arguments)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        if shifted:
            daemon.prefix = stack.enter_context(_subordinate_ids(base))
        stack.callback(daemon.discard)
        if shifted:
            for directory in (daemon.directory, daemon.short):
                directory.chmod(0o711)  # its containers' root must pass
        daemon.start()
        images = {}  # the first is the default
        if not shifted:
            images["python"] = daemon.load(rootfs.debian(base / "debian"), "host-tree")
        images["node"] = daemon.load(rootfs.busybox(base / "box"), "box")
        if not shifted:
            shutil.rmtree(base)
        yield daemon, images


class Ours(Service):
    """This service."""

    def assert_nothing_left(self):
        until(lambda: not leftovers.processes_of(self.directory), what="the end of every process of the service")


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

    def engine(self):
        """The daemon that the sandboxes are at."""
        return Engine(self.environment["DOCKER_HOST"].removeprefix("unix://"))

    @contextlib.contextmanager
    def image_of(self, user):
        """Another image like `node`'s, whose commands run as `user`; it knows a user `node`, 1000."""
        base = Path(tempfile.mkdtemp(prefix="images-"))
        try:
            tree = rootfs.busybox(base / "tree")
            with open(tree / "etc/passwd", "a") as passwd:
                passwd.write("node:x:1000:1000::/tmp:/bin/sh\n")
            if self.daemon:
                name = "user-" + user.replace(":", "-")
                yield self.engine().load(tree, name, USER=user)
                self.engine().request("DELETE", f"/images/{name}")
            else:
                yield f"oci:{rootfs.oci_layout(base / 'layout', tree, {'latest': {'User': user}})}:latest"
        finally:
            shutil.rmtree(base)

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
