"""Contract 7 and N7: what sessions left in their workspaces; H.N.60 to 69."""

import base64
import os
import re

import pytest

from harness.client import run_id


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("ws")


@pytest.fixture(scope="module")
def service(services, root):
    return services(workspace_root=root, default_runtime="box", max_read_bytes=10_000)


@pytest.fixture(scope="module")
def stored(service, root):
    """The id of a closed session, with files in its workspace."""
    with service.open() as session:
        session.sh("mkdir -p src/lib docs && printf 123 > src/app.py && printf 12 > src/lib/deep.txt && : > empty && "
                   "printf 'one\\ntwo\\nthree\\n' > README && ln -s README link && ln -s /etc docs/out && mkfifo fifo && "
                   "head -c 10001 /dev/zero > big && printf 'a\\0\\377\\376b' > blob.bin")
    return session.id


@pytest.fixture
def made(root):
    """made(name): an empty workspace made by hand."""
    def make(name):
        path = root / name / "workspace"
        path.mkdir(parents=True)
        return path
    return make


def ask(service, id, op, token=..., **body):
    return service.request("POST", f"/workspaces/{id}/{op}", body, token=token)


def rows(answer):
    assert answer.status == 200, answer
    found = answer.json()
    return [one["path"] + ("/" if one["is_dir"] else "") for one in (found if isinstance(found, list)
                                                                     else found["entries"])]


def told(answer, status, text):
    assert answer.status == status and text in answer.detail, answer


def test_7_1_only_the_service_token_opens_it(service, stored):
    with service.open() as session:
        for op, body in (("ls", {"path": "."}), ("read", {"path": "README"}), ("read_bytes", {"path": "README"}),
                         ("tree", {})):
            assert ask(service, session.id, op, token=session.token, **body).status == 401
            assert ask(service, session.id, op, token=None, **body).status == 401
        assert service.request("POST", "/workspaces/trees", {"sessions": [session.id]},
                               token=session.token).status == 401
        assert rows(ask(service, session.id, "ls", path=".")) == []
        assert session.events()["latest_seq"] == 0


def test_7_2_the_order_of_checks(services, service, stored):
    assert ask(service, "-bad", "ls", token="wrong", path=".").status == 401
    answer = ask(service, "-bad", "ls")
    assert answer.status == 422
    assert answer.faults() == [("string_pattern_mismatch", ["path", "session_id"]), ("missing", ["body", "path"])]
    told(ask(service, "nobody", "ls", path=".."), 404, "nobody")
    plain = services(default_runtime="box")
    told(ask(plain, "nobody", "ls", path="."), 409, "workspace_root")
    answer = plain.request("POST", "/workspaces/trees", {"sessions": ["a", "b"]}).json()
    assert [(one["session_id"], one["tree"], one["status_code"]) for one in answer["results"]] == [
        ("a", None, 409), ("b", None, 409)]
    assert all("workspace_root" in one["error"] for one in answer["results"])


def test_7_4_ls(service, stored):
    listing = ask(service, stored, "ls", path=".").json()
    assert [one["name"] for one in listing] == ["docs", "src", "README", "big", "blob.bin", "empty", "fifo"]
    assert listing[0] == {"name": "docs", "path": "docs", "is_dir": True, "size": None, "modified_at": None}
    readme = listing[2]
    assert (readme["path"], readme["is_dir"], readme["size"]) == ("README", False, 14)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00", readme["modified_at"])
    for path in ("src", "/workspace/src", "src/", "./src", "/workspace/./src//"):
        assert rows(ask(service, stored, "ls", path=path)) == ["src/lib/", "src/app.py"]
    assert rows(ask(service, stored, "ls", path="docs")) == []


def test_7_3_paths(service, stored):
    for op in ("ls", "read", "read_bytes", "tree"):
        for path in ("..", "src/..", "src/../README", "/workspace/..", "link", "docs/out", "docs/out/passwd"):
            told(ask(service, stored, op, path=path), 400, "outside the workspace")
        assert ask(service, stored, op, path="a\0").status == 400
        assert ask(service, stored, op, path="n" * 256).status == 400
        told(ask(service, stored, op, path="/etc/passwd"), 404, "etc/passwd")
    told(ask(service, stored, "ls", path="README"), 404, "directory")
    told(ask(service, stored, "tree", path="none"), 404, "directory")


