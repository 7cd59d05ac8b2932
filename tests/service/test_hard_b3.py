"""docs/hard-cases.md B3: exit codes, signals, timeouts, limits, reaping."""

import threading
import time

import pytest

from harness.client import marker, run_id
from harness.host import host_processes
from harness.wait import until


@pytest.mark.row("B3-02")
def test_b3_02_what_cannot_be_started(session):
    session.sh("printf x >/tmp/plain")
    for argv, code in [(["nonexist"], 127), (["/etc"], 126), (["/tmp/plain"], 126)]:
        result = session.run(argv)
        assert (result["exit_code"], result["stdout"], result["timed_out"]) == (code, "", False)
        assert argv[0] in result["stderr"]


@pytest.mark.row("B3-03")
def test_b3_03_the_same_every_time(session, count):
    with session.connect() as connection:
        for _ in range(count(100)):
            codes = [session.run([word], connection=connection)["exit_code"]
                     for word in ("nonexist", "/etc", "/etc/passwd", "")]
            assert codes == [127, 126, 126, 127]
    assert session.request("POST", "/run", {"argv": [], "run_id": run_id()}).status == 422


@pytest.mark.row("B3-04")
def test_b3_04_a_missing_command_is_127_with_a_shell_and_without(service, session):
    assert session.exec("no_such_cmd")["exit_code"] == 127
    with service.open(runtime="scratch") as bare:
        assert bare.exec("no_such_cmd")["exit_code"] == 127
        assert bare.run(["no_such_cmd"])["exit_code"] == 127


@pytest.mark.row("B3-05")
@pytest.mark.parametrize("runtime", ["host", "box"])
def test_b3_05_a_timeout_leaves_no_survivor(service, runtime):
    with service.open(runtime=runtime) as session:
        before = len(session.command_lines())
        result = session.exec("while :; do :; done", timeout=1)
        assert (result["exit_code"], result["timed_out"]) == (124, True)
        ran = session.run(["sh", "-c", "while :; do :; done"], timeout=1)
        assert (ran["exit_code"], ran["timed_out"]) == (None, True)
        assert len(session.command_lines()) == before


@pytest.mark.row("B3-07")
def test_b3_07_a_timed_out_sleep_is_gone(session):
    mark = marker()
    assert session.exec(f"sleep {mark}", timeout=1)["timed_out"] is True
    assert host_processes(mark) == []
    assert session.running(mark) == []


@pytest.mark.row("B3-08")
def test_b3_08_a_running_command_can_be_cancelled(session):
    mark, id = marker(), run_id()
    thread = threading.Thread(target=session.run, args=(["sleep", mark],), kwargs={"id": id})
    thread.start()
    until(lambda: host_processes(mark), what="the run")
    assert session.stop_run(id).status == 204
    assert host_processes(mark) == []
    thread.join(60)


