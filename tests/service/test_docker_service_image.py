"""The service's own image (contract N12, docs/images.md): built by the classic builder from this machine's package sources, and
run against the tests' daemon, by itself and through compose.yaml."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import buildx_stand_in, client, rootfs, service_image
from harness.service import ROOT, free_port
from harness.wait import until

pytestmark = pytest.mark.only("docker")

SLIM = 74_800_000  # bytes of the slim Debian that is the default base
LIMIT = 120_000_000  # of the whole image


@pytest.fixture(scope="module")
def base(docker, trees):
    return service_image.load_base(docker, trees.directory, "service-base")


@pytest.fixture(scope="module")
def prebuilt(request, trees):
    """A folder with the programs that are tested, stripped."""
    program = Path(request.config.getoption("--program"))
    folder = trees.directory / "dist"
    folder.mkdir()
    for name in ("sandboxd", "sandboxd-agent"):
        subprocess.run(["strip", "-o", folder / name, program.parent / name], check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def image(docker, base, prebuilt):
    """The image from programs that are there already."""
    return service_image.build(docker, "service-image", {"dist": prebuilt}, BASE=base, PREBUILT="dist")


@pytest.fixture
def run(docker, image):
    """run(*command, of=image, **settings): a container, removed at the end of the test."""
    made = []

    def start(*command, of=image, **settings):
        made.append(service_image.Container(docker, of, command, **settings))
        return made[-1]

    yield start
    for one in made:
        one.remove()


def check_size(docker, image):
    """Of all its layers, on a base that is not smaller than the default one."""
    base = docker.get("/images/service-base/json")["Size"]
    whole = docker.get(f"/images/{image}/json")["Size"]
    assert whole - base + max(base, SLIM) < LIMIT, f"{whole} bytes, {base} of them the base"


def check_session(one):
    """A healthy service opens a session on the host's daemon and runs commands in it."""
    until(one.healthy, seconds=90, what="the health check")
    answer = one.request("POST", "/sessions", {})
    assert answer.status == 200, (answer, one.log())
    session = client.Session(one.port, answer.json())
    assert session.sh("echo from the inside; id -u") == "from the inside\n0\n"
    session.write("/workspace/f", "kept")
    assert session.sh("cat /workspace/f") == "kept"
    return session


def test_n12_what_the_image_presets(docker, image):
    config = docker.get(f"/images/{image}/json")["Config"]
    assert config["User"] == "10001:10001"
    assert {"SANDBOXD_HOST=0.0.0.0", "SANDBOXD_PORT=8080", "SANDBOXD_WORKSPACE_ROOT=/workspaces", "SANDBOXD_STATE_DIR=/state"} <= set(config["Env"])
    assert sorted(config["Volumes"]) == ["/state", "/workspaces"]
    assert list(config["ExposedPorts"]) == ["8080/tcp"]
    assert config["Healthcheck"]["Test"][0] == "CMD"


def test_the_image_is_below_120_mb(docker, image):
    check_size(docker, image)


def test_the_service_in_its_image_opens_sessions_on_the_hosts_daemon(docker, run):
    one = run()
    session = check_session(one)
    assert one.request("GET", "/policy").json()["buildkit"] is False
    top = docker.get(f"/containers/{one.id}/top?ps_args=-o%20pid,uid,args")["Processes"]
    assert [row[1] for row in top if "sandboxd" in row[2]] == ["10001"]
    session.close()
    assert docker.request("POST", f"/containers/{one.id}/stop?t=60", timeout=90)[0] == 204
    assert one.state()["ExitCode"] == 0, one.log()


def test_text_of_a_pdf_is_read_with_what_the_image_holds(docker, image, run):
    """pdftotext finds all its libraries, and Boost's licence is still told beside each of its libraries."""
    one = run()
    until(one.healthy, seconds=90, what="the health check")
    command = "pdftotext -v 2>&1 | head -n 1; for f in /usr/share/doc/libboost-*/copyright; do grep -c 'Boost Software License' $f; done"
    status, made = docker.request("POST", f"/containers/{one.id}/exec", {"Cmd": ["sh", "-c", command], "AttachStdout": True, "Tty": True})
    assert status == 201, made
    status, text = docker.request("POST", f"/exec/{made['Id']}/start", {"Detach": False, "Tty": True})
    lines = text.decode().split("\r\n")
    assert lines[0].startswith("pdftotext version "), lines
    assert len(lines) == 5 and all(int(count) > 0 for count in lines[1:4]), lines


def test_prepare_in_a_one_off_container(docker, run):
    entry = {"runtime": {"name": "by-image", "base_image": "box", "env_vars": {"A": "1"}}}
    one = run("prepare", runtimes=json.dumps({"box": "box", "made": entry}))
    assert one.wait() == 0, one.log()
    assert any("by-image-" in tag for image in docker.get("/images/json") for tag in image["RepoTags"] or [])


