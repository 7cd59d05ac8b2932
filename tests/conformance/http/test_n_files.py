"""Contract N17, lines 1 to 57: the files routes."""

import concurrent.futures
import os
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

import pytest

from target import SHIFTED, Target, daemon_with_images, kill_sandbox, until

SEVEN = ["read", "write", "stat", "list", "realpath", "mkdir", "remove"]


def ask(session, op, path, data=b"", **more):
    """The answer to one of the seven."""
    if op == "write":
        where = "/files/write?" + urllib.parse.urlencode({"path": path})
        return session.request("POST", where, data, {"Content-Type": "application/octet-stream"}, **more)
    return session.request("POST", f"/files/{op}", {"path": path}, **more)


def told(answer):
    """Status, and the error's name where the body has one."""
    if answer.status in (400, 404) and isinstance(answer.detail, dict):
        return answer.status, answer.detail["error"]
    return answer.status, None


@pytest.fixture
def here(session, root):
    """The session's workspace on the host."""
    return root / session.id / "workspace"


def make_files(session):
    session.run(["sh", "-c", "mkdir -p d/sub; printf one > a.txt; printf two > d/b.txt; : > empty; ln -s a.txt link; "
                             "ln -s d dlink; ln -s nowhere dangling; ln -s /etc/hostname out; mkfifo fifo"])
    return session


@pytest.fixture(scope="module")
def files(service):
    """A session with files that its tests leave alone."""
    with service.open() as session:
        yield make_files(session)


def native(service):
    policy = service.request("GET", "/policy").json()
    return [policy[name] for name in ("native_files", "native_writes", "native_realpath")]


def test_n_001_with_a_root_the_policy_says_native(service):
    assert native(service) == [True, True, True]


def test_n_002_without_a_root_409_and_no_event(bare):
    assert native(bare) == [False, False, False]
    with bare.open() as session:
        assert [ask(session, op, "/workspace/a").status for op in SEVEN] == [409] * 7
        assert session.events()["latest_seq"] == 0


def test_n_003_the_setting_turns_them_off(start, own_root):
    service = start(workspace_root=own_root, native_files=0)
    assert native(service) == [False, False, False]
    assert ask(service.open(), "stat", "/workspace").status == 409


@pytest.mark.parametrize("field", ["native_files", "max_running_commands"])
def test_n_006_put_policy_refuses_them(service, field):
    answer = service.request("PUT", "/policy", {field: 1})
    assert answer.status == 422
    assert answer.faults() == [("extra_forbidden", ["body", field])]


@pytest.mark.ours
def test_n_007_the_index_lists_the_union(service):
    listed = set(service.request("GET", "/").json()["endpoints"])
    one = "/sessions/{session_id}/"
    union = {f"{one}files/{op}" for op in SEVEN} | {f"{one}{op}" for op in (
        "exec", "read", "read_bytes", "write", "edit", "exists", "ls", "glob", "grep", "run", "runs/{run_id}/stop")}
    union |= {"/workspaces/trees", "/workspaces/{session_id}/tree"}
    assert union - listed == set()


def test_n_008_another_uid_has_no_native_writes(start, own_root):
    service = start(workspace_root=own_root, sandbox_uid=4321)
    assert native(service) == [True, False, True]


def test_n_010_who_may(service, files, session):
    assert ask(files, "read", "/workspace/a.txt").body == b"one"
    assert ask(files, "read", "/workspace/a.txt", token=service.token).body == b"one"
    assert ask(files, "read", "/workspace/a.txt", token=session.token).status == 401
    assert ask(files, "read", "/workspace/a.txt", token=None).status == 401
    unknown = service.request("POST", "/sessions/unknown-010/files/read", {"path": "/workspace/a"})
    assert unknown.status == 404 and "No such session" in unknown.detail
    assert service.request("POST", "/sessions/.bad/files/read", {"path": "/workspace/a"}).status == 422


def test_n_011_missing_paths(files):
    assert files.request("POST", "/files/write", b"x").faults() == [("missing", ["query", "path"])]
    assert files.request("POST", "/files/read", {}).faults() == [("missing", ["body", "path"])]


