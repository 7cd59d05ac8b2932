"""One coding task by the console tools of each client release, on this service and on the release of the reference that the
client belongs to: the same daemon, the same image, one run, the same observable results.

    python3 -m pytest tests/conformance/coding          starts a daemon of its own

What a tool told the model is compared step by step, and then the files. Where we differ on purpose, the step stands in
differences.py with both answers and the reason; a difference that is no more is an error too."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE), str(HERE.parent)]

import environments  # noqa: E402
from differences import FILES, TOLD  # noqa: E402
from steps import STEPS  # noqa: E402
from target import Ours, Reference, rootfs  # noqa: E402
from harness.daemon import Daemon  # noqa: E402

PATIENCE = 300  # s, of one task


@pytest.fixture(scope="module")
def daemon():
    daemon = Daemon()
    try:
        daemon.start()
        with tempfile.TemporaryDirectory() as tree:
            daemon.load(rootfs.debian(tree), "coding")
        yield daemon
    finally:
        daemon.discard()


def settled(text):
    """Without what no two runs have in common: how long something took."""
    return re.sub(r"in \d+\.\d+s", "in N s", text)


def files(workspace):
    """path -> (kind and mode, content) of everything below, as the host sees it; git's own and what follows time left out."""
    found = {}
    for directory, names, others in os.walk(workspace):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(names + others):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            content = (f"-> {os.readlink(path)}" if path.is_symlink() else "directory" if path.is_dir()
                       else hashlib.sha256(path.read_bytes()).hexdigest()[:12])
            found[str(path.relative_to(workspace))] = [f"{mode:o}", content]
    return found


def task(service, generation, root):
    """(what the tools told, the files afterwards)"""
    command = [environments.python(generation), HERE / "agent.py", generation, f"http://127.0.0.1:{service.port}",
               service.token, "coding"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{done.stderr[-4000:]}\n{service.tail()}"
    told = {step: settled(text) for step, text in json.loads(done.stdout)}
    return told, files(root / "coding/workspace")


def listed(differ, known):
    """What is unexpected, in full."""
    names = [name for name in {**differ, **known} if differ.get(name) != known.get(name)]
    return "\n".join(f"{name}\n  here       {differ[name][0]!r}\n  reference  {differ[name][1]!r}" if name in differ
                     else f"{name}\n  no difference any more" for name in names)


@pytest.fixture(scope="module", params=list(environments.RELEASES))
def both(request, daemon):
    """The generation, and what its task came to on our service and on its own."""
    generation = request.param
    settings = {"environment": {"DOCKER_HOST": daemon.host}, "runtimes": "coding-image=coding"}
    results = []
    for kind, program in ((Ours, request.config.getoption("--program")), (Reference, environments.python(generation))):
        with tempfile.TemporaryDirectory(prefix="coding-") as root:
            os.chmod(root, 0o755)
            service = kind(program, backend="docker", workspace_root=root, **settings)
            try:
                service.start()
                results.append(task(service, generation, Path(root)))
                service.stop()
            finally:
                service.discard()
    return generation, *results


def test_the_tools_tell_the_same(both):
    generation, (ours, _), (theirs, _) = both
    assert list(ours) == list(theirs) == [step for step, _, _ in STEPS]
    differ = {step: (ours[step], theirs[step]) for step in ours if ours[step] != theirs[step]}
    known = {step: (one, other) for step, (one, other, _) in TOLD[generation].items()}
    assert differ == known, listed(differ, known)


def test_the_files_are_the_same(both):
    generation, (_, ours), (_, theirs) = both
    differ = {path: (ours.get(path), theirs.get(path)) for path in {**ours, **theirs} if ours.get(path) != theirs.get(path)}
    known = {path: (one, other) for path, (one, other, _) in FILES[generation].items()}
    assert differ == known, listed(differ, known)


def test_every_difference_has_its_reason():
    assert [name for table in (TOLD, FILES) for entries in table.values() for name, (_, _, reason) in entries.items()
            if len(reason) < 20] == []
