"""Contract 1.5.5, 1.5.6, 3.12; N8, N16.21 to N16.23, N19.13 (H.N.84, H.N.90 to H.N.94); rules of N15 that apply."""

import json
import os
import signal
import threading
import time

import pytest

from harness.client import marker, run_id
from harness.host import frozen, host_processes, sandbox_init
from harness.wait import Stopwatch, come_so_far, until

FIELDS = {"stdout", "stderr", "exit_code", "timed_out", "output_limited", "output_limit"}
ADDED = {"signal", "oom_killed", "duration_ms", "output_dropped_bytes"}
LIMIT = 10_485_760
KEPT = 65_536


def start(session, argv, **more):
    """A run on a thread of its own; thread.answer is the HTTP answer once it is done."""
    body = {"argv": argv, "run_id": run_id(), **more}

    def work():
        thread.answer = session.request("POST", "/run", body)

    thread = threading.Thread(target=work)
    thread.answer = None
    thread.run_id = body["run_id"]
    thread.start()
    return thread


def test_1_5_5_run_answers_streams_apart(shared):
    result = shared.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert set(result) == FIELDS | ADDED
    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("out\n", "err\n", 3)
    assert (result["timed_out"], result["output_limited"], result["output_limit"]) == (False, False, None)


def test_3_12_1_arguments_are_literal(shared):
    words = ["$HOME", "*", "a b", "", "--x y", "'\"`\\", "line\nbreak", "é€", "-n", "&&", ";"]
    text = shared.run(["printf", "[%s]\\n", *words])["stdout"]
    assert text == "".join(f"[{word}]\n" for word in words)


def test_3_12_1_stdin_is_at_end_of_file(shared):
    assert shared.run(["cat"], timeout=5)["exit_code"] == 0
    assert shared.run(["sh", "-c", "read a; echo $?"], timeout=5)["stdout"] == "1\n"


def test_3_12_1_the_working_directory_and_the_environment_on_top(shared):
    assert shared.run(["pwd", "-P"])["stdout"] == "/workspace\n"
    env = {"MINE": "a=b;touch /tmp/p $(id)\nsecond", "LANG": "C", "EMPTY": ""}
    text = shared.run(["sh", "-c", 'printf "%s|%s|%s|%s|" "$MINE" "$LANG" "${EMPTY-unset}" "$PAGER"'], env=env)["stdout"]
    assert text == "a=b;touch /tmp/p $(id)\nsecond|C||cat|"
    assert shared.run(["test", "-e", "/tmp/p"])["exit_code"] == 1


def test_3_12_1_path_of_the_given_environment_finds_the_program(shared):
    shared.sh("mkdir -p /tmp/mine; printf '#!/bin/sh\\necho found\\n' >/tmp/mine/tool; chmod 755 /tmp/mine/tool")
    assert shared.run(["tool"], env={"PATH": "/tmp/mine:/usr/bin:/bin"})["stdout"] == "found\n"


def test_3_12_1_each_stream_is_decoded_with_replacement(shared):
    result = shared.run(["sh", "-c", "printf 'a\\376b'; printf 'c\\377' >&2"])
    assert (result["stdout"], result["stderr"]) == ("a\ufffdb", "c\ufffd")


def test_3_12_2_at_the_deadline_the_whole_tree_is_stopped(shared):
    one, two, three = marker(), marker(), marker()
    watch = Stopwatch()
    script = f"echo so far; sleep {one} & setsid sleep {two} & (setsid sh -c 'sleep {three}' &); echo e >&2; wait; sleep 60"
    result = come_so_far(lambda timeout: shared.run(["sh", "-c", script], timeout=timeout), lambda answer: answer["stderr"])
    assert (result["stdout"], result["stderr"]) == ("so far\n", "e\n")
    assert (result["timed_out"], result["exit_code"], result["output_limited"]) == (True, None, False)
    assert 1 <= watch.seconds < 50
    assert [host_processes(mark) for mark in (one, two, three)] == [[], [], []]


def test_3_12_2_the_deadline_may_be_a_fraction_and_is_bounded_by_the_ceiling(services):
    service = services(execute_timeout=2)
    with service.open() as session:
        watch = Stopwatch()
        assert session.run(["sleep", "60"], timeout=0.4)["timed_out"] is True
        assert 0.4 <= watch.seconds < 50
        for timeout in (100, None):
            watch = Stopwatch()
            assert session.run(["sleep", "60"], timeout=timeout)["timed_out"] is True
            assert 2 <= watch.seconds < 50


