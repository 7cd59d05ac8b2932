"""Contract 8.1, lines 151 to 158: WorkspaceArchive of release 0.2.29."""

import pytest
from pydantic_ai_backends.remote import WorkspaceArchive
from pydantic_ai_backends.remote.client import WorkspaceArchiveError

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\x00\x01"


@pytest.fixture(scope="module")
def archive(services, root):
    workspace = root / "cold/workspace"
    (workspace / "src").mkdir(parents=True)
    (workspace / "b.txt").write_text("two\n")
    (workspace / "a.txt").write_text("one\n")
    (workspace / "p.png").write_bytes(PNG)
    (workspace / "big.txt").write_bytes(b"x" * 2000)
    stored = services(workspace_root=root, max_read_bytes=1024)
    archive = WorkspaceArchive(f"http://127.0.0.1:{stored.port}", token=stored.token)
    yield archive
    archive.close()


def refused(call, *arguments):
    with pytest.raises(WorkspaceArchiveError) as raised:
        call(*arguments)
    return raised.value.status_code, str(raised.value)


def test_8_1_151_ls(archive):
    assert [row["name"] for row in archive.ls("cold")] == ["src", "a.txt", "b.txt", "big.txt", "p.png"]


def test_8_1_152_read_drops_the_final_newline(archive):
    assert archive.read("cold", "a.txt") == "one"


def test_8_1_153_bytes_are_intact(archive):
    assert archive.read_bytes("cold", "p.png") == PNG


def test_8_1_154_text_is_intact_as_bytes(archive):
    assert archive.read_bytes("cold", "a.txt") == b"one\n"


def test_8_1_155_missing_is_404(archive):
    status, text = refused(archive.read_bytes, "cold", "nope.txt")
    assert status == 404 and "nope.txt" in text


def test_8_1_156_over_the_limit_is_400(archive):
    status, text = refused(archive.read_bytes, "cold", "big.txt")
    assert status == 400 and "read limit" in text


def test_8_1_157_outside_is_400(archive):
    status, text = refused(archive.read_bytes, "cold", "../../../etc/passwd")
    assert status == 400 and "outside the workspace" in text


def test_8_1_158_a_missing_workspace_is_404(archive):
    status, text = refused(archive.ls, "never")
    assert status == 404 and "Not Found" not in text
