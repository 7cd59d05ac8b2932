"""docs/hard-cases.md B1: hanging or misbehaving commands."""

import concurrent.futures
import threading

import pytest

from harness.client import Connection, marker
from harness.host import host_processes
from harness.wait import Stopwatch, until


def both(session, script, **more):
    """The script through exec and through run, each as (output, exit code)."""
    result = session.exec(script, **more)
    yield result["output"], result["exit_code"]
    result = session.run(["sh", "-c", script], **more)
    yield result["stdout"], result["exit_code"]


@pytest.mark.row("B1-01")
def test_b1_01_a_background_child_that_holds_the_output(session):
    mark = marker()
    for output, code in both(session, f"sleep {mark} & echo hi"):
        assert (output, code) == ("hi\n", 0)


@pytest.mark.row("B1-02")
def test_b1_02_a_later_run_does_not_wait_for_an_earlier_child(session):
    for _ in range(2):
        assert session.exec("exec sleep 2147483 & true")["exit_code"] == 0


@pytest.mark.row("B1-04")
def test_b1_04_children_left_by_five_commands_do_not_ruin_twenty_more(session):
    for _ in range(5):
        assert session.exec("tail -f /dev/null &")["exit_code"] == 0
    for _ in range(20):
        assert session.exec("true")["exit_code"] == 0


@pytest.mark.row("B1-05")
def test_b1_05_nohup_without_redirection(session):
    assert session.exec("nohup sleep 300 & echo off")["exit_code"] == 0
    assert session.run(["sh", "-c", "nohup sleep 300 & echo off"])["exit_code"] == 0


@pytest.mark.row("B1-07")
def test_b1_07_a_grandchild_in_a_session_of_its_own(session):
    mark = marker()
    assert session.exec(f"setsid sleep {mark} & exit 0")["exit_code"] == 0
    # The policy: at a normal end nobody is killed.
    assert len(until(lambda: host_processes(mark), what="the grandchild")) == 1


@pytest.mark.row("B1-09")
def test_b1_09_no_input_is_waited_for(session):
    for script in ("true", "cat", "read x || true"):
        for output, code in both(session, script):
            assert (output, code) == ("", 0)


@pytest.mark.row("B1-10")
def test_b1_10_create_command_remove_again_and_again(service, count):
    for turn in range(count(200)):
        with service.open() as session:
            assert session.exec(f"echo {turn}", timeout=20)["output"] == f"{turn}\n"


@pytest.mark.row("B1-14")
def test_b1_14_fifty_at_once_in_one_sandbox_none_lost(session):
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        outputs = list(pool.map(lambda n: session.exec(f"echo {n}")["output"], range(50)))
    assert outputs == [f"{n}\n" for n in range(50)]


@pytest.mark.row("B1-15")
def test_b1_15_many_commands_on_one_connection(session):
    with session.connect() as connection:
        for n in range(20):
            assert session.exec(f"echo {n}", connection=connection)["output"] == f"{n}\n"
            assert session.run(["echo", str(n)], connection=connection)["stdout"] == f"{n}\n"


@pytest.mark.row("B1-16")
def test_b1_16_large_output_that_nobody_reads_for_a_while(service, session):
    import json
    import time
    body = json.dumps({"command": "head -c 50000000 /dev/zero; echo end >&2"})
    with service.raw(deadline=60) as raw:
        raw.send(f"POST /sessions/{session.id}/exec HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        time.sleep(1)
        result = raw.answer().json()
    assert (len(result["output"]), result["exit_code"], result["truncated"]) == (100_000, 0, True)
    assert result["output_dropped_bytes"] == 50_000_004 - 100_000


@pytest.mark.row("B1-17")
def test_b1_17_more_hung_commands_than_workers(services):
    service = services(max_workers=4)
    with service.open() as session:
        marks = [marker() for _ in range(5)]
        threads = [threading.Thread(target=session.exec, args=(f"sleep {mark}", 20)) for mark in marks]
        for thread in threads:
            thread.start()
        until(lambda: all(host_processes(mark) for mark in marks), what="all of them")
        assert service.request("GET", "/healthz").status == 200
        assert all(thread.is_alive() for thread in threads), "it answered, but only when they had ended"
        for thread in threads:
            thread.join(60)
        assert [host_processes(mark) for mark in marks] == [[]] * 5


@pytest.mark.row("B1-18", "B8-10")
def test_b1_18_a_running_command_blocks_nothing(service, session):
    thread = threading.Thread(target=session.exec, args=("sleep 8",))
    thread.start()
    slowest = 0.0
    with Connection(service.port) as connection:
        for _ in range(50):
            watch = Stopwatch()
            assert connection.request("GET", "/healthz").status == 200
            slowest = max(slowest, watch.seconds)
    assert slowest < 6  # else it waited for it
    thread.join()


@pytest.mark.row("B1-19")
def test_b1_19_a_command_after_the_service_came_back(services):
    service = services(on_shutdown="keep")
    session = service.open()
    session.sh("echo kept >/workspace/f")
    assert service.terminate() == 0
    service.start()
    assert session.sh("cat /workspace/f") == "kept\n"
    assert session.close().status == 204


@pytest.mark.row("B1-21")
def test_b1_21_a_heredoc_leaves_nothing_behind(session):
    assert session.exec("cat > f <<'E'\nit's $x `y`\nE")["exit_code"] == 0
    assert session.sh("pwd; cat f") == "/workspace\nit's $x `y`\n"
