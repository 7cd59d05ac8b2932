"""What others make of /openapi.json: a validator accepts it, a property-based tester that is driven by it finds
nothing, and a client that is generated from it opens a session and runs commands."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

HERE = Path(__file__).resolve().parent
PROGRAMS = Path(sys.executable).parent
SEED = 20261130
PATIENCE = 800  # s

# Negative data is not always refused, and must not be: numbers and booleans may be sent as strings, and unknown members
# of most bodies are ignored (contract 1.1.6).
LENIENT = "negative_data_rejection"


@pytest.fixture(scope="module")
def tried(services, root):
    """The service that is driven; a command ends after 5 s."""
    return services(workspace_root=root, execute_timeout=5, max_sessions=200)


@pytest.fixture(scope="module")
def document(tried, tmp_path_factory):
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_bytes(tried.request("GET", "/openapi.json", token=None).body)
    return path


def environment(tried, session):
    told = {"url": f"http://127.0.0.1:{tried.port}", "token": tried.token, "session": session}
    return {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(tried.directory), "PYTHONPATH": str(HERE),
            "SCHEMATHESIS_HOOKS": "hooks", "SANDBOXD_TRIED": json.dumps(told)}


def drive(tried, tmp_path, session, *options):
    """Runs schemathesis against the service; what it finds fails the test."""
    with tried.open(session_id="driven"):
        command = [PROGRAMS / "schemathesis", "--config-file", HERE / "schemathesis.toml", "run",
                   f"http://127.0.0.1:{tried.port}/openapi.json", "--no-color",
                   "--header", f"X-Sandbox-Token: {tried.token}", "--seed", str(SEED), "--generation-deterministic",
                   "--exclude-checks", LENIENT, "--continue-on-failure", "--request-timeout", "60",
                   "--suppress-health-check", "all", "--warnings", "off", *options]
        done = subprocess.run([str(part) for part in command], cwd=tmp_path, env=environment(tried, session),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-12000:]
    assert tried.request("GET", "/healthz").status == 200
    return done.stdout


def test_a_validator_accepts_the_document(document):
    errors = list(OpenAPIV31SpecValidator(json.loads(document.read_bytes())).iter_errors())
    assert errors == []


def test_schemathesis_finds_nothing(tried, tmp_path):
    said = drive(tried, tmp_path, "driven", "--max-examples", "12", "--phases", "examples,coverage,fuzzing",
                 "--exclude-path", "/policy")
    assert re.search(r"[1-9]\d* passed", said), said[-3000:]


def test_schemathesis_finds_nothing_about_the_policy(services, root, tmp_path):
    own = services(workspace_root=root, max_sessions=200)
    said = drive(own, tmp_path, "", "--max-examples", "40", "--phases", "coverage,fuzzing", "--include-path", "/policy")
    assert re.search(r"[1-9]\d* passed", said), said[-3000:]


def test_schemathesis_finds_nothing_from_one_request_to_the_next(services, root, tmp_path):
    own = services(workspace_root=root, execute_timeout=5, max_sessions=200)
    said = drive(own, tmp_path, "", "--max-examples", "20", "--phases", "stateful", "--exclude-path", "/policy")
    assert re.search(r"[1-9]\d* passed", said), said[-3000:]


USE = """
import json, os, uuid
from made import AuthenticatedClient, models
from made.api.commands import exec_command, run_program
from made.api.service import health
from made.api.sessions import close_session, list_sessions, open_session

told = json.loads(os.environ["SANDBOXD_TRIED"])

def client(token):
    return AuthenticatedClient(told["url"], token, prefix="", auth_header_name="X-Sandbox-Token", timeout=60)

service = client(told["token"])
opened = open_session.sync(client=service, body=models.OpenSessionRequest(session_id="generated", tenant="tests"))
assert isinstance(opened, models.SessionCreated), opened
mine = client(opened.token)
said = exec_command.sync("generated", client=mine, body=models.ExecRequest(command="echo $((6 * 7)); exit 3"))
assert (said.output, said.exit_code, said.truncated) == ("42\\n", 3, False), said
run = models.RunRequest(argv=["printf", "%s", "a b"], run_id=uuid.uuid4().hex)
done = run_program.sync("generated", client=mine, body=run)
assert (done.stdout, done.exit_code, done.timed_out) == ("a b", 0, False), done
assert health.sync(client=service).status == "ok"
listed = list_sessions.sync(client=service, usage=True)
assert "generated" in [one.session_id for one in listed.sessions], listed
assert isinstance(list_sessions.sync(client=mine), models.Refusal)
assert close_session.sync_detailed("generated", client=mine, purge=True).status_code == 204
print("done")
"""


def test_a_generated_client_opens_a_session_and_runs_commands(tried, document, tmp_path):
    made = subprocess.run([PROGRAMS / "openapi-python-client", "generate", "--path", document, "--meta", "none",
                           "--output-path", tmp_path / "made", "--fail-on-warning"], cwd=tmp_path,
                          env=environment(tried, ""), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert made.returncode == 0, made.stdout[-4000:]
    (tmp_path / "use.py").write_text(textwrap.dedent(USE))
    used = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, env=environment(tried, ""),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE)
    assert (used.returncode, used.stdout) == (0, "done\n"), used.stdout[-4000:]