def test_the_health_check_fails_while_nothing_answers(docker, run):
    one = run("config")  # ends at once
    assert one.wait() == 0
    check = ROOT / "docker/healthcheck"
    done = subprocess.run([check], env={"PATH": "/usr/bin:/bin", "SANDBOXD_PORT": str(free_port())}, capture_output=True, timeout=20)
    assert done.returncode == 1


# With the Docker command -----------------------------------------------------------------------------------------------


def test_a_build_argument_adds_the_docker_command_and_buildx(docker, base, prebuilt, trees, run):
    """Its image is one like docker:cli: any small system with both programs where that one has them."""
    tree = rootfs.busybox(trees.directory / "cli")
    for path, program in buildx_stand_in.docker_command(trees.directory).items():
        (tree / path).parent.mkdir(parents=True)
        shutil.copy(program, tree / path)
    docker.load(tree, "service-cli", ENV="PATH=/bin")
    image = service_image.build(docker, "service-with-cli", {"dist": prebuilt}, BASE=base, PREBUILT="dist", DOCKER_CLI="service-cli")
    one = run(of=image)
    until(one.healthy, seconds=90, what="the health check")
    assert one.request("GET", "/policy").json()["buildkit"] is True


# compose.yaml ----------------------------------------------------------------------------------------------------------


class Compose:
    """The `docker-compose` command on compose.yaml and an override of the tests' settings."""

    def __init__(self, docker, folder):
        self.port = free_port()
        self.workspaces = folder / "workspaces"
        self.workspaces.mkdir()
        os.chown(self.workspaces, 10001, 10001)
        settings = {"SANDBOXD_RUNTIMES": "box=box", "SANDBOXD_PREWARM": "0", "SANDBOXD_ON_SHUTDOWN": "stop"}
        (folder / "override.json").write_text(json.dumps({"services": {"sandboxd": {"environment": settings}}}))
        self.command = ["docker-compose", "--project-name", "sandboxdtest", "--file", ROOT / "compose.yaml", "--file", folder / "override.json"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "DOCKER_HOST": docker.host,
                            "SANDBOXD_TOKEN": "a token of compose", "DOCKER_GROUP": str(docker.socket.stat().st_gid),
                            "DOCKER_SOCKET": str(docker.socket), "SANDBOXD_WORKSPACES": str(self.workspaces),
                            "SANDBOXD_ADDRESS": f"127.0.0.1:{self.port}"}

    def __call__(self, *arguments, without=None):
        environment = {name: value for name, value in self.environment.items() if name != without}
        return subprocess.run([*self.command, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300)


@pytest.fixture
def compose(docker, image):
    # The daemon makes the bind mounts, and the service's account must reach the folder: no private directory above it.
    folder = Path("/var/lib") / f"sandboxd-compose-{os.getpid()}"
    folder.mkdir(mode=0o755)
    assert docker.request("POST", f"/images/{image}/tag?repo=sandboxd&tag=latest")[0] == 201
    made = Compose(docker, folder)
    yield made
    down = made("down", "--volumes", "--timeout", "60")
    docker.request("DELETE", "/images/sandboxd:latest")
    shutil.rmtree(folder)
    assert down.returncode == 0, down.stderr


@pytest.mark.parametrize("name", ["SANDBOXD_TOKEN", "DOCKER_GROUP"])
def test_compose_names_what_it_must_be_told(compose, name):
    done = compose("config", without=name)
    assert done.returncode != 0 and f"{name}" in done.stderr, done.stderr


def test_compose_starts_a_service_that_opens_sessions_and_stops_it(docker, compose):
    done = compose("run", "--rm", "--no-deps", "-T", "sandboxd", "prepare")
    assert done.returncode == 0, done.stderr
    done = compose("up", "--no-build", "--detach")
    assert done.returncode == 0, done.stderr
    service = docker.inspect(compose("ps", "--quiet", "sandboxd").stdout.strip())["Id"]
    until(lambda: docker.inspect(service)["State"]["Health"]["Status"] == "healthy", seconds=90, what="the health check")
    answer = client.request(compose.port, "POST", "/sessions", {"session_id": "one"}, None, "a token of compose")
    assert answer.status == 200, answer
    session = client.Session(compose.port, answer.json())
    assert session.sh("echo hello >/workspace/f; cat /workspace/f") == "hello\n"
    assert (compose.workspaces / "one/workspace/f").read_text() == "hello\n"  # the host's folder, by the same path on both sides
    assert client.request(compose.port, "GET", "/policy", None, None, "a token of compose").json()["native_files"] is True
    done = compose("stop")
    assert done.returncode == 0, done.stderr
    assert docker.inspect(service)["State"]["ExitCode"] == 0
    left = [one["Names"] for one in docker.containers() if one["Image"] == "box"]
    assert left == []


# Compiled by the build ---------------------------------------------------------------------------------------------------


def test_the_build_stage_compiles_a_service_that_works(docker, base, long, run):
    """With --long only: it takes many minutes."""
    if not long:
        pytest.skip("compiling the service takes many minutes: pytest --long")
    check_size(docker, service_image.build(docker, "service-compiled", {}, BASE=base))
    check_session(run(of="service-compiled")).close()
