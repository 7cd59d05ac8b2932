"""Images built by the real `docker buildx` and the daemon's BuildKit (contract 4.4.4 to 4.4.8). test_docker_images has what the
builders do alike; here is what a plugin, a frontend and a daemon of other people's making may do to us."""

import concurrent.futures
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import bases, buildx, host
from harness.daemon import Daemon
from harness.registry import ABSENT, PROGRAM, Registry
from harness.service import Service, leftovers, started_by
from harness.wait import until

pytestmark = pytest.mark.only("docker")

REPOSITORY = "pydantic-ai-backend-runtime"
FRONTEND = "docker/dockerfile:1"
SLOW = 300  # s, of an open that builds, on a machine with much else to do


@pytest.fixture(scope="module")
def programs(long):
    """The plugin and the frontend."""
    if not long and not buildx.ready():
        pytest.skip("docker buildx and the frontend of docker/dockerfile:1 are not compiled here yet, which takes minutes: pytest --long")
    try:
        return buildx.plugin(), buildx.frontend()
    except buildx.Missing as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def daemon(programs, trees):
    """A daemon whose containers have a network, though one that leads nowhere; with the frontend's image."""
    one = Daemon(bridged=True)
    try:
        one.start()
        one.load(trees.box, "box")
        one.load(bases.base(trees.directory / "buildx-base", "pip", "apt", "npm"), "package-base", ENV="PIP_NO_INDEX=1")
        tree = trees.directory / "frontend"
        (tree / "bin").mkdir(parents=True)
        shutil.copy(programs[1], tree / "bin/dockerfile-frontend")
        one.load(tree, FRONTEND, ENTRYPOINT='["/bin/dockerfile-frontend"]')
        yield one
    finally:
        one.discard()


@pytest.fixture(scope="module")
def kit(programs, daemon):
    """The environment of a service that has the plugin."""
    folder = Path(tempfile.mkdtemp(prefix="buildx-"))
    (folder / "cli-plugins").mkdir()
    (folder / "cli-plugins/docker-buildx").symlink_to(programs[0])
    yield {"DOCKER_HOST": daemon.host, "DOCKER_CONFIG": str(folder)}
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def classic(daemon):
    """The environment of one that has not."""
    folder = Path(tempfile.mkdtemp(prefix="no-buildx-"))
    (folder / "docker").write_text("#!/bin/sh\nexit 1\n")
    (folder / "docker").chmod(0o755)
    yield {"DOCKER_HOST": daemon.host, "PATH": f"{folder}:{os.environ['PATH']}"}
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def services(request, kit):
    program = request.config.getoption("--program")
    yield from started_by(lambda **settings: Service(program, **{"backend": "docker", "environment": kit, **settings}))


def runtimes(**entries):
    return json.dumps({"box": "box", **entries})


def built(name, base_image="box", **fields):
    return {"runtime": {"name": name, "base_image": base_image, **fields}}


def tags(daemon, name):
    found = [tag for image in daemon.get("/images/json") for tag in image["RepoTags"] or []]
    return sorted(tag for tag in found if tag.startswith(f"{REPOSITORY}:{name}-"))


def lines(service, text):
    return [line for line in service.log.read_text(errors="replace").splitlines() if text in line]


def builders(service):
    """The `docker` commands and plugins that work for a service."""
    return [line for line in leftovers.processes_of(service.directory) if "buildx build" in line]


def endless():
    """A step that does not end by itself, and how to see whether it runs."""
    seconds = str(secrets.randbelow(10**6) + 10**6)
    return f"sleep {seconds}", lambda: host.host_processes(seconds)


# The same as the classic builder gives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("manager,package,check", [
    ("pip", "hello_pip>=1", "hello-pip; whoami; command -v pip; stat -c '%n %U %a' /opt/venv /home/agent"),
    ("apt", "hello-apt", "hello-apt; id -un"),
    ("npm", "hello-npm.tgz", "cd /workspace && node -p 'require(\"hello-npm\")'"),
])
def test_4_4_5_both_builders_give_the_same(daemon, services, classic, kit, manager, package, check):
    entry = built(f"same-{manager}", "package-base", packages=[package], package_manager=manager,
                  setup_commands=["echo 'one  two' >/made && umask >>/made", 'echo "$PIP_NO_INDEX" >>/made'],
                  env_vars={"WORDS": "it's $HOME and \"more\" \\ ~", "EMPTY": ""}, **({"run_as_uid": 4321} if manager == "pip" else {}))
    seen = {}
    for name, environment in (("classic", classic), ("buildx", kit)):
        service = services(runtimes=runtimes(made=entry), environment=environment)
        assert service.request("GET", "/policy").json()["buildkit"] is (name == "buildx")
        with service.open(runtime="made") as session:
            (tag,) = tags(daemon, f"same-{manager}")
            config = daemon.get(f"/images/{tag}/json")["Config"]
            told = session.sh(f"cat /made; echo \"$WORDS\" [$EMPTY]; pwd; {check}")
            seen[name] = tag, told, {key: config[key] or None for key in ("Env", "WorkingDir", "User", "Entrypoint", "Cmd", "Labels", "Volumes")}
        assert len(lines(service, "is built")) == 1
        service.stop()
        daemon.request("DELETE", f"/images/{tag}")
    assert f"hello from {manager}\n" in seen["classic"][1] and "it's $HOME and \"more\" \\ ~ []\n" in seen["classic"][1]
    assert seen["buildx"] == seen["classic"]


