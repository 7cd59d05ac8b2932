"""Contract 8.1, lines 133 to 150, and N17, lines 60 to 69: the archive over HTTP."""

import os
import re

import pytest

BAD = b"bad\xff"


@pytest.fixture(scope="module")
def stored(services, root):
    """A service without a session, and a workspace that an earlier one left."""
    workspace = root / "cold/workspace"
    (workspace / "src/deep").mkdir(parents=True)
    (workspace / "src/app.py").write_text("print('hi')\n")
    (workspace / "src/deep/x.py").write_text("x\n")
    (workspace / "empty").mkdir()
    (workspace / "README.md").write_text("".join(f"line {n}\n" for n in range(1, 6)))
    (workspace / "big.txt").write_bytes(b"x" * 2000)
    (root / "secret.txt").write_text("secret\n")
    links = {"out.txt": root / "secret.txt", "dangling": "nowhere", "inside.md": "README.md", "dir": "src"}
    for name, target in links.items():
        (workspace / name).symlink_to(target)
    (workspace / "src/broken").symlink_to("nowhere")
    (root / "plain/workspace").mkdir(parents=True)
    (root / "odd/workspace").mkdir(parents=True)
    (root / "odd/workspace/good.txt").write_text("x")
    open(os.fsencode(root / "odd/workspace") + b"/" + BAD, "wb").close()
    service = services(workspace_root=root, max_read_bytes=1024)
    yield service
    assert service.request("GET", "/healthz").json()["open_sessions"] == 0  # nothing was started for all this


def ask(service, op, id="cold", **body):
    return service.request("POST", f"/workspaces/{id}/{op}", body)


def names(answer):
    assert answer.status == 200, answer
    return [row["name"] for row in answer.json()]


def test_8_1_133_a_cold_workspace_is_listed_directories_first(stored):
    answer = ask(stored, "ls", path=".")
    assert [(row["name"], row["is_dir"]) for row in answer.json()] == [
        ("empty", True), ("src", True), ("README.md", False), ("big.txt", False)]
    assert [row["path"] for row in ask(stored, "ls", path="src").json()] == ["src/deep", "src/app.py"]


def test_8_1_134_files_have_a_time_and_directories_none(stored, root):
    rows = {row["name"]: row for row in ask(stored, "ls", path=".").json()}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00", rows["README.md"]["modified_at"])
    assert (rows["src"]["modified_at"], rows["src"]["size"], rows["README.md"]["size"]) == (None, None, 35)


def test_8_1_136_reading_needs_no_sandbox(stored):
    answer = ask(stored, "read", path="src/app.py")
    assert (answer.status, answer.json()) == (200, {"content": "print('hi')"})


@pytest.mark.parametrize("path", ["/workspace/src/app.py", "/src/app.py", "./src//app.py"])
def test_8_1_137_a_path_as_the_sandbox_has_it(stored, path):
    assert ask(stored, "read", path=path).json() == {"content": "print('hi')"}


@pytest.mark.parametrize("op", ["ls", "read", "read_bytes"])
def test_8_1_138_climbing_out_is_400(stored, op):
    answer = ask(stored, op, path="../../secret.txt")
    assert answer.status == 400
    assert "outside the workspace" in answer.detail


def test_8_1_139_a_link_out_is_neither_read_nor_listed(stored):
    answer = ask(stored, "read", path="out.txt")
    assert answer.status == 400
    assert b"secret\\n" not in answer.body
    assert "out.txt" not in names(ask(stored, "ls", path="."))


def test_8_1_140_an_absolute_path_stays_inside(stored):
    answer = ask(stored, "read", path="/etc/passwd")
    assert answer.status == 404
    assert "etc/passwd" in answer.detail


def test_8_1_141_a_missing_file_is_404(stored):
    answer = ask(stored, "read", path="nope.txt")
    assert answer.status == 404 and "nope.txt" in answer.detail


def test_8_1_142_a_missing_workspace_is_404(stored):
    answer = ask(stored, "ls", "never", path=".")
    assert answer.status == 404 and answer.detail != "Not Found"


def test_8_1_143_listing_a_file_is_404(stored):
    answer = ask(stored, "ls", path="README.md")
    assert answer.status == 404 and answer.detail != "Not Found"


@pytest.mark.parametrize("op", ["read", "read_bytes"])
def test_8_1_144_too_large_is_400(stored, op):
    answer = ask(stored, op, path="big.txt")
    assert answer.status == 400
    assert "read limit" in answer.detail


@pytest.mark.parametrize("op", ["ls", "read", "read_bytes"])
def test_8_1_145_without_a_root_409(bare, op):
    answer = ask(bare, op, path=".")
    assert answer.status == 409
    assert "workspace_root" in answer.detail


def test_8_1_146_a_session_token_is_not_enough(service):
    with service.open() as session:
        path = f"/workspaces/{session.id}/ls"
        assert service.request("POST", path, {"path": "."}, token=session.token).status == 401
        assert service.request("POST", path, {"path": "."}).status == 200


