"""Contract 1.5.4, 3.1, 3.4 to 3.11 (operations on files), 2.11 (their events), 10.4; design "Decided" 10 and 11."""

import base64
import json
import random
import threading

import pytest


OPERATIONS = {
    "read": {"path": "a"},
    "read_bytes": {"path": "a"},
    "write": {"path": "a", "content_b64": ""},
    "edit": {"path": "a", "old_string": "x", "new_string": "y"},
    "exists": {"path": "a"},
    "ls": {"path": "."},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "x"},
}
ENTRY = {"name", "path", "is_dir", "size", "modified_at"}


@pytest.fixture
def here(shared, request):
    """A directory of the test's own in the shared session: (session, its name)."""
    name = request.node.name[:100].replace("[", "-").replace("]", "").replace("/", "-")
    shared.sh(f"mkdir -p '{name}'")
    yield shared, name
    shared.sh(f"chmod -R u+rwX '{name}' 2>/dev/null; rm -rf '{name}'")


# --- requests: 1.5.4, 1.1.8


@pytest.mark.parametrize("operation", OPERATIONS)
def test_1_1_8_the_order_of_checks(service, shared, operation):
    path, body = f"/{operation}", OPERATIONS[operation]
    assert shared.request("POST", path, body, token=None).status == 401
    assert shared.request("POST", path, body, token="no").status == 401
    assert shared.request("POST", path, {}, token="no").status == 401
    broken = shared.request("POST", path, b"{", {"Content-Type": "application/json"}, token=None)
    assert (broken.status, broken.detail[0]["type"]) == (422, "json_invalid")
    missing = service.request("POST", f"/sessions/none/{operation}", body)
    assert (missing.status, missing.detail) == (404, "No such session: none")
    bad = service.request("POST", f"/sessions/-/{operation}", {}, token=None)
    assert bad.status == 422 and bad.faults()[0] == ("string_pattern_mismatch", ["path", "session_id"])
    assert shared.request("GET", path).status == 405
    assert service.request("POST", f"/sessions/{shared.id}/{operation}", body).status == 200


@pytest.mark.parametrize("operation", OPERATIONS)
def test_1_1_5_missing_and_wrong_fields(shared, operation):
    body = OPERATIONS[operation]
    required = list(body) if operation != "edit" else ["path", "old_string", "new_string"]
    assert shared.request("POST", f"/{operation}", {}).faults() == [("missing", ["body", name]) for name in required]
    for name in required:
        wrong = shared.request("POST", f"/{operation}", {**body, name: 5})
        assert (wrong.status, wrong.faults()) == (422, [("string_type", ["body", name])])
        null = shared.request("POST", f"/{operation}", {**body, name: None})
        assert (null.status, null.faults()) == (422, [("string_type", ["body", name])])
    assert shared.request("POST", f"/{operation}", {**body, "unknown": 1}).status == 200


def test_1_5_4_bounds_of_read(shared):
    def fault(**body):
        answer = shared.request("POST", "/read", {"path": "a", **body})
        assert answer.status == 422
        return answer.detail[0]["type"], answer.detail[0]["loc"], answer.detail[0].get("ctx")

    assert fault(offset=-1) == ("greater_than_equal", ["body", "offset"], {"ge": 0})
    assert fault(limit=0) == ("greater_than_equal", ["body", "limit"], {"ge": 1})
    assert fault(offset="x")[0] == "int_parsing"
    assert fault(limit=1.5)[0] == "int_from_float"
    assert shared.request("POST", "/read", {"path": "a", "offset": "0", "limit": 7.0}).status == 200


@pytest.mark.parametrize("content", ["a", "ab", "abc", "YQ", "Y Q==", "YQ==\n", "Y-_=", "YQ===", "é", "====", "=YQ="])
def test_1_5_4_write_with_bad_base64_is_400_and_no_event(shared, content):
    before = shared.events()["latest_seq"]
    answer = shared.request("POST", "/write", {"path": "never", "content_b64": content})
    assert answer.status == 400 and "base64" in answer.detail
    assert shared.events()["latest_seq"] == before
    assert not shared.exists("never")