def test_4_4_5_what_apt_downloads_is_kept_by_the_daemon_and_in_no_image(daemon, services):
    entry = built("cache-kit", "package-base", packages=["hello-apt"], package_manager="apt")
    service = services(runtimes=runtimes(made=entry))
    with service.open(runtime="made") as session:
        assert session.sh("hello-apt; find /var/cache/apt /var/lib/apt/lists -type f") == "hello from apt\n"
    kept = [one for one in daemon.get("/system/df")["BuildCache"] if one["Type"] == "exec.cachemount" and one["Size"] > 0]
    for folder in ("/var/cache/apt", "/var/lib/apt/lists"):
        assert [one for one in kept if folder in one["Description"]], kept


def test_4_4_8_an_older_image_of_the_runtime_goes(daemon, services):
    for number in ("1", "2"):
        service = services(runtimes=runtimes(made=built("prune-kit", env_vars={"V": number})))
        with service.open(runtime="made") as session:
            assert session.sh("echo $V") == f"{number}\n"
    assert len(tags(daemon, "prune-kit")) == 1


def test_4_4_3_without_a_cache_every_open_builds(services):
    service = services(runtimes=runtimes(fresh=built("fresh-kit", cache_image=False, env_vars={"A": "1"})))
    for _ in range(2):
        with service.open(runtime="fresh") as session:
            assert session.sh("echo $A") == "1\n"
    assert len(lines(service, "building image")) == 2


# Base images -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registry(daemon):
    """A registry beside the daemon that wants a password: (what config.json says of it, an image in it)."""
    if PROGRAM is None:
        pytest.skip(ABSENT)
    beside = ["nsenter", f"--net=/proc/{daemon.process.pid}/ns/net", "--"]
    subprocess.run([*beside, "ip", "link", "set", "lo", "up"], check=True, timeout=60)
    made = Registry(password="secret", beside=beside)
    try:
        yield made.login(), made.push_from(daemon, "box", "kept/box")
    finally:
        made.stop()


@pytest.mark.row("B6-10")
def test_a_base_image_is_fetched_with_the_docker_commands_credentials(services, kit, registry):
    credentials, image = registry
    service = services(runtimes=runtimes(made=built("no-password-kit", image)))
    answer = service.request("POST", "/sessions", {"runtime": "made"})
    assert answer.status == 502 and image.removesuffix(":1") in answer.detail, answer
    config = Path(kit["DOCKER_CONFIG"]) / "config.json"
    config.write_text(json.dumps(credentials))
    try:
        service = services(runtimes=runtimes(made=built("password-kit", image)))
        with service.open(runtime="made") as session:
            assert session.sh("echo up") == "up\n"
    finally:
        config.unlink()


@pytest.mark.row("B6-10")
def test_a_base_image_that_cannot_be_had_is_told(services):
    service = services(runtimes=runtimes(made=built("absent-kit", "127.0.0.1:1/no/such:image")))
    answer = service.request("POST", "/sessions", {"runtime": "made"})
    assert answer.status == 502 and "127.0.0.1:1/no/such:image" in answer.detail, answer


# While it lasts ----------------------------------------------------------------------------------------------------------


def test_two_opens_start_one_build_whose_progress_is_told(daemon, services):
    command = "cat /proc/sys/kernel/random/uuid >/made; for i in 1 2 3 4 5 6 7 8 9; do echo tick $i; sleep 1; done"
    service = services(runtimes=runtimes(slow=built("once-kit", setup_commands=[command])))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        opened = [pool.submit(service.open, runtime="slow") for _ in range(3)]

        def shown():
            return [one for one in service.request("GET", "/healthz").json()["warming"] if one["total"]]

        (now,) = until(shown, what="steps in /healthz")
        assert (now["runtime"], now["state"], now["total"], now["attempt"]) == ("slow", "building", 3, 1)
        assert now["done"] in range(4)
        assert len(builders(service)) <= 3  # the plugin, `docker`, and the shell that keeps them
        made = set()
        for one in opened:
            with one.result(SLOW) as session:
                made.add(session.sh("cat /made"))
    assert len(made) == 1 and len(lines(service, "building image")) == 1
    (tag,) = tags(daemon, "once-kit")
    assert [line for line in lines(service, f"building {tag}: step ") if " of 3: RUN cat /proc/sys" in line]
    assert service.request("GET", "/healthz").json()["warming"] == []