def test_n_012_wrong_method_and_unknown_route(files):
    assert files.request("GET", "/files/read").status == 405
    answer = files.request("POST", "/files/chmod", {"path": "/workspace"})
    assert (answer.status, answer.detail) == (404, "Not Found")


def test_n_013_a_round_trip_is_logged(session):
    steps = [("write", "/workspace/x.txt"), ("read", "/workspace/x.txt"), ("stat", "/workspace/x.txt"),
             ("list", "/workspace"), ("mkdir", "/workspace/new"), ("remove", "/workspace/x.txt")]
    assert [ask(session, op, path, b"data").status for op, path in steps] == [204, 200, 200, 200, 204, 204]
    events = session.events()["events"]
    assert [row["op"] for row in events] == ["write", "read", "stat", "ls", "mkdir", "remove"]
    assert [(row["target"], row["ok"], row["detail"]) for row in events] == [(path, True, "") for _, path in steps]


def test_n_014_the_query_is_a_form(session, here):
    where = "/files/write?path=%2Fworkspace%2Fa+b%2Bc"
    assert session.request("POST", where, b"x").status == 204
    assert (here / "a b+c").read_bytes() == b"x"


@pytest.mark.parametrize("path", ["a.txt", "", "./a.txt", "/workspace/a\0b"])
def test_n_020_024_faulty_texts_are_400(files, path):
    assert [told(ask(files, op, path)) for op in SEVEN] == [(400, "ValueError")] * 7


@pytest.mark.parametrize("path", ["/etc/passwd", "/workspacex/a", "//workspace/a", "/", "/workspace/../workspace/a",
                                  "/workspace/./a", "/workspace/a/."])
def test_n_021_022_outside_and_dots_are_409(files, path):
    assert [ask(files, op, path).status for op in SEVEN] == [409] * 7


@pytest.mark.parametrize("path", ["/workspace//a.txt", "/workspace/a.txt/"])
def test_n_023_doubled_and_trailing_slashes(files, path):
    assert ask(files, "read", path).body == b"one"
    assert ask(files, "stat", path).json()["path"] == path


@pytest.mark.parametrize("path", ["/workspace/link", "/workspace/dlink/b.txt", "/workspace/dangling", "/workspace/out"])
def test_n_025_links_are_409(files, path):
    before = open("/etc/hostname", "rb").read()
    assert [ask(files, op, path, b"x").status for op in SEVEN if op != "remove"] == [409] * 6
    assert open("/etc/hostname", "rb").read() == before


def test_n_026_remove_takes_the_link(session, here):
    make_files(session)
    session.run(["sh", "-c", "ln -s ../a.txt d/inner"])
    assert [ask(session, "remove", f"/workspace/{name}").status for name in ("link", "d")] == [204, 204]
    assert (here / "a.txt").read_bytes() == b"one"
    assert not os.path.lexists(here / "link") and not (here / "d").exists()


def test_n_027_swapped_directories_leak_nothing(service, root):
    session = service.open(session_id="swapping")
    here = root / "swapping/workspace"
    (root / "treasure").mkdir()
    (root / "treasure/f").write_text("treasure")
    session.run(["sh", "-c", f"mkdir real; echo mine > real/f; ln -s {root}/treasure evil; ln -s ../../treasure evil2"])
    loop = session.run(["sh", "-c", "(while mv -T real d 2>/dev/null; mv -T d real; mv -T evil d; mv -T d evil; do :; done)"
                                    " >/dev/null 2>&1 & echo $!"])["stdout"]
    seen = set()
    with session.connect() as connection:
        for n in range(400):
            if n % 2:
                answer = connection.request("POST", f"/sessions/{session.id}/files/read", {"path": "/workspace/d/f"})
            else:
                answer = connection.request("POST", f"/sessions/{session.id}/files/write?path=/workspace/d/f", b"mine\n")
            seen.add((answer.status, answer.body if answer.status == 200 else b""))
    session.run(["sh", "-c", f"kill {loop}"])
    assert {status for status, _ in seen} <= {200, 204, 404, 409, 400}
    assert {body for status, body in seen if status == 200} <= {b"mine\n"}
    assert (root / "treasure/f").read_text() == "treasure"
    assert here.exists()
    session.close()