def test_1_1_8_validation_comes_before_base64(shared):
    answer = shared.request("POST", "/write", {"content_b64": "!"})
    assert (answer.status, answer.faults()) == (422, [("missing", ["body", "path"])])


def test_10_4_the_bodies_of_the_kubernetes_client(here):
    session, name = here
    path = f"/workspace/{name}/k.txt"
    payload = base64.b64encode(b"one\ntwo\n").decode()
    assert session.op("write", path=path, content_b64=payload) == {"path": path, "error": None}
    assert session.op("read", path=path, offset=0, limit=10**9) == {"content": "one\ntwo"}
    assert [row["name"] for row in session.op("ls", path=f"/workspace/{name}")] == ["k.txt"]
    assert [row["name"] for row in session.op("glob", pattern="*.txt", path=f"/workspace/{name}")] == ["k.txt"]
    assert session.request("POST", "/exec", {"command": "echo x", "timeout_seconds": None}).json()["output"] == "x\n"


# --- paths: 3.1


def test_3_1_1_write_and_edit_answer_with_the_joined_path(here):
    session, name = here
    assert session.write(f"{name}/notes.md", "x") == {"path": f"/workspace/{name}/notes.md", "error": None}
    assert session.put(f"./{name}/../{name}//a", "x") == f"/workspace/{name}/../{name}/a"
    assert session.put(f"/workspace/./{name}/b", "x") == f"/workspace/./{name}/b"
    assert session.edit(f"{name}/a", "x", "y") == {"path": f"/workspace/{name}/a", "error": None, "occurrences": 1}


def test_3_1_2_relative_paths_mean_the_same_to_all(here):
    session, name = here
    session.put(f"{name}/f", "text\n")
    assert session.sh(f"cat {name}/f") == "text\n"
    assert session.exists(f"{name}/f") and session.read(f"{name}/f") == "text"
    assert session.glob("f", path=name) == [f"{name}/f"]
    assert session.grep("text", path=name) == [(f"{name}/f", 1, "text")]


def test_3_1_3_the_whole_sandbox_can_be_reached(here):
    session, name = here
    assert "root:" in session.read("/etc/passwd")
    session.put(f"{name}/x", "up")
    assert session.read(f"{name}/sub/../x") == "Error: File '%s/sub/../x' not found" % name
    session.sh(f"mkdir {name}/sub")
    assert session.read(f"{name}/sub/../x") == "up"


def test_n19_2_a_nul_in_a_path_is_a_fault_of_the_path(shared):
    path = "never\0x"
    assert shared.read(path).startswith("Error: ")
    assert shared.op("read_bytes", path=path) == {"content_b64": ""}
    assert shared.op("write", path=path, content_b64="")["error"].startswith("Failed to write file: ")
    assert shared.edit(path, "a", "b")["error"]
    assert not shared.exists(path) and not shared.exists("never")
    assert shared.op("ls", path=path) == [] and shared.op("glob", pattern="*", path=path) == []
    assert shared.op("grep", pattern="x", path=path)["error"].startswith("Error: ")
    assert shared.request("POST", "/grep", {"pattern": "a\0b"}).status == 422
    assert shared.request("POST", "/glob", {"pattern": "a\0b"}).status == 422


# --- read_bytes, write: 3.4, 3.5


def test_3_4_every_byte_survives(here):
    session, name = here
    data = bytes(range(256)) * 3
    session.put(f"{name}/all", data)
    assert session.read_bytes(f"{name}/all") == data
    assert session.sh(f"cksum < {name}/all; wc -c < {name}/all").split()[-1] == str(len(data))


def test_3_4_what_cannot_be_read_is_empty(here):
    session, name = here
    session.sh(f"mkdir {name}/d; echo x > {name}/d/f; mkfifo {name}/fifo; ln -s nowhere {name}/dangling")
    for path in ("missing", name, f"{name}/d", f"{name}/fifo", f"{name}/dangling", "/dev/zero", ""):
        assert session.op("read_bytes", path=path) == {"content_b64": ""}