def test_a_failing_steps_words_reach_the_502(daemon, services):
    service = services(runtimes=runtimes(bad=built("bad-kit", setup_commands=["true", "echo some words; echo and others >&2; exit 3", "true"])))
    for _ in range(2):  # a failure is not kept
        answer = service.request("POST", "/sessions", {"runtime": "bad"})
        assert answer.status == 502
        said = answer.detail.splitlines()
        assert "docker buildx ended with 1" in said[0], said
        assert said[1].startswith("RUN echo some words") and sorted(said[2:4]) == ["and others", "some words"], said
        assert answer.detail.count("\nsome words") == 1 and said[-1].startswith("ERROR: ") and "exit code: 3" in said[-1], said
    assert len(lines(service, "building image")) == 2
    assert not tags(daemon, "bad-kit") and not builders(service)


def test_proxy_settings_reach_the_steps_and_nothing_else(daemon, services, kit):
    command = "echo $HTTP_PROXY $http_proxy $NO_PROXY $no_proxy >/made; sleep 3"
    service = services(environment={**kit, "HTTP_PROXY": "http://name:secret@127.0.0.1:1/x", "no_proxy": "here"},
                       runtimes=runtimes(made=built("proxied-kit", setup_commands=[command])))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        opened = pool.submit(service.open, runtime="made")
        asked = until(lambda: builders(service), what="docker buildx")
        assert all("secret" not in line for line in asked)  # anybody may list processes
        with opened.result(SLOW) as session:
            url = "http://name:secret@127.0.0.1:1/x"
            assert session.sh("cat /made; echo [$HTTP_PROXY]") == f"{url} {url} here here\n[]\n"
    (tag,) = tags(daemon, "proxied-kit")
    assert "secret" not in json.dumps(daemon.get(f"/images/{tag}/json")) + json.dumps(daemon.get(f"/images/{tag}/history"))
    assert not lines(service, "secret")


def test_a_frontend_that_cannot_be_had_is_told(daemon, services):
    """As where no registry is reached."""
    assert daemon.request("POST", f"/images/{FRONTEND}/tag?repo=kept-frontend")[0] == 201
    assert daemon.request("DELETE", f"/images/{FRONTEND}")[0] == 200
    try:
        service = services(runtimes=runtimes(made=built("no-frontend")))
        answer = service.request("POST", "/sessions", {"runtime": "made"})
        assert answer.status == 502 and "docker/dockerfile:1" in answer.detail, answer
    finally:
        assert daemon.request("POST", "/images/kept-frontend/tag?repo=docker/dockerfile&tag=1")[0] == 201


# Cut off -----------------------------------------------------------------------------------------------------------------


def test_a_stop_ends_the_build(daemon, services):
    step, runs = endless()
    service = services(runtimes=runtimes(long=built("stopped-kit", setup_commands=[step])), prewarm=1, shutdown_grace=1)
    until(runs, what="the step")
    assert builders(service)
    assert service.terminate() == 0
    until(lambda: not builders(service), what="the end of docker buildx")
    until(lambda: not runs(), what="the end of the step")
    assert not tags(daemon, "stopped-kit")


def test_a_killed_service_leaves_no_build(daemon, services):
    step, runs = endless()
    service = services(runtimes=runtimes(long=built("killed-kit", setup_commands=[step])), prewarm=1)
    until(runs, what="the step")
    service.kill()
    until(lambda: not builders(service), what="the end of docker buildx")
    until(lambda: not runs(), what="the end of the step")
    assert not tags(daemon, "killed-kit")


@pytest.mark.parametrize("number,status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_prepare_ends_the_build(request, daemon, kit, number, status):
    step, runs = endless()
    service = Service(request.config.getoption("--program"), backend="docker", environment=kit,
                      runtimes=runtimes(long=built("signalled-kit", setup_commands=[step])))
    try:
        process = subprocess.Popen([service.program, "--backend", "docker", "prepare"], env=service.environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(runs, what="the step")
        process.send_signal(number)
        assert process.wait(60) == status
        until(lambda: not builders(service), what="the end of docker buildx")
        until(lambda: not runs(), what="the end of the step")
        assert not tags(daemon, "signalled-kit")
    finally:
        process.kill()
        process.wait(60)
        service.discard()


def test_n10_1_prepare_builds_what_a_session_runs(daemon, services, kit):
    entries = runtimes(made=built("ahead-kit", "package-base", packages=["hello_pip"]))
    service = services(runtimes=entries, prewarm=1)
    until(lambda: lines(service, "the images of all runtimes are here"), seconds=SLOW, what="the pass")
    done = subprocess.run([service.program, "--backend", "docker", "prepare"], env=service.environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SLOW)
    assert done.returncode == 0 and "building image" not in done.stderr, done.stderr
    with service.open(runtime="made") as session:
        assert session.sh("hello-pip") == "hello from pip\n"
    assert len(lines(service, "building image")) == 1
