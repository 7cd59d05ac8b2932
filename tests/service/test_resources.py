"""What the service costs, and that it gives everything back ("It must show" 4 and 6; hard-cases B7-01)."""

import concurrent.futures
import os
import threading
import time
from pathlib import Path

import pytest

from harness.client import Connection
from harness.wait import Stopwatch, until

MB = 1_000_000


def test_show_4_200_mb_of_output_cost_less_than_20_mb(service, session):
    session.exec("head -c 1000000 /dev/zero")
    service.reset_peak()
    before = service.rss()
    result = session.exec("head -c 200000000 /dev/zero; echo end >&2", timeout=60)
    assert (len(result["output"]), result["truncated"], result["exit_code"]) == (100_000, True, 0)
    assert result["output_dropped_bytes"] == 200_000_004 - 100_000
    assert service.peak_rss() - before < 20 * MB


def test_the_memory_of_a_large_request_is_given_back(service, session):
    session.exec("true")
    before = service.rss()
    # Refused by its type, but read and parsed first.
    answer = session.request("POST", "/exec", {"command": ["x" * 1000] * 30_000}, deadline=60)
    assert answer.status == 422
    until(lambda: service.rss() - before < 20 * MB,
          what=f"the memory to be given back: {(service.rss() - before) // MB} MB more than before")


def test_show_4_64_sleeping_commands_leave_health_answering(service, session):
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        watch = Stopwatch()
        sleeping = [pool.submit(session.exec, "sleep 5; echo slept") for _ in range(64)]
        slowest = 0.0
        with Connection(service.port) as connection:
            while watch.seconds < 4:
                one = Stopwatch()
                assert connection.request("GET", "/healthz").status == 200
                slowest = max(slowest, one.seconds)
                time.sleep(0.01)
        assert slowest < 4  # else it waited for one of them
        assert [task.result()["output"] for task in sleeping] == ["slept\n"] * 64


def test_a_gigabyte_and_a_true_side_by_side(session):
    """Many streams at once, none starves another."""
    big = threading.Thread(target=session.exec, args=("head -c 1000000000 /dev/zero", 60))
    big.start()
    beside = 0
    with session.connect() as connection:
        while big.is_alive():
            assert session.exec("true", connection=connection)["exit_code"] == 0
            beside += big.is_alive()
    assert beside > 2


def files_of(service):
    return sum(len(names) + len(files) for _, names, files in os.walk(service.state))


def host_counts(service):
    cgroups = sum(len(names) for _, names, _ in os.walk("/sys/fs/cgroup"))
    # Of this service: others of the host come and go.
    mounts = sum(str(service.directory) in line for process in (service.pid, "self")
                 for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines())
    return {"descriptors": service.descriptors(), "threads": service.threads(), "mounts": mounts, "cgroups": cgroups}


def test_show_6_opening_and_closing_is_flat(service, long):
    def cycle():
        with service.open() as session:
            session.sh("echo x >/workspace/f")

    for _ in range(5):
        cycle()
    time.sleep(0.5)
    before = host_counts(service)
    memory, files = service.rss(), files_of(service)
    for _ in range(300 if long else 100):
        cycle()

    def flat():
        after = host_counts(service)
        # Other programs of the host make cgroups too: of those, only growth of the size of the loop counts.
        return (after["descriptors"] <= before["descriptors"] + 2 and after["threads"] <= before["threads"] + 2
                and after["mounts"] == 0
                and after["cgroups"] <= before["cgroups"] + 50)

    until(flat, what=f"back to {before}, now {host_counts(service)}")
    assert service.rss() - memory < 15 * MB
    assert files_of(service) <= files + 10, "files pile up in the state directory"


@pytest.mark.row("B7-01")
def test_b7_01_thousands_of_commands_are_flat(service, session, count):
    with session.connect() as connection:
        for _ in range(50):
            session.exec("true", connection=connection)
        before, memory = service.descriptors(), service.rss()
        for _ in range(count(5000)):
            session.exec("true", connection=connection)
        assert service.descriptors() <= before + 2
    for _ in range(count(1000)):
        session.exec("true")
    until(lambda: service.descriptors() <= before + 2, what="closed connections")
    assert service.rss() - memory < 10 * MB