def test_3_5_a_new_file_has_mode_644_and_its_directories_are_made(here):
    session, name = here
    session.put(f"{name}/a/b/c/new", "x")
    assert session.sh(f"stat -c %a {name}/a/b/c/new {name}/a/b") == "644\n755\n"


def test_decided_10_an_existing_file_keeps_its_mode_and_links_are_followed(here):
    session, name = here
    session.sh(f"cd {name}; echo old > script; chmod 750 script; mkdir d; ln -s ../script d/link; ln script hard")
    session.put(f"{name}/d/link", "new")
    assert session.sh(f"cd {name}; cat script; stat -c %a script; readlink d/link") == "new750\n../script\n"
    session.sh(f"ln -s made {name}/dangling")
    session.put(f"{name}/dangling", "through")
    assert session.read(f"{name}/made") == "through"


def test_decided_10_a_reader_sees_the_old_or_the_new_never_a_part(here):
    session, name = here
    path = f"{name}/swap"
    contents = [bytes([c]) * 200_000 for c in b"ab"]
    session.put(path, contents[0])
    stop = threading.Event()

    def write_both():
        while not stop.is_set():
            for content in contents:
                session.put(path, content)

    writer = threading.Thread(target=write_both)
    writer.start()
    try:
        for _ in range(30):
            assert session.read_bytes(path) in contents
    finally:
        stop.set()
        writer.join()
    assert session.names(name) == ["swap"]


def test_3_5_failures_are_answers(here):
    session, name = here
    session.sh(f"mkdir -p {name}/d/e; echo x > {name}/d/e/kept; echo x > {name}/f")
    for path in (f"{name}/d", f"{name}/d/", "", ".", "..", "/", f"{name}/d/e/..", "/workspace", "/dev/null/x"):
        answer = session.write(path, "x")
        assert answer["path"] is None and answer["error"].startswith("Failed to "), (path, answer)
    assert session.write(f"{name}/f/x", "x")["error"].startswith("Failed to create directory: ")
    assert session.write(f"{name}/d", "x")["error"].startswith("Failed to write file: ")
    assert session.read(f"{name}/d/e/kept") == "x"
    assert session.sh("ls -d /workspace") == "/workspace\n"


def test_3_5_an_empty_string_is_an_empty_file(here):
    session, name = here
    session.put(f"{name}/e", "")
    assert session.exists(f"{name}/e") and session.sh(f"wc -c < {name}/e").strip() == "0"


# --- edit: 3.6


def test_3_6_edits(here):
    session, name = here
    path = f"{name}/a.txt"
    session.put(path, "one two two\nthree\n")
    assert session.edit(path, "one", "1") == {"path": f"/workspace/{path}", "error": None, "occurrences": 1}
    twice = session.edit(path, "two", "2")
    assert (twice["path"], twice["occurrences"]) == (None, None)
    assert twice["error"].startswith("String 'two' found 2 times. ") and "replace_all=True" in twice["error"]
    assert session.edit(path, "two", "2", replace_all=True)["occurrences"] == 2
    assert session.edit(path, "2\nthree", "end")["occurrences"] == 1
    assert session.read_bytes(path) == b"1 2 end\n"
    assert session.edit(path, "absent", "x")["error"] == "String 'absent' not found in file"
    assert session.edit("missing", "a", "b")["error"] == "File 'missing' not found"
    assert session.edit(path, "end\n", "")["occurrences"] == 1
    assert session.read_bytes(path) == b"1 2 "


def test_3_6_the_empty_text(here):
    session, name = here
    session.put(f"{name}/e", "éb")
    assert "found 3 times" in session.edit(f"{name}/e", "", "-")["error"]
    assert session.edit(f"{name}/e", "", "-", replace_all=True)["occurrences"] == 3
    assert session.read_bytes(f"{name}/e") == "-é-b-".encode()
    session.put(f"{name}/none", "")
    assert session.edit(f"{name}/none", "a", "b")["error"] == "String 'a' not found in file"
    assert session.edit(f"{name}/none", "", "b")["occurrences"] == 1
    assert session.read(f"{name}/none") == "b"


