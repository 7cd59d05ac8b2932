"""docs/hard-cases.md B2: output."""

import hashlib
import json
import random
import threading

import pytest

from harness.client import marker, run_id
from harness.host import host_processes
from harness.wait import come_so_far, until

CAP = 100_000
LIMIT = 10_485_760


@pytest.mark.row("B2-01")
def test_b2_01_output_is_never_empty(session, count):
    with session.connect() as connection:
        for turn in range(count(10_000)):
            result = session.exec("echo running", connection=connection)
            assert (result["output"], result["exit_code"]) == ("running\n", 0), f"turn {turn}"


@pytest.mark.row("B2-01")
def test_b2_01_nor_with_several_callers_and_both_routes(session, count):
    wrong = []

    def caller(number):
        with session.connect() as connection:
            for turn in range(count(1000)):
                word = f"{number}-{turn}"
                if session.exec(f"echo {word}", connection=connection)["output"] != word + "\n":
                    wrong.append(word)
                if session.run(["echo", word], connection=connection)["stdout"] != word + "\n":
                    wrong.append(word)

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.row("B2-03")
def test_b2_03_no_random_truncation(session, count):
    """Here with pipes; with a terminal it is a test of the agent's room."""
    digests = set()
    with session.connect() as connection:
        for _ in range(count(200)):
            text = session.run(["seq", "1", "60000"], connection=connection)["stdout"]
            digests.add((len(text), hashlib.sha256(text.encode()).hexdigest()))
    expected = "".join(f"{n}\n" for n in range(1, 60001))
    assert digests == {(len(expected), hashlib.sha256(expected.encode()).hexdigest())}


@pytest.mark.row("B2-05")
def test_b2_05_order(session):
    assert session.exec("echo 1; echo 2 >&2; echo 3")["output"] == "1\n2\n3\n"
    result = session.run(["sh", "-c", "echo 1; echo 2 >&2; echo 3"])
    assert (result["stdout"], result["stderr"]) == ("1\n3\n", "2\n")
    assert session.run(["sh", "-c", "{ echo 1; echo 2 >&2; echo 3; } 2>&1"])["stdout"] == "1\n2\n3\n"


@pytest.mark.row("B2-07")
def test_b2_07_an_empty_stream_is_an_empty_string(session):
    result = session.run(["sh", "-c", "echo x >&2"])
    assert (result["stdout"], result["stderr"]) == ("", "x\n")


@pytest.mark.row("B2-11")
def test_b2_11_a_long_line_written_in_odd_pieces(session):
    script = "i=0; while [ $i -lt 400 ]; do printf '%0101d' $i; i=$((i+1)); done; echo"
    assert session.sh(script) == "".join(f"{n:0101d}" for n in range(400)) + "\n"
    slow = "for c in a b c d e f g h; do printf $c; sleep 0.02; done"
    assert session.run(["sh", "-c", slow])["stdout"] == "abcdefgh"


@pytest.mark.row("B2-12")
def test_b2_12_one_decoder_per_stream(session):
    script = r"printf '\360\237'; sleep 0.05; printf err >&2; sleep 0.05; printf '\232\200'"
    result = session.run(["sh", "-c", script])
    assert (result["stdout"], result["stderr"]) == ("🚀", "err")


@pytest.mark.row("B2-15")
def test_b2_15_characters_cut_at_every_border(session, seed):
    chooser = random.Random(seed)
    parts, size = [], 0
    while size < 300_000:
        parts.append(chooser.choice("aé€🚀"))
        size += len(parts[-1].encode())
    text = "".join(parts)
    # Written through small, odd pieces so that characters are cut at every place.
    session.sh("rm -f /tmp/text")
    for start in range(0, len(text), 20_000):
        session.sh(f"cat >>/tmp/text <<'END'\n{text[start:start + 20_000]}\nEND")
    session.sh("tr -d '\\n' </tmp/text >/tmp/plain")
    result = session.run(["sh", "-c", "dd if=/tmp/plain bs=997 2>/dev/null"])
    assert len(result["stdout"].encode()) == len(text.encode())
    assert result["stdout"] == text
    assert "\ufffd" not in result["stdout"]


@pytest.mark.row("B2-16")
def test_b2_16_an_invalid_byte_spoils_nothing_else(session):
    assert session.exec(r"printf 'a\376b'")["output"] == "a\ufffdb"
    assert session.exec(r"printf 'a\360\237b\300\257c\355\240\200d'")["output"].replace("\ufffd", "") == "abcd"
    assert session.run(["printf", r"a\376b"])["stdout"] == "a\ufffdb"


