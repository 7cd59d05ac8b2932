"""Contract 1.5.4 (exec), 3.2, 4.3; design "Decided" 7 and 12; N19.2, N19.16; events of 2.11."""

import json
import random
import threading
import time

import pytest

from harness.client import marker, run_id
from harness.host import host_processes
from harness.wait import Stopwatch, come_so_far, until

ADDED = {"signal", "timed_out", "oom_killed", "duration_ms", "output_dropped_bytes"}


def test_1_5_4_exec_answers_output_code_and_truncated(shared):
    result = shared.exec("echo out; echo err >&2; exit 3")
    assert set(result) == {"output", "exit_code", "truncated"} | ADDED
    assert (result["output"], result["exit_code"], result["truncated"]) == ("out\nerr\n", 3, False)
    assert (result["signal"], result["timed_out"], result["oom_killed"]) == (None, False, False)
    assert result["output_dropped_bytes"] == 0
    assert 0 <= result["duration_ms"] < 60_000


def test_1_5_4_no_output_is_an_empty_string(shared):
    assert shared.exec("true")["output"] == ""


def test_1_5_4_the_duration_is_that_of_the_command(shared):
    assert 300 <= shared.exec("sleep 0.3")["duration_ms"] < 60_000


def test_n19_16_both_streams_are_in_the_order_written(shared):
    command = "for i in $(seq 300); do echo o$i; echo e$i >&2; done"
    assert shared.sh(command) == "".join(f"o{i}\ne{i}\n" for i in range(1, 301))


def test_3_2_1_every_command_is_its_own_process(shared):
    assert shared.sh("cd /tmp; export X=1; X=2; pwd") == "/tmp\n"
    assert shared.sh("pwd; echo [$X]") == "/workspace\n[]\n"


def test_3_2_1_stdin_is_at_end_of_file(shared):
    assert shared.exec("cat; read a; echo $?", timeout=5)["output"] == "1\n"


def test_3_2_1_it_is_sh_dash_c(shared):
    assert shared.sh("echo $0; echo \"a  b\" | wc -c; echo $((6 * 7))").split() == ["sh", "5", "42"]


def test_3_2_2_the_first_100000_bytes_are_kept(shared):
    exact = shared.exec("head -c 100000 /dev/zero | tr '\\0' x")
    assert (len(exact["output"]), exact["truncated"], exact["output_dropped_bytes"]) == (100_000, False, 0)
    over = shared.exec("head -c 100001 /dev/zero | tr '\\0' x; echo; echo end >&2; exit 5")
    assert (over["output"], over["truncated"], over["exit_code"]) == ("x" * 100_000, True, 5)
    assert over["output_dropped_bytes"] == 6


def test_3_2_2_the_cut_counts_bytes_and_decodes_with_replacement(shared):
    result = shared.exec("i=0; while [ $i -lt 4000 ]; do printf '€€€€€€€€€€'; i=$((i+1)); done")
    assert result["truncated"] is True
    assert result["output"] == "€" * 33_333 + "\ufffd"
    assert result["output_dropped_bytes"] == 20_000


def test_3_2_2_a_timeout_is_124_with_the_output_so_far(shared):
    watch = Stopwatch()
    result = come_so_far(lambda timeout: shared.exec("echo before; sleep 60; echo after", timeout=timeout),
                         lambda answer: answer["output"])
    assert (result["output"], result["exit_code"], result["timed_out"]) == ("before\n", 124, True)
    assert 1 <= watch.seconds < 50


def test_3_2_2_a_command_that_exits_124_by_itself_did_not_time_out(shared):
    result = shared.exec("exit 124", timeout=5)
    assert (result["exit_code"], result["timed_out"]) == (124, False)


def test_3_2_2_zero_passes_validation(shared):
    assert shared.exec("echo fine", timeout=0)["output"] == "fine\n"


def test_3_2_1_a_timeout_above_the_ceiling_is_the_ceiling(services):
    service = services(execute_timeout=4)
    with service.open() as session:
        for timeout in (60, None):
            watch = Stopwatch()
            result = session.exec("echo so far; sleep 80", timeout=timeout)
            assert (result["output"], result["exit_code"], result["timed_out"]) == ("so far\n", 124, True)
            assert 4 <= watch.seconds < 60


