"""Runtimes that are built or pulled, on a real daemon (contract 4.4 to 4.7, 5.7, N10; design "Decided" 13)."""

import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness import packages
from harness.service import Service, free_port
from harness.wait import until

pytestmark = pytest.mark.only("docker")

REPOSITORY = "pydantic-ai-backend-runtime"
SLOW = 300  # s, of an open that builds, on a machine with much else to do


@pytest.fixture(scope="module")
def base(docker, trees):
    """An image with package managers and a package for each."""
    return docker.load(packages.base(trees.directory / "package-base"), "package-base", ENV=packages.ENV)


def runtimes(**entries):
    return json.dumps({"box": "box", **entries})


def built(name, base_image="box", **fields):
    return {"runtime": {"name": name, "base_image": base_image, **fields}}


def tags(docker, name=""):
    found = [tag for image in docker.get("/images/json") for tag in image["RepoTags"] or []]
    return sorted(tag for tag in found if tag.startswith(f"{REPOSITORY}:{name}"))


def lines(service, text):
    return [line for line in service.log.read_text(errors="replace").splitlines() if text in line]


def told(service):
    """What `prepare` has written to its stderr so far."""
    file = service.directory / "prepare"
    return file.read_text(errors="replace") if file.exists() else ""


def prepare(service):
    """`sandboxd prepare` with the settings of a service that is not started."""
    with open(service.directory / "prepare", "w") as errors:
        done = subprocess.run([service.program, "--backend", "docker", "prepare"], env=service.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=SLOW)
    done.stderr = told(service)
    return done


@pytest.fixture
def unstarted(request, docker):
    """A Service with settings, for commands beside it; removed at the end."""
    made = []

    def make(**settings):
        one = Service(request.config.getoption("--program"), backend="docker",
                      **{"environment": {"DOCKER_HOST": docker.host}, **settings})
        made.append(one)
        return one

    yield make
    for one in made:
        one.discard()


# Building ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manager,package,check", [
    ("pip", "hello_pip>=1", "hello-pip"),
    ("apt", "hello-apt", "hello-apt"),
    ("npm", "hello-npm.tgz", "cd /workspace && node -p 'require(\"hello-npm\")'"),
])
def test_4_4_5_a_package_of_each_manager(services, base, manager, package, check):
    service = services(runtimes=runtimes(made=built(f"shape-{manager}", base, packages=[package], package_manager=manager)))
    with service.open(runtime="made") as session:
        assert session.sh(check) == f"hello from {manager}\n"


def test_4_6_setup_commands_variables_and_an_account(services, base):
    entry = built("account", base, packages=["hello_pip"], setup_commands=["echo one >/made && echo two >>/made"],
                  env_vars={"WORDS": "it's $HOME and \"more\""})
    service = services(runtimes=runtimes(made=entry), sandbox_uid=4321)
    with service.open(runtime="made") as session:
        assert session.sh("cat /made") == "one\ntwo\n"
        assert session.sh("echo \"$WORDS\"") == "it's $HOME and \"more\"\n"
        assert session.sh("whoami; echo $HOME $UV_SYSTEM_PYTHON $VIRTUAL_ENV") == "agent\n/home/agent 0 /opt/venv\n"
        assert session.sh("command -v pip; hello-pip") == "/opt/venv/bin/pip\nhello from pip\n"
        assert session.exec("touch /etc/x")["exit_code"] == 1
        assert session.sh("touch /opt/venv/x && echo may") == "may\n"


def test_two_opens_of_an_unbuilt_runtime_start_one_build(docker, services):
    service = services(runtimes=runtimes(slow=built("once", setup_commands=["sleep 3", "echo done >/made"])))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        first = [pool.submit(service.open, runtime="slow") for _ in range(3)]
        warming = until(lambda: service.request("GET", "/healthz").json()["warming"], what="warming in /healthz")
        assert [(one["runtime"], one["state"]) for one in warming] in ([("slow", "looking")], [("slow", "building")])
        # Others are not held up.
        with service.open(runtime="box") as other:
            assert other.sh("echo here") == "here\n"
        for one in first:
            with one.result(SLOW) as session:
                assert session.sh("cat /made") == "done\n"
    assert len(lines(service, "building image")) == 1
    assert service.request("GET", "/healthz").json()["warming"] == []
    assert len(tags(docker, "once-")) == 1


