"""The programs for arm64, made on this machine, at work on a kernel of that architecture (machine.py)."""

import json
import re
import shutil

import pytest

import machine


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    reason = machine.missing()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("machine")
    yield machine.run(folder)
    shutil.rmtree(folder)


def told(said, name):
    """The rest of the machine's line that begins with a name."""
    found = re.findall(rf"^{name}: (.*)$", said, re.M)
    assert len(found) == 1, f"{name}:\n{said[-6000:]}"
    return found[0]


def test_it_is_another_architecture(said):
    assert told(said, "machine") == "Linux aarch64"


def test_the_agents_tests_pass(said):
    """Among them those of the system-call filter, which its kernel has loaded."""
    assert told(said, "agent") == "0", said[-6000:]


def test_the_service_opens_a_session_and_runs_a_command_behind_the_filter(said):
    assert json.loads(told(said, "opened")).get("session", {}).get("session_id") == "one", said[-6000:]
    command = json.loads(told(said, "command"))
    assert command["output"] == "aarch64\n0\nSeccomp:\t2\nno mounts\n" and command["exit_code"] == 7, said[-6000:]
    assert "written" in json.loads(told(said, "read"))["content"], said[-6000:]
    assert told(said, "service") == "0", said[-6000:]