@pytest.mark.row("B3-09")
def test_b3_09_clients_that_leave_leak_nothing(service, session, count):
    """The policy: the command goes on to its own end or deadline; a hundred of them leave nothing behind."""
    import json
    mark = marker()
    descriptors = service.descriptors()
    turns = count(100)
    for _ in range(turns):
        body = json.dumps({"command": f"sleep {mark}", "timeout_seconds": 2})
        with service.raw() as raw:
            raw.send(f"POST /sessions/{session.id}/exec HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
            time.sleep(0.01)
            raw.reset()
    until(lambda: session.events()["latest_seq"] >= 1, what="an event")
    until(lambda: host_processes(mark) == [], what="the end of them all")
    until(lambda: service.descriptors() <= descriptors + 2, what="closed descriptors")
    assert session.sh("echo alive") == "alive\n"


@pytest.mark.row("B3-12")
def test_b3_12_in_busybox_a_command_and_its_parent_are_stopped(box):
    mark = marker()
    assert box.exec(f"timeout 500 sleep {mark}", timeout=1)["timed_out"] is True
    assert host_processes(mark) == []
    mark = marker()
    assert box.exec(f"(sh -c 'sleep {mark}; :' &) ; sleep 100", timeout=1)["timed_out"] is True
    assert host_processes(mark) == []


@pytest.mark.row("B3-13")
def test_b3_13_a_busy_command_stops_in_time(session):
    assert session.exec("cat /dev/zero >/dev/null", timeout=1)["timed_out"] is True


@pytest.mark.row("B3-14")
def test_b3_14_the_commands_own_deadline_wins_over_the_services(services):
    service = services(execute_timeout=4)
    with service.open() as session:
        for timeout in (4, 4.0, None):
            result = session.exec("echo mine; sleep 60", timeout=timeout)
            assert (result["output"], result["exit_code"], result["timed_out"]) == ("mine\n", 124, True)


@pytest.mark.row("B3-16")
def test_b3_16_commands_count_against_the_limit_of_processes(services):
    service = services(pids_limit=20)
    with service.open() as session:
        marks = [marker() for _ in range(4)]
        threads = [threading.Thread(target=session.exec, args=(f"sleep {mark}", 12)) for mark in marks]
        for thread in threads:
            thread.start()
        until(lambda: all(host_processes(mark) for mark in marks), what="all of them")
        assert session.exec("ls / | cat", timeout=60)["exit_code"] == 0
        for thread in threads:
            thread.join()


@pytest.mark.row("B3-18")
def test_b3_18_no_limit_is_counted_over_sandboxes(service, count):
    """A process limit by uid would add up over all of them; ours is each sandbox's own."""
    sessions = [service.open() for _ in range(count(20) + 1)]
    try:
        for session in sessions:
            session.sh("for i in $(seq 40); do sleep 20 >/dev/null 2>&1 & done; true")
        for session in sessions:
            assert session.sh("ls / | wc -l") != "0\n"
            assert session.request("GET", "?usage=true").json()["usage"]["pids"] >= 41
    finally:
        for session in sessions:
            session.close()


@pytest.mark.row("B3-19")
def test_b3_19_orphans_are_reaped(session, count):
    turns = count(5000)
    session.sh(f"i=0; while [ $i -lt {turns} ]; do (sleep 0.05 &); i=$((i+1)); "
               "[ $((i % 100)) -eq 0 ] && sleep 0.1; done; true", timeout=120)
    session.sh("sleep 0.5")
    usage = session.request("GET", "?usage=true").json()["usage"]
    assert usage["pids"] <= 5
    zombies = session.sh("for p in /proc/[0-9]*; do cat $p/status 2>/dev/null; done | grep -c '^State:.Z' || true")
    assert zombies == "0\n"


@pytest.mark.row("B3-20")
def test_b3_20_the_limit_of_descriptors_is_one_a_loop_can_close(session):
    soft = int(session.sh("ulimit -Sn"))
    hard = int(session.sh("ulimit -Hn"))
    assert 1024 <= soft <= hard <= 1_048_576
    session.sh(f"i=3; while [ $i -lt {min(soft, 4096)} ]; do i=$((i+1)); done")


@pytest.mark.row("B3-21")
def test_b3_21_never_137_without_a_reason(service, session, count):
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            with service.open() as other:
                other.sh("true")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        with session.connect() as connection:
            codes = {session.exec("true", connection=connection)["exit_code"] for _ in range(count(2000))}
    finally:
        stop.set()
        thread.join()
    assert codes == {0}


@pytest.mark.row("B3-22")
def test_b3_22_a_sandbox_that_burns_its_cpu_still_answers(session):
    session.sh("for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) >/dev/null 2>&1 & done; true")
    assert session.exec("echo through", timeout=60)["output"] == "through\n"


@pytest.mark.row("B3-24")
def test_b3_24_open_time_out_close_leaves_no_sandbox(service):
    mark = marker()
    session = service.open()
    assert session.exec(f"setsid sleep {mark} & sleep 60", timeout=1)["timed_out"] is True
    assert session.close().status == 204
    assert host_processes(mark) == []
    assert session.id not in [row["session_id"] for row in service.request("GET", "/sessions").json()["sessions"]]


@pytest.mark.row("B5-50")
@pytest.mark.parametrize("script, code", [("exec 1>&-; exit 7", 7), ("exec 0<&- 1>&- 2>&-; sleep 1; exit 7", 7)])
def test_b5_50_closed_streams_are_not_the_end(session, script, code):
    result = session.exec(script)
    assert (result["output"], result["exit_code"]) == ("", code)
    assert session.run(["sh", "-c", script])["exit_code"] == code


@pytest.mark.row("B5-50")
def test_b5_50_the_kill_escalates(session):
    mark = marker()
    result = session.exec(f"trap '' TERM HUP; (trap '' TERM HUP; sleep {mark}; sleep {mark}) & "
                          "while :; do sleep 0.2; done", timeout=1)
    assert result["timed_out"] is True
    assert host_processes(mark) == []
