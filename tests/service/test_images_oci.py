"""Images of a registry on oci (design "Decided" 13): fetched once, kept by digest, credentials and certificates from the standard
files, nothing half after a crash, hostile images kept where they belong; and their network."""

import base64
import contextlib
import io
import json
import shutil
import socket
import tarfile
import threading
from pathlib import Path

import pytest

from harness import rootfs
from harness.builds import SLOW, Prepare, lines, refusal, stored, warming
from harness.host import host_processes
from harness.registry import OwnRegistry, Registry
from harness.wait import until

pytestmark = pytest.mark.only("oci")


@pytest.fixture(scope="module")
def layout(area, images):
    """Tags one and two of a small system; MARK tells which."""
    return rootfs.oci_layout(area / "layout", images.box, {"one": {"Env": ["PATH=/bin", "MARK=one"]},
                                                           "two": {"Env": ["PATH=/bin", "MARK=two"]}})


@pytest.fixture(scope="module")
def registry():
    made = Registry()
    yield made
    made.stop()


@pytest.fixture
def own(layout):
    made = OwnRegistry(layout)
    yield made
    made.stop()


def test_an_image_of_a_registry_runs_and_is_kept_by_its_digest(services, registry, layout):
    name = registry.push(layout, "one", "team/box:1")
    service = services(runtimes=f"host=host,box={name}", prewarm=False)
    with service.open(runtime="box") as session:
        assert session.sh("echo $MARK; id -u; stat -c %u /bin/busybox; echo x > /etc/new; cat /etc/new") == "one\n0\n0\nx\n"
    assert len(stored(service)) == 1
    # The tag moves; what was fetched stays what it was, as under an engine. A digest says exactly what is wanted.
    registry.push(layout, "two", "team/box:1")
    with service.open(runtime="box") as session:
        assert session.sh("echo $MARK") == "one\n"
    assert len(stored(service)) == 1
    digest = stored(service)[0].replace("-", ":", 1)
    other = services(runtimes=f"new={name},old={name.rsplit(':', 1)[0]}@{digest}", prewarm=False)
    with other.open(runtime="new") as new, other.open(runtime="old") as old:
        assert new.sh("echo $MARK") == "two\n"
        assert old.sh("echo $MARK") == "one\n"


def test_what_was_fetched_is_there_after_a_restart_without_the_registry(services, layout):
    registry = Registry()
    try:
        service = services(runtimes=f"host=host,box={registry.push(layout, 'one', 'box')}", prewarm=False)
        with service.open(runtime="box"):
            pass
    finally:
        registry.stop()
    service.terminate()
    service.start()
    with service.open(runtime="box") as session:
        assert session.sh("echo $MARK") == "one\n"


def test_two_opens_fetch_once(services, own):
    service = services(runtimes=f"host=host,box={own.host}/box", prewarm=False)
    own.gate.clear()
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(service.open(runtime="box"))) for _ in range(2)]
    for one in threads:
        one.start()
    until(lambda: set(own.layers) & set(own.asked), what="the first question for a layer")
    own.gate.set()
    for one in threads:
        one.join(60)
    assert [session.sh("echo $MARK") for session in opened] == ["one\n", "one\n"]
    assert [own.asked[digest] for digest in own.layers] == [1]
    for session in opened:
        session.close()


def test_a_service_killed_while_it_fetches_leaves_nothing_half(services, own):
    service = services(runtimes=f"host=host,box={own.host}/box", prewarm=False)
    own.gate.clear()
    thread = threading.Thread(target=lambda: service.request("POST", "/sessions", {"runtime": "box"}), daemon=True)
    thread.start()
    until(lambda: set(own.layers) & set(own.asked), what="the first question for a layer")
    service.kill()
    until(lambda: not host_processes(f"docker://{own.host}/box@{own.manifest}"), what="the end of the fetching program")
    own.gate.set()
    service.start()
    assert stored(service) == []
    with service.open(runtime="box") as session:
        assert session.sh("echo $MARK") == "one\n"


def test_a_registry_that_asks_for_a_password(services, layout, area):
    registry = Registry(password="s3cret words")
    try:
        name = registry.push(layout, "one", "private:1")
        home = area / "home"
        (home / ".docker").mkdir(parents=True)
        service = services(runtimes=f"host=host,box={name}", environment={"HOME": str(home)}, prewarm=False)
        words = refusal(service, "box")
        assert name in words and f"there are no credentials for {registry.host}" in words

        def log_in(password):
            auth = base64.b64encode(f"reader:{password}".encode()).decode()
            (home / ".docker/config.json").write_text(json.dumps({"auths": {registry.host: {"auth": auth}}}))

        log_in("wrong")
        words = refusal(service, "box")
        assert f"with the credentials that were found for {registry.host}" in words
        log_in("s3cret words")
        with service.open(runtime="box") as session:
            assert session.sh("echo $MARK") == "one\n"
        assert "s3cret" not in service.log.read_text() and "reader" not in service.log.read_text()
    finally:
        registry.stop()