def test_a_build_that_fails_is_a_502_with_the_steps_words(docker, services):
    service = services(runtimes=runtimes(bad=built("bad", setup_commands=["echo some words && exit 3"])))
    before = len(docker.containers())
    for _ in range(2):  # a failure is not kept
        answer = service.request("POST", "/sessions", {"runtime": "bad"})
        assert answer.status == 502
        assert "some words" in answer.detail and "non-zero code: 3" in answer.detail, answer.detail
    assert len(lines(service, "building image")) == 2
    assert len(docker.containers()) == before and not tags(docker, "bad-")


def test_4_4_6_what_cannot_be_built_is_told_in_words(services):
    service = services(runtimes=runtimes(odd=built("a name with blanks"), absent=built("absent", "localhost:1/no/such:image")))
    answer = service.request("POST", "/sessions", {"runtime": "odd"})
    assert answer.status == 502 and "image tag" in answer.detail
    answer = service.request("POST", "/sessions", {"runtime": "absent"})
    assert answer.status == 502 and "localhost:1/no/such" in answer.detail


def test_4_4_3_without_a_cache_every_open_builds(docker, services):
    service = services(runtimes=runtimes(fresh=built("fresh", cache_image=False, env_vars={"A": "1"})))
    for _ in range(2):
        with service.open(runtime="fresh") as session:
            assert session.sh("echo $A") == "1\n"
    assert len(lines(service, "building image")) == 2


def test_4_4_8_older_images_of_the_runtime_go_and_no_others(docker, services):
    def open_all(**entries):
        service = services(runtimes=runtimes(**entries))
        for alias in entries:
            service.open(runtime=alias).close()

    open_all(old=built("prune", env_vars={"V": "1"}), other=built("prune-not"))
    (old,) = tags(docker, "prune-") and [tag for tag in tags(docker, "prune-") if "prune-not" not in tag]
    open_all(new=built("prune", env_vars={"V": "2"}))
    left = tags(docker, "prune")
    assert old not in left and len(left) == 2, left
    assert len([tag for tag in left if re.fullmatch(rf"{REPOSITORY}:prune-not-[0-9a-f]{{12}}", tag)]) == 1


def test_the_digest_is_the_references(docker, services):
    """Printed by the reference for the same definition."""
    service = services(runtimes=runtimes(plain=built("plain", "box", env_vars={"A": "b c"})))
    service.open(runtime="plain").close()
    assert tags(docker, "plain-") == [f"{REPOSITORY}:plain-{PLAIN_DIGEST}"]


PLAIN_DIGEST = "8b43c0794ada"


# Prepare and the background pass -----------------------------------------------------------------------------------


def test_n10_1_prepare_makes_what_a_session_runs(docker, unstarted, base):
    service = unstarted(runtimes=runtimes(made=built("ahead", base)), sandbox_uid=1234)
    done = prepare(service)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (tag,) = tags(docker, "ahead-")
    image = docker.get(f"/images/{tag}/json")["Id"]
    service.start()
    with service.open(runtime="made") as session:
        assert session.sh("id -u; whoami") == "1234\nagent\n"
        assert len([one for one in docker.containers() if one["ImageID"] == image]) == 1
    assert not lines(service, "building image")
    service.stop()


def test_n10_1_prepare_names_what_is_not_ready_and_does_the_rest(docker, unstarted):
    service = unstarted(runtimes=runtimes(bad=built("never", setup_commands=["exit 1"]), good=built("good"), also="localhost:1/x"))
    began = time.monotonic()
    done = prepare(service)
    assert done.returncode == 1
    assert "Not prepared: also, bad" in done.stderr.splitlines()[-1]
    assert done.stderr.count("building image " + REPOSITORY + ":never-") == 3
    assert time.monotonic() - began >= 40  # two pauses of 10 s for each
    assert len(tags(docker, "good-")) == 1


def test_n10_1_prepare_with_settings_that_make_no_sense(unstarted):
    service = unstarted(token="")
    done = prepare(service)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "SANDBOXD_TOKEN" in done.stderr


def test_d_n_111_a_first_failure_then_success_in_prepare(docker, unstarted, trees):
    service = unstarted(runtimes=runtimes(late=built("late-prepare", "late-base-1")))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(prepare, service)
        # There is no such image, and no network.
        until(lambda: "attempt 1 of 3" in told(service), what="the first failure")
        docker.load(trees.box, "late-base-1")
        done = done.result(SLOW)
    assert done.returncode == 0, done.stderr
    assert "attempt 1 of 3" in done.stderr
    assert len(tags(docker, "late-prepare-")) == 1


