"""A Docker daemon of the tests' own: nothing of the machine's is touched, and it may be killed."""

import json
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START = 90.0  # s until it answers; after a kill it waits for what its containerd still does
STOP = 120.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("docker", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """A daemon that runs already, by its socket."""

    def __init__(self, socket):
        self.socket = socket

    @property
    def host(self):
        return f"unix://{self.socket}"

    def request(self, method, path, body=None, timeout=60):
        """(status, body): JSON decoded, where it is."""
        connection = _UnixConnection(str(self.socket), timeout)
        try:
            data = body if body is None or isinstance(body, (bytes, bytearray)) or hasattr(body, "read") else json.dumps(body)
            kind = "application/json" if isinstance(data, str) else "application/x-tar"
            connection.request(method, path, body=data, headers={"Content-Type": kind} if data is not None else {})
            answer = connection.getresponse()
            text = answer.read()
            try:
                return answer.status, json.loads(text)
            except ValueError:
                return answer.status, text
        finally:
            connection.close()

    def get(self, path):
        status, value = self.request("GET", path)
        assert status == 200, (path, status, value)
        return value

    def containers(self):
        return self.get("/containers/json?all=1")

    def inspect(self, container):
        return self.get(f"/containers/{container}/json")

    def load(self, tree, name, **changes):
        """An image from a tree on disk; changes are Dockerfile lines, such as ENTRYPOINT='["/tool"]'."""
        query = "".join(f"&changes={key}%20{_quote(value)}" for key, value in changes.items())
        tar = subprocess.Popen(["tar", "-C", tree, "--numeric-owner", "-c", "."], stdout=subprocess.PIPE)
        connection = _UnixConnection(str(self.socket), 300)
        try:
            connection.request("POST", f"/images/create?fromSrc=-&repo={name}{query}", body=iter(lambda: tar.stdout.read(1 << 20), b""),
                               headers={"Content-Type": "application/x-tar"}, encode_chunked=True)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
            tar.stdout.close()
        assert tar.wait(60) == 0 and answer.status == 200 and b'"error"' not in text, (answer.status, text)
        return name


# gVisor as Docker's users register it: ptrace works on any machine; without cgroups of its own, on this kind of host.
GVISOR = {"runsc": {"path": "runsc", "runtimeArgs": ["--network=none", "--platform=ptrace", "--ignore-cgroups"]}}


class Daemon(Engine):
    """runtimes: OCI runtimes beside runc, as in the daemon's configuration file. bridged: with the usual bridge, in a network
    namespace of the daemon's own, so that the machine's network is not touched (BuildKit runs nothing without a bridge)."""

    def __init__(self, *arguments, runtimes=None, bridged=False):
        self.directory = Path(tempfile.mkdtemp(prefix="dockerd-"))
        # An address of a Unix socket holds 108 bytes, and TMPDIR may be long.
        self.short = Path(tempfile.mkdtemp(prefix="dk", dir="/tmp"))
        super().__init__(self.short / "d.sock")
        self.log = self.directory / "log"
        self.arguments = arguments
        (self.directory / "daemon.json").write_text(json.dumps({"runtimes": runtimes or {}}))
        self.prefix = ["unshare", "--net", "--"] if bridged else []  # before both commands: what starts them somewhere else
        self.bridge = ["--ip-forward=false", "--ip-masq=false"] if bridged else ["--bridge", "none"]
        self.process = None
        self.containerd = None

    def start(self):
        if self.process is not None and self.process.poll() is None:
            return self
        (self.directory / "pid").unlink(missing_ok=True)  # a killed one leaves it, and its pid may be another's
        self._start_containerd()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, "dockerd", "--containerd", self.short / "c.sock", "--data-root", self.directory / "data", "--exec-root", self.short / "exec", "-H", self.host,
                 "--pidfile", self.directory / "pid", "--config-file", self.directory / "daemon.json", *self.bridge, "--iptables=false", "--log-level", "warn",
                 *self.arguments],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"dockerd ended with {self.process.returncode}:\n{self.tail()}"
            try:
                if self.request("GET", "/_ping", timeout=5)[0] == 200:
                    return self
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"dockerd does not answer after {START} s:\n{self.tail()}")

    def environment(self):
        return {"PATH": os.environ["PATH"], "TMPDIR": str(self.directory)}  # where stacks are written, should it come to that

    def _start_containerd(self):
        """A process of its own, as distributions run it: it and its containers outlive a killed dockerd."""
        if self.containerd is not None and self.containerd.poll() is None:
            return
        config = self.directory / "containerd.toml"
        config.write_text(f"""
version = 2
root = "{self.directory}/containerd"
state = "{self.short}/c"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{self.short}/c.sock"
[debug]
  level = "warn"
""")
        with open(self.log, "ab") as log:
            self.containerd = subprocess.Popen([*self.prefix, "containerd", "--config", config], env=self.environment(),
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START
        while not (self.short / "c.sock").exists():
            assert self.containerd.poll() is None and time.monotonic() < deadline, f"no containerd:\n{self.tail()}"
            time.sleep(0.02)

    def tail(self, lines=30):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def kill(self):
        """kill -9 of the daemon alone: its containerd and its containers go on."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP)

    def shims(self):
        """Pids of the containers' shims, one for each container that runs."""
        mark = str(self.short).encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    line = Path(f"/proc/{entry}/cmdline").read_bytes()
                except OSError:
                    continue
                if b"containerd-shim" in line.split(b"\0", 1)[0] and mark in line:
                    found.append(int(entry))
        return found

    def discard(self):
        """Removes every container, ends the daemon, leaves nothing."""
        try:
            self.start()
            for one in self.containers():
                self.request("DELETE", f"/containers/{one['Id']}?force=1&v=1")
            self.terminate()
        finally:
            for process in (self.process, self.containerd):
                if process is not None and process.poll() is None:
                    process.kill()
                    process.wait(STOP)
            self._end_strays()
            self._unmount()
            shutil.rmtree(self.directory, ignore_errors=True)
            shutil.rmtree(self.short, ignore_errors=True)

    def _end_strays(self):
        """Shims of containers that a failed test has left."""
        mark = str(self.short).encode()
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    if mark in Path(f"/proc/{entry}/cmdline").read_bytes():
                        os.kill(int(entry), signal.SIGKILL)
                except OSError:
                    continue

    def _unmount(self):
        for line in reversed(Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()):
            point = line.split()[4]
            if point.startswith((str(self.directory), str(self.short))):
                subprocess.run(["umount", "-l", point], check=False, capture_output=True)


def _quote(text):
    from urllib.parse import quote

    return quote(text)
