"""scripts/quickstart: the README's first command, its printed lines, its end."""

import concurrent.futures
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def quickstart(home, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SANDBOXD_")}
    environment["SANDBOXD_QUICKSTART_DIR"] = str(home)
    return subprocess.run(["scripts/quickstart", *arguments], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=900)


@pytest.fixture
def started(tmp_path):
    home = tmp_path / "quickstart"
    done = quickstart(home)
    try:
        yield home, done
    finally:
        ended = quickstart(home, "--stop")
    assert ended.returncode == 0, ended.stderr
    assert not (home / "pid").exists()


def shell(line):
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout) if done.stdout else None


def test_it_ends_with_a_command_s_output_and_its_lines_work_as_printed(started):
    home, done = started
    assert done.returncode == 0, done.stderr
    session = (home / "session").read_text().split()[0]
    assert "\nhello from " in done.stdout
    assert "uid=0" in done.stdout

    lines = [line for line in done.stdout.splitlines() if line.startswith("curl")]
    assert len(lines) == 6
    assert shell(lines[0])["exit_code"] == 0
    assert "usr" in shell(lines[1])["stdout"]
    assert [event["op"] for event in shell(lines[2])["events"]][-2:] == ["exec", "run"]
    assert shell(lines[3])["session"]["session_id"] == "second"
    assert {one["session_id"] for one in shell(lines[4])["sessions"]} == {session, "second"}
    shell(lines[5])
    assert {one["session_id"] for one in shell(lines[4])["sessions"]} == {session}


def test_a_second_run_finds_the_first_one_s_service_and_session(started):
    home, _ = started
    session = (home / "session").read_text()
    again = quickstart(home)
    assert again.returncode == 0, again.stderr
    assert "already running" in again.stderr
    assert (home / "session").read_text() == session
    other = quickstart(home, "--backend", "docker")
    assert other.returncode == 0, other.stderr
    assert other.stderr.splitlines()[-2:] == [
        f"quickstart: already running (pid {(home / 'pid').read_text().split()[0]}, backend oci)",
        "quickstart: for the backend docker, end that one first: scripts/quickstart --stop"]


def test_two_started_at_once_take_a_port_each(tmp_path):
    homes = [tmp_path / name for name in ("one", "two")]
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in pool.map(quickstart, homes):
                assert done.returncode == 0, done.stderr
                assert "uid=0" in done.stdout
        assert len({(home / "url").read_text() for home in homes}) == 2
    finally:
        for home in homes:
            quickstart(home, "--stop")


def test_a_port_that_is_held_without_listening_is_passed_over(tmp_path):
    held = []
    try:
        for port in (8080, 8081, 8082):  # those that are in use already are passed over as well
            held.append(socket.socket())
            try:
                held[-1].bind(("127.0.0.1", port))
            except OSError:
                continue
        done = quickstart(tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "url").read_text().strip() not in [f"http://127.0.0.1:{port}" for port in (8080, 8081, 8082)]
    finally:
        quickstart(tmp_path, "--stop")
        for one in held:
            one.close()


def test_an_unknown_argument_and_an_unknown_backend_are_named(tmp_path):
    for argument in ("--bcakend", "--backend=podman"):
        done = quickstart(tmp_path, argument)
        assert done.returncode != 0
        assert argument.removeprefix("--backend=") in done.stderr


@pytest.mark.parametrize("script", ["scripts/setup", "scripts/build", "scripts/test", "scripts/format",
                                    "scripts/quickstart", "bench/run"])
def test_every_script_tells_what_it_takes_and_does_nothing_else(script):
    done = subprocess.run([script, "--help"], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert script in done.stdout
    assert "ninja" not in done.stdout  # it built first, once
