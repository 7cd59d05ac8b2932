"""The K lines through the clients for C++ (tests/client/lines): each case is a run of that program against a service.

`--reference PYTHON` runs them against a release of the reference: those named "g1" against one that has the routes of
0.2.29, "g3" against 0.2.37; the other suite is left out by -k."""

import os
import re
import secrets
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "client/lines"
SETTINGS = {"g1": {"execute_timeout": 7}, "g3": {"execute_timeout": 10}}


def cases():
    for suite in SETTINGS:
        for name in re.findall(r"BOOST_AUTO_TEST_CASE\((\w+)\)", (SOURCES / f"{suite}.cpp").read_text()):
            marks = [pytest.mark.ours] if name.endswith("_ours") else []
            yield pytest.param(suite, name, id=f"{suite}-{name}", marks=marks)


@pytest.fixture(scope="module")
def started(services, root):
    """started(suite): a service with what its lines need and one that keeps no workspaces, made once."""
    made = {}

    def of(suite):
        if suite not in made:
            token = secrets.token_hex(16)
            made[suite] = [services(token=token, **settings, **SETTINGS[suite]) for settings in ({"workspace_root": root}, {})]
        return made[suite]

    return of


@pytest.fixture(scope="module")
def lines(request):
    program = Path(__file__).resolve().parents[3] / "build/release/tests/client_lines"
    assert program.exists(), f"{program} is not there: scripts/build release client_lines"
    return program


@pytest.mark.parametrize("suite, name", list(cases()))
def test_cpp(started, root, lines, suite, name):
    service, bare = started(suite)
    environment = {"PATH": os.environ["PATH"], "SANDBOXD_URL": f"http://127.0.0.1:{service.port}",
                   "SANDBOXD_BARE_URL": f"http://127.0.0.1:{bare.port}", "SANDBOXD_TOKEN": service.token,
                   "LINES_ROOT": str(root)}
    done = subprocess.run([lines, f"--run_test={suite}/{name}", "--color_output=no", "--log_level=error"],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