def test_8_1_147_the_footer_tells_what_is_left(stored):
    content = ask(stored, "read", path="README.md", limit=3).json()["content"]
    assert content == "line 1\nline 2\nline 3\n\n[... 2 more lines. Use offset=3 to read more.]"


def test_8_1_148_past_the_end(stored):
    assert ask(stored, "read", path="README.md", offset=99).json() == {"content": "[End of file]"}


def test_8_1_149_a_dangling_link_is_left_out(stored):
    assert "dangling" not in names(ask(stored, "ls", path="."))


def test_8_1_150_in_a_subdirectory_too(stored):
    assert names(ask(stored, "ls", path="src")) == ["deep", "app.py"]


def rows(answer):
    assert answer.status == 200, answer
    return [row["path"] for row in answer.json()["entries"]], answer.json()["truncated"]


TREE = ["empty", "src", "README.md", "big.txt", "src/deep", "src/app.py", "src/deep/x.py"]


def test_n_060_a_tree_is_breadth_first_without_links(stored):
    assert rows(ask(stored, "tree")) == (TREE, False)


def test_n_061_depth_one_is_ls(stored):
    assert rows(ask(stored, "tree", max_depth=1)) == (TREE[:4], True)
    assert rows(ask(stored, "tree", path="src/deep", max_depth=1)) == (["src/deep/x.py"], False)


def test_n_062_as_many_as_there_are_is_not_truncated(stored):
    assert rows(ask(stored, "tree", path="src/deep", max_entries=1)) == (["src/deep/x.py"], False)
    assert rows(ask(stored, "tree", path="src", max_entries=3)) == (TREE[4:], False)
    assert ask(stored, "tree", path="src", max_entries=2).json()["truncated"] is True


@pytest.mark.parametrize("field, value", [("max_depth", 0), ("max_depth", 65), ("max_entries", 0),
                                          ("max_entries", 100_001)])
def test_n_063_out_of_bounds_is_422(stored, field, value):
    answer = ask(stored, "tree", **{field: value})
    assert answer.status == 422
    assert [loc for _, loc in answer.faults()] == [["body", field]]


def test_n_064_faults_of_tree(stored, bare, service):
    told = [ask(stored, "tree", path=path).status for path in ("README.md", "nope", "..", "dir", "src/..")]
    assert told == [404, 404, 400, 400, 400]
    unknown = ask(stored, "tree", "never")
    assert unknown.status == 404 and unknown.detail != "Not Found"
    assert ask(bare, "tree").status == 409
    with service.open() as session:
        assert service.request("POST", f"/workspaces/{session.id}/tree", {}, token=session.token).status == 401


def test_n_065_a_huge_directory_costs_no_more(stored, root):
    many = root / "many/workspace/d"
    many.mkdir(parents=True)
    for n in range(20_000):
        (many / f"{n}").touch()
    answer = ask(stored, "tree", "many", path="d", max_entries=1)
    assert len(answer.json()["entries"]) == 1 and answer.json()["truncated"] is True


def trees(service, sessions, **body):
    return service.request("POST", "/workspaces/trees", {"sessions": sessions, **body})


def test_n_066_trees_in_the_order_asked(stored):
    answer = trees(stored, ["plain", "never", "cold", "cold"], max_depth=1)
    assert answer.status == 200
    told = [(row["session_id"], row["status_code"], row["tree"] is None) for row in answer.json()["results"]]
    assert told == [("plain", None, False), ("never", 404, True), ("cold", None, False), ("cold", None, False)]


def test_n_067_faults_of_trees(stored, bare, service):
    for sessions, loc in (([], ["body", "sessions"]), (["a"] * 101, ["body", "sessions"]),
                          (["ok", "../etc"], ["body", "sessions", 1])):
        answer = trees(stored, sessions)
        assert answer.status == 422
        assert [where for _, where in answer.faults()] == [loc]
    assert stored.request("POST", "/workspaces/trees", {"sessions": ["a"]}, token="wrong").status == 401
    assert [row["status_code"] for row in trees(bare, ["a", "b"]).json()["results"]] == [409, 409]


def test_n_068_no_link_is_followed_and_no_climbing(stored):
    for op, path in (("read", "inside.md"), ("read_bytes", "inside.md"), ("ls", "dir"), ("read", "src/../README.md")):
        answer = ask(stored, op, path=path)
        assert answer.status == 400
        assert "outside the workspace" in answer.detail
    assert "inside.md" not in names(ask(stored, "ls", path="."))


@pytest.mark.ours
def test_n_043_a_name_that_is_not_utf_8_is_left_out(stored):
    assert names(ask(stored, "ls", "odd", path=".")) == ["good.txt"]
    assert rows(ask(stored, "tree", "odd")) == (["good.txt"], True)
