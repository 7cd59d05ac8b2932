"""The command line as a client of the service: docs/clients.md."""

import http.server
import json
import os
import pty
import queue
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from harness import client, host
from harness.wait import until

DOCS = Path(__file__).resolve().parents[2] / "docs/clients.md"


@pytest.fixture(scope="module")
def workspaces(module_directories):
    return module_directories("workspaces-")


@pytest.fixture(scope="module")
def service(services, workspaces):
    return services(workspace_root=workspaces, execute_timeout=30)


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="cli-"))
    yield path
    shutil.rmtree(path)


class Cli:
    def __init__(self, program, service, folder):
        self.program = program
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "TZ": "UTC",
                            "SANDBOXD_URL": f"http://127.0.0.1:{service.port}", "SANDBOXD_TOKEN": service.token}

    def start(self, *arguments, env=None, **options):
        return subprocess.Popen([self.program, *arguments], cwd=self.folder, env={**self.environment, **(env or {})},
                                **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                   **options})

    def __call__(self, *arguments, env=None, input=None):
        child = self.start(*arguments, env=env, stdin=subprocess.PIPE)
        out, err = child.communicate(input or b"", timeout=60)
        return child.returncode, out, err.decode()

    def ok(self, *arguments, **options):
        status, out, err = self(*arguments, **options)
        assert (status, err) == (0, ""), (status, out, err)
        return out.decode(errors="surrogateescape")


@pytest.fixture
def cli(request, service, folder):
    return Cli(request.config.getoption("--program"), service, folder)


@pytest.fixture
def session(cli):
    name = "cli-" + client.marker()
    assert cli.ok("open", name) == name + "\n"
    yield name
    cli("rm", "--purge", name)


def test_open_and_rm(cli, workspaces):
    made = cli.ok("open").strip()
    assert re.fullmatch(r"s-[0-9a-f]{16}", made)
    status, out, err = cli("open", made)
    assert (status, out, err) == (1, b"", f"sandboxd: Session exists: {made} (HTTP 409; --reuse attaches to it)\n")
    status, out, err = cli("open", "a b")
    assert (status, out) == (1, b"")
    assert err.startswith("sandboxd: session_id: String should match pattern '^[A-Za-z0-9]") and "(HTTP 422)" in err
    assert cli.ok("open", made, "--reuse") == made + "\n"
    opened = json.loads(cli.ok("open", made, "--reuse", "--json"))
    assert opened["session"]["session_id"] == made and len(opened["token"]) == 43
    # A session's own token is enough for what is done in it.
    assert cli.ok("exec", made, "echo", "x", env={"SANDBOXD_TOKEN": opened["token"]}) == "x\n"
    assert cli.ok("rm", made) == ""
    assert (workspaces / made).exists()
    assert cli.ok("open", made, "--attach") == made + "\n"
    assert cli.ok("rm", "--purge", made) == ""
    assert not (workspaces / made).exists()
    status, _, err = cli("rm", made)
    assert status == 1 and "No such session" in err


def test_exec_passes_everything_on(cli, session):
    assert cli("exec", session, "--", "sh", "-c", "echo out; echo err >&2; exit 7") == (7, b"out\n", "err\n")
    assert cli.ok("exec", session, "printf", "%s|", "a b", "--json", "$HOME") == "a b|--json|$HOME|"
    assert cli.ok("exec", "--shell", session, "echo $((6 * 7)) | tr 4 x") == "x2\n"
    assert cli.ok("exec", "--env", "A=1=2", "--env", "B=", session, "sh", "-c", 'echo "$A-$B-"') == "1=2--\n"
    assert cli("exec", session, "no-such-program")[0] == 127
    assert cli("exec", session, "sh", "-c", "kill -9 $$")[0] == 137
    answer = json.loads(cli.ok("exec", "--json", session, "echo", "x"))
    assert (answer["stdout"], answer["exit_code"], answer["timed_out"]) == ("x\n", 0, False)