def test_n_030_the_read_limit(start, own_root):
    session = start(workspace_root=own_root, max_read_bytes=1000).open()
    session.run(["sh", "-c", "head -c 1000 /dev/zero > full; head -c 1001 /dev/zero > over; : > empty"])
    full = ask(session, "read", "/workspace/full")
    assert (full.status, len(full.body), full.headers["content-length"]) == (200, 1000, "1000")
    assert full.headers["content-type"] == "application/octet-stream"
    over = ask(session, "read", "/workspace/over")
    assert over.status == 409 and "limit" in over.detail
    empty = ask(session, "read", "/workspace/empty")
    assert (empty.status, empty.body, empty.headers["content-length"]) == (200, b"", "0")


def test_n_031_what_cannot_be_read(files):
    assert told(ask(files, "read", "/workspace/d")) == (400, "IsADirectoryError")
    assert told(ask(files, "read", "/workspace")) == (400, "IsADirectoryError")
    assert told(ask(files, "read", "/workspace/nope")) == (404, "FileNotFoundError")
    assert told(ask(files, "read", "/workspace/a.txt/x")) == (400, "NotADirectoryError")
    assert ask(files, "read", "/workspace/fifo").status == 409


def test_n_032_modes(session, here):
    session.run(["sh", "-c", "echo old > script; chmod 755 script"])
    assert ask(session, "write", "/workspace/script", b"new").status == 204
    assert ((here / "script").read_bytes(), (here / "script").stat().st_mode & 0o7777) == (b"new", 0o755)
    assert ask(session, "write", "/workspace/made/of/parents", b"x").status == 204
    assert (here / "made/of/parents").stat().st_mode & 0o7777 == 0o644


def test_n_033_what_cannot_be_written(files):
    assert told(ask(files, "write", "/workspace/d")) == (400, "IsADirectoryError")
    assert told(ask(files, "write", "/workspace")) == (400, "IsADirectoryError")
    assert told(ask(files, "write", "/workspace/a.txt/x")) == (400, "NotADirectoryError")
    assert [ask(files, "write", f"/workspace/{name}").status for name in ("fifo", "link")] == [409, 409]


def test_n_034_the_write_limit(start, own_root):
    session = start(workspace_root=own_root, max_read_bytes=1000).open()
    path = f"/sessions/{session.id}/files/write?path=%2Fworkspace%2Ff"
    with session.connect() as connection:
        assert connection.request("POST", path, b"x" * 1000).status == 204
        for size in (1001, 40 * 2**20):
            assert connection.request("POST", path + str(size), b"x" * size).status == 409
        assert connection.request("GET", f"/sessions/{session.id}").status == 200
    with session.connect() as connection:
        connection.http.request("POST", path + "chunked", iter([b"x" * 600] * 2), {"X-Sandbox-Token": session.token})
        answer = connection.http.getresponse()
        assert (answer.status, answer.read() != b"") == (409, True)
    assert sorted(os.listdir(own_root / session.id / "workspace")) == ["f"]


def test_n_035_readers_see_whole_files_only(session, here):
    old, new = b"o" * 100_000, b"n" * 120_000
    ask(session, "write", "/workspace/f", old)
    done, seen = threading.Event(), set()

    def look():
        while not done.is_set():
            seen.add((here / "f").read_bytes())

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reader = pool.submit(look)
        with session.connect() as connection:
            for n in range(100):
                data = new if n % 2 else old
                path = f"/sessions/{session.id}/files/write?path=/workspace/f"
                assert connection.request("POST", path, data).status == 204
        done.set()
        reader.result()
    assert seen <= {old, new}
    assert os.listdir(here) == ["f"]


def test_n_037_long_names(session):
    assert ask(session, "write", "/workspace/" + "n" * 237).status == 204
    assert ask(session, "write", "/workspace/" + "n" * 250).status in (204, 409)


@pytest.mark.ours
def test_n_038_a_name_too_long_is_409(files):
    assert [ask(files, op, "/workspace/" + "n" * 256).status for op in SEVEN] == [409] * 7


def test_n_040_stat(files):
    answer = ask(files, "stat", "/workspace/a.txt").json()
    assert answer == {"name": "a.txt", "path": "/workspace/a.txt", "is_dir": False, "size": 3, "modified_at": None}
    answer = ask(files, "stat", "/workspace/d").json()
    assert (answer["is_dir"], answer["size"]) == (True, None)
    assert ask(files, "stat", "/workspace").json()["is_dir"] is True