def test_the_other_places_for_credentials(services, layout, area):
    registry = Registry(password="pw")
    try:
        name = registry.push(layout, "one", "private:1")
        auth = base64.b64encode(b"reader:pw").decode()
        text = json.dumps({"auths": {registry.host: {"auth": auth}}})
        (area / "run/containers").mkdir(parents=True)
        (area / "run/containers/auth.json").write_text(text)
        (area / "named.json").write_text(text)
        for environment in ({"XDG_RUNTIME_DIR": str(area / "run")}, {"REGISTRY_AUTH_FILE": str(area / "named.json")}):
            service = services(runtimes=f"host=host,box={name}", environment=environment, prewarm=False)
            with service.open(runtime="box") as session:
                assert session.sh("echo $MARK") == "one\n"
    finally:
        registry.stop()


def test_certificates_of_a_registry(services, layout):
    registry, other = Registry(tls=True), Registry(tls=True)
    directory = Path("/etc/containers/certs.d") / registry.host
    try:
        name = registry.push(layout, "one", "box")
        directory.mkdir(parents=True)
        shutil.copy(other.certificate, directory / "ca.crt")
        service = services(runtimes=f"host=host,box={name}", prewarm=False)
        assert "certificate" in refusal(service, "box")
        shutil.copy(registry.certificate, directory / "ca.crt")
        with service.open(runtime="box") as session:
            assert session.sh("echo $MARK") == "one\n"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            directory.parent.rmdir()  # others may have theirs there
        registry.stop()
        other.stop()


def test_what_is_not_there_is_502_in_words(services, registry):
    service = services(runtimes=f"host=host,no={registry.host}/no/such:1", prewarm=False)
    words = refusal(service, "no")
    assert f"the image '{registry.host}/no/such:1' could not be fetched" in words and "manifest unknown" in words
    assert stored(service) == []


def hostile_layer(escape):
    """A layer that tries to write outside of its image in every way that archives know, and one file that it may write."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        def add(name, kind=tarfile.REGTYPE, link="", data=b"", mode=0o755):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size, entry.mode = kind, link, len(data), mode
            tar.addfile(entry, io.BytesIO(data))
        busybox = Path(rootfs.BUSYBOX).read_bytes()
        add("bin", tarfile.DIRTYPE)
        add("bin/busybox", data=busybox)
        add("bin/sh", tarfile.SYMTYPE, "busybox")
        add("bin/ls", tarfile.SYMTYPE, "busybox")
        add("../" * 40 + str(escape)[1:] + "/dots", data=b"x")
        add(f"{escape}/absolute", data=b"x")
        add("door", tarfile.SYMTYPE, str(escape))
        add("door/through", data=b"x")
        add("up", tarfile.SYMTYPE, "../" * 40 + str(escape)[1:])
        add("up/through-up", data=b"x")
        add(f"door/.wh.precious", data=b"")
        add("../" * 40 + str(escape)[1:] + "/.wh.precious", data=b"")
    return buffer.getvalue()


def test_a_hostile_image_stays_inside(services, area):
    escape = area / "escape"
    escape.mkdir(mode=0o777)
    escape.chmod(0o777)
    (escape / "precious").write_text("mine")
    own = OwnRegistry(rootfs.layout_of(area / "hostile", hostile_layer(escape), {"x": {"Env": ["PATH=/bin"]}}))
    try:
        service = services(runtimes=f"host=host,evil={own.host}/evil", prewarm=False)
        answer = service.request("POST", "/sessions", {"runtime": "evil"}, deadline=60)
        assert answer.status in (200, 502)
        assert [path.name for path in escape.iterdir()] == ["precious"]
        assert (escape / "precious").read_text() == "mine"
    finally:
        own.stop()


def test_a_layer_that_is_not_what_its_digest_says_is_refused(services, layout, area):
    broken = area / "broken"
    shutil.copytree(layout, broken)
    largest = max((broken / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    largest.write_bytes(b"\0" * largest.stat().st_size)
    own = OwnRegistry(broken)
    try:
        service = services(runtimes=f"host=host,bad={own.host}/bad", prewarm=False)
        assert "Digest did not match" in refusal(service, "bad") or "digest" in refusal(service, "bad").lower()
        assert stored(service) == []
    finally:
        own.stop()


@pytest.fixture(scope="module")
def outside():
    """An address of this host that is not its loopback, and a server on it that says hello."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))  # sends nothing
        address = probe.getsockname()[0]
    listener = socket.create_server(("0.0.0.0", 0))

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(5)
                peer.recv(4096)
                peer.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")

    threading.Thread(target=serve, daemon=True).start()
    yield address, listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def asking(address, port):
    """A command line that prints what a server of outside() answers; a static busybox can look no names up, so its wget is no use."""
    return f"(echo GET; sleep 1) | timeout 8 nc -w 4 {address} {port}"


