"""Conformance: one test per line of the contract, against this service or, to prove the tests, against the reference.

    python3 -m pytest tests/conformance/http                                          this service on oci
    ... --backend=docker                                                              on a daemon of the run's own
    ... --backend=docker --images python=IMAGE,node=IMAGE                             on the daemon at DOCKER_HOST
    ... --reference PYTHON --images python=IMAGE,node=IMAGE                           a release of the reference

A test is named after its line: test_8_1_017_* is line 17 of section 8.1, test_n_085_* is line N.85. What is not there
yet is named in pending.py and must fail: a test that starts to pass is an error until it is taken out of that file."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pending import PENDING  # noqa: E402
from target import Target, daemon_with_images, directories, rootfs, started_by  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--program", default=str(ROOT / "build/release/sandboxd"), help="the service to test")
    parser.addoption("--backend", default="oci", choices=["oci", "docker"])
    parser.addoption("--reference", metavar="PYTHON", help="test the release this Python has, instead of our service")
    parser.addoption("--images", help="python=IMAGE,node=IMAGE (default: the host's system and busybox)")


def pytest_configure(config):
    config.addinivalue_line("markers", "ours: the reference does otherwise, or no one release has all that it needs")
    config.addinivalue_line("markers", "daemon: looks at the containers of a daemon")


def pytest_collection_modifyitems(config, items):
    reference = config.getoption("--reference")
    daemon = reference or config.getoption("--backend") == "docker"
    for item in items:
        name = item.name.split("[")[0]
        if reference and item.get_closest_marker("ours"):
            item.add_marker(pytest.mark.skip(reason="not the reference's behaviour"))
        if not daemon and item.get_closest_marker("daemon"):
            item.add_marker(pytest.mark.skip(reason="needs a container daemon"))
        reason = PENDING.get(item.name) or PENDING.get(name)
        if reason and not reference:
            item.add_marker(pytest.mark.xfail(strict=True, reason=f"not yet: {reason}"))


@pytest.fixture(scope="session")
def target(request):
    option = request.config.getoption
    kind = "reference" if option("--reference") else option("--backend")
    program = option("--reference") or option("--program")
    if option("--images"):
        images = dict(entry.split("=", 1) for entry in option("--images").split(","))
        extra = {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ} if kind != "oci" else {}
        yield Target(kind, program, images, extra)
    elif kind == "oci":
        base = Path(tempfile.mkdtemp(prefix="images-"))
        yield Target(kind, program, {"python": "host", "node": f"dir:{rootfs.busybox(base / 'box')}"}, {})
        shutil.rmtree(base)
    else:
        with daemon_with_images() as (daemon, images):
            yield Target(kind, program, images, {"DOCKER_HOST": daemon.host})


@pytest.fixture
def own_directories():
    yield from directories.removed_at_the_end()


@pytest.fixture(scope="module")
def module_directories():
    yield from directories.removed_at_the_end()


@pytest.fixture
def start(target, own_directories):
    """start(**settings): a service of the test's own."""
    yield from started_by(target.service)


@pytest.fixture(scope="module")
def services(target, module_directories):
    yield from started_by(target.service)


@pytest.fixture(scope="module")
def service(services, root):
    """The module's service: a workspace root, and otherwise the default settings."""
    return services(workspace_root=root, max_sessions=200)


@pytest.fixture(scope="module")
def bare(services):
    """The module's service without a workspace root."""
    return services(max_sessions=200)


@pytest.fixture(scope="module")
def root(module_directories):
    return module_directories("workspaces-")


@pytest.fixture
def own_root(own_directories):
    """A workspace root of the test's own."""
    return own_directories("workspaces-")


@pytest.fixture
def session(service):
    with service.open() as session:
        yield session


@pytest.fixture(scope="module")
def shared(service):
    """A session that the module's tests share."""
    with service.open() as session:
        yield session