def test_d_n_111_a_first_failure_then_success_in_the_background_pass(docker, services, trees):
    service = services(runtimes=runtimes(late=built("late-pass", "late-base-2")), prewarm=1)
    until(lambda: lines(service, "attempt 1 of 2"), what="the first failure")
    states = [(one["runtime"], one["state"], one["attempt"]) for one in service.request("GET", "/healthz").json()["warming"]]
    assert states == [("late", "waiting", 2)]
    docker.load(trees.box, "late-base-2")
    until(lambda: tags(docker, "late-pass-"), what="the second attempt")
    until(lambda: service.request("GET", "/healthz").json()["warming"] == [], what="the end of the pass")
    before = len(lines(service, "building image"))
    with service.open(runtime="late") as session:
        assert session.sh("echo up") == "up\n"
    assert len(lines(service, "building image")) == before


def test_4_7_a_pass_that_fails_leaves_the_service_at_work(services):
    service = services(runtimes=runtimes(bad=built("bad-pass", setup_commands=["exit 1"])), prewarm=1)
    with service.open(runtime="box") as session:
        assert session.sh("echo up") == "up\n"
    until(lambda: lines(service, "Could not prepare runtime bad"), seconds=90, what="the last failure")
    assert service.request("GET", "/healthz").status == 200
    assert service.request("GET", "/policy").json()["prewarm"] is True


def test_4_7_prewarm_can_be_turned_off(docker, services):
    service = services(runtimes=runtimes(cold=built("cold")), prewarm=0)
    assert service.request("GET", "/policy").json()["prewarm"] is False
    time.sleep(2)
    assert not tags(docker, "cold-")


def test_a_stop_while_an_image_is_built_leaves_nothing(docker, services):
    service = services(runtimes=runtimes(long=built("long", setup_commands=["sleep 600"])), prewarm=1, shutdown_grace=1)
    until(lambda: [c for c in docker.containers() if "sleep 600" in c["Command"]], what="the step")
    assert service.terminate() == 0
    until(lambda: not [c for c in docker.containers() if "sleep 600" in c["Command"]], what="the end of the build")


# Through buildx ----------------------------------------------------------------------------------------------------


def test_4_4_7_buildx_where_it_is_there(docker, services, base):
    folder = Path(tempfile.mkdtemp(prefix="buildx-"))
    try:
        kept = folder / "kept"
        environment = {"DOCKER_HOST": docker.host, "PATH": packages.buildx(folder / "bin", kept), "HTTPS_PROXY": "http://127.0.0.1:1"}
        service = services(environment=environment, runtimes=runtimes(
            made=built("kit", base, packages=["hello_pip"]), bad=built("kit-bad", setup_commands=["echo some words; exit 3"])))
        assert service.request("GET", "/policy").json()["buildkit"] is True
        with service.open(runtime="made") as session:
            assert session.sh("hello-pip") == "hello from pip\n"
        asked = json.loads(kept.read_text().splitlines()[0])
        assert asked["args"][:3] == ["buildx", "build", "--load"]
        assert asked["args"][asked["args"].index("--tag") + 1] == tags(docker, "kit-")[0]
        assert asked["args"][asked["args"].index("--build-arg") + 1] == "HTTPS_PROXY"
        assert asked["dockerfile"].splitlines()[0] == "# syntax=docker/dockerfile:1"
        assert "RUN --mount=type=cache,target=/root/.cache/pip,sharing=locked pip install hello_pip" in asked["dockerfile"]
        answer = service.request("POST", "/sessions", {"runtime": "bad"})
        assert answer.status == 502 and "some words" in answer.detail
    finally:
        shutil.rmtree(folder)


def test_4_4_7_the_classic_builder_without_it(service):
    assert service.request("GET", "/policy").json()["buildkit"] is False


def test_proxy_settings_reach_the_steps_and_not_the_image(docker, services):
    environment = {"DOCKER_HOST": docker.host, "HTTP_PROXY": "http://127.0.0.1:1/x", "no_proxy": "here"}
    service = services(environment=environment, runtimes=runtimes(made=built(
        "proxied", setup_commands=["echo $HTTP_PROXY $http_proxy $NO_PROXY $no_proxy >/made"])))
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


def test_a_base_image_is_pulled_with_them_too(docker, services, registry):
    address, environment, image = registry
    docker.request("DELETE", f"/images/{image}")
    service = services(environment=environment, runtimes=runtimes(made=built("on-kept", image)))
    with service.open(runtime="made") as session:
        assert session.sh("echo up") == "up\n"
