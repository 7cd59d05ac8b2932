"""Fixtures of the service tests. Each test module names the rules it tests; rows of docs/hard-cases.md are markers."""

import functools
import os
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import bases, directories, rootfs  # noqa: E402
from harness.daemon import GVISOR, Daemon  # noqa: E402
from harness.service import ROOT, Service, started_by  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="the large counts in full instead of a tenth")
    parser.addoption("--seed", type=int, default=20240611, help="of everything random in the tests")
    parser.addoption("--backend", choices=["oci", "docker"], default="oci", help="what makes the sandboxes")
    parser.addoption("--program", default=str(ROOT / "build/release/sandboxd"), help="the service to test")


def stop_with_fixtures(*_):
    """A run that is told to end takes down what its fixtures have started."""
    raise KeyboardInterrupt


def pytest_configure(config):
    signal.signal(signal.SIGTERM, stop_with_fixtures)
    config.addinivalue_line("markers", "only(backend): tests what only that backend has")
    config.addinivalue_line("markers", "row(*names): rows of docs/hard-cases.md that the test covers")
    if os.geteuid() != 0:
        pytest.exit("the service tests start real sandboxes: run them as root", returncode=2)
    if not Path(config.getoption("--program")).exists():
        pytest.exit(f"{config.getoption('--program')} is not there: scripts/build release", returncode=2)


def pytest_collection_modifyitems(config, items):
    """Tests of one backend are left out when the other is tested, not skipped: nobody could run them there."""
    backend = config.getoption("--backend")
    fitting = {True: [], False: []}
    for item in items:
        only = item.get_closest_marker("only")
        fitting[only is None or only.args[0] == backend].append(item)
    items[:] = fitting[True]
    config.hook.pytest_deselected(items=fitting[False])


@pytest.fixture(scope="session")
def backend(request):
    return request.config.getoption("--backend")


@pytest.fixture(scope="session")
def long(request):
    return request.config.getoption("--long")


@pytest.fixture(scope="session")
def seed(request):
    return request.config.getoption("--seed")


@pytest.fixture(scope="session")
def count(long):
    """count(n): n with --long, else a tenth of it."""
    return lambda full: full if long else max(1, full // 10)


@pytest.fixture(scope="session")
def trees():
    """Root file systems on disk: trees.box has busybox, trees.scratch one static program and no shell."""
    base = Path(tempfile.mkdtemp(prefix="images-"))

    class Trees:
        directory = base
        box = rootfs.busybox(base / "box")
        scratch = rootfs.scratch(base / "scratch")

    yield Trees
    shutil.rmtree(base)


@pytest.fixture(scope="session")
def docker(trees):
    """A daemon of this run's own, with the images host (a small Debian), box and scratch."""
    daemon = Daemon("--live-restore", runtimes=GVISOR)
    try:
        daemon.start()
        daemon.load(rootfs.debian(trees.directory / "debian"), "host-tree")
        daemon.load(trees.box, "box")
        daemon.load(trees.scratch, "scratch")
        yield daemon
    finally:
        daemon.discard()


@pytest.fixture(scope="session")
def images(request, trees, backend):
    """images.runtimes(): the runtimes host, box and scratch on the backend that is tested, and more."""
    if backend == "docker":
        request.getfixturevalue("docker")

    class Images:
        box = trees.box
        scratch = trees.scratch
        host_image = {"oci": "host", "docker": "host-tree"}[backend]
        box_image = {"oci": f"dir:{trees.box}", "docker": "box"}[backend]

        @classmethod
        def runtimes(cls, *more):
            if backend == "docker":
                ours = ["host=host-tree", "box=box", "scratch=scratch"]
            else:
                ours = ["host=host", f"box=dir:{cls.box}", f"scratch=dir:{cls.scratch}"]
            return ",".join([*ours, *more])

    return Images


@pytest.fixture(scope="session")
def package_base(request, trees, backend):
    """package_base(manager): a base image with that package manager and a package for it (harness/bases.py)."""

    @functools.cache
    def make(manager):
        tree = bases.base(trees.directory / f"{manager}-base", manager)
        if backend == "oci":
            return f"dir:{tree}"
        name = request.getfixturevalue("docker").load(tree, f"{manager}-base")
        shutil.rmtree(tree)
        return name

    return make


@pytest.fixture
def late_base(request, trees, backend):
    """A base image that is not there: its name, and a function that brings it."""
    name = f"late-{secrets.token_hex(6)}"
    if backend == "docker":
        daemon = request.getfixturevalue("docker")
        return name, lambda: daemon.load(trees.box, name)

    def bring():
        shutil.copytree(trees.box, trees.directory / f"{name}-new", symlinks=True)
        (trees.directory / f"{name}-new").rename(trees.directory / name)

    return f"dir:{trees.directory / name}", bring


@pytest.fixture(scope="module")
def module_directories():
    yield from directories.removed_at_the_end()


@pytest.fixture(scope="module")
def area(module_directories):
    """A directory of the module's own."""
    return module_directories("area-")


def _service(request, images, backend, settings):
    where = {"environment": {"DOCKER_HOST": request.getfixturevalue("docker").host}} if backend == "docker" else {}
    return Service(request.config.getoption("--program"),
                   **{"runtimes": images.runtimes(), "backend": backend, **where, **settings})


@pytest.fixture
def unstarted(request, images, backend):
    """unstarted(**settings): a service that is not started, for commands beside it; what it was in the end is removed."""
    made = []

    def make(**settings):
        made.append(_service(request, images, backend, settings))
        return made[-1]

    yield make
    for one in made:
        one.discard()


@pytest.fixture(scope="module")
def services(request, images, backend, module_directories):
    """services(**settings): a started service; all are stopped at the end of the module and must leave nothing."""
    yield from started_by(lambda **settings: _service(request, images, backend, settings))


@pytest.fixture(scope="module")
def service(services):
    """The module's service with the default settings."""
    return services()


@pytest.fixture
def session(service):
    """A session of the test's own on the host's file system."""
    with service.open() as session:
        yield session


@pytest.fixture(scope="module")
def shared(service):
    """A session that the module's tests share; they leave it as they found it."""
    with service.open() as session:
        yield session


@pytest.fixture
def box(service):
    """A session of the test's own on busybox."""
    with service.open(runtime="box") as session:
        yield session