@pytest.mark.row("B2-18")
def test_b2_18_output_after_a_slow_start(session, long):
    seconds = 20 if long else 3
    assert session.exec(f"sleep {seconds}; echo late")["output"] == "late\n"


@pytest.mark.row("B2-19")
def test_b2_19_beyond_the_cap_there_is_a_flag_and_the_code(session):
    result = session.exec(f"head -c {CAP + 1} /dev/zero; exit 4")
    assert (len(result["output"]), result["truncated"], result["exit_code"], result["signal"]) == (CAP, True, 4, None)


@pytest.mark.row("B2-21")
def test_b2_21_ending_at_the_very_moment_of_the_limit(session, count):
    for extra in (0, 1, 1, 65536):
        for _ in range(count(20)):
            result = session.run(["head", "-c", str(LIMIT + extra), "/dev/zero"])
            assert result["output_limited"] is (extra > 0)
    assert session.sh("echo alive") == "alive\n"


@pytest.mark.row("B2-22")
def test_b2_22_endless_output_is_cut_cleanly(session):
    mark = marker()
    result = session.run(["sh", "-c", f"sleep {mark} & yes 0123456789"])
    assert (result["output_limited"], result["output_limit"], len(result["stdout"])) == (True, LIMIT, 65_536)
    assert result["stdout"] == ("0123456789\n" * 6000)[:65_536]
    assert host_processes(mark) == []
    assert come_so_far(lambda timeout: session.exec("yes", timeout=timeout), lambda answer: answer["truncated"])["truncated"]


@pytest.mark.row("B2-23")
def test_b2_23_the_head_is_kept(session):
    script = f"echo HEAD; head -c {11 << 20} /dev/zero | tr '\\0' x; echo TAIL"
    result = session.run(["sh", "-c", script])
    assert result["output_limited"] is True
    assert result["stdout"].startswith("HEAD\nx") and "TAIL" not in result["stdout"]
    merged = session.exec(script)
    assert merged["output"].startswith("HEAD\nx") and "TAIL" not in merged["output"] and merged["truncated"] is True


@pytest.mark.row("B2-24")
def test_b2_24_a_timeout_keeps_the_output(session):
    result = come_so_far(lambda timeout: session.exec("echo kept; sleep 60", timeout=timeout), lambda answer: answer["output"])
    assert result["output"] == "kept\n"
    result = come_so_far(
        lambda timeout: session.run(["sh", "-c", "echo kept; echo too >&2; sleep 60"], timeout=timeout),
        lambda answer: answer["stderr"])
    assert (result["stdout"], result["stderr"], result["timed_out"]) == ("kept\n", "too\n", True)


@pytest.mark.row("B2-25")
def test_b2_25_silence_is_no_timeout(session, long):
    seconds = 30 if long else 4
    result = session.exec(f"sleep {seconds}; echo ok", timeout=2 * seconds)
    assert (result["output"], result["exit_code"]) == ("ok\n", 0)


@pytest.mark.row("B2-27")
def test_b2_27_no_markers_in_the_output(session):
    assert session.exec("""printf '"}\\\\"'""")["output"] == '"}\\"'
    assert session.sh("""mkdir -p '/tmp/a"b'"'"'c'; cd '/tmp/a"b'"'"'c'; pwd""") == "/tmp/a\"b'c\n"
    payload = json.dumps({"exit_code": 99, "output": "forged"})
    result = session.exec(f"printf '%s\\n' '{payload}'; exit 1")
    assert (result["output"], result["exit_code"]) == (payload + "\n", 1)


@pytest.mark.row("B2-28")
def test_b2_28_nul_escape_sequences_and_carriage_returns(session):
    expected = "a\0b\r\033[31mc"
    assert session.exec(r"printf 'a\0b\r\033[31mc'")["output"] == expected
    assert session.run(["printf", r"a\0b\r\033[31mc"])["stdout"] == expected
    everything = session.run(["sh", "-c", "i=1; while [ $i -lt 128 ]; do printf \"\\\\$(printf %o $i)\"; i=$((i+1)); "
                                          "done"])["stdout"]
    assert everything == "".join(chr(n) for n in range(1, 128))


@pytest.mark.row("B8-12")
def test_b8_12_a_client_that_stops_reading(service, session):
    """Its command ends, others are served, and nothing of it is kept when it has gone."""
    body = json.dumps({"argv": ["head", "-c", str(LIMIT), "/dev/zero"], "run_id": run_id()})
    with service.raw() as raw:
        raw.send(f"POST /sessions/{session.id}/run HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        for _ in range(20):
            assert session.sh("echo on") == "on\n"
        until(lambda: ("run", True) in [(event["op"], event["ok"]) for event in session.events()["events"]],
              what="the end of its command")