def test_n_041_list(session):
    session.run(["sh", "-c", "mkdir b; touch a .hidden Z; mkdir none"])
    rows = ask(session, "list", "/workspace").json()
    assert [row["name"] for row in rows] == [".hidden", "Z", "a", "b", "none"]
    assert [row["path"] for row in rows] == [f"/workspace/{row['name']}" for row in rows]
    assert ask(session, "list", "/workspace/none").json() == []
    assert told(ask(session, "list", "/workspace/a")) == (400, "NotADirectoryError")
    assert told(ask(session, "list", "/workspace/nope")) == (404, "FileNotFoundError")


@pytest.mark.parametrize("make", ["ln -s a l", "mkfifo f"])
def test_n_042_one_odd_entry_makes_a_listing_409(session, make):
    session.run(["sh", "-c", f"touch a; {make}"])
    assert ask(session, "list", "/workspace").status == 409


@pytest.mark.ours
def test_n_043_a_name_that_is_not_utf_8_makes_it_409(session, here):
    open(os.fsencode(here) + b"/bad\xff", "wb").close()
    assert ask(session, "list", "/workspace").status == 409


def test_n_044_realpath(files):
    for path in ("/workspace/a.txt", "/workspace/no/such", "/workspace/a.txt/below", "/workspace"):
        assert ask(files, "realpath", path).json() == {"path": path}
    assert ask(files, "realpath", "/workspace/link").status == 409


def test_n_045_mkdir(session):
    session.run(["sh", "-c", "touch f; mkfifo p"])
    assert [ask(session, "mkdir", "/workspace/a/b").status for _ in range(2)] == [204, 204]
    assert [told(ask(session, "mkdir", f"/workspace/{name}")) for name in "fp"] == [(400, "FileExistsError")] * 2
    assert told(ask(session, "mkdir", "/workspace/f/x")) == (400, "NotADirectoryError")


def test_n_046_remove(session, here):
    (here / "kept").write_text("x")
    assert told(ask(session, "remove", "/workspace")) == (400, "ValueError")
    assert (here / "kept").read_text() == "x"
    assert told(ask(session, "remove", "/workspace/nope")) == (404, "FileNotFoundError")


def test_n_050_asleep_all_seven_work(start, own_root):
    service = start(workspace_root=own_root, max_sessions=1, evict_idle_after=0)
    session = service.open(session_id="asleep")
    service.open(session_id="awake")
    before = session.info()
    assert before["state"] == "hibernated"
    path = "/workspace/f"
    assert [ask(session, op, path, b"x").status for op in ("write", "read", "stat", "realpath", "remove", "mkdir", "list")
            ] == [204, 200, 200, 200, 204, 204, 200]
    after = session.info()
    assert (after["state"], after["last_activity"] > before["last_activity"]) == ("hibernated", True)


def test_n_051_files_alone_keep_a_session(start, own_root):
    service = start(workspace_root=own_root, idle_timeout=6, cleanup_interval=1)
    session = service.open()
    asked = []
    with pytest.raises(AssertionError):
        until(lambda: asked.append(ask(session, "stat", "/workspace").status), 10)
    assert set(asked) == {200}


def test_n_052_a_dead_sandboxs_files_are_read(session):
    session.run(["sh", "-c", "printf x > f"])
    kill_sandbox(session)
    assert ask(session, "read", "/workspace/f").body == b"x"


def test_n_055_both_sides_see_one_file_at_once(session):
    ask(session, "write", "/workspace/f", b"from outside")
    assert session.run(["cat", "f"])["stdout"] == "from outside"
    session.run(["sh", "-c", "printf 'from inside' > f"])
    assert ask(session, "read", "/workspace/f").body == b"from inside"