def test_exec_says_why_it_could_not(cli, session):
    for limit in ("0.5", "5.5", "20.5"):  # a busy machine may not let it come so far within the first
        status, out, err = cli("exec", "--timeout", limit, session, "sh", "-c", "echo partial; sleep 30")
        assert status == 124 and f"time limit of {limit} s" in err
        if out:
            break
    assert out == b"partial\n"
    status, _, err = cli("exec", session, "head", "-c", "11000000", "/dev/zero")
    assert status == 125 and "10485760 bytes" in err
    status, _, err = cli("exec", "never-opened", "true")
    assert status == 125 and "No such session" in err and "sandboxd sessions" in err
    assert cli("exec", "--timeout", "soon", session, "true")[0] == 125
    assert cli("exec", session)[0] == 2


def test_exec_is_stopped_with_the_client(cli, session):
    mark = client.marker()
    child = cli.start("exec", session, "sh", "-c", f"sleep {mark} & sleep {mark}")
    until(lambda: len(host.host_processes(mark)) >= 2, what="the start of the program")
    child.send_signal(signal.SIGINT)
    assert child.wait(15) == 130
    child.communicate()
    until(lambda: not host.host_processes(mark), what="the end of the program")


def test_a_second_signal_ends_a_client_whose_service_hangs(cli):
    """The first has the service asked to stop the program, and the answer waited for."""
    seen, ended = queue.Queue(), threading.Event()

    class Hanging(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(401)

        def do_POST(self):
            seen.put(self.path)
            ended.wait(120)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hanging) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        child = cli.start("exec", "--url", f"http://127.0.0.1:{server.server_port}", "s", "true")
        try:
            assert seen.get(timeout=60) == "/sessions/s/run"
            child.send_signal(signal.SIGINT)
            assert re.fullmatch("/sessions/s/runs/[0-9a-f]{32}/stop", seen.get(timeout=60))
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == -signal.SIGINT
        finally:
            ended.set()
            child.kill()
            child.communicate()
            server.shutdown()


def test_cp_both_ways(cli, session, folder):
    data = os.urandom(3_000_000)
    (folder / "data.bin").write_bytes(data)
    (folder / "tool").write_text("#!/bin/sh\necho works\n")
    (folder / "tool").chmod(0o755)
    assert cli.ok("cp", "data.bin", f"{session}:") == ""
    assert cli.ok("cp", "tool", f"{session}:bin/tool") == ""
    assert cli.ok("exec", session, "./bin/tool") == "works\n"
    assert cli.ok("exec", session, "wc", "-c", "data.bin") == "3000000 data.bin\n"
    assert cli.ok("cp", f"{session}:data.bin", "back.bin") == ""
    assert (folder / "back.bin").read_bytes() == data
    (folder / "into").mkdir()
    assert cli.ok("cp", f"{session}:/workspace/data.bin", "into") == ""
    assert (folder / "into/data.bin").read_bytes() == data
    assert cli.ok("cp", "-", f"{session}:from-stdin", input=b"piped\n") == ""
    assert cli.ok("cp", f"{session}:from-stdin", "-") == "piped\n"
    assert cli.ok("cp", "tool", f"{session}:/tmp/outside") == ""  # not the service's to write: by the shell
    assert cli.ok("cp", f"{session}:/tmp/outside", "-") == "#!/bin/sh\necho works\n"
    assert sorted(path.name for path in folder.iterdir()) == ["back.bin", "data.bin", "into", "tool"]


def test_cp_of_a_file_beyond_the_services_limit(cli, session, folder):
    data = os.urandom(12_000_000)
    (folder / "large").write_bytes(data)
    assert cli.ok("cp", "large", f"{session}:large") == ""
    assert cli.ok("cp", f"{session}:large", "again") == ""
    assert (folder / "again").read_bytes() == data


