"""A Docker daemon that is killed, restarted, stopped or slow (the issue's scope 3; rows B6-01, B6-02, B6-15)."""

import os
import random
import signal
import subprocess
import threading
import time

import pytest

from harness.client import marker
from harness.daemon import Daemon
from harness.service import Service, free_port
from harness.wait import until

pytestmark = pytest.mark.only("docker")


@pytest.fixture(scope="module")
def mortal(trees):
    """A daemon for this module alone, with live-restore: it will be killed."""
    daemon = Daemon("--live-restore")
    try:
        daemon.start()
        daemon.load(trees.box, "box")
        yield daemon
    finally:
        daemon.discard()


def service_on(daemon, services, **settings):
    return services(environment={"DOCKER_HOST": daemon.host}, runtimes="box=box", **settings)


def degraded(service):
    health = service.request("GET", "/healthz").json()
    assert health["status"] == "ok"
    return health["degraded"]


@pytest.mark.row("B6-01")
def test_a_killed_daemon_is_told_and_sessions_answer_on(mortal, services):
    service = service_on(mortal, services)
    session = service.open(runtime="box")
    assert degraded(service) is None
    mortal.kill()
    try:
        assert session.sh("echo without a daemon") == "without a daemon\n"
        assert "docker" in until(lambda: degraded(service), what="degraded")
        answer = service.request("POST", "/sessions", {"runtime": "box"})
        assert answer.status == 502
        assert "docker" in answer.detail
    finally:
        mortal.start()
    until(lambda: degraded(service) is None, what="well again")
    assert session.sh("echo with one") == "with one\n"
    with service.open(runtime="box") as other:
        assert other.sh("echo new") == "new\n"
    assert session.close().status == 204


def test_a_close_without_a_daemon_is_made_up_for(mortal, services):
    service = service_on(mortal, services)
    session = service.open(runtime="box")
    uuid = (service.state / "uuid").read_text().strip()
    mortal.kill()
    try:
        assert session.close().status == 204
    finally:
        mortal.start()
    until(lambda: not [c for c in mortal.containers() if c["Labels"].get("sandboxd.service") == uuid],
          what="the container's removal")


@pytest.mark.row("B6-02")
def test_a_daemon_that_does_not_answer_is_a_502_at_the_deadline_and_others_go_on(mortal, services):
    service = service_on(mortal, services)
    session = service.open(runtime="box")
    os.kill(mortal.process.pid, signal.SIGSTOP)
    try:
        until(lambda: degraded(service), what="degraded")
        assert session.sh("echo on") == "on\n"
        with service.raw(deadline=120) as raw:  # which passes over the 102 that tells a long wait
            raw.send(f"POST /sessions HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {service.token}\r\nContent-Length: 2\r\n\r\n{{}}")
            answer = raw.answer()
        assert answer.status == 502
        assert "no answer from the daemon within" in answer.detail
    finally:
        os.kill(mortal.process.pid, signal.SIGCONT)
    until(lambda: degraded(service) is None, what="well again")
    with service.open(runtime="box") as other:
        assert other.sh("echo new") == "new\n"


class Load:
    """Callers that append words to a file of their session; what was answered must be there, once."""

    def __init__(self, sessions, seed):
        self.sessions = sessions
        self.going = True
        self.answered = {session.id: [] for session in sessions}
        self.threads = [threading.Thread(target=self.caller, args=(random.Random(seed + i),)) for i in range(4)]
        for thread in self.threads:
            thread.start()

    def caller(self, chooser):
        while self.going:
            session, word = chooser.choice(self.sessions), marker()
            answer = session.request("POST", "/exec", {"command": f"echo {word} >>/workspace/log", "timeout_seconds": 30})
            if answer.status == 200 and answer.json()["exit_code"] == 0:
                self.answered[session.id].append(word)
            time.sleep(chooser.uniform(0, 0.02))

    def stop(self):
        self.going = False
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize("way", ["near", "far"])
def test_show_kills_under_load_lose_no_session_and_no_command(mortal, services, seed, long, way):
    from harness.relay import Relay

    relay = Relay(mortal.socket)
    try:
        where = mortal.host if way == "near" else relay.host
        service = services(environment={"DOCKER_HOST": where}, runtimes="box=box")
        sessions = [service.open(runtime="box") for _ in range(4)]
        chooser = random.Random(seed)
        load = Load(sessions, seed)
        for turn in range(20 if long else 2):
            time.sleep(chooser.uniform(0.2, 1.0))
            mortal.kill()
            time.sleep(chooser.uniform(0.0, 1.0))
            mortal.start()
            for session in sessions:
                assert session.sh("echo here") == "here\n", f"turn {turn}, seed {seed}"
            assert all(session.info()["alive"] for session in sessions), f"turn {turn}, seed {seed}"
        load.stop()
        for session in sessions:
            log = session.sh("cat /workspace/log").split()
            assert len(log) == len(set(log)), f"seed {seed}: run twice"
            assert set(load.answered[session.id]) <= set(log), f"seed {seed}: answered, but not run"
            assert len(load.answered[session.id]) > 0
        until(lambda: degraded(service) is None, what="well again")
        for session in sessions:
            assert session.close().status == 204
    finally:
        relay.close()


@pytest.mark.row("B6-01")
def test_without_live_restore_a_restart_ends_the_sandboxes_and_they_are_healed(trees, services):
    daemon = Daemon()
    try:
        daemon.start()
        daemon.load(trees.box, "box")
        service = service_on(daemon, services)
        session = service.open(runtime="box")
        session.sh("echo gone >/file")
        daemon.terminate()
        until(lambda: session.info()["alive"] is False, what="the death")
        daemon.start()
        until(lambda: degraded(service) is None, what="well again")
        assert session.sh("cat /file 2>/dev/null; echo new") == "new\n"
        session.close()
        service.stop()
    finally:
        daemon.discard()


# The choice of the backend (design "Decided" 1) --------------------------------------------------------------------


def start_line(service):
    return [line for line in service.log.read_text().splitlines() if "backend" in line and "state in" in line][-1]


def test_decided_1_a_daemon_that_answers_is_chosen_and_remembered(mortal, services):
    service = service_on(mortal, services, backend=None, on_shutdown="keep")
    assert "backend docker (as DOCKER_HOST asks for it, the daemon at unix://" in start_line(service)
    assert service.terminate() == 0
    service.start()
    assert "backend docker (as this state directory was used before" in start_line(service)
    service.settings["on_shutdown"] = "stop"
    service.terminate()
    service.start()


def test_decided_1_a_docker_host_that_does_not_answer_is_an_error(request, trees):
    program = request.config.getoption("--program")
    service = Service(program, backend=None, runtimes="box=box", environment={"DOCKER_HOST": f"tcp://127.0.0.1:{free_port()}"})
    try:
        ended = subprocess.run([program, "--listen", f"127.0.0.1:{service.port}"], env=service.environment(), cwd="/",
                               capture_output=True, text=True, timeout=60)
        assert ended.returncode == 1
        assert ended.stderr.splitlines()[-1].startswith("sandboxd: no docker daemon answers at tcp://127.0.0.1:")
        assert "(DOCKER_HOST)" in ended.stderr
    finally:
        service.discard()