def test_decided_7_within_the_ceiling_it_is_200_even_for_a_command_that_ignores_term(services):
    service = services(execute_timeout=5)
    with service.open() as session:
        result = come_so_far(
            lambda timeout: session.exec("trap '' TERM HUP INT; echo stubborn; while :; do sleep 1; done", timeout=timeout),
            lambda answer: answer["output"], deadlines=(1, 4))
        assert (result["output"], result["exit_code"]) == ("stubborn\n", 124)


def test_decided_7_504_comes_3_s_after_the_ceiling_for_what_cannot_be_cancelled(services):
    """A frozen sandbox answers nothing, not even a stop."""
    from harness.host import frozen
    service = services(execute_timeout=5)
    mark = marker()
    with service.open() as session:
        session.sh(f"sleep {mark} >/dev/null 2>&1 &")
        (pid,) = host_processes(mark)
        with frozen(pid):
            watch = Stopwatch()
            answer = session.request("POST", "/exec", {"command": "true"})
            assert answer.status == 504, answer
            assert "service ceiling" in answer.detail
            assert 7.5 <= watch.seconds < 60
        # The event was written although the operation failed (2.11).
        last = until(lambda: session.events()["events"], what="the event")[-1]
        assert (last["op"], last["ok"], last["detail"]) == ("exec", False, "")


@pytest.mark.parametrize("number", [1, 6, 9, 11, 15])
def test_decided_12_an_end_by_signal(shared, number):
    result = shared.exec(f"echo x; kill -{number} $$; sleep 5")
    assert (result["output"], result["exit_code"], result["signal"]) == ("x\n", 128 + number, number)
    assert result["timed_out"] is False and result["oom_killed"] is False


def test_a_command_of_a_megabyte_is_handed_over(shared):
    text = "".join(random.Random(5).choice("abcdefghij") for _ in range(1_000_000))
    assert shared.sh(f": '{text}'; echo ${{#0}} done") == "2 done\n"


def test_n19_2_a_nul_in_a_command_is_refused(shared):
    answer = shared.request("POST", "/exec", {"command": "echo a\0b"})
    assert answer.status == 422, answer


def test_n19_7_a_lone_surrogate_does_no_harm(shared):
    body = b'{"command":"echo a\\ud800b"}'
    answer = shared.request("POST", "/exec", body, {"Content-Type": "application/json"})
    assert answer.status == 422 or answer.json()["output"] == "a\ufffdb\n"


def test_4_3_the_environment(shared, services, images):
    expected = {
        "GIT_CONFIG_COUNT": "5",
        "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "user.name", "GIT_CONFIG_VALUE_1": "Agent",
        "GIT_CONFIG_KEY_2": "user.email", "GIT_CONFIG_VALUE_2": "agent@sandbox.local",
        "GIT_CONFIG_KEY_3": "init.defaultBranch", "GIT_CONFIG_VALUE_3": "main",
        "GIT_CONFIG_KEY_4": "advice.detachedHead", "GIT_CONFIG_VALUE_4": "false",
        "GIT_TERMINAL_PROMPT": "0", "PYTHONUNBUFFERED": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1", "PIP_ROOT_USER_ACTION": "ignore", "UV_SYSTEM_PYTHON": "1",
        "UV_CONCURRENT_DOWNLOADS": "2", "UV_CONCURRENT_INSTALLS": "2", "UV_COMPILE_BYTECODE": "1",
        "DEBIAN_FRONTEND": "noninteractive", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "LANG": "C.UTF-8",
    }
    seen = dict(line.split("=", 1) for line in shared.sh("env").splitlines())
    assert {name: seen.get(name) for name in expected} == expected
    assert "/usr/bin" in seen["PATH"].split(":")


def test_nothing_of_the_service_is_in_the_environment(service, shared):
    text = shared.sh("env; tr '\\0' '\\n' </proc/1/environ 2>/dev/null; true")
    assert "SANDBOXD_" not in text
    assert service.token not in text and str(service.directory) not in text


def test_concurrent_commands_of_a_session_run_side_by_side(shared):
    results = []
    meeting = f"/tmp/{marker()}"
    shared.sh(f"mkdir {meeting}")

    def one(number):  # each waits for the others
        results.append(shared.exec(f"touch {meeting}/{number}; until [ $(ls {meeting} | wc -l) -eq 10 ]; do sleep 0.1; done; "
                                   "echo done", timeout=60))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result["output"] for result in results] == ["done\n"] * 10


