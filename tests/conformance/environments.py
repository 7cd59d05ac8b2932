"""The published clients, each release in a Python environment of its own below build/conformance; in another one, what
reads /openapi.json.

    python3 tests/conformance/environments.py      makes what is missing

An environment is made once for each requirements file; a changed file makes a new one. The source distributions of the
releases, with the reference's own tests in them, lie beside."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASE = HERE.parents[1] / "build" / "conformance"
RELEASES = {"g1": "0.2.29", "g2": "0.2.34", "g3": "0.2.37"}
DOCUMENT = "openapi"
ALL = [*RELEASES, DOCUMENT]
PATIENCE = 600  # s, of one step


def _key(generation):
    return hashlib.sha256((HERE / "requirements" / f"{generation}.txt").read_bytes()).hexdigest()[:12]


def folder(generation):
    return BASE / f"{generation}-{_key(generation)}"


def made(generation):
    return (folder(generation) / "complete").exists()


def python(generation):
    return folder(generation) / "venv/bin/python"


def sources(generation):
    """The unpacked source distribution."""
    return folder(generation) / f"pydantic_ai_backend-{RELEASES[generation]}"


def _step(command):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(part) for part in command)}: {done.stdout[-3000:]}")


def _fetch_sources(generation, target, pip):
    name = f"pydantic-ai-backend=={RELEASES[generation]}"
    _step([*pip, "download", "--no-deps", "--no-binary", "pydantic-ai-backend", "-d", target, name])
    with tarfile.open(target / f"pydantic_ai_backend-{RELEASES[generation]}.tar.gz") as archive:
        # Python 3.11.2, Debian 12's, has no filters yet; what pip has checked against the index is no hostile archive.
        archive.extractall(target, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def make(generation):
    """Makes the environment unless it is there; safe beside another process doing the same."""
    BASE.mkdir(parents=True, exist_ok=True)
    target = folder(generation)
    with open(BASE / f"{generation}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made(generation):
            return
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        _step(["/usr/bin/python3", "-m", "venv", target / "venv"])
        pip = [python(generation), "-m", "pip", "--disable-pip-version-check", "-q"]
        _step([*pip, "install", "--no-compile", "-r", HERE / "requirements" / f"{generation}.txt"])
        if generation in RELEASES:
            _fetch_sources(generation, target, pip)
        (target / "complete").touch()


PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short"]
UPSTREAM = {
    "g1": ["test_remote_sandbox.py", "test_policy_updates.py"],
    "g2": ["test_workspace_sandboxd.py", "test_workspace_sandboxd_conformance.py"],
    "g3": ["test_remote_sandbox.py", "test_policy_updates.py", "test_workspace_sandboxd.py",
           "test_workspace_sandboxd_conformance.py"],
}


def lanes(long=False):
    """(name, about how many seconds, pytest's command, additions to the environment) of each part. On a daemon: what asks
    for one, and the releases of the reference; everything in the long run."""
    system = "/usr/bin/python3"

    def own(name, seconds, interpreter, folder, *more):
        return name, seconds, [interpreter, *PYTEST, HERE / folder, *more], {}

    def theirs(generation, seconds):
        tests = sources(generation)
        command = [python(generation), *PYTEST, "-p", "shim", "-c", tests / "pyproject.toml", "-o", "addopts=",
                   "-m", "not kubernetes and not daytona", *[tests / "tests" / name for name in UPSTREAM[generation]]]
        return f"reference-{generation}", seconds, command, {"PYTHONPATH": f"{HERE / 'upstream'}:{tests}"}

    def ours_at_theirs(generation, seconds):
        """Our clients against the reference itself."""
        return own(f"cpp-{generation}", seconds, system, "cpp", "--reference", python(generation), "-k", f"{generation}-")

    parts = [("http", 330, system, "http"), ("workspace-g2", 170, python("g2"), "workspace"),
             ("workspace-g3", 80, python("g3"), "workspace"), ("g1", 20, python("g1"), "g1"), ("g3", 10, python("g3"), "g3"),
             ("cpp", 60, system, "cpp")]
    docker = [own(f"{name}-docker", *where, "--backend=docker") for name, *where in parts]
    if not long:
        docker = [own("daemon", 35, system, "http", "--backend=docker", "-m", "daemon")]
    return [own("coding", 170, system, "coding"), *[own(*part) for part in parts],
            own("openapi", 50, python(DOCUMENT), "openapi"), *docker, theirs("g1", 300), theirs("g2", 150),
            theirs("g3", 190), ours_at_theirs("g1", 60), ours_at_theirs("g3", 70)]


if __name__ == "__main__":
    for one in sys.argv[1:] or ALL:
        make(one)
        print(f"{one}: {python(one)}")