def test_3_6_over_the_limit_and_not_text(services):
    service = services(max_read_bytes=1024)
    with service.open() as session:
        session.put("large", "x" * 1025)
        error = session.edit("large", "x", "y")["error"]
        assert "read limit" in error and "not found" not in error
        session.put("fits", "x" * 1024)
        assert "found 1024 times" in session.edit("fits", "x", "y")["error"]
        session.put("x.bin", bytes(range(256)))
        assert "Binary" in session.edit("x.bin", "a", "b")["error"]
        assert session.read_bytes("x.bin") == bytes(range(256))


# --- exists, ls, glob, grep: 3.7 to 3.10


def test_3_7_only_regular_files_exist(here):
    session, name = here
    session.sh(f"cd {name}; touch f; mkdir d; ln -s f l; ln -s d ld; ln -s x dangling; mkfifo p; ln -s loop loop")
    found = {path: session.exists(f"{name}/{path}") for path in ("f", "l", "d", "ld", "dangling", "p", "loop", "no")}
    assert found == {"f": True, "l": True, "d": False, "ld": False, "dangling": False, "p": False, "loop": False,
                     "no": False}
    assert not session.exists("/dev/null") and not session.exists("")


def test_3_8_listings(here):
    session, name = here
    session.sh(f"cd {name}; mkdir zdir .hid; printf 12345 > b; touch .a 'two  blanks'; ln -s b link; ln -s zdir ldir; "
               "ln -s no gone; ln -s gone2 gone2")
    rows = session.op("ls", path=f"{name}//")
    assert all(set(row) == ENTRY for row in rows)
    assert [(row["name"], row["is_dir"]) for row in rows] == [
        (".hid", True), ("zdir", True), (".a", False), ("b", False), ("gone", False), ("gone2", False),
        ("ldir", False), ("link", False), ("two  blanks", False)]
    assert [row["path"] for row in rows] == [f"{name}/{row['name']}" for row in rows]
    assert {row["name"]: row["size"] for row in rows}["b"] == 5
    assert all(row["modified_at"] is None for row in rows)
    assert all(isinstance(row["size"], int) for row in rows if row["is_dir"])


def test_3_8_the_path_of_a_row_is_the_path_asked_for_and_the_name(shared):
    assert all(row["path"] == "/" + row["name"] for row in shared.op("ls", path="/"))
    shared.put("row", "x")
    assert "./row" in [row["path"] for row in shared.op("ls", path=".")]
    assert "/workspace/row" in [row["path"] for row in shared.op("ls", path="/workspace//")]
    shared.sh("rm row")


def test_3_8_what_cannot_be_listed_is_empty(here):
    session, name = here
    session.sh(f"touch {name}/f")
    for path in ("missing", f"{name}/f", "", f"{name}/f/x", "/dev/null"):
        assert session.op("ls", path=path) == []
    session.sh(f"ln -s . {name}/self")
    assert session.names(f"{name}/self") == ["f", "self"]


def test_3_9_glob(here):
    session, name = here
    session.sh(f"cd {name}; mkdir -p src/deep .hid d.py; touch top.py src/a.py src/deep/b.py .hid/c.py src/x.txt "
               "src/deep/.d.py; ln -s top.py link.py")
    everything = [".hid/c.py", "src/a.py", "src/deep/.d.py", "src/deep/b.py", "top.py"]
    assert session.glob("*.py", path=name) == [f"{name}/{path}" for path in everything]
    assert session.glob("**/*.py", path=name) == session.glob("*.py", path=name)
    assert session.glob("src/*.py", path=name) == [f"{name}/{p}" for p in everything if p.startswith("src/")]
    assert session.glob("deep/*.py", path=f"/workspace/{name}/") == [f"/workspace/{name}/src/deep/{n}"
                                                                     for n in (".d.py", "b.py")]
    assert session.glob("[ab].py", path=name) == [f"{name}/src/a.py", f"{name}/src/deep/b.py"]
    assert session.glob("?.txt", path=name) == [f"{name}/src/x.txt"]
    rows = session.op("glob", pattern="top.py", path=name)
    assert rows == [{"name": "top.py", "path": f"{name}/top.py", "is_dir": False, "size": None, "modified_at": None}]
    for path in ("missing", f"{name}/top.py/x"):
        assert session.op("glob", pattern="*", path=path) == []


