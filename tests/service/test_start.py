"""Start-up from outside: contract 5.1, 5.2, N2 (U.N.4, U.N.5), the issue's section 2."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.service import Service, free_port
from harness.wait import until


@pytest.fixture(scope="module")
def program(request):
    return request.config.getoption("--program")


@pytest.fixture
def directory():
    path = Path(tempfile.mkdtemp(prefix="start-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def invoke(program, directory):
    """invoke(*arguments, NAME=value): the finished process, started with a token and nothing else."""
    def call(*arguments, **variables):
        environment = {"PATH": os.environ["PATH"], "SANDBOXD_TOKEN": "a-token", "SANDBOXD_STATE_DIR": str(directory / "s"),
                       "SANDBOXD_RUNTIMES": "host=host", "SANDBOXD_PORT": str(free_port()), **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        return subprocess.run([program, *arguments], env=environment, cwd="/", stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=20)

    return call


def one_line(done, status=1):
    """The one line on standard error of a start that was refused."""
    assert done.returncode == status, done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize("variables, fragments", [
    ({"SANDBOXD_TOKEN": None}, ["SANDBOXD_TOKEN", "run commands on this host"]),
    ({"SANDBOXD_TOKEN": ""}, ["SANDBOXD_TOKEN", "run commands on this host"]),
    ({"SANDBOXD_MAX_SESSIONS": "lots"}, ["SANDBOXD_MAX_SESSIONS='lots'"]),
    ({"SANDBOXD_PORT": "http"}, ["SANDBOXD_PORT='http'"]),
    ({"SANDBOXD_PORT": "70000"}, ["SANDBOXD_PORT"]),
    ({"SANDBOXD_PREWARM": "maybe"}, ["SANDBOXD_PREWARM", "yes", "off"]),
    ({"SANDBOXD_NATIVE_FILES": "maybe"}, ["SANDBOXD_NATIVE_FILES='maybe' is not a boolean. Use one of "]),
    ({"SANDBOXD_NATIVE_FILES": ""}, ["SANDBOXD_NATIVE_FILES"]),
    ({"SANDBOXD_MAX_RUNNING_COMMANDS": "lots"}, ["SANDBOXD_MAX_RUNNING_COMMANDS='lots' is not valid: "]),
    ({"SANDBOXD_MAX_RUNNING_COMMANDS": "0"}, ["SANDBOXD_MAX_RUNNING_COMMANDS"]),
    ({"SANDBOXD_WORK_DIR": ""}, ["SANDBOXD_WORK_DIR"]),
    ({"SANDBOXD_MEM_LIMIT": "plenty"}, ["SANDBOXD_MEM_LIMIT", "plenty"]),
    ({"SANDBOXD_EVICT_IDLE_AFTER": "60"}, ["evict_idle_after needs workspace_root"]),
    ({"SANDBOXD_MAX_OPEN_SESSIONS": "5"}, ["is below max_sessions"]),
    ({"SANDBOXD_DEFAULT_RUNTIME": "other"}, ["other", "not in runtimes"]),
    ({"SANDBOXD_RUNTIMES": " , "}, ["SANDBOXD_RUNTIMES", "Unset it"]),
    ({"SANDBOXD_RUNTIMES": "host"}, ["SANDBOXD_RUNTIMES", "Example:"]),
    ({"SANDBOXD_RUNTIMES": "a=@no-such-runtime"}, ["no-such-runtime"]),
    ({"SANDBOXD_RUNTIMES": "a=host;network_mode=host"}, ["network_mode"]),
    ({"SANDBOXD_NETWORK_MODE": "host"}, ["SANDBOXD_NETWORK_MODE"]),
    ({"SANDBOXD_RUNTIMES": "a=host;colour=red"}, ["colour", "does not have"]),
    ({"SANDBOXD_LOG_LEVEL": "loud"}, ["SANDBOXD_LOG_LEVEL"]),
    ({"SANDBOXD_TLS_CERT": "/no/such/cert"}, ["SANDBOXD_TLS_"]),
    ({"SANDBOXD_BACKEND": "podman"}, ["SANDBOXD_BACKEND", "podman"]),
    ({"SANDBOXD_UID_RANGE": "5-1"}, ["SANDBOXD_UID_RANGE"]),
    ({"SANDBOXD_USER": "no-such-account-here"}, ["SANDBOXD_USER", "no-such-account-here"]),
])
def test_5_1_and_5_2_what_is_wrong_is_one_line_and_nothing_listens(invoke, variables, fragments):
    line = one_line(invoke("--backend", "oci", **variables) if "SANDBOXD_BACKEND" not in variables else
                    invoke(**variables))
    for fragment in fragments:
        assert fragment in line
    assert "a-token" not in line


@pytest.mark.parametrize("arguments, variables", [
    (["--backend", "docker"], {"DOCKER_HOST": "unix:///no/such/docker.sock"}),
    ([], {"DOCKER_HOST": "unix:///no/such/docker.sock", "SANDBOXD_BACKEND": None}),
])
def test_a_daemon_that_is_asked_for_and_does_not_answer_is_told(invoke, arguments, variables):
    done = invoke(*arguments, **variables)
    assert done.returncode == 1, done
    *waiting, last = done.stderr.strip().splitlines()
    assert all("trying again" in line for line in waiting)
    assert "no docker daemon answers at unix:///no/such/docker.sock" in last


def test_a_docker_context_that_is_not_there_matters_only_when_it_is_asked_for(program, invoke, directory):
    folder = directory / "home" / ".docker"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"currentContext": "removed"}')
    words = "the docker context 'removed' does not exist"
    service = Service(program, backend=None, environment={"HOME": str(directory / "home")})
    try:
        service.start()
        assert f"backend oci ({words}" in service.log.read_text()
        service.stop()
    finally:
        service.discard()
    assert words in one_line(invoke(HOME=str(directory / "home"), DOCKER_CONTEXT="removed"))


def test_an_unknown_flag_and_a_missing_value_are_refused(invoke):
    assert "--colour" in one_line(invoke("--colour"), status=2)
    assert "--listen" in one_line(invoke("--listen"), status=2)
    done = invoke("--listen", "nonsense")
    assert "nonsense" in one_line(done, done.returncode) and done.returncode in (1, 2)


def test_a_port_in_use_is_refused(invoke):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = invoke("--backend", "oci", "--listen", f"127.0.0.1:{port}")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (f"sandboxd: cannot listen on 127.0.0.1, port {port}: Address already in "
                                                "use. SANDBOXD_HOST and SANDBOXD_PORT, or --listen, say where")


def test_a_certificate_that_is_none_names_its_setting(invoke, directory):
    (directory / "text.pem").write_text("hello")
    done = invoke("--backend", "oci", SANDBOXD_TLS_CERT=str(directory / "text.pem"),
                  SANDBOXD_TLS_KEY=str(directory / "text.pem"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"sandboxd: SANDBOXD_TLS_CERT and SANDBOXD_TLS_KEY: {directory}/text.pem holds no certificate in PEM form: ")


def test_version_and_help(invoke):
    version = invoke("--version", SANDBOXD_TOKEN=None)
    assert version.returncode == 0
    assert version.stdout.startswith("sandboxd 0.1.0")
    help = invoke("--help", SANDBOXD_TOKEN=None)
    assert help.returncode == 0
    for flag in ("--help", "--version", "--config", "--listen", "--backend"):
        assert flag in help.stdout


def test_an_unknown_key_of_the_file_suggests_the_nearest(invoke, directory):
    file = directory / "sandboxd.jsonc"
    file.write_text('{\n  // a comment\n  "max_sesions": 3\n}\n')
    line = one_line(invoke("--backend", "oci", "--config", str(file)))
    assert "max_sesions" in line and "max_sessions" in line.replace("max_sesions", "")


def test_the_file_sets_and_the_environment_wins(invoke, directory):
    file = directory / "sandboxd.jsonc"
    file.write_text('{"max_sessions": 3, /* why not */ "pids_limit": 77}')
    done = invoke("config", "--config", str(file), SANDBOXD_MAX_SESSIONS="4")
    assert done.returncode == 0, done
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["max_sessions"] == ["environment", "4"]
    assert rows["pids_limit"] == ["file", "77"]
    assert rows["cpus"][0] == "default"


def test_config_masks_secrets_and_tells_what_is_not_in_effect_yet(invoke):
    done = invoke("config", SANDBOXD_TOKEN="very-secret-token")
    assert done.returncode == 0
    assert "very-secret-token" not in done.stdout + done.stderr
    assert "not yet in effect" in done.stdout


def test_the_token_may_come_from_a_file(program, directory):
    file = directory / "token"
    file.write_text("from-a-file\n")
    file.chmod(0o600)
    service = Service(program, token=None, token_file=file)
    try:
        service.start()
        assert service.request("GET", "/policy", token="from-a-file").status == 200
        assert service.request("GET", "/policy", token="other").status == 401
        service.stop()
    finally:
        service.discard()


def test_the_start_up_line_names_the_backend_and_the_address(service):
    text = service.log.read_text()
    assert "oci" in text
    assert f"127.0.0.1:{service.port}" in text


def test_log_lines_can_be_json(services):
    service = services(log_format="json")
    service.request("GET", "/healthz", headers={"X-Request-Id": "in-json-77"})
    until(lambda: "in-json-77" in service.log.read_text(), what="the line")
    for line in service.log.read_text().splitlines():
        assert isinstance(json.loads(line), dict)


def test_term_right_after_the_start_is_clean(program):
    for _ in range(5):
        service = Service(program)
        try:
            service.start()
            service.stop()
        finally:
            service.discard()


def test_the_state_directory_is_for_its_owner_only(service):
    assert service.state.stat().st_mode & 0o077 == 0
    for path in service.state.rglob("*"):
        if path.is_file() and "key" in path.name:
            assert path.stat().st_mode & 0o777 == 0o600
