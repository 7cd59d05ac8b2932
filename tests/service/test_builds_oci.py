"""Builds on oci (contract 4.4): the steps of a recipe run in a sandbox whose layer is kept as the image, shared by all sessions.
test_builds.py has what is the same on a daemon."""

import os
import signal
import threading

import pytest

from harness.builds import SLOW, Prepare, built, refusal, runtimes, stored
from harness.wait import until

pytestmark = pytest.mark.only("oci")


def test_setup_commands_and_variables_make_an_image_that_sessions_share(services, images):
    service = services(runtimes=runtimes(images, made=built(
        "made", images.box_image, env_vars={"FLAVOUR": "two words"},
        setup_commands=["echo built > /etc/built && chmod 0640 /etc/built && chown 12:34 /etc/built",
                        "cp /bin/busybox /bin/special && chmod 4755 /bin/special && mkdir -p /data/deep && ln -s /etc/built /data/link",
                        "rm /etc/group && rm -r /root && mkdir /root"])))
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


def test_a_step_that_fails_is_told_with_its_last_lines_and_leaves_nothing(services, images):
    service = services(runtimes=runtimes(images, bad=built("bad", images.box_image, setup_commands=[
        "true", "seq 1 500; echo this is why >&2; exit 3"])))
    words = refusal(service, "bad")
    assert "this is why" in words and "returned 3" in words and "seq 1 500" in words
    assert "\n499\n500\n" in words and "\n400\n" not in words
    until(lambda: not any((service.state / "oci").iterdir()), what="the removal of the build")
    assert stored(service) == []


def test_a_service_killed_while_it_builds_leaves_no_half_image(services, images):
    service = services(runtimes=runtimes(images, made=built("made", images.box_image, setup_commands=[
        "test -e /etc/slow || sleep 3; touch /etc/slow"])))
    thread = threading.Thread(target=lambda: service.request("POST", "/sessions", {"runtime": "made"}), daemon=True)
    thread.start()
    until(lambda: list((service.state / "oci").glob("build-*/state.json")), what="the sandbox of the build")
    service.kill()
    service.start()
    until(lambda: not list((service.state / "oci").glob("build-*")), what="the removal of the build")
    assert stored(service) == []
    with service.open(runtime="made") as session:
        assert session.sh("ls /etc/slow") == "/etc/slow\n"


def builds_under_way(service):
    return list((service.state / "oci").glob("build-*/state.json"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_prepare_that_is_told_to_stop_leaves_no_build(services, images, number):
    service = services(runtimes=runtimes(images, made=built("made", images.box_image, setup_commands=["sleep 1000"])))
    service.terminate()
    child = Prepare(service)
    until(lambda: builds_under_way(service), what="the sandbox of the build")
    child.process.send_signal(number)
    assert child.wait() == 128 + number
    assert f"{number.name} came before all runtimes were ready" in child.said.splitlines()[-1]
    assert not any((service.state / "oci").iterdir()) and stored(service) == []


def test_a_prepare_that_is_killed_leaves_its_build_to_the_next(services, images):
    service = services(runtimes=runtimes(images, made=built("made", images.box_image, setup_commands=["sleep 1000"])))
    service.terminate()
    child = Prepare(service)
    until(lambda: builds_under_way(service), what="the sandbox of the build")
    child.process.kill()
    child.wait()
    # The launcher of the killed one may not have left yet.
    until(lambda: Prepare(service, SANDBOXD_RUNTIMES=runtimes(images)).wait() == 0, SLOW, "the next prepare")
    assert not any((service.state / "oci").iterdir())


def test_host_is_no_base_image(services, images):
    service = services(runtimes=runtimes(images, made=built("made", "host", setup_commands=["true"])))
    assert "the base image 'host'" in refusal(service, "made")