def test_3_12_2_at_most_64_kib_of_each_stream_then(shared):
    script = "head -c 200000 /dev/zero | tr '\\0' o; head -c 200000 /dev/zero | tr '\\0' e >&2; sleep 60"
    result = come_so_far(lambda timeout: shared.run(["sh", "-c", script], timeout=timeout),
                         lambda answer: len(answer["stderr"]) >= KEPT)
    assert result["timed_out"] is True
    assert (result["stdout"], result["stderr"]) == ("o" * KEPT, "e" * KEPT)


def test_3_12_3_exactly_10_mib_is_a_normal_result(shared):
    result = shared.run(["head", "-c", str(LIMIT), "/dev/zero"])
    assert (len(result["stdout"]), result["exit_code"], result["output_limited"]) == (LIMIT, 0, False)
    both = shared.run(["sh", "-c", f"head -c {LIMIT // 2} /dev/zero; head -c {LIMIT // 2} /dev/zero >&2"])
    assert (len(both["stdout"]), len(both["stderr"])) == (LIMIT // 2, LIMIT // 2)
    assert both["output_limited"] is False


def test_3_12_3_one_byte_more_stops_the_command(shared):
    mark = marker()
    result = shared.run(["sh", "-c", f"sleep {mark} & head -c {LIMIT} /dev/zero; printf x >&2; sleep 60"])
    assert (result["output_limited"], result["output_limit"]) == (True, LIMIT)
    assert (result["exit_code"], result["timed_out"]) == (None, False)
    assert result["stdout"] == "\0" * KEPT
    assert host_processes(mark) == []


def test_3_12_4_and_n8_5_programs_that_cannot_be_started(shared):
    shared.sh("printf x >/tmp/plain; chmod 644 /tmp/plain")
    for argv, code in [(["nosuchprogram"], 127), (["/no/such/program"], 127), ([""], 127), (["/etc"], 126),
                       (["/tmp/plain"], 126)]:
        result = shared.run(argv)
        assert (result["exit_code"], result["stdout"]) == (code, ""), argv
        assert result["stderr"].strip() != ""


def test_3_12_4_and_h_n_84_killed_by_its_own_signal(shared):
    result = shared.run(["sh", "-c", "kill -9 $$"])
    assert (result["exit_code"], result["signal"]) == (137, 9)
    assert shared.run(["sh", "-c", "kill -TERM $$"])["exit_code"] == 143


def test_n19_13_stderr_holds_only_what_the_program_wrote(shared):
    assert shared.run(["sh", "-c", "kill -9 $$"])["stderr"] == ""
    assert shared.run(["sleep", "60"], timeout=0.3)["stderr"] == ""


def test_3_12_6_a_background_child_does_not_hold_a_finished_command(shared):
    mark = marker()
    result = shared.run(["sh", "-c", f"sleep {mark} & echo started"])
    assert (result["stdout"], result["exit_code"]) == ("started\n", 0)
    # N15: it is not killed by that either.
    assert len(host_processes(mark)) == 1


@pytest.mark.parametrize("body, fault", [
    ({"argv": []}, ("too_short", ["body", "argv"])),
    ({"argv": None}, ("list_type", ["body", "argv"])),
    ({"argv": "ls"}, ("list_type", ["body", "argv"])),
    ({"argv": ["ls", 5]}, ("string_type", ["body", "argv", 1])),
    ({"timeout_seconds": 0}, ("greater_than", ["body", "timeout_seconds"])),
    ({"timeout_seconds": -1}, ("greater_than", ["body", "timeout_seconds"])),
    ({"timeout_seconds": "soon"}, ("float_parsing", ["body", "timeout_seconds"])),
    ({"run_id": "A" * 32}, ("string_pattern_mismatch", ["body", "run_id"])),
    ({"run_id": "a" * 31}, ("string_pattern_mismatch", ["body", "run_id"])),
    ({"run_id": None}, ("string_type", ["body", "run_id"])),
    ({"env": None}, ("dict_type", ["body", "env"])),
    ({"env": {"A": 5}}, ("string_type", ["body", "env", "A"])),
])
def test_h_n_93_and_n8_5_faults(shared, body, fault):
    answer = shared.request("POST", "/run", {"argv": ["true"], "env": {}, "run_id": run_id(), **body})
    assert answer.status == 422
    assert answer.faults() == [fault]


def test_1_1_5_too_short_tells_the_lengths(shared):
    (fault,) = shared.request("POST", "/run", {"argv": [], "run_id": run_id()}).detail
    assert fault["ctx"] == {"field_type": "List", "min_length": 1, "actual_length": 0}


def test_h_n_93_the_run_id_is_required(shared):
    assert shared.request("POST", "/run", {"argv": ["true"]}).faults() == [("missing", ["body", "run_id"])]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_h_n_93_no_number(shared, word):
    body = b'{"argv":["true"],"run_id":"%s","timeout_seconds":%s}' % (run_id().encode(), word.encode())
    assert shared.request("POST", "/run", body, {"Content-Type": "application/json"}).status == 422


def test_n8_5_numeric_strings_pass_for_the_timeout(shared):
    for value in ("5", "2.5", 3, 0.75):
        assert shared.run(["true"], timeout=value)["exit_code"] == 0


@pytest.mark.parametrize("body", [{"argv": ["echo", "a\0b"]}, {"env": {"A": "x\0y"}}, {"env": {"A\0B": "x"}}])
def test_n19_2_a_nul_is_refused(shared, body):
    assert shared.request("POST", "/run", {"argv": ["true"], "run_id": run_id(), **body}).status == 422


def test_n8_5_an_empty_environment_name(shared):
    assert shared.run(["true"], env={"": "x"})["exit_code"] == 126


def test_n16_29_run_takes_at_least_a_mebibyte(shared):
    words = ["x" * 100_000] * 10
    result = shared.run(["sh", "-c", "echo $#", "sh", *words])
    assert result["stdout"] == "10\n"


# 1.5.6: stopping ---------------------------------------------------------------------------------------------------


def test_1_5_6_stop_ends_the_run_and_all_it_started(shared):
    one, two = marker(), marker()
    thread = start(shared, ["sh", "-c", f"trap '' TERM; echo up; setsid sleep {one} & sleep {two}; sleep {two}"])
    until(lambda: host_processes(one) and host_processes(two), what="the run")
    answer = shared.stop_run(thread.run_id)
    assert (answer.status, answer.body) == (204, b"")
    thread.join(60)
    assert thread.answer.status == 200
    assert thread.answer.json()["stdout"] == "up\n"
    assert thread.answer.json()["timed_out"] is False
    assert host_processes(one) == [] and host_processes(two) == []


@pytest.mark.parametrize("id", ["A" * 32, "a" * 31, "g" * 32, "a" * 33])
def test_1_5_6_an_id_outside_the_pattern_is_422(shared, id):
    answer = shared.stop_run(id)
    assert answer.status == 422
    assert answer.faults() == [("string_pattern_mismatch", ["path", "run_id"])]


def test_1_5_6_unknown_and_finished_runs_are_204(shared):
    assert shared.stop_run("0" * 32).status == 204
    id = run_id()
    shared.run(["true"], id=id)
    assert shared.stop_run(id).status == 204


def test_1_5_6_stop_needs_no_body_and_its_token(service, shared):
    with service.raw() as raw:
        raw.send(f"POST /sessions/{shared.id}/runs/{'0' * 32}/stop HTTP/1.1\r\nHost: x\r\n"
                 f"X-Sandbox-Token: {shared.token}\r\nContent-Length: 0\r\n\r\n")
        assert raw.answer().status == 204
    assert shared.request("POST", f"/runs/{'0' * 32}/stop", token="wrong").status == 401


def test_n16_22_a_run_id_that_is_running_is_409(shared):
    mark = marker()
    thread = start(shared, ["sleep", mark])
    until(lambda: host_processes(mark), what="the run")
    answer = shared.request("POST", "/run", {"argv": ["touch", "/tmp/twice"], "run_id": thread.run_id})
    assert answer.status == 409
    assert shared.exec("test -e /tmp/twice")["exit_code"] == 1
    shared.stop_run(thread.run_id)
    thread.join(60)


def test_n16_22_a_run_id_of_an_ended_run_is_free_again_and_can_be_stopped(shared):
    body = {"argv": ["echo", "once"], "run_id": run_id()}
    for _ in range(3):
        answer = shared.request("POST", "/run", body)
        assert (answer.status, answer.json()["stdout"]) == (200, "once\n")
    mark = marker()
    thread = threading.Thread(target=lambda: shared.request("POST", "/run", dict(body, argv=["sleep", mark])))
    thread.start()
    until(lambda: host_processes(mark), what="the run")
    assert shared.request("POST", "/run", body).status == 409
    assert shared.stop_run(body["run_id"]).status == 204
    thread.join(60)
    assert not thread.is_alive()


def test_3_12_8_a_client_that_leaves_does_not_stop_the_command(service, session):
    script = "echo begun >/tmp/begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo made >/tmp/left"
    body = json.dumps({"argv": ["sh", "-c", script], "run_id": run_id()})
    with service.raw() as raw:
        raw.send(f"POST /sessions/{session.id}/run HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        until(lambda: session.exec("cat /tmp/begun")["output"] == "begun\n", what="the start of the command")
        raw.reset()
    time.sleep(0.5)  # for the service to notice
    session.sh("touch /tmp/go")
    until(lambda: session.exec("cat /tmp/left")["output"] == "made\n", what="the file of the command")


# N2.2, N8.2, N8.3, N16.21: the queue -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow(services):
    """A service that runs one command at a time."""
    return services(max_running_commands=1)


def test_h_n_90_a_deadline_that_passes_in_the_queue(narrow):
    with narrow.open() as session:
        mark = marker()
        holder = start(session, ["sleep", mark])
        until(lambda: host_processes(mark), what="the one that runs")
        watch = Stopwatch()
        result = session.run(["touch", "/tmp/never"], timeout=1)
        assert (result["timed_out"], result["stdout"], result["stderr"], result["exit_code"]) == (True, "", "", None)
        assert 0.9 <= watch.seconds and len(host_processes(mark)) == 1
        assert session.request("GET", "?usage=true").json()["usage"]["pids"] >= 1
        assert session.stop_run(holder.run_id).status == 204
        holder.join(60)
        assert session.exec("test -e /tmp/never")["exit_code"] == 1


def test_h_n_91_a_run_stopped_while_queued_never_starts(narrow):
    with narrow.open() as session:
        mark = marker()
        holder = start(session, ["sleep", mark])
        until(lambda: host_processes(mark), what="the one that runs")
        queued = start(session, ["touch", "/tmp/queued"])
        # A stop before it is known changes nothing.
        until(lambda: session.stop_run(queued.run_id).status == 204 and not queued.is_alive(), what="its end")
        assert len(host_processes(mark)) == 1  # N8.3, H.N.92: stops never wait for running commands
        queued.join(60)
        assert queued.answer is not None and queued.answer.status == 200
        # As a command that TERM ended: a null code without a reason is an error to the clients (N13.4).
        assert (queued.answer.json()["exit_code"], queued.answer.json()["stdout"]) == (143, "")
        session.stop_run(holder.run_id)
        holder.join(60)
        assert session.exec("test -e /tmp/queued")["exit_code"] == 1


def test_h_n_91_nor_does_one_whose_client_left_while_queued(narrow):
    with narrow.open() as session:
        mark = marker()
        holder = start(session, ["sleep", mark])
        until(lambda: host_processes(mark), what="the one that runs")
        body = json.dumps({"argv": ["touch", "/tmp/abandoned"], "run_id": run_id()})
        with narrow.raw() as raw:
            raw.send(f"POST /sessions/{session.id}/run HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
            time.sleep(0.3)
            raw.reset()
        time.sleep(0.5)
        session.stop_run(holder.run_id)
        holder.join(60)
        time.sleep(0.5)
        assert session.exec("test -e /tmp/abandoned")["exit_code"] == 1


def test_n16_21_a_half_closed_client_that_waits_is_served(narrow):
    with narrow.open() as session:
        mark = marker()
        holder = start(session, ["sleep", mark])
        until(lambda: host_processes(mark), what="the one that runs")
        body = json.dumps({"argv": ["echo", "patient"], "run_id": run_id()})
        with narrow.raw() as raw:
            raw.send(f"POST /sessions/{session.id}/run HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
            raw.half_close()
            threading.Timer(1, session.stop_run, args=(holder.run_id,)).start()
            assert raw.answer().json()["stdout"] == "patient\n"
        holder.join(60)


def beat(session):
    """How far the server has counted; its file may be between two lines."""
    return int(until(lambda: session.exec("cat /tmp/beat")["output"], what="the first line"))


def test_h_n_94_a_background_server_that_goes_on_printing_lives_on(session, long):
    """N16.23: its pipe is drained, never closed."""
    session.run(["sh", "-c", "(i=0; while :; do echo line $i; echo err $i >&2; i=$((i+1)); echo $i >/tmp/beat; "
                             "sleep 0.1; done) & echo started"])
    for _ in range(12 if long else 2):
        before = beat(session)
        time.sleep(5 if long else 0.5)
        until(lambda: beat(session) > before, what="another line")


def test_n16_23_also_when_it_prints_a_lot(session):
    session.run(["sh", "-c", "(sleep 0.5; head -c 5000000 /dev/zero; echo done >/tmp/drained) & true"])
    until(lambda: session.exec("cat /tmp/drained")["output"] == "done\n", what="5 MB written after the end")


# 3.12.7, N8.1, N9.1: gone ------------------------------------------------------------------------------------------


def test_3_12_7_the_sandbox_dies_under_a_command(service):
    mark = marker()
    session = service.open()
    thread = start(session, ["sleep", mark])
    until(lambda: host_processes(mark), what="the run")
    os.kill(sandbox_init(host_processes(mark)[0]), signal.SIGKILL)
    thread.join(60)
    assert thread.answer.status == 410
    assert str(service.directory) not in thread.answer.detail
    # N9.1: its files died with it. The session stays listed, dead, until it is closed.
    answer = session.request("POST", "/run", {"argv": ["true"], "run_id": run_id()})
    assert answer.status == 410
    assert "is gone, and its files with it" in answer.detail
    info = session.info()
    assert (info["alive"], info["state"]) == (False, "running")
    events = session.events()["events"]
    assert [(e["op"], e["ok"], e["detail"]) for e in events][:1] == [("run", False, "sandbox gone")]
    assert session.close().status == 204


def test_2_17_a_frozen_sandbox_delays_nobody_else(service, session):
    mark = marker()
    with service.open() as other:
        session.sh(f"sleep {mark} >/dev/null 2>&1 &")
        with frozen(host_processes(mark)[0]):
            hung = start(session, ["true"])
            assert other.sh("echo quick") == "quick\n"
            assert service.request("GET", "/healthz").status == 200
            assert hung.is_alive(), "they were answered, but only after it"
        hung.join(60)
        assert hung.answer is not None


# An image without a shell ------------------------------------------------------------------------------------------


def test_an_image_without_a_shell_still_runs_programs(service):
    with service.open(runtime="scratch") as session:
        assert session.run(["/tool", "args", "a b", "$x"])["stdout"] == "[args]\n[a b]\n[$x]\n"
        assert session.run(["/tool", "exit", "9"])["exit_code"] == 9
        assert session.run(["/tool", "cwd"])["stdout"] == "/workspace\n"
        result = session.exec("echo hello")
        assert result["exit_code"] == 127
        assert "sh" in result["output"] and len(result["output"]) > 15
        mark = marker()
        assert session.run(["/tool", "sleep", mark], timeout=0.5)["timed_out"] is True
        assert host_processes(mark) == []


def test_n16_1_exec_heals_what_run_calls_gone(service):
    """H.N.80: one situation, two generations of clients, two answers; afterwards the session is an ordinary one."""
    mark = marker()
    session = service.open()
    session.sh(f"echo old >/tmp/f; sleep {mark} >/dev/null 2>&1 &")
    os.kill(sandbox_init(host_processes(mark)[0]), signal.SIGKILL)
    until(lambda: not session.info()["alive"], what="the death to be seen")
    assert session.request("POST", "/run", {"argv": ["true"], "run_id": run_id()}).status == 410
    assert session.exec("cat /tmp/f")["exit_code"] == 1
    assert session.info()["alive"] is True
    assert session.run(["echo", "healed"])["stdout"] == "healed\n"
    assert session.close().status == 204


def test_n16_8_a_death_is_seen_by_itself(service):
    mark = marker()
    with service.open() as session:
        session.sh(f"sleep {mark} >/dev/null 2>&1 &")
        os.kill(sandbox_init(host_processes(mark)[0]), signal.SIGKILL)
        until(lambda: session.info()["alive"] is False, what="alive: false")
