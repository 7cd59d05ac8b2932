"""The clients for C++ against this service: the K lines of the contract (tests/client/lines), one run of the program each."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CEILINGS = {"g1": 7, "g3": 10}  # s: what a line of each suite expects, and waits for


def cases():
    for suite in CEILINGS:
        source = (ROOT / "tests/client/lines" / f"{suite}.cpp").read_text()
        for name in re.findall(r"BOOST_AUTO_TEST_CASE\((\w+)\)", source):
            yield pytest.param(suite, name, id=f"{suite}-{name}")


@pytest.fixture(scope="module")
def workspaces():
    path = Path(tempfile.mkdtemp(prefix="workspaces-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def running(services, workspaces):
    made = {}

    def of(suite):
        if suite not in made:
            made[suite] = services(workspace_root=workspaces, execute_timeout=CEILINGS[suite])
        return made[suite]

    return of


@pytest.mark.parametrize("suite, name", list(cases()))
def test_line(request, running, workspaces, suite, name):
    program = Path(request.config.getoption("--program")).parent / "tests/client_lines"
    assert program.exists(), f"{program} is not there: scripts/build release client_lines"
    service = running(suite)
    environment = {"PATH": os.environ["PATH"], "SANDBOXD_URL": f"http://127.0.0.1:{service.port}",
                   "SANDBOXD_TOKEN": service.token, "LINES_ROOT": str(workspaces)}
    done = subprocess.run([program, f"--run_test={suite}/{name}", "--color_output=no", "--log_level=error"],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_the_examples_of_the_documentation_compile(tmp_path):
    blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs/clients.md").read_text(), re.S)
    assert len(blocks) == 2
    source = tmp_path / "examples.cpp"
    source.write_text("\n".join(blocks))
    done = subprocess.run(["clang++-19", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           "-DBOOST_ASIO_SEPARATE_COMPILATION", "-I", ROOT / "include", source],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
