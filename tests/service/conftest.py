"""Fixtures of the service tests. Each test module names the rules it tests; rows of docs/hard-cases.md are markers."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import rootfs  # noqa: E402
from harness.service import ROOT, Service  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="the large counts in full instead of a tenth")
    parser.addoption("--seed", type=int, default=20240611, help="of everything random in the tests")
    parser.addoption("--program", default=str(ROOT / "build/release/sandboxd"), help="the service to test")


def pytest_configure(config):
    config.addinivalue_line("markers", "row(*names): rows of docs/hard-cases.md that the test covers")
    if os.geteuid() != 0:
        pytest.exit("the service tests start real sandboxes: run them as root", returncode=2)
    if not Path(config.getoption("--program")).exists():
        pytest.exit(f"{config.getoption('--program')} is not there: scripts/build release", returncode=2)


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
def images():
    """Root file systems: images.box has busybox, images.scratch one static program and no shell."""
    base = Path(tempfile.mkdtemp(prefix="images-"))

    class Images:
        box = rootfs.busybox(base / "box")
        scratch = rootfs.scratch(base / "scratch")

        @staticmethod
        def runtimes(*more):
            return ",".join(["host=host", f"box=dir:{base}/box", f"scratch=dir:{base}/scratch", *more])

    yield Images
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def services(request, images):
    """services(**settings): a started service; all are stopped at the end of the module and must leave nothing."""
    program = request.config.getoption("--program")
    made = []

    def make(**settings):
        service = Service(program, **{"runtimes": images.runtimes(), **settings})
        made.append(service)
        return service.start()

    yield make
    problems = []
    for service in made:
        try:
            if service.process.poll() is None:
                service.stop()
            else:
                service.assert_nothing_left()
        except Exception as problem:
            problems.append(str(problem))
        finally:
            service.discard()
    assert not problems, "\n".join(problems)


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