def test_cp_of_directories(cli, session, folder):
    (folder / "tree/sub").mkdir(parents=True)
    (folder / "tree/a b").write_text("1")
    (folder / "tree/sub/c").write_text("2")
    os.mkfifo(folder / "tree/fifo")
    status, _, err = cli("cp", "tree", f"{session}:")
    assert status == 1 and "--recursive" in err
    status, _, err = cli("cp", "-r", "tree", f"{session}:")
    assert status == 1 and err == "sandboxd: left out tree/fifo: neither a file nor a directory\n"
    assert cli.ok("exec", session, "cat", "tree/a b", "tree/sub/c") == "12"
    assert cli.ok("cp", "--recursive", f"{session}:tree", "out") == ""
    assert (folder / "out/a b").read_text() == "1" and (folder / "out/sub/c").read_text() == "2"


def test_cp_says_what_is_wrong(cli, session, folder):
    for arguments, part in [(("nowhere", f"{session}:x"), "nowhere: no such file"),
                            ((f"{session}:nowhere", "x"), "nowhere"),
                            (("a", "b"), "SESSION:PATH"),
                            ((f"{session}:a", f"{session}:b"), "two steps"),
                            ((f"{session}:.", "x"), "--recursive"),
                            (("-", f"{session}:"), "name the file")]:
        status, _, err = cli("cp", *arguments)
        assert status == 1 and part in err, (arguments, err)
    assert list(folder.iterdir()) == []


def test_ls_and_rm_of_files(cli, session):
    cli.ok("exec", session, "sh", "-c", "mkdir d; printf 12345 > d/five; printf x > 'a b'")
    assert cli.ok("ls", session) == "         1  a b\n         -  d/\n"
    assert cli.ok("ls", f"{session}:d") == "         5  five\n"
    assert cli.ok("ls", f"{session}:d/five") == "         5  five\n"
    [row] = json.loads(cli.ok("ls", "--json", f"{session}:d"))
    assert row == {"name": "five", "path": "/workspace/d/five", "is_dir": False, "size": 5}
    status, _, err = cli("rm", f"{session}:d")
    assert (status, err) == (1, f"sandboxd: {session}:d: a directory: --recursive removes it with what is in it\n")
    status, _, err = cli("rm", f"{session}:")
    assert (status, err) == (1, f"sandboxd: {session}:: that names no path; {session} alone closes the session\n")
    assert cli.ok("rm", "-r", f"{session}:d", f"{session}:a b") == ""
    assert cli.ok("ls", session) == ""
    status, _, err = cli("ls", f"{session}:d")
    assert status == 1 and "/workspace/d" in err


def test_ls_of_a_closed_session(cli):
    made = cli.ok("open").strip()
    cli.ok("exec", made, "sh", "-c", "echo x > kept")
    cli.ok("rm", made)
    assert cli.ok("ls", made) == "         2  kept\n"
    assert made not in cli.ok("sessions")
    cli.ok("open", made, "--attach")
    cli.ok("rm", "--purge", made)
    status, _, err = cli("ls", made)
    assert status == 1 and "No such session" in err


def test_names_cannot_reach_the_terminal(cli, session):
    cli.ok("exec", session, "sh", "-c", r"""touch "$(printf 'evil\033[31m\nname')" """)
    assert cli.ok("ls", session) == "         0  evil\x1b[31m\nname\n"  # a pipe gets the bytes
    ours, theirs = pty.openpty()
    child = cli.start("ls", session, stdout=theirs)
    os.close(theirs)
    child.wait(30)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    child.communicate()
    assert "\x1b" not in shown and r"evil\x1b[31m\nname" in shown


def test_sessions(cli, session):
    lines = cli.ok("sessions").splitlines()
    assert lines[0].split() == ["SESSION", "RUNTIME", "STATE", "IDLE", "TENANT"]
    [row] = [line.split() for line in lines if line.startswith(session + " ")]
    assert row[1:3] == ["host", "running"] and row[4] == "-"
    assert session in [one["session_id"] for one in json.loads(cli.ok("sessions", "--json"))["sessions"]]
    assert "MEMORY" in cli.ok("sessions", "--usage")