def test_a_bridge_reaches_out_and_never_the_hosts_loopback(services, images, outside):
    address, port = outside
    service = services(runtimes=images.runtimes(f"net=dir:{images.box};network_mode=bridge"))
    with service.open(runtime="net") as session, service.open(runtime="box") as alone:
        assert session.sh(asking(address, port)).endswith("hello\n")
        for inside in ("127.0.0.1", "10.0.2.2", "10.0.2.100"):
            assert "hello" not in session.exec(asking(inside, port), timeout=15)["output"]
        assert session.sh("cat /etc/resolv.conf") == "nameserver 10.0.2.3\n"
        assert "hello" not in alone.exec(asking(address, port), timeout=15)["output"]


def test_a_bridge_is_there_after_a_restart_and_goes_with_its_sandbox(services, images, outside):
    address, port = outside
    service = services(runtimes=images.runtimes(f"net=dir:{images.box};network_mode=bridge"))
    before = set(host_processes("--no-map-gw"))
    session = service.open(session_id="net", runtime="net")
    (program,) = set(host_processes("--no-map-gw")) - before
    service.kill()
    service.start()
    assert session.sh(asking(address, port)).endswith("hello\n")
    assert program in host_processes("--no-map-gw")
    session.close()
    until(lambda: program not in host_processes("--no-map-gw"), what="the end of the network's program")


def test_a_bridge_under_gvisor_is_refused_in_words(services, images):
    service = services(runtimes=images.runtimes("net=host;network_mode=bridge;oci_runtime=runsc"))
    assert "network_mode 'bridge' can't be had with the oci_runtime 'runsc'" in refusal(service, "net")


def test_n10_1_prepare_fetches_what_a_session_runs_and_names_what_it_could_not(unstarted, own):
    service = unstarted(runtimes=f"host=host,box={own.host}/box,bad=oci:/no/such/layout")
    done = Prepare(service)
    assert done.wait() == 1
    assert "Not prepared: bad" in done.said.splitlines()[-1]
    asked = dict(own.asked)
    assert len(stored(service)) == 1
    service.start()
    with service.open(runtime="box") as session:
        assert session.sh("echo $MARK") == "one\n"
    assert own.asked == asked
    beside = Prepare(service)
    assert beside.wait() == 1 and "a service that runs prepares its runtimes by itself" in beside.said
    service.stop()


def test_d_n_111_a_registry_that_fails_first(services, unstarted, own):
    """In prepare and in the background pass."""
    service = unstarted(runtimes=f"host=host,box={own.host}/box")
    own.broken = True
    done = Prepare(service)
    until(lambda: "attempt 1 of 3" in done.said or done.process.poll() is not None, SLOW, "the first failure")
    own.broken = False
    assert done.wait() == 0, done.said
    assert f"Preparing runtime box failed (attempt 1 of 3), trying again in 10 s: the image '{own.host}/box' could not be fetched" in done.said
    assert len(stored(service)) == 1
    own.broken = True
    other = services(runtimes=f"host=host,box={own.host}/box", prewarm=1)
    until(lambda: lines(other, "attempt 1 of 2"), SLOW, "the first failure")
    own.broken = False
    until(lambda: lines(other, "the images of all runtimes are here"), SLOW, "the end of the pass")
    assert len(stored(other)) == 1 and warming(other) == []


def test_what_no_runtime_names_any_more_is_removed(services, registry, layout):
    one, two = registry.push(layout, "one", "prune/one:1"), registry.push(layout, "two", "prune/two:1")
    service = services(runtimes=f"host=host,one={one},two={two}", prewarm=False)
    with service.open(runtime="one"), service.open(runtime="two"):
        assert len(stored(service)) == 2
    service.terminate()
    service.settings.update(runtimes=f"host=host,one={one}", prewarm=True)
    service.start()
    until(lambda: len(stored(service)) == 1, what="the removal of the other image")
    with service.open(runtime="one") as session:
        assert session.sh("echo $MARK") == "one\n"