@pytest.mark.parametrize("root", ["", "/", ".", None])
def test_3_9_these_roots_are_the_work_directory(session, root):
    session.put("pkg/a.py", "")
    session.put("b.py", "")
    body = {} if root is None else {"path": root}
    assert session.glob("**/*.py", **body) == ["b.py", "pkg/a.py"]
    assert session.glob("**/*", **body) == ["b.py", "pkg/a.py"]


def test_3_10_grep(session):
    session.put("notes.txt", "first\nneedle here\nlast")
    session.put("sub/x.py", "a\nb\nneedle\n")
    session.put(".hid/y.py", "needle\n")
    session.put("sub/.z", "needle\n")
    assert session.grep("needle") == [("./notes.txt", 2, "needle here"), ("./sub/x.py", 3, "needle")]
    assert session.grep("needle", path=None) == session.grep("needle", path="") == session.grep("needle", path=".")
    assert session.grep("needle", glob="*.py") == [("./sub/x.py", 3, "needle")]
    assert session.grep("needle", glob="*.py", ignore_hidden=False) == [("./.hid/y.py", 1, "needle"),
                                                                        ("./sub/x.py", 3, "needle")]
    assert session.grep("needle", path=".hid") == [(".hid/y.py", 1, "needle")]
    assert session.grep("needle", path="notes.txt") == [("notes.txt", 2, "needle here")]
    assert session.grep("needle", path="./sub") == [("./sub/x.py", 3, "needle")]
    assert session.grep("needle", path="/workspace/sub") == [("/workspace/sub/x.py", 3, "needle")]
    assert session.op("grep", pattern="nothing like it") == {"matches": [], "error": None, "truncated": False}


def test_3_10_patterns_are_basic_regular_expressions_and_data(session):
    session.put("t", "-e x\na+b\naab\n$HOME `id`\n'quoted' \"twice\"\n(group)\nfoo.bar\nfooXbar\nend\\n\n")
    lines = {pattern: [number for _, number, _ in session.grep(pattern)] for pattern in (
        "-e", "--help", "a+b", "a\\+b", "a*b", "$HOME", "`id`", "'quoted'", "\"twice\"", "(group)", "\\(group\\)",
        "foo.bar", "foo\\.bar", "^foo", "bar$", "[x-z]", "\\(o\\)\\1", "\\\\n")}
    assert lines == {"-e": [1], "--help": [], "a+b": [2], "a\\+b": [3], "a*b": [2, 3, 7, 8], "$HOME": [4], "`id`": [4],
                     "'quoted'": [5], "\"twice\"": [5], "(group)": [6], "\\(group\\)": [6], "foo.bar": [7, 8],
                     "foo\\.bar": [7], "^foo": [7, 8], "bar$": [7, 8], "[x-z]": [1], "\\(o\\)\\1": [7, 8],
                     "\\\\n": [9]}


@pytest.mark.parametrize("pattern", ["\\(", "[", "a\\{2", "\\1"])
def test_3_10_a_bad_pattern_is_an_error(session, pattern):
    session.put("t", "x\n")
    answer = session.op("grep", pattern=pattern)
    assert answer["matches"] == [] and answer["error"].startswith("Error: ")
    event = session.events()["events"][-1]
    assert (event["op"], event["ok"], event["target"]) == ("grep", False, pattern)


def test_3_10_a_missing_root_is_an_error(shared):
    answer = shared.op("grep", pattern="x", path="missing")
    assert (answer["matches"], answer["error"]) == ([], "Error: missing: No such file or directory")