def test_7_4_read(service, stored):
    def content(**body):
        answer = ask(service, stored, "read", **body)
        assert answer.status == 200, answer
        return answer.json()["content"]
    assert content(path="README") == "one\ntwo\nthree"
    assert content(path="/workspace/README", offset=1, limit=1) == \
        "two\n\n[... 1 more lines. Use offset=2 to read more.]"
    assert content(path="README", offset=9) == "[End of file]"
    assert content(path="empty") == "[End of file]"
    for op in ("read", "read_bytes"):
        told(ask(service, stored, op, path="big"), 400, "read limit")
        told(ask(service, stored, op, path="src"), 404, "file")
        told(ask(service, stored, op, path="none"), 404, "file")
        assert ask(service, stored, op, path="fifo").status == 400
    told(ask(service, stored, "read", path="blob.bin"), 400, "Binary File")
    assert ask(service, stored, "read", path="README", offset=-1).status == 422
    assert ask(service, stored, "read", path="README", limit=0).status == 422
    answer = ask(service, stored, "read_bytes", path="blob.bin")
    assert base64.b64decode(answer.json()["content_b64"], validate=True) == b"a\0\xff\xfeb"


def test_n_60_and_61_tree(service, stored):
    everything = ["docs/", "src/", "README", "big", "blob.bin", "empty", "fifo", "src/lib/", "src/app.py",
                  "src/lib/deep.txt"]
    answer = ask(service, stored, "tree")
    assert rows(answer) == everything and answer.json()["truncated"] is False
    answer = ask(service, stored, "tree", max_depth=1)
    assert rows(answer) == rows(ask(service, stored, "ls", path=".")) and answer.json()["truncated"] is True
    answer = ask(service, stored, "tree", path="src/lib", max_depth=1)
    assert rows(answer) == ["src/lib/deep.txt"] and answer.json()["truncated"] is False


def test_n_62_and_63_the_bounds_of_a_tree(service, made):
    path = made("bounded")
    for i in range(5):
        (path / str(i)).write_text("x")
    answer = ask(service, "bounded", "tree", max_entries=5)
    assert rows(answer) == ["0", "1", "2", "3", "4"] and answer.json()["truncated"] is False
    answer = ask(service, "bounded", "tree", max_entries=4)
    assert len(rows(answer)) == 4 and answer.json()["truncated"] is True
    for body in ({"max_depth": 0}, {"max_depth": 65}, {"max_entries": 0}, {"max_entries": 100_001}):
        answer = ask(service, "bounded", "tree", **body)
        name, value = next(iter(body.items()))
        kind = "greater_than_equal" if value == 0 else "less_than_equal"
        assert answer.status == 422 and answer.faults() == [(kind, ["body", name])]
    assert ask(service, "bounded", "tree", max_depth=64, max_entries=100_000).status == 200


def test_n_43_and_68_names_that_are_not_utf_8_and_links(service, made):
    path = made("odd")
    (path / "kept").write_text("x")
    (path / "link").symlink_to("kept")
    open(os.path.join(os.fsencode(path), b"\xff"), "w").close()
    assert rows(ask(service, "odd", "ls", path=".")) == ["kept"]
    answer = ask(service, "odd", "tree")
    assert rows(answer) == ["kept"] and answer.json()["truncated"] is True


def test_n_66_trees(service, stored, made):
    (made("second") / "only").write_text("x")
    answer = service.request("POST", "/workspaces/trees",
                             {"sessions": ["second", "none", stored, "second"], "path": "/workspace"})
    assert answer.status == 200, answer
    results = answer.json()["results"]
    assert [one["session_id"] for one in results] == ["second", "none", stored, "second"]
    assert [one["status_code"] for one in results] == [None, 404, None, None]
    assert results[1]["tree"] is None and "none" in results[1]["error"]
    assert results[0] == results[3] and results[0]["error"] is None
    assert [one["path"] for one in results[0]["tree"]["entries"]] == ["only"]
    assert len(results[2]["tree"]["entries"]) == 10 and results[2]["tree"]["truncated"] is False
    answer = service.request("POST", "/workspaces/trees", {"sessions": [stored], "path": "..", "max_depth": 1})
    assert [one["status_code"] for one in answer.json()["results"]] == [400]


def test_n_67_faults_of_trees(service):
    def faults(ids):
        answer = service.request("POST", "/workspaces/trees", {"sessions": ids})
        assert answer.status == 422
        return answer.faults()
    assert faults([]) == [("too_short", ["body", "sessions"])]
    assert faults(["a"] * 101) == [("too_long", ["body", "sessions"])]
    assert faults(["a", "-b"]) == [("string_pattern_mismatch", ["body", "sessions", 1])]
    assert service.request("POST", "/workspaces/trees", {}).status == 422
    assert service.request("POST", "/workspaces/trees", {"sessions": ["a"] * 100}).status == 200


def test_the_archive_reads_a_session_that_runs(service):
    with service.open() as session:
        session.run(["sh", "-c", "echo hello > file"], id=run_id())
        assert ask(service, session.id, "read", path="file").json() == {"content": "hello"}
