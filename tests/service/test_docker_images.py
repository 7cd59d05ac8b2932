"""Runtimes that are built or pulled, what only a real daemon has (contract 4.4 to 4.7; test_builds.py has the rest)."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import buildx_stand_in
from harness.builds import REPOSITORY, SLOW, built, lines, runtimes, tags
from harness.service import free_port
from harness.wait import until

pytestmark = pytest.mark.only("docker")

@pytest.fixture
def tags_of(docker):
    """tags_of(name): the tags of images that were built for runtimes whose name begins so."""
    return lambda name: tags(None, name, docker)


# Building ----------------------------------------------------------------------------------------------------------


def test_the_digest_is_the_references(services, images, tags_of):
    """Printed by the reference for the same definition."""
    service = services(runtimes=runtimes(images, plain=built("plain", "box", env_vars={"A": "b c"})))
    service.open(runtime="plain").close()
    assert tags_of("plain-") == [f"{REPOSITORY}:plain-{PLAIN_DIGEST}"]


PLAIN_DIGEST = "8b43c0794ada"


def test_a_stop_while_an_image_is_built_leaves_nothing(docker, services, images):
    service = services(runtimes=runtimes(images, long=built("long", "box", setup_commands=["sleep 600"])), prewarm=1, shutdown_grace=1)
    until(lambda: [c for c in docker.containers() if "sleep 600" in c["Command"]], what="the step")
    assert service.terminate() == 0
    until(lambda: not [c for c in docker.containers() if "sleep 600" in c["Command"]], what="the end of the build")


# Through buildx ----------------------------------------------------------------------------------------------------


def test_4_4_7_buildx_where_it_is_there(docker, services, images, package_base, tags_of):
    folder = Path(tempfile.mkdtemp(prefix="buildx-"))
    try:
        kept = folder / "kept"
        environment = {"DOCKER_HOST": docker.host, "PATH": buildx_stand_in.command(folder / "bin", kept), "HTTPS_PROXY": "http://127.0.0.1:1"}
        service = services(environment=environment, runtimes=runtimes(
            images, made=built("kit", package_base("pip"), packages=["hello_pip"]),
            bad=built("kit-bad", "box", setup_commands=["echo some words; exit 3"])))
        assert service.request("GET", "/policy").json()["buildkit"] is True
        with service.open(runtime="made") as session:
            assert session.sh("hello-pip") == "hello from pip\n"
        asked = json.loads(kept.read_text().splitlines()[0])
        assert asked["args"][:3] == ["buildx", "build", "--load"]
        assert asked["args"][asked["args"].index("--tag") + 1] == tags_of("kit-")[0]
        assert asked["args"][asked["args"].index("--build-arg") + 1] == "HTTPS_PROXY"
        assert asked["dockerfile"].splitlines()[0] == "# syntax=docker/dockerfile:1"
        assert "RUN --mount=type=cache,target=/root/.cache/pip,sharing=locked pip install hello_pip" in asked["dockerfile"]
        answer = service.request("POST", "/sessions", {"runtime": "bad"})
        assert answer.status == 502 and "some words" in answer.detail
    finally:
        shutil.rmtree(folder)


def test_4_4_7_the_classic_builder_without_it(service):
    assert service.request("GET", "/policy").json()["buildkit"] is False


def test_proxy_settings_reach_the_steps_and_not_the_image(docker, services, images):
    environment = {"DOCKER_HOST": docker.host, "HTTP_PROXY": "http://127.0.0.1:1/x", "no_proxy": "here"}
    service = services(environment=environment, runtimes=runtimes(images, made=built(
        "proxied", "box", setup_commands=["echo $HTTP_PROXY $http_proxy $NO_PROXY $no_proxy >/made"])))
    with service.open(runtime="made") as session:
        assert session.sh("cat /made; echo [$HTTP_PROXY]") == "http://127.0.0.1:1/x http://127.0.0.1:1/x here here\n[]\n"


# Pulling -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registry(docker):
    """A registry on loopback that wants a password; (address, environment with the credentials, image in it)."""
    program = shutil.which("docker-registry") or shutil.which("registry")
    if program is None:
        pytest.skip("no registry program: apt-get install docker-registry")
    folder = Path(tempfile.mkdtemp(prefix="registry-"))
    address = f"127.0.0.1:{free_port()}"
    (folder / "htpasswd").write_text(HTPASSWD)
    (folder / "config.yml").write_text(f"""
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}}}
http: {{addr: {address}}}
auth: {{htpasswd: {{realm: tests, path: {folder}/htpasswd}}}}
""")
    process = subprocess.Popen([program, "serve", folder / "config.yml"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        until(lambda: _listens(address), what="the registry")
        (folder / "docker").mkdir()
        (folder / "docker/config.json").write_text(json.dumps({"auths": {address: {"auth": "dXNlcjpzZWNyZXQ="}}}))
        _push(docker, "box", f"{address}/kept/box", "1", folder / "docker")
        yield address, {"DOCKER_HOST": docker.host, "DOCKER_CONFIG": str(folder / "docker")}, f"{address}/kept/box:1"
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder)


# user:secret, bcrypt
HTPASSWD = "user:$2y$05$BMJ1hokeM38JFLbWXWOoGuPKqL34Jh66QHL2.66wTrsOYeXi6pjEe\n"


def _listens(address):
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def _push(docker, image, repository, tag, login):
    assert docker.request("POST", f"/images/{image}/tag?repo={repository}&tag={tag}")[0] == 201
    done = subprocess.run(["docker", "-H", docker.host, "push", f"{repository}:{tag}"], capture_output=True, text=True, timeout=120,
                          env={"PATH": os.environ["PATH"], "DOCKER_CONFIG": str(login)})
    assert done.returncode == 0, done.stderr
    docker.request("DELETE", f"/images/{repository}:{tag}")


def test_4_5_a_pull_with_the_docker_commands_credentials(docker, services, registry):
    address, environment, image = registry
    with_password = services(environment=environment, runtimes=json.dumps({"kept": image}))
    with with_password.open(runtime="kept") as session:
        assert session.sh("busybox | head -1").startswith("BusyBox")
    assert len(lines(with_password, f"image {image} is pulled")) == 1
    docker.request("DELETE", f"/images/{image}")
    without = services(runtimes=json.dumps({"kept": image}))
    answer = without.request("POST", "/sessions", {"runtime": "kept"})
    assert answer.status == 502 and "kept/box" in answer.detail


def test_8_1_195_a_pass_pulls_what_is_ready_and_builds_the_rest(docker, services, images, registry, tags_of):
    address, environment, image = registry
    docker.request("DELETE", f"/images/{image}")
    service = services(environment=environment, runtimes=runtimes(images, kept=image, made=built("pass", "box")), prewarm=1)
    until(lambda: lines(service, "the images of all runtimes are here"), SLOW, "the end of the pass")
    assert len(lines(service, f"image {image} is pulled")) == 1 and len(tags_of("pass-")) == 1
    assert image in docker.get(f"/images/{image}/json")["RepoTags"]


def test_a_base_image_is_pulled_with_them_too(docker, services, images, registry):
    address, environment, image = registry
    docker.request("DELETE", f"/images/{image}")
    service = services(environment=environment, runtimes=runtimes(images, made=built("on-kept", image)))
    with service.open(runtime="made") as session:
        assert session.sh("echo up") == "up\n"