def test_3_10_names_of_any_kind_keep_path_line_and_text_apart(session):
    session.put("a:12:b", "x:y\n")
    session.put("new\nline", "x:y\n")
    assert session.grep("x") == [("./a:12:b", 1, "x:y"), ("./new\nline", 1, "x:y")]


def test_decided_11_what_is_capped_says_so(session):
    session.sh("head -c 30000000 /dev/zero | tr '\\0' x | fold -w 100 > many")
    answer = session.op("grep", pattern="x")
    assert answer["truncated"] and answer["error"] is None and len(answer["matches"]) > 100
    session.sh("seq 3 > few")
    assert session.op("grep", pattern="2", path="few")["truncated"] is False
    assert session.request("POST", "/ls", {"path": "."}).headers.get("X-Sandbox-Truncated") is None
    assert session.request("POST", "/glob", {"pattern": "*"}).headers.get("X-Sandbox-Truncated") is None


# --- events, healing, ceiling: 2.8, 2.10, 2.11, 3.11


def test_2_11_one_event_per_operation(session):
    session.put("f.txt", "héllo\nx x\n")
    session.read("f.txt")
    session.read("missing")
    session.read_bytes("f.txt")
    session.read_bytes("missing")
    session.edit("f.txt", "x", "secret")
    session.edit("f.txt", "x", "y", replace_all=True)
    session.edit("f.txt", "secret", "y")
    session.write("", "x")
    session.exists("f.txt")
    session.exists("missing")
    session.op("ls", path=".")
    session.op("glob", pattern="*", path="/")
    session.grep("y")
    rows = [(e["op"], e["target"], e["ok"], e["detail"]) for e in session.events()["events"]]
    failed = rows.pop(8)
    assert failed[:3] == ("write", "", False) and failed[3].startswith("Failed to write file")
    assert rows == [
        ("write", "f.txt", True, "11 bytes"), ("read", "f.txt", True, "9 chars"), ("read", "missing", False, "31 chars"),
        ("read_bytes", "f.txt", True, "11 bytes"), ("read_bytes", "missing", False, "0 bytes"),
        ("edit", "f.txt", False, "String found 2 times"), ("edit", "f.txt", True, "2 replaced"),
        ("edit", "f.txt", False, "String not found in file"), ("exists", "f.txt", True, "found"),
        ("exists", "missing", True, "missing"), ("ls", ".", True, "1 entries"), ("glob", "* in /", True, "1 matches"),
        ("grep", "y", True, "1 matches")]
    assert "secret" not in json.dumps(session.events()) and "héllo" not in json.dumps(session.events())


def test_2_11_long_targets_are_cut(session):
    session.exists("é" * 300)
    assert session.events()["events"][-1]["target"] == "é" * 200 + "…"


def test_2_8_files_heal_a_dead_sandbox(services):
    service = services()
    with service.open() as session:
        session.put("a", "x")
        session.exec("kill -9 -1; kill -9 1")
        session.sh("true")
        assert session.exists("a") in (True, False)
        assert session.put("b", "y") == "/workspace/b" and session.read("b") == "y"


def test_the_paths_of_a_listing_are_bounded_together(session):
    session.sh("for i in $(seq 400); do : > f$i; done")
    path = "./" * 28_000
    answer = session.request("POST", "/ls", {"path": path})
    rows = answer.json()
    assert 200 < len(rows) < 300 and answer.headers["X-Sandbox-Truncated"] == "true"
    assert rows[0]["path"].startswith("././") and len(answer.body) < 32 << 20
    assert len(session.request("POST", "/ls", {"path": "./"}).json()) == 400


def test_n16_32_closing_ends_what_is_pending(service):
    session = service.open(runtime="box")
    session.sh("for i in $(seq 200); do mkdir -p t/$i; for j in $(seq 20); do echo xxxxxxxx > t/$i/$j; done; done")
    answers = []

    def search():
        answers.append(session.request("POST", "/grep", {"pattern": "\\(x*\\)*\\(x*\\)*y"}))

    searches = [threading.Thread(target=search) for _ in range(4)]
    for one in searches:
        one.start()
    assert session.close().status == 204
    for one in searches:
        one.join(60)
    assert len(answers) == 4
    assert all(answer.status in (200, 404) for answer in answers)


