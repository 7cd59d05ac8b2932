"""A service that is killed loses nothing (the issue's "It must show" 5; design "Decided" 3, 18, 19, 21)."""

import contextlib
import http.client
import os
import random
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness.client import Session, marker, run_id
from harness.host import host_processes, sandboxes_of
from harness.wait import until


class Load:
    """Callers that open, run commands with a side effect, and close, and remember what they were told."""

    def __init__(self, service, chooser, sessions):
        self.service = service
        self.sessions = sessions      # open ones, from earlier rounds on
        self.lock = threading.Lock()
        self.sent = {}                # word -> session, every command ever sent
        self.answered = set()         # words of commands answered 200 with exit code 0
        self.unsure = {}              # session id -> Session whose close was sent and not answered
        self.going = True
        self.seeds = [chooser.random() for _ in range(4)]

    def caller(self, seed):
        chooser = random.Random(seed)
        while self.going:
            try:
                self.act(chooser)
            except (OSError, ValueError, http.client.HTTPException):
                # The connection died with the service, or its answer was cut.
                if self.going:
                    time.sleep(0.005)

    def act(self, chooser):
        kind = chooser.random()
        with self.lock:
            known = list(self.sessions)
        if kind < 0.15 and len(known) < 8 or not known:
            answer = self.service.request("POST", "/sessions", {}, deadline=60)
            if answer.status == 200:
                with self.lock:
                    self.sessions.append(Session(self.service.port, answer.json()))
        elif kind < 0.2 and len(known) > 4:
            session = chooser.choice(known)
            with self.lock:
                if session not in self.sessions:
                    return
                self.sessions.remove(session)
                self.unsure[session.id] = session
            if session.close().status in (204, 404):
                with self.lock:
                    self.unsure.pop(session.id, None)
        else:
            session, word = chooser.choice(known), marker()
            with self.lock:
                self.sent[word] = session
            command = f"echo {word} >>/workspace/log"
            if chooser.random() < 0.5:
                answer = session.request("POST", "/exec", {"command": command}, deadline=60)
            else:
                answer = session.request("POST", "/run", {"argv": ["sh", "-c", command], "run_id": run_id()}, deadline=60)
            if answer.status == 200 and answer.json()["exit_code"] == 0:
                self.answered.add(word)

    def for_a_while(self, seconds):
        threads = [threading.Thread(target=self.caller, args=(seed,)) for seed in self.seeds]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.service.kill()
        self.going = False
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


def test_show_5_kill_9_under_load_loses_nothing(services, seed, long):
    service = services(on_shutdown="stop", max_sessions=50)
    chooser = random.Random(seed)
    sessions = []
    background = {}
    for turn in range(200 if long else 20):
        load = Load(service, chooser, sessions)
        load.for_a_while(chooser.uniform(0.05, 0.6))
        service.start()
        # Every session whose open was answered answers with its token, and works.
        for session in sessions:
            answer = session.request("GET")
            assert answer.status == 200, f"turn {turn}, seed {seed}: {session.id} is lost: {answer}"
            assert answer.json()["alive"] is True, f"turn {turn}, seed {seed}: {session.id} is dead"
            log = session.exec("cat /workspace/log 2>/dev/null", timeout=20)["output"].split()
            twice = {word for word in log if log.count(word) > 1}
            assert not twice, f"turn {turn}, seed {seed}: run twice: {twice}"
            missing = {word for word in load.answered if load.sent[word] is session} - set(log)
            assert not missing, f"turn {turn}, seed {seed}: answered, but not run: {missing}"
            # Background processes are still there.
            if session.id in background:
                assert host_processes(background[session.id]), f"turn {turn}: a background process is gone"
            else:
                background[session.id] = marker()
                session.exec(f"sleep {background[session.id]} >/dev/null 2>&1 &")
        # A close that was not answered either happened or did not.
        for id, session in load.unsure.items():
            assert session.request("GET").status in (200, 404)
            service.request("DELETE", f"/sessions/{id}")
        # Opens that were not answered may stand; nobody knows them, so they go now. The rest has an owner.
        known = {session.id for session in sessions}
        for row in service.request("GET", "/sessions").json()["sessions"]:
            if row["session_id"] not in known:
                assert service.request("DELETE", f"/sessions/{row['session_id']}").status in (204, 404)
        until(lambda: len(sandboxes_of(service.directory)) == len(known),
              what=f"turn {turn}, seed {seed}: as many sandboxes as sessions "
                   f"({len(sandboxes_of(service.directory))}, {len(known)})")
        # Keep the logs short.
        for session in sessions:
            session.exec(": >/workspace/log")
    service.stop()