@pytest.mark.ours
def test_n_057_edits_and_writes_never_lose_each_other(session):
    """An edit that was answered as done is in the file, unless a whole write was answered after the edit began."""
    tail = "tail\n" * 50
    whole = ("count 0\n" + tail).encode()
    done, began, last_write = set(), {}, []

    def edit(n):
        began[n] = time.monotonic()
        body = {"path": "f", "old_string": tail, "new_string": f"edit {n}\n" + tail}
        answer = session.request("POST", "/edit", body).json()
        assert (answer["error"], answer["occurrences"]) == (None, 1)
        done.add(n)

    def writes():
        with session.connect() as connection:
            for _ in range(200):
                answer = connection.request("POST", f"/sessions/{session.id}/files/write?path=/workspace/f", whole)
                assert answer.status == 204
                last_write[:] = [time.monotonic()]

    ask(session, "write", "/workspace/f", whole)
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        writing = pool.submit(writes)
        list(pool.map(edit, range(200)))
        writing.result()
        list(pool.map(edit, range(200, 220)))
    text = ask(session, "read", "/workspace/f").body.decode()
    assert text.startswith("count 0\n") and text.endswith(tail)
    there = {int(line.removeprefix("edit ")) for line in text.splitlines() if line.startswith("edit ")}
    assert there <= done and set(range(200, 220)) <= there
    assert [n for n in done - there if began[n] > last_write[0]] == []


@pytest.mark.parametrize("user, writes", [("node", 409), ("4242", 409), ("root", 204), ("0:0", 204)])
@pytest.mark.ours  # the reference looks at the container's user only
def test_n_053_054_who_the_images_user_is_decides(start, own_root, target, user, writes):
    with target.image_of(user) as image:
        service = start(workspace_root=own_root, runtimes=target.runtimes(f"other={image}"), max_sessions=1,
                        evict_idle_after=0)
        session = service.open(session_id="theirs", runtime="other")
        here = own_root / "theirs/workspace"

        def all_as_expected():
            (here / "f").write_text("x")
            assert ask(session, "read", "/workspace/f").body == b"x"
            assert [ask(session, op, f"/workspace/{op}").status for op in ("mkdir", "write")] == [writes] * 2
            assert ask(session, "remove", "/workspace/f").status == writes

        all_as_expected()
        service.open(session_id="next")
        assert session.info()["state"] == "hibernated"
        all_as_expected()
        assert session.info()["state"] == "hibernated"
        for id in ("theirs", "next"):
            service.request("DELETE", f"/sessions/{id}?purge=true")


@pytest.mark.daemon
@pytest.mark.ours
def test_n_056_where_the_daemon_sees_another_directory_files_are_the_sandboxs(target, own_root):
    service = target.service(workspace_root=own_root)
    own = service.command()
    # What is mounted for the service alone: the daemon binds the directory below it.
    service.command = lambda: ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', own_root, *own]
    service.start()
    try:
        (own_root / "apart/workspace").mkdir(parents=True)
        session = service.open(session_id="apart")
        session.sh("echo from inside > f")
        assert [ask(session, op, "/workspace/f", b"x").status for op in SEVEN] == [409] * 7
        assert session.sh("cat f") == "from inside\n"
        assert session.read("f") == "from inside"
        service.stop()
    finally:
        service.discard()


@pytest.mark.daemon
@pytest.mark.ours
def test_n_058_under_a_daemon_with_a_user_namespace_no_file_is_out_of_reach(target):
    with daemon_with_images("--userns-remap=nobody:nogroup", shifted=True) as (daemon, images), \
            tempfile.TemporaryDirectory(prefix="workspaces-") as root:
        os.chmod(root, 0o711)
        shifted = Target(target.kind, target.program, images, {"DOCKER_HOST": daemon.host})
        service = shifted.service(workspace_root=root).start()
        try:
            session = service.open()
            assert int(session.sh("cat /proc/self/uid_map").split()[1]) == SHIFTED
            # Its root is nobody in the host's directory, so what the service would write there it could not change.
            (Path(root) / session.id / "workspace/f").write_text("x")
            assert ask(session, "read", "/workspace/f").body == b"x"
            assert [ask(session, op, f"/workspace/{op}").status for op in ("write", "mkdir", "remove")] == [409] * 3
            service.stop()
            # Given to that root by a setting, the sandbox works there; the service still does not write.
            service.settings["sandbox_uid"] = SHIFTED
            session = service.start().open()
            session.put("mine", "x")
            assert session.sh("stat -c %u mine; rm mine") == "0\n"
            assert ask(session, "write", "/workspace/f", b"x").status == 409
            service.stop()
        finally:
            service.discard()
