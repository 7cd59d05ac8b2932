"""scripts/quickstart --backend docker: a command's output from a container, and nothing left by --stop."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.wait import until

pytestmark = pytest.mark.only("docker")

ROOT = Path(__file__).resolve().parents[2]


def quickstart(home, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SANDBOXD_", "DOCKER_"))}
    return subprocess.run(["scripts/quickstart", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**environment, "SANDBOXD_QUICKSTART_DIR": str(home)}, timeout=900)


@pytest.fixture
def home():
    # Short: addresses of a daemon's sockets hold 108 bytes.
    directory = Path(tempfile.mkdtemp(prefix="qs", dir="/tmp"))
    try:
        yield directory
    finally:
        quickstart(directory, "--stop")
        shutil.rmtree(directory, ignore_errors=True)


def test_a_container_answers_and_stop_ends_everything(home):
    done = quickstart(home, "--backend", "docker")
    assert done.returncode == 0, done.stderr
    assert "\nhello from " in done.stdout
    assert "uid=0" in done.stdout
    assert "sandboxd-agent" in done.stdout
    assert "backend docker (as set" in (home / "log").read_text()
    again = quickstart(home, "--backend", "docker")
    assert again.returncode == 0, again.stderr
    assert "already running" in again.stderr
    own_daemon = (home / "docker.pid").exists()
    if own_daemon:  # what its containerd writes when a daemon ends it by force stays in the directory that is removed
        containerd = int((home / "docker.run" / "containerd" / "containerd.pid").read_text())
        os.kill(containerd, signal.SIGUSR1)
        until(lambda: (home / f"containerd.{containerd}.stacks.log").exists(), what="containerd's stacks")
    ended = quickstart(home, "--stop")
    assert ended.returncode == 0, ended.stderr
    assert "stopped the service" in ended.stderr
    assert ("stopped its docker daemon" in ended.stderr) == own_daemon
    assert not (home / "pid").exists() and not (home / "docker.pid").exists()