@pytest.fixture
def lasting(services):
    return services(on_shutdown="keep")


def test_decided_18_after_term_sandboxes_records_and_processes_stand(lasting):
    mark = marker()
    session = lasting.open(tenant="t", session_id="lasting")
    session.sh(f"echo here >/workspace/f; sleep {mark} >/dev/null 2>&1 &")
    before = session.info()
    events = session.events()
    assert lasting.terminate() == 0
    assert len(host_processes(mark)) == 1
    lasting.start()
    after = session.info()
    assert {key: after[key] for key in ("session_id", "runtime", "tenant", "alive", "state", "created_at")} == \
        {key: before[key] for key in ("session_id", "runtime", "tenant", "alive", "state", "created_at")}
    assert session.sh("cat /workspace/f") == "here\n"
    assert len(host_processes(mark)) == 1
    # Event numbers go on and never repeat.
    assert session.events()["latest_seq"] > events["latest_seq"]
    assert session.close().status == 204
    assert host_processes(mark) == []


def test_decided_21_a_stop_reaches_a_command_whose_request_died(lasting):
    mark, id = marker(), run_id()
    session = lasting.open()
    thread = threading.Thread(target=quietly, args=(session, {"argv": ["sleep", mark], "run_id": id}))
    thread.start()
    until(lambda: host_processes(mark), what="the run")
    lasting.kill()
    thread.join(60)
    assert len(host_processes(mark)) == 1
    lasting.start()
    answer = session.request("POST", "/run", {"argv": ["true"], "run_id": id})
    assert answer.status == 409
    assert session.stop_run(id).status == 204
    assert host_processes(mark) == []
    session.close()


def test_decided_21_it_counts_against_the_ceiling_until_it_ends(services):
    service = services(on_shutdown="keep", max_running_commands=1)
    mark = marker()
    session = service.open()
    body = {"argv": ["sleep", mark], "run_id": run_id(), "timeout_seconds": 25}
    thread = threading.Thread(target=quietly, args=(session, body))
    thread.start()
    until(lambda: host_processes(mark), what="the run")
    service.kill()
    thread.join(60)
    service.start()
    assert host_processes(mark), "it has ended before it could be counted"
    result = session.exec("touch /workspace/never", timeout=1)
    assert (result["timed_out"], result["output"]) == (True, "")
    assert session.exec("test -e /workspace/never", timeout=90)["exit_code"] == 1
    assert host_processes(mark) == []
    session.close()


def test_decided_4_its_deadline_holds_without_the_service(lasting):
    mark = marker()
    session = lasting.open()
    thread = threading.Thread(target=quietly,
                              args=(session, {"argv": ["sleep", mark], "run_id": run_id(), "timeout_seconds": 8}))
    thread.start()
    until(lambda: host_processes(mark), what="the run")
    lasting.kill()
    thread.join(60)
    until(lambda: host_processes(mark) == [], what="the end of the command at its deadline")
    lasting.start()
    assert session.sh("echo works") == "works\n"
    session.close()


def test_decided_4_a_command_that_prints_without_a_reader_goes_on(lasting):
    """Its output is kept up to a bound, then it waits; nothing is lost of what it does after the restart."""
    session = lasting.open()
    script = "i=0; while [ $i -lt 30 ]; do echo $i; echo $i >/workspace/i; i=$((i+1)); sleep 0.1; done"
    thread = threading.Thread(target=quietly, args=(session, {"argv": ["sh", "-c", script], "run_id": run_id()}))
    thread.start()
    until(lambda: session.exec("cat /workspace/i")["output"], what="its first line")
    lasting.kill()
    thread.join(60)
    time.sleep(0.5)
    lasting.start()
    until(lambda: session.exec("cat /workspace/i")["output"] == "29\n", what="the last line")
    session.close()