# --- size, names, agreement with a model


def test_a_file_of_64_mb_round_trips(services):
    service = services(max_read_bytes=100_000_000)
    with service.open() as session:
        data = random.Random(64).randbytes(64 * 1024 * 1024)
        session.put("large", data)
        assert session.read_bytes("large") == data
        assert session.sh("wc -c < large").strip() == str(len(data))


NAMES = ["-rf", "a\nb", " lead", "trail ", "*?[x]", "é", "e\u0301", "😀", "名" * 60, "n" * 255, "\\", "\"", "'", "$(id)",
         "a\tb", "\x01\x7f", "%41", "a b&c#d+e", "...", "-", "~", "{a,b}"]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names(session, name):
    data = f"needle {len(name)}\n".encode()
    assert session.put(f"d/{name}", data) == f"/workspace/d/{name}"
    assert session.read_bytes(f"d/{name}") == data and session.exists(f"d/{name}")
    assert session.read(f"d/{name}") == data.decode().rstrip("\n")
    assert session.names("d") == [name]
    assert session.glob("*", path="d") == [f"d/{name}"]
    assert session.grep("needle", path="d", ignore_hidden=False) == [(f"d/{name}", 1, data.decode().rstrip("\n"))]
    assert session.edit(f"d/{name}", "needle", "pin")["occurrences"] == 1
    assert session.run(["cat", f"/workspace/d/{name}"])["stdout"] == data.decode().replace("needle", "pin")


@pytest.mark.parametrize("name", ["n" * 256, "x/" * 300 + "n" * 256], ids=["long", "long and deep"])
def test_names_that_no_file_can_have(shared, name):
    assert shared.read(name).startswith(("Error: ", "[Error"))
    assert shared.op("write", path=name, content_b64="")["error"].startswith("Failed to ")
    assert not shared.exists(name) and shared.op("ls", path=name) == []
    assert shared.edit(name, "a", "b")["error"]


def test_random_steps_agree_with_a_model(session, seed, count):
    rng = random.Random(seed)
    names = ["a", "b.txt", "d/c", "d/e/f"]
    words = ["x", "xy", "ab\n", "é", "\r\n", "lorem ", "\xa0", "日本"]
    model = {}
    with session.connect() as connection:
        for _ in range(count(10_000)):
            name, step = rng.choice(names), rng.random()
            if step < 0.3:
                data = "".join(rng.choice(words) for _ in range(rng.randrange(30))).encode()
                body = base64.b64encode(data).decode()
                answer = session.op("write", connection, path=name, content_b64=body)
                assert answer == {"path": f"/workspace/{name}", "error": None}
                model[name] = data
            elif step < 0.7:
                old, new, every = rng.choice(words), rng.choice(words), rng.random() < 0.4
                answer = session.edit(name, old, new, every, connection)
                here = model.get(name)
                found = 0 if here is None else here.count(old.encode())
                crlf = here is not None and here.count(b"\n") > 0 and here.count(b"\n") == here.count(b"\r\n")
                if found == 0 and crlf and "\n" in old:
                    old, new = (t.replace("\r\n", "\n").replace("\n", "\r\n") for t in (old, new))
                    found = here.count(old.encode())
                if found == 1 or (found > 1 and every):
                    assert answer["occurrences"] == found, (here, old, new, answer)
                    model[name] = here.replace(old.encode(), new.encode())
                else:
                    assert answer["error"] is not None
            elif step < 0.9:
                answer = session.op("read_bytes", connection, path=name)
                assert base64.b64decode(answer["content_b64"]) == model.get(name, b"")
            else:
                assert session.op("exists", connection, path=name)["exists"] == (name in model)
    assert session.glob("*") == sorted(model)