def test_max_running_commands_queues_the_rest_and_a_deadline_counts_the_queue(services):
    service = services(max_running_commands=1)
    with service.open() as session, service.open() as other:
        mark, id = marker(), run_id()
        holder = threading.Thread(target=session.run, args=(["sleep", mark],), kwargs={"id": id})
        holder.start()
        until(lambda: host_processes(mark), what="the one that runs")
        watch = Stopwatch()
        result = other.exec("echo never", timeout=1)
        assert (result["output"], result["exit_code"], result["timed_out"]) == ("", 124, True)
        assert 0.9 <= watch.seconds
        assert len(host_processes(mark)) == 1  # it ended in the queue
        threading.Timer(1, session.stop_run, args=(id,)).start()
        assert other.exec("echo at last", timeout=60)["output"] == "at last\n"
        holder.join()


# 2.11: events -----------------------------------------------------------------------------------------------------


def test_2_11_a_fresh_session_has_no_events(session):
    assert session.events() == {"events": [], "latest_seq": 0}


def test_2_11_one_entry_per_operation(session):
    before = time.time()
    session.exec("echo out of sight")
    session.exec("exit 1")
    session.exec("sleep 9", timeout=1)
    session.run(["sh", "-c", "exit 2"])
    session.run(["echo", "a b", "c'd"])
    session.run(["sleep", "9"], timeout=0.5)
    session.run(["head", "-c", "10485761", "/dev/zero"])
    log = session.events()
    assert log["latest_seq"] == 7
    for entry in log["events"]:
        assert set(entry) == {"seq", "at", "op", "target", "ok", "detail", "duration_ms"}
        assert before - 1 <= entry["at"] <= time.time() + 1
        assert 0 <= entry["duration_ms"] and round(entry["duration_ms"], 1) == entry["duration_ms"]
    assert [(e["seq"], e["op"], e["target"], e["ok"], e["detail"]) for e in log["events"]] == [
        (1, "exec", "echo out of sight", True, "exit 0"),
        (2, "exec", "exit 1", False, "exit 1"),
        (3, "exec", "sleep 9", False, "exit 124"),
        (4, "run", "sh -c 'exit 2'", False, "exit 2"),
        (5, "run", "echo 'a b' 'c'\"'\"'d'", True, "exit 0"),
        (6, "run", "sleep 9", False, "timed out"),
        (7, "run", "head -c 10485761 /dev/zero", False, "output limit"),
    ]


def test_2_11_after_gives_later_entries_only(session):
    for _ in range(3):
        session.exec("true")
    log = session.events(after=2)
    assert [entry["seq"] for entry in log["events"]] == [3]
    assert log["latest_seq"] == 3
    assert session.events(after=99) == {"events": [], "latest_seq": 3}


def test_2_11_a_long_target_is_cut_to_200_characters(session):
    session.exec("# " + "ü" * 300 + "\ntrue")
    (entry,) = session.events()["events"]
    assert entry["target"] == "# " + "ü" * 198 + "…"
    session.exec("#" + "y" * 199)
    assert session.events()["events"][1]["target"] == "#" + "y" * 199


def test_2_11_the_last_200_are_kept(session):
    with session.connect() as connection:
        for _ in range(225):
            session.exec("true", connection=connection)
    log = session.events()
    assert log["latest_seq"] == 225
    assert [entry["seq"] for entry in log["events"]] == list(range(26, 226))


def test_2_11_nothing_is_recorded_for_looks_and_faults(service, session):
    session.info()
    session.events()
    session.request("POST", "/exec", {})
    session.request("POST", "/run", {"argv": []})
    session.request("POST", "/exec", {"command": "true"}, token="wrong")
    session.stop_run("0" * 32)
    service.request("GET", "/sessions")
    assert session.events() == {"events": [], "latest_seq": 0}


def test_1_5_2_a_session_token_reads_only_its_own_log(service, session):
    with service.open() as other:
        assert other.request("GET", "/events", token=session.token).status == 401
        assert other.request("GET", "/events", token=service.token).status == 200


def test_the_answer_is_json_a_strict_parser_takes(shared):
    answer = shared.request("POST", "/exec", {"command": "printf 'a\\0b\\033[31m\\177\\n\\r\\t\"\\\\'"})
    assert json.loads(answer.body, parse_constant=lambda word: pytest.fail(word))["output"] == \
        "a\0b\033[31m\x7f\n\r\t\"\\"