def test_kill_9_while_opening_leaves_no_orphan(services, count, seed):
    service = services(on_shutdown="keep")
    chooser = random.Random(seed)
    for _ in range(count(100)):
        threads = [threading.Thread(target=quiet_open, args=(service,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(chooser.uniform(0.005, 0.15))
        service.kill()
        for thread in threads:
            thread.join(60)
        service.start()
        rows = service.request("GET", "/sessions").json()["sessions"]
        until(lambda: len(sandboxes_of(service.directory)) == len(rows), what="no orphan")
        for row in rows:
            assert service.request("DELETE", f"/sessions/{row['session_id']}").status == 204
    until(lambda: sandboxes_of(service.directory) == set(), what="no sandbox left")


def test_what_a_dead_machine_left_without_a_record_is_removed(services):
    """A slot's record reaches the disk with the session's: a power cut between the two leaves a place that no record names."""
    service = services(on_shutdown="keep")
    service.open()
    service.kill()
    with contextlib.closing(sqlite3.connect(service.state / "state.db")) as records, records:
        assert records.execute("DELETE FROM slots").rowcount == 1
        assert records.execute("DELETE FROM sessions").rowcount == 1
    service.start()
    assert service.request("GET", "/sessions").json()["sessions"] == []
    assert "slots without a session removed: 1" in service.tail()
    until(lambda: sandboxes_of(service.directory) == set(), what="no sandbox left")


@pytest.mark.only("oci")
def test_without_its_launcher_the_service_leaves_and_the_next_start_finds_all(lasting):
    session = lasting.open()
    children = Path(f"/proc/{lasting.pid}/task/{lasting.pid}/children").read_text().split()
    assert len(children) == 1
    os.kill(int(children[0]), signal.SIGKILL)
    assert lasting.process.wait(20) == 1
    assert "the launcher process has ended" in lasting.tail()
    lasting.start()
    assert session.sh("echo works") == "works\n"
    assert session.close().status == 204


def test_a_sandbox_that_died_meanwhile_is_told_so(lasting):
    from harness.host import sandbox_init
    mark = marker()
    session = lasting.open()
    session.sh(f"sleep {mark} >/dev/null 2>&1 &")
    agent = sandbox_init(host_processes(mark)[0])
    lasting.kill()
    os.kill(agent, signal.SIGKILL)
    until(lambda: host_processes(mark) == [], what="the end of the sandbox")
    lasting.start()
    assert session.info()["alive"] is False
    assert session.request("POST", "/run", {"argv": ["true"], "run_id": run_id()}).status == 410
    assert session.close().status == 204


def test_decided_1_two_services_never_share_a_state_directory(lasting):
    second = subprocess.run([lasting.program, "--backend", "oci", "--listen", "127.0.0.1:0"], capture_output=True,
                            env=lasting.environment(), cwd="/", text=True, timeout=20)
    assert second.returncode == 1
    assert str(lasting.state) in second.stderr or "state" in second.stderr.lower()
    assert lasting.request("GET", "/healthz").status == 200


def test_on_shutdown_stop_ends_everything(services):
    service = services(on_shutdown="stop")
    mark = marker()
    session = service.open()
    session.sh(f"setsid sleep {mark} >/dev/null 2>&1 &")
    assert len(host_processes(mark)) == 1
    service.stop()
    assert host_processes(mark) == []
    service.start()
    # 2.16: no session is restored, but its token is still told from a stranger's (N16.4).
    assert session.request("GET").status == 404
    assert service.request("GET", "/sessions").json()["sessions"] == []


def test_a_start_that_fails_leaves_the_sessions_alone(services):
    service = services(on_shutdown="stop")
    session = service.open()
    session.sh("echo here >/workspace/f")
    service.kill()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", service.port))
        taken.listen()
        failed = subprocess.run([service.program, "--backend", "oci", "--listen", f"127.0.0.1:{service.port}"],
                                capture_output=True, env=service.environment(), cwd="/", text=True, timeout=60)
    assert failed.returncode == 1
    assert str(service.port) in failed.stderr.splitlines()[-1]
    service.start()
    assert session.sh("cat /workspace/f") == "here\n"


def test_term_lets_requests_in_flight_finish(services):
    service = services(on_shutdown="stop")
    session = service.open()
    results = []
    thread = threading.Thread(target=lambda: results.append(session.exec("echo >begun; sleep 2; echo finished")))
    thread.start()
    until(lambda: session.exists("/workspace/begun"), what="the command")
    assert service.terminate() == 0
    thread.join()
    assert [result["output"] for result in results] == ["finished\n"]


def quietly(session, body):
    try:
        session.request("POST", "/run", body, deadline=60)
    except Exception:  # the service dies under it, in whatever way that shows
        pass


def quiet_open(service):
    try:
        service.request("POST", "/sessions", {}, deadline=60)
    except Exception:  # as above
        pass
