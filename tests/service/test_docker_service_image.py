"""The service's own image (contract N12, docs/images.md): built by the classic builder from this machine's package sources, and
run against the tests' daemon."""

import io
import json
import subprocess
import tarfile
import urllib.parse
from pathlib import Path

import pytest

from harness import client
from harness.service import ROOT, free_port
from harness.wait import until

pytestmark = pytest.mark.only("docker")

CONTEXT = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "docker", "include", "src", "Dockerfile"]
SLIM = 75_000_000  # of the slim Debian that is the default base; the one made here is larger
LARGEST = 140_000_000  # the libraries and tools from Debian are 56 MB of it, the service 7
BUILD = 1800  # s; compiling included with --long


def sources():
    """The lines of a sources.list for the Debian repositories that this machine uses."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN)\t$(REPO_URI)\t$(RELEASE)\t$(COMPONENT)", "Created-By: Packages"],
                            capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        origin, uri, release, component = line.split("\t")
        if origin == "Debian":
            found.setdefault((uri, release), []).append(component)
    assert found, "apt knows no Debian repository: apt-get update"
    return "".join(f"deb {uri} {release} {' '.join(sorted(set(those)))}\n" for (uri, release), those in sorted(found.items()))


def apt_options():
    """How this machine's apt reaches them: proxies."""
    listed = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return [f"--aptopt={line}" for line in listed.splitlines() if line.startswith("Acquire::") and "Proxy" in line and not line.endswith('"";')]


@pytest.fixture(scope="module")
def base(docker, trees):
    """A minimal Debian, as small as the slim one of the registries."""
    tree = trees.directory / "service-base.tar"
    listing = trees.directory / "service-base.list"
    listing.write_text(sources())
    done = subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", "--format=tar", *apt_options(),
                           *[f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "locale", "info", "lintian")],
                           "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright",
                           "bookworm", tree, listing], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    with open(tree, "rb") as packed:
        status, text = docker.request("POST", "/images/create?fromSrc=-&repo=service-base", packed, timeout=300)
    assert status == 200 and "error" not in str(text), text
    tree.unlink()
    return "service-base"


def context(folders):
    """The build context as a tar; `folders` are further ones, by their names in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in CONTEXT:
            tar.add(ROOT / name, name)
        for name, folder in folders.items():
            tar.add(folder, name)
    return packed.getvalue()


def build(docker, tag, folders, **arguments):
    query = urllib.parse.urlencode({"t": tag, "rm": 1, "forcerm": 1, "networkmode": "host", "buildargs": json.dumps(arguments)})
    status, text = docker.request("POST", f"/build?{query}", context(folders), timeout=BUILD)
    said = text.decode(errors="replace") if isinstance(text, bytes) else json.dumps(text)
    assert status == 200 and '"error"' not in said, said[-4000:]
    return tag


def added(docker, image):
    """Bytes on top of the base."""
    return docker.get(f"/images/{image}/json")["Size"] - docker.get("/images/service-base/json")["Size"]


@pytest.fixture(scope="module")
def image(request, docker, base, trees):
    """The image from programs that are there already."""
    program = Path(request.config.getoption("--program"))
    folder = trees.directory / "dist"
    folder.mkdir()
    for name in ("sandboxd", "sandboxd-agent"):
        subprocess.run(["strip", "-o", folder / name, program.parent / name], check=True, timeout=120)
    return build(docker, "service-image", {"dist": folder}, BASE=base, PREBUILT="dist")


class Running:
    """A container of the service's image, with the daemon's socket."""

    def __init__(self, docker, image, command=(), **settings):
        self.docker = docker
        self.port = free_port()
        self.token = "the-token"
        values = {"token": self.token, "host": "127.0.0.1", "port": self.port, "prewarm": 0, "on_shutdown": "stop",
                  "runtimes": "box=box", **settings}
        body = {"Image": image, "Cmd": list(command), "Env": [f"SANDBOXD_{name.upper()}={value}" for name, value in values.items()],
                "HostConfig": {"NetworkMode": "host", "Binds": [f"{docker.socket}:/var/run/docker.sock"],
                               "GroupAdd": [str(docker.socket.stat().st_gid)]}}
        status, made = docker.request("POST", "/containers/create", body)
        assert status == 201, made
        self.id = made["Id"]
        status, text = docker.request("POST", f"/containers/{self.id}/start")
        assert status == 204, text

    def state(self):
        return self.docker.inspect(self.id)["State"]

    def log(self):
        return self.docker.request("GET", f"/containers/{self.id}/logs?stdout=1&stderr=1")[1].decode(errors="replace")

    def request(self, method, path, body=None):
        return client.request(self.port, method, path, body, None, self.token)

    def wait(self):
        status, ended = self.docker.request("POST", f"/containers/{self.id}/wait", timeout=300)
        assert status == 200
        return ended["StatusCode"]

    def remove(self):
        self.docker.request("DELETE", f"/containers/{self.id}?force=1&v=1")


@pytest.fixture
def run(docker, image):
    made = []

    def start(*command, **settings):
        made.append(Running(docker, image, command, **settings))
        return made[-1]

    yield start
    for one in made:
        one.remove()


def test_n12_what_the_image_presets(docker, image):
    found = docker.get(f"/images/{image}/json")
    config = found["Config"]
    assert config["User"] == "10001:10001"
    assert {"SANDBOXD_HOST=0.0.0.0", "SANDBOXD_PORT=8080", "SANDBOXD_WORKSPACE_ROOT=/workspaces", "SANDBOXD_STATE_DIR=/state"} <= set(config["Env"])
    assert sorted(config["Volumes"]) == ["/state", "/workspaces"]
    assert list(config["ExposedPorts"]) == ["8080/tcp"]
    assert config["Healthcheck"]["Test"][0] == "CMD"
    assert added(docker, image) < LARGEST - SLIM


def test_the_service_in_its_image_opens_sessions_on_the_hosts_daemon(docker, run):
    one = run()
    until(lambda: one.state()["Running"] and one.state()["Health"]["Status"] == "healthy", seconds=90, what="the health check")
    assert one.request("GET", "/policy").json()["buildkit"] is False
    answer = one.request("POST", "/sessions", {})
    assert answer.status == 200, (answer, one.log())
    session = client.Session(one.port, answer.json())
    assert session.sh("echo from the inside; id -u") == "from the inside\n0\n"
    session.write("/workspace/f", "kept")
    assert session.sh("cat /workspace/f") == "kept"
    top = docker.get(f"/containers/{one.id}/top?ps_args=-o%20pid,uid,args")["Processes"]
    assert [row[1] for row in top if "sandboxd" in row[2]] == ["10001"]
    session.close()
    assert docker.request("POST", f"/containers/{one.id}/stop?t=60", timeout=90)[0] == 204
    assert one.state()["ExitCode"] == 0, one.log()


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


def test_the_build_stage_compiles_the_service(docker, base, long):
    """With --long only: it takes many minutes."""
    if not long:
        pytest.skip("compiling the service takes many minutes: pytest --long")
    build(docker, "service-compiled", {}, BASE=base)
    assert added(docker, "service-compiled") < LARGEST - SLIM
