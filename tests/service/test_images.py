"""Images of this release on oci (design "Decided" 6 and 13): directories, OCI layouts, archives of `docker save`."""

import shutil
import tempfile
from pathlib import Path

import pytest

from harness import rootfs
from harness.host import host_processes
from harness.wait import until

CONFIG = {
    "Env": ["PATH=/opt/bin:/bin", "FROM_IMAGE=a=b c", "LANG=from-image"],
    "User": "1234:5678",
}
ENTRY = {
    "Env": ["PATH=/bin"],
    "Entrypoint": ["/bin/sh", "-c", "echo \"$@\" >/tmp/entry; echo $$ >>/tmp/entry; exec \"$@\"", "entry"],
    "Cmd": ["never", "seen"],
}


@pytest.fixture(scope="module")
def service(services, images):
    base = Path(tempfile.mkdtemp(prefix="layouts-"))
    try:
        layout = rootfs.oci_layout(base / "layout", images.box, {"plain": {}, "user": CONFIG, "entry": ENTRY,
                                                                 "named": {"User": "guest", "Env": ["PATH=/bin"]}})
        archive = rootfs.docker_archive(base / "saved.tar", images.box, CONFIG)
        yield services(runtimes=f"host=host,plain=oci:{layout}:plain,user=oci:{layout}:user,entry=oci:{layout}:entry,"
                                f"named=oci:{layout}:named,missing=oci:{layout}:nope,archive=docker-archive:{archive},"
                                f"box=dir:{images.box},path={images.box}")
    finally:
        shutil.rmtree(base)


@pytest.mark.parametrize("runtime", ["box", "path", "plain"])
def test_a_directory_a_path_and_a_layout_run(service, runtime):
    with service.open(runtime=runtime) as session:
        assert session.sh("busybox | head -1").startswith("BusyBox")
        assert session.sh("id -u; pwd") == "0\n/workspace\n"
        assert session.sh("echo x >/workspace/f && cat /workspace/f") == "x\n"


@pytest.mark.parametrize("runtime", ["user", "archive"])
def test_env_and_user_of_the_image(service, runtime):
    with service.open(runtime=runtime) as session:
        assert session.sh("id -u; id -g") == "1234\n5678\n"
        assert session.sh("echo $PATH; echo $FROM_IMAGE") == "/opt/bin:/bin\na=b c\n"
        # 4.3: the service's variables are the container's, over the image's.
        assert session.sh("echo $LANG") == "C.UTF-8\n"
        assert session.sh("touch /workspace/mine && stat -c %u /workspace/mine") == "1234\n"


def test_an_entrypoint_runs_once_and_its_end_is_not_the_sandboxs(service):
    with service.open(runtime="entry") as session:
        words = until(lambda: session.exec("cat /tmp/entry")["output"].split(), what="the entrypoint")
        assert words[:2] == ["sleep", "infinity"]
        pid = until(lambda: session.exec("cat /tmp/entry")["output"].split()[2:], what="its pid")[0]
        session.sh(f"kill -9 {pid}")
        assert session.sh("echo alive") == "alive\n"
        assert session.sh("wc -l </tmp/entry").strip() == "2"


def test_a_user_that_the_image_does_not_know_is_502_in_words(service):
    answer = service.request("POST", "/sessions", {"runtime": "named"})
    assert answer.status == 502
    assert "guest" in answer.detail


def test_a_tag_that_is_not_there_is_502_in_words(service):
    answer = service.request("POST", "/sessions", {"runtime": "missing"})
    assert answer.status == 502
    assert "nope" in answer.detail


def test_sessions_of_one_image_share_it_and_not_their_changes(service):
    with service.open(runtime="plain") as one, service.open(runtime="plain") as two:
        one.sh("echo mine >/etc/mark")
        assert two.exec("cat /etc/mark")["exit_code"] == 1


def test_an_image_is_unpacked_once(service):
    with service.open(runtime="plain"):
        pass
    before = {path for path in service.state.rglob("busybox") if path.is_file()}
    with service.open(runtime="plain") as session:
        session.sh("true")
    assert {path for path in service.state.rglob("busybox") if path.is_file()} == before
    assert host_processes("umoci") == []
