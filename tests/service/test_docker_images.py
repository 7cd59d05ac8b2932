"""Runtimes that are built or pulled, what only a real daemon has (contract 4.4 to 4.7; test_builds.py has the rest)."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from harness import buildx_stand_in
from harness.builds import REPOSITORY, SLOW, built, lines, runtimes, tags
from harness.registry import ABSENT, PROGRAM, Registry
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
def registry(docker, tmp_path_factory):
    """A registry on loopback that wants a password; (address, environment with the credentials, image in it)."""
    if PROGRAM is None:
        pytest.skip(ABSENT)
    made = Registry(password="secret")
    try:
        image = made.push_from(docker, "box", "kept/box")
        folder = tmp_path_factory.mktemp("docker")
        (folder / "config.json").write_text(json.dumps(made.login()))
        yield made.host, {"DOCKER_HOST": docker.host, "DOCKER_CONFIG": str(folder)}, image
    finally:
        made.stop()


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
