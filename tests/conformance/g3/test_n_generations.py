"""N17, lines 70 and 98: the archive's client of release 0.2.37, and three generations in one session at once."""

import asyncio
import contextlib
import json
import subprocess
from pathlib import Path

import pytest
from pydantic_ai.workspaces import Workspace
from pydantic_ai_backends.remote.archive import WorkspaceArchive, WorkspaceArchiveError
from pydantic_ai_backends.workspaces import SandboxdWorkspace

import environments

WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture(scope="module")
def archive(services, root):
    (root / "cold/workspace/src").mkdir(parents=True)
    (root / "cold/workspace/a.txt").write_text("one\n")
    (root / "cold/workspace/src/b.py").write_text("two\n")
    service = services(workspace_root=root)
    archive = WorkspaceArchive(f"http://127.0.0.1:{service.port}", token=service.token)
    yield archive
    archive.close()


def test_n_070_tree(archive):
    tree = archive.tree("cold")
    assert [row["path"] for row in tree.entries] == ["src", "a.txt", "src/b.py"]
    assert tree.truncated is False


def test_n_070_trees_carry_errors(archive):
    told = archive.trees(["cold", "never"])
    assert [row["path"] for row in told["cold"].entries] == ["src", "a.txt", "src/b.py"]
    assert isinstance(told["never"], WorkspaceArchiveError)
    assert told["never"].status_code == 404


@contextlib.contextmanager
def client(kind, generation, service, session):
    """ask(op, path, text) of a client of another generation."""
    command = [environments.python(generation), WORKER, kind, f"http://127.0.0.1:{service.port}", service.token, session]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        def ask(op, path, text=None):
            process.stdin.write(json.dumps([op, path, text]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        try:
            yield ask
        finally:
            process.stdin.close()
            process.wait(30)


@pytest.mark.ours  # no one release serves all three
def test_n_098_three_generations_in_one_session(service):
    name = "generations"
    workspace = Workspace(SandboxdWorkspace(
        service_url=f"http://127.0.0.1:{service.port}", token=service.token, session_name=name).backend())
    with service.open(session_id=name), client("first", "g1", service, name) as one, \
            client("second", "g2", service, name) as two:
        assert one("write", "/workspace/one.txt", "from one") is None
        assert two("write", "/workspace/two.txt", "from two") is None
        asyncio.run(workspace.write_bytes("/workspace/three.txt", b"from three"))
        for number in ("one", "two", "three"):
            path, text = f"/workspace/{number}.txt", f"from {number}"
            assert one("read", path) == text
            assert two("read", path) == text
            assert asyncio.run(workspace.read_bytes(path)).decode() == text
