"""A service of the tests' own: a process, a state directory, a port."""

import concurrent.futures
import functools
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import client, documented, host

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import leftovers  # noqa: E402

START = 90.0  # s until /healthz answers
STOP = 120.0  # s from TERM to the end


_numbers = itertools.count()


@functools.cache
def _own_ports():
    """The first of a hundred ports that no other process of tests uses: each holds a name of its own in the network's
    namespace, which goes with it, while it lives."""
    for number in (os.getpid() + turn for turn in range(120)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0sandboxd-tests-ports-{number % 120}")
        except OSError:
            claim.close()
            continue
        return 20_000 + number % 120 * 100, claim
    raise AssertionError("no hundred of ports is free")


def free_port():
    """Below those that the kernel gives to connections: one of these might take the port of a service that is down for a
    moment."""
    first, _ = _own_ports()
    for _ in range(100):
        port = first + next(_numbers) % 100
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that has just been in use will do
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


class Service:
    """Settings are given by their names in lower case: Service(program, max_sessions=3)."""

    documents = True  # it has a document of its own that its answers are held against

    def __init__(self, program, **settings):
        self.program = Path(program)
        self.directory = Path(tempfile.mkdtemp(prefix="svc-"))
        self.token = settings.pop("token", secrets.token_hex(16))
        self.backend = settings.pop("backend", "oci")
        self.extra = settings.pop("environment", {})  # beside the settings: DOCKER_HOST
        self.settings = {"runtimes": "host=host", "on_shutdown": "stop", "max_sessions": 200, "prewarm": 0, **settings}
        self.port = free_port()
        self.process = None
        self.before = leftovers.snapshot()
        self.log = self.directory / "log"
        self.state = self.directory / "state"

    def environment(self):
        values = {"token": self.token, "state_dir": self.state, **self.settings}
        variables = {f"SANDBOXD_{name.upper()}": str(value) for name, value in values.items() if value is not None}
        return {"PATH": os.environ["PATH"], "TMPDIR": str(self.directory), **self.extra, **variables}

    def command(self):
        backend = ["--backend", self.backend] if self.backend else []
        return [self.program, *backend, "--listen", f"127.0.0.1:{self.port}"]

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), env=self.environment(), cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        (documented.foreign.discard if self.documents else documented.foreign.add)(self.port)
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the service ended with {self.process.returncode}:\n{self.tail()}")
            try:
                if self.request("GET", "/healthz", deadline=30).status == 200:
                    if self.documents:
                        documented.learn(self.port)
                    return self
            except OSError:
                time.sleep(0.02)
        raise AssertionError(f"no answer from /healthz in {START} s:\n{self.tail()}")

    def tail(self, lines=40):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        """kill -9, and nothing else: sandboxes live on."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP)

    def terminate(self):
        """TERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP)

    def stop(self):
        """TERM, exit status 0, nothing left."""
        status = self.terminate()
        assert status == 0, f"exit status {status}:\n{self.tail()}"
        self.assert_nothing_left()

    def assert_nothing_left(self):
        # Its own directory is removed later; cgroups of other runs come and go.
        left = [f"{name}: {found}" for name, found in leftovers.compare(
            self.before, self.directory, self.directory, patience=120, without=("temporary files", "cgroups")) if found]
        assert not left, "\n".join(left)

    def discard(self):
        """Removes the directory, and whatever a failed test left running."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(STOP)
        for line in leftovers.processes_of(self.directory):
            try:
                os.kill(int(line.split()[1].rstrip(":")), signal.SIGKILL)
            except OSError:
                pass
        host.end_sandboxes_of(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)

    def request(self, method, path, body=None, headers=None, token=..., deadline=client.DEADLINE):
        token = self.token if token is ... else token
        return client.request(self.port, method, path, body, headers, token, deadline)

    def connect(self, token=..., deadline=client.DEADLINE):
        return client.Connection(self.port, self.token if token is ... else token, deadline)

    def raw(self, deadline=client.DEADLINE):
        return client.Raw(self.port, deadline)

    def open(self, **body):
        """A new session; anything but 200 fails the test."""
        answer = self.request("POST", "/sessions", body)
        assert answer.status == 200, f"{answer}\n{self.tail()}"
        return client.Session(self.port, answer.json())

    def rss(self):
        """Resident memory of the service process now, bytes."""
        return self._status("VmRSS")

    def peak_rss(self):
        """Its highest since reset_peak(), bytes."""
        return self._status("VmHWM")

    def reset_peak(self):
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _status(self, key):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {key} for pid {self.pid}")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))


def _ended(service):
    """Stops a service, unless its test has; what was wrong with that, or nothing."""
    try:
        if service.process.poll() is None:
            service.stop()
        else:
            service.assert_nothing_left()
    except Exception as problem:
        return str(problem)
    finally:
        service.discard()


def started_by(make):
    """The body of a fixture: a function that starts a service that `make(**settings)` gives. At the end all of them are
    stopped, side by side, and must leave nothing."""
    made = []

    def start(**settings):
        service = make(**settings)
        made.append(service)
        return service.start()

    yield start
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        problems = [problem for problem in pool.map(_ended, made) if problem]
    assert not problems, "\n".join(problems)