def test_events(cli, session):
    cli.ok("exec", session, "true")
    line = cli.ok("events", session).splitlines()[-1].split()
    assert line[0] == "1" and line[3:5] == ["run", "ok"]
    follower = cli.start("events", "--follow", "--json", session, text=True)
    assert json.loads(follower.stdout.readline())["seq"] == 1
    assert cli("exec", session, "false")[0] == 1
    second = json.loads(follower.stdout.readline())
    assert (second["seq"], second["ok"]) == (2, False)
    assert cli.ok("events", "--after", "2", session) == ""
    cli.ok("rm", "--purge", session)
    out, err = follower.communicate(timeout=60)
    assert (follower.returncode, out, err) == (0, "", "")


def test_a_service_that_is_not_there(cli):
    status, out, err = cli("sessions", "--url", "http://127.0.0.1:1")
    assert (status, out) == (1, b"")
    assert "http://127.0.0.1:1" in err and "--url or SANDBOXD_URL" in err
    assert cli("exec", "--url", "http://127.0.0.1:1", "s", "true")[0] == 125
    status, _, err = cli("sessions", "--url", "localhost:8080")
    assert status == 1 and "http://localhost:8080" in err


def test_tls_that_fails_is_told_with_the_way_out(cli, folder, service):
    status, _, err = cli("sessions", "--url", f"https://127.0.0.1:{service.port}")
    assert status == 1 and err.endswith("Does the service speak TLS there? If not, its URL begins with http://.\n"), err
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            status, _, err = cli("sessions", "--url", f"https://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
    assert status == 1
    assert err.endswith("--ca-file FILE says which certificates to believe, --insecure believes any.\n"), err


def test_tokens(cli, folder, service):
    (folder / "token").write_text(service.token + "\n")
    nothing = {"SANDBOXD_TOKEN": ""}
    status, _, err = cli("sessions", env=nothing)
    assert status == 1 and "SANDBOXD_TOKEN" in err and "--token-file" in err
    assert cli.ok("sessions", "--token-file", "token", env=nothing)
    assert cli.ok("sessions", env={**nothing, "SANDBOXD_TOKEN_FILE": "token"})
    assert cli.ok("sessions", "--token", service.token, env=nothing)
    status, _, err = cli("sessions", "--token", "wrong")
    assert status == 1 and "does not accept the token" in err
    status, _, err = cli("sessions", "--token-file", "missing", env=nothing)
    assert status == 1 and "missing" in err


def test_a_service_that_is_something_else(cli, folder):
    server = subprocess.Popen(["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "0"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env={"PYTHONUNBUFFERED": "1", "PATH": os.environ["PATH"]})
    try:
        port = re.search(r"port (\d+)", server.stdout.readline()).group(1)
        status, out, err = cli("sessions", "--url", f"http://127.0.0.1:{port}")
        assert (status, out) == (1, b"")
        assert err == (f"sandboxd: http://127.0.0.1:{port} answers GET /sessions with 404: is it sandboxd? "
                       "--url or SANDBOXD_URL says where it is.\n")
    finally:
        server.terminate()
        server.communicate()


@pytest.mark.parametrize("command", ["open", "exec", "cp", "ls", "rm", "sessions", "events"])
def test_help(cli, command):
    text = cli.ok(command, "--help")
    assert f"Usage: sandboxd {command}" in text and "\nExample:\n  sandboxd " + command in text
    assert "--token-file FILE" in text
    assert command in cli.ok("--help")
    status, _, err = cli(command, "--nope")
    assert status == 2 and f"sandboxd {command} --help" in err


def test_the_examples_of_the_documentation(cli, folder):
    """Every console block of docs/clients.md, run as it stands."""
    blocks = re.findall(r"```console\n(.*?)```", DOCS.read_text(), re.S)
    assert blocks
    for block in blocks:
        script = "\n".join(line[2:] for line in block.splitlines() if line.startswith("$ "))
        expected = "".join(line + "\n" for line in block.splitlines() if not line.startswith("$ "))
        path = f"{Path(cli.program).parent}:{os.environ['PATH']}"
        done = subprocess.run(["/bin/sh", "-ec", script], cwd=folder, env={**cli.environment, "PATH": path},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                              stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (0, expected), script
