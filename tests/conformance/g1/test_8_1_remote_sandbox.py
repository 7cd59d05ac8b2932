"""Contract 8.1, lines 46 to 60, 76, 77, 94, 125 to 130, 249, 250, 258, 259 and 280 to 282: RemoteSandbox of release 0.2.29."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from pydantic_ai_backends.backends.docker.session import SessionManager
from pydantic_ai_backends.remote import RemoteSandbox

from target import kill_sandbox, until

EVERY_BYTE = bytes(range(256))
UNAVAILABLE = "Error: sandbox service unavailable"


def remote(service, **options):
    return RemoteSandbox(f"http://127.0.0.1:{service.port}", token=service.token, **options)


def sessions(service):
    return [row["session_id"] for row in service.request("GET", "/sessions").json()["sessions"]]


@pytest.fixture
def sandbox(service):
    sandbox = remote(service)
    yield sandbox
    sandbox.stop(purge=True)


@pytest.fixture(scope="module")
def kept(service):
    """A sandbox that the tests which only look share; it holds two files."""
    sandbox = remote(service)
    sandbox.write("notes.txt", "alpha\nbeta\n")
    sandbox.write("pkg/a.py", "print('a')\n")
    yield sandbox
    sandbox.stop(purge=True)


def test_8_1_046_start_twice_opens_once(service, sandbox):
    sandbox.start()
    sandbox.start()
    assert sessions(service).count(sandbox.session_id) == 1


def test_8_1_047_execute(sandbox):
    result = sandbox.execute("echo out; echo err >&2; exit 3")
    assert (result.output, result.exit_code, result.truncated) == ("out\nerr\n", 3, False)


def test_8_1_048_write_read_edit_read(sandbox):
    assert sandbox.write("a.txt", "one\ntwo\n").path == "/workspace/a.txt"
    assert sandbox.read("a.txt") == "one\ntwo"
    edited = sandbox.edit("a.txt", "two", "three")
    assert (edited.path, edited.error, edited.occurrences) == ("/workspace/a.txt", None, 1)
    assert sandbox.read("a.txt") == "one\nthree"


def test_8_1_049_every_byte_survives(sandbox):
    assert sandbox.write("bytes.bin", EVERY_BYTE).error is None
    assert sandbox.read_bytes("bytes.bin") == EVERY_BYTE
    assert sandbox.execute("wc -c < bytes.bin").output.strip() == "256"


def test_8_1_050_exists(kept):
    assert kept.exists("notes.txt") is True
    assert kept.exists("nope.txt") is False


def test_8_1_051_ls_and_glob(kept):
    assert {row["name"]: row["is_dir"] for row in kept.ls_info("/workspace")} == {"notes.txt": False, "pkg": True}
    assert [row["name"] for row in kept.glob_info("**/*.py", "/workspace")] == ["a.py"]
    assert [row["path"] for row in kept.glob_info("**/*.py")] == ["pkg/a.py"]


def test_8_1_052_grep(kept):
    [match] = kept.grep_raw("beta", path="/workspace")
    assert (match["line_number"], match["line"]) == (2, "beta")
    assert match["path"].endswith("notes.txt")


@pytest.mark.ours  # the reference takes the work directory itself for hidden
def test_8_1_052_grep_in_the_work_directory(kept):
    assert [(match["line_number"], match["line"]) for match in kept.grep_raw("beta")] == [(2, "beta")]


def test_8_1_053_is_alive_follows_the_sandbox(service, sandbox):
    assert sandbox.is_alive() is False
    sandbox.start()
    assert sandbox.is_alive() is True
    kill_sandbox(service.open(session_id=sandbox.session_id, reuse=True))
    until(lambda: sandbox.is_alive() is False, what="is_alive() false")


def test_8_1_054_usage(service, sandbox):
    sandbox.start()
    usage = sandbox.resource_usage()
    assert usage.memory_bytes > 0
    assert usage.memory_limit_bytes == 2**30
    assert usage.pids >= 1


def test_8_1_055_usage_is_none_when_there_is_none(service):
    assert remote(service).resource_usage() is None


def test_8_1_056_stop_closes_the_session(service, sandbox):
    sandbox.start()
    id = sandbox.session_id
    sandbox.stop()
    assert id not in sessions(service)


def test_8_1_056_stop_with_purge_takes_the_files(service, root):
    sandbox = remote(service)
    assert sandbox.execute("echo x > a.txt").exit_code == 0
    assert (root / sandbox.session_id / "workspace/a.txt").read_text() == "x\n"
    sandbox.stop(purge=True)
    assert not (root / sandbox.session_id).exists()


def test_8_1_057_stop_before_start_is_harmless(service):
    before = sessions(service)
    remote(service).stop()
    assert sessions(service) == before


def test_8_1_058_a_session_manager_drives_it(service):
    built = []

    def build(session_id, *_, **__):
        built.append(remote(service, session_id=session_id))
        return built[-1]

    async def drive():
        manager = SessionManager(sandbox_factory=build)
        sandbox = await manager.get_or_create("managed")
        assert sandbox.execute("echo in").output == "in\n"
        assert await manager.get_or_create("managed") is sandbox
        await manager.shutdown()

    asyncio.run(drive())
    assert len(built) == 1
    assert "managed" not in sessions(service)


def test_8_1_059_operations_on_a_forgotten_session_degrade(service):
    sandbox = remote(service)
    sandbox.start()
    service.request("DELETE", f"/sessions/{sandbox.session_id}")
    result = sandbox.execute("true")
    assert (result.output, result.exit_code) == (UNAVAILABLE, 1)
    assert sandbox.read("x") == "Error: could not read 'x'"
    assert sandbox.read_bytes("x") == b""
    assert sandbox.write("x", "y").error
    assert sandbox.edit("x", "a", "b").error
    assert sandbox.exists("x") is False
    assert sandbox.ls_info("x") == []
    assert sandbox.glob_info("x") == []
    assert sandbox.grep_raw("x") == "Error: could not search for 'x'"
    assert sandbox.is_alive() is False
    assert sandbox.resource_usage() is None


def test_8_1_060_start_raises_when_refused(service):
    with pytest.raises(RuntimeError, match="HTTP 400.*Unknown runtime"):
        remote(service, runtime="perl").start()
    with pytest.raises(RuntimeError, match="HTTP 401"):
        RemoteSandbox(f"http://127.0.0.1:{service.port}", token="wrong").start()


def test_8_1_076_grep_rows(kept):
    rows = kept.grep_raw("a", path=".", glob="*.txt", ignore_hidden=False)
    assert [(row["path"].split("/")[-1], row["line_number"], row["line"]) for row in rows] == [
        ("notes.txt", 1, "alpha"), ("notes.txt", 2, "beta")]


def test_8_1_077_a_failing_search_reaches_the_caller(kept):
    text = kept.grep_raw("\\(")
    assert text.startswith("Error: ") and text != "Error: could not search for '\\('"


def test_8_1_094_reuse_sees_the_first_ones_file(service, sandbox):
    sandbox.write("shared.txt", "from the first\n")
    second = remote(service, session_id=sandbox.session_id, reuse=True)
    assert second.read("shared.txt") == "from the first"


def test_8_1_125_constructing_opens_nothing(service):
    before = sessions(service)
    remote(service)
    assert sessions(service) == before


def test_8_1_126_127_the_first_operation_opens_once(service, sandbox):
    before = len(sessions(service))
    assert sandbox.execute("echo a").output == "a\n"
    assert sandbox.exists("x") is False
    assert sandbox.execute("echo b").output == "b\n"
    assert len(sessions(service)) == before + 1


def test_8_1_128_an_explicit_start_opens(service, sandbox):
    sandbox.start()
    assert sandbox.session_id in sessions(service)


def test_8_1_129_is_alive_opens_nothing(service):
    before = sessions(service)
    assert remote(service).is_alive() is False
    assert sessions(service) == before


def test_8_1_130_operations_degrade_when_nothing_opens(service):
    sandbox = remote(service, runtime="perl")
    assert sandbox.execute("true").output == UNAVAILABLE
    assert sandbox.ls_info("/") == []


class Liar(BaseHTTPRequestHandler):
    """Opens a session like a service, then answers everything with 200 and this body."""

    body = b'"unexpected"'

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        session = {"session_id": "s", "runtime": "r", "tenant": None, "alive": True, "state": "running", "created_at": 1,
                   "last_activity": 1, "idle_seconds": 0, "usage": None}
        self.answer(json.dumps({"session": session, "token": "t"}).encode() if self.path == "/sessions" else self.body)

    def do_GET(self):
        self.answer(self.body)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def liar():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield RemoteSandbox(f"http://127.0.0.1:{server.server_address[1]}", token="t", timeout=5)
    server.shutdown()
    server.server_close()


def test_8_1_249_operations_degrade_on_a_wrong_body(liar):
    assert liar.execute("true").output == UNAVAILABLE
    assert liar.read("x") == "Error: could not read 'x'"
    assert liar.read_bytes("x") == b""
    assert liar.exists("x") is False


def test_8_1_250_a_wrong_listing_is_empty(liar):
    assert liar.ls_info("/") == []
    assert liar.glob_info("*") == []


def test_8_1_258_a_supplied_client_stays_open(service):
    with httpx.Client(base_url=f"http://127.0.0.1:{service.port}") as client:
        sandbox = RemoteSandbox(token=service.token, client=client)
        sandbox.start()
        sandbox.stop(purge=True)
        assert client.is_closed is False
        sandbox.start()
        assert sandbox.is_alive() is True
        sandbox.stop(purge=True)


def test_8_1_259_start_after_stop_is_a_new_sandbox(bare):
    sandbox = remote(bare)
    assert sandbox.execute("echo old > a.txt").exit_code == 0
    sandbox.stop()
    sandbox.start()
    assert sandbox.execute("test -e a.txt").exit_code == 1
    sandbox.stop()


@pytest.fixture(scope="module")
def seven(services):
    return services(execute_timeout=7)


def test_8_1_280_the_ceiling_is_learned(seven):
    sandbox = remote(seven)
    sandbox.start()
    assert sandbox.server_timeout == 7.0
    sandbox.stop()


class Watched(httpx.Client):
    """Notes the time-out of each request."""

    def post(self, url, **options):
        self.waits[url.rsplit("/", 1)[-1]] = options["timeout"]
        return super().post(url, **options)


def test_8_1_281_282_how_long_the_client_waits(seven):
    with Watched(base_url=f"http://127.0.0.1:{seven.port}") as client:
        client.waits = {}
        sandbox = RemoteSandbox(token=seven.token, client=client)
        sandbox.start()
        assert sandbox.execute("sleep 600").exit_code in (124, 1)
        assert client.waits["exec"] == 17.0
        sandbox.execute("true", timeout=3)
        assert client.waits["exec"] == 13.0
        sandbox.stop()
