"""Builds on oci (contract 4.4): the steps of a recipe run in a sandbox whose layer is kept as the image, shared by all sessions."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from harness import bases
from harness.wait import until

pytestmark = pytest.mark.only("oci")


@pytest.fixture(scope="module")
def area():
    path = Path(tempfile.mkdtemp(prefix="bases-"))
    yield path
    shutil.rmtree(path)


def runtimes(images, **definitions):
    entries = {"host": "host", "box": f"dir:{images.box}"}
    for name, definition in definitions.items():
        entries[name] = {"runtime": {"name": name, **definition}}
    return json.dumps(entries)


def stored(service, kinds=(".new-", "sha256-", "built-")):
    return sorted(path.name for path in (service.state / "images").iterdir() if path.name.startswith(kinds))


def refusal(service, runtime):
    answer = service.request("POST", "/sessions", {"runtime": runtime}, deadline=300)
    assert answer.status == 502, answer
    return answer.detail


def test_setup_commands_and_variables_make_an_image_that_sessions_share(services, images):
    service = services(prewarm=False, runtimes=runtimes(images, made={
        "base_image": f"dir:{images.box}", "env_vars": {"FLAVOUR": "two words"},
        "setup_commands": ["echo built > /etc/built && chmod 0640 /etc/built && chown 12:34 /etc/built",
                           "cp /bin/busybox /bin/special && chmod 4755 /bin/special && mkdir -p /data/deep && ln -s /etc/built /data/link",
                           "rm /etc/group && rm -r /root && mkdir /root"]}))
    with service.open(runtime="made", session_id="one") as one, service.open(runtime="made", session_id="two") as two:
        looks = "cat /data/link; stat -c '%u:%g %a' /etc/built /bin/special /data /data/deep; ls /etc/group; echo $FLAVOUR"
        output = one.exec(looks)["output"]
        assert output == two.exec(looks)["output"]
        assert output.splitlines() == ["built", "12:34 640", "0:0 4755", "0:0 755", "0:0 755",
                                       "ls: /etc/group: No such file or directory", "two words"]
        assert [session.sh("cat /etc/hostname").strip() for session in (one, two)] == ["one", "two"]  # not the build's
        one.sh("echo mine > /etc/built")
        assert two.sh("cat /etc/built") == "built\n"
    assert [name[:6] for name in stored(service)] == ["built-"]
    # On disk the ids are those inside, so that sandboxes of any range share it.
    (image,) = (service.state / "images").glob("built-*")
    found = os.lstat(image / "rootfs/etc/built")
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12, 34, 0o640)
    assert not any((service.state / "oci").iterdir())
    service.terminate()
    service.start()
    with service.open(runtime="made") as session:  # not built again
        assert session.sh("cat /etc/built") == "built\n"
    assert [name[:6] for name in stored(service)] == ["built-"]


def test_two_opens_of_an_unbuilt_runtime_start_one_build(services, images):
    service = services(prewarm=False, runtimes=runtimes(images, made={
        "base_image": f"dir:{images.box}", "setup_commands": ["sleep 2; cat /proc/sys/kernel/random/uuid > /etc/made"]}))
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(service.open(runtime="made"))) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
    first, second = opened
    assert first.sh("cat /etc/made") == second.sh("cat /etc/made")
    first.close()
    second.close()


def test_a_step_that_fails_is_told_with_its_last_lines_and_leaves_nothing(services, images):
    service = services(prewarm=False, runtimes=runtimes(images, bad={
        "base_image": f"dir:{images.box}", "setup_commands": ["true", "seq 1 500; echo this is why >&2; exit 3"]}))
    words = refusal(service, "bad")
    assert "this is why" in words and "returned 3" in words and "seq 1 500" in words
    assert "\n499\n500\n" in words and "\n400\n" not in words
    until(lambda: not any((service.state / "oci").iterdir()), what="the removal of the build")
    assert stored(service) == []


def test_a_service_killed_while_it_builds_leaves_no_half_image(services, images):
    service = services(prewarm=False, runtimes=runtimes(images, made={
        "base_image": f"dir:{images.box}", "setup_commands": ["test -e /etc/slow || sleep 3; touch /etc/slow"]}))
    thread = threading.Thread(target=lambda: service.request("POST", "/sessions", {"runtime": "made"}), daemon=True)
    thread.start()
    until(lambda: list((service.state / "oci").glob("build-*/state.json")), what="the sandbox of the build")
    service.kill()
    service.start()
    until(lambda: not list((service.state / "oci").glob("build-*")), what="the removal of the build")
    assert stored(service) == []
    with service.open(runtime="made") as session:
        assert session.sh("ls /etc/slow") == "/etc/slow\n"


def prepare(service, **changed):
    """`sandboxd prepare` with the settings of a service that does not run."""
    return subprocess.Popen([service.program, "--backend", "oci", "prepare"], env={**service.environment(), **changed},
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def builds_under_way(service):
    return list((service.state / "oci").glob("build-*/state.json"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_prepare_that_is_told_to_stop_leaves_no_build(services, images, number):
    service = services(prewarm=False, runtimes=runtimes(images, made={
        "base_image": f"dir:{images.box}", "setup_commands": ["sleep 1000"]}))
    service.terminate()
    child = prepare(service)
    until(lambda: builds_under_way(service), what="the sandbox of the build")
    child.send_signal(number)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 128 + number
    assert f"{number.name} came before all runtimes were ready" in said.splitlines()[-1]
    assert not any((service.state / "oci").iterdir()) and stored(service) == []


def test_a_prepare_that_is_killed_leaves_its_build_to_the_next(services, images):
    service = services(prewarm=False, runtimes=runtimes(images, made={
        "base_image": f"dir:{images.box}", "setup_commands": ["sleep 1000"]}))
    service.terminate()
    child = prepare(service)
    until(lambda: builds_under_way(service), what="the sandbox of the build")
    child.kill()
    child.communicate(timeout=60)

    def done():  # the launcher of the killed one may not have left yet
        next_one = prepare(service, SANDBOXD_RUNTIMES=runtimes(images))
        next_one.communicate(timeout=120)
        return next_one.returncode == 0

    until(done, what="the next prepare")
    assert not any((service.state / "oci").iterdir())


def test_host_is_no_base_image(services, images):
    service = services(prewarm=False, runtimes=runtimes(images, made={"base_image": "host", "setup_commands": ["true"]}))
    assert "the base image 'host'" in refusal(service, "made")


def test_pip_packages(services, images, area):
    base = bases.python(area / "python")
    service = services(prewarm=False, runtimes=runtimes(images, pip={
        "base_image": f"dir:{base}", "packages": ["packages/demo-1.0-py3-none-any.whl"], "package_manager": "pip"}))
    with service.open(runtime="pip") as session:
        assert session.sh("python3 -c 'import demo; print(demo.hello())'") == "hello from a wheel\n"


def test_apt_packages(services, images, area):
    base = bases.apt(area / "apt")
    service = services(prewarm=False, runtimes=runtimes(images, apt={
        "base_image": f"dir:{base}", "packages": ["demo"], "package_manager": "apt"}))
    with service.open(runtime="apt") as session:
        assert session.sh("demo-tool; stat -c '%u:%g %a' /usr/bin/demo-tool") == "hello from a deb\n1234:1234 4755\n"
        assert session.sh("dpkg-query -W -f '${Status}' demo") == "install ok installed"


@pytest.mark.skipif(shutil.which("npm") is None, reason="this machine has no npm to make a base image of")
def test_npm_packages(services, images, area):
    base = bases.node(area / "node")
    service = services(prewarm=False, runtimes=runtimes(images, npm={
        "base_image": f"dir:{base}", "packages": ["demo-1.0.0.tgz"], "package_manager": "npm"}))
    with service.open(runtime="npm") as session:
        assert session.sh("node -e \"console.log(require('demo'))\"") == "hello from npm\n"
