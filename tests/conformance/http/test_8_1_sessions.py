"""Contract 8.1, lines 25 to 38, 72 to 74, 92 to 98 and 265: opening, inspecting, listing, closing, reuse, the reaper."""

import os
import re
import time

import pytest

from target import kill_sandbox, sandbox_pid, until


def test_8_1_025_an_id_is_made_up_and_a_token_given(service):
    with service.open() as session:
        assert re.fullmatch(r"s-[0-9a-f]{16}", session.id)
        assert len(session.token) == 43
        assert session.created["session"]["alive"] is True


def test_8_1_026_the_given_id_and_runtime_are_honoured(service, target):
    with service.open(session_id="given.id-1", runtime="node") as session:
        assert session.id == "given.id-1"
        assert session.info()["runtime"] == "node"
        found = session.exec("python3 -c 'print(1)'")["exit_code"]
        assert found == 127, f"the image of node has python3: is it {target.images['node']}?"


def test_8_1_027_a_runtime_outside_the_allowlist_is_400(service):
    answer = service.request("POST", "/sessions", {"runtime": "perl"})
    assert answer.status == 400
    assert answer.detail.startswith("Unknown runtime")
    assert "perl" in answer.detail and "node" in answer.detail and "python" in answer.detail


@pytest.mark.parametrize("id", ["../etc", "a/b", "", ".hidden", "a" * 65, "trail\n"])
def test_8_1_028_a_traversing_id_is_422(service, id):
    answer = service.request("POST", "/sessions", {"session_id": id})
    assert answer.status == 422
    assert answer.faults() == [("string_pattern_mismatch", ["body", "session_id"])]


def test_8_1_029_an_open_id_is_409(service, shared):
    assert service.request("POST", "/sessions", {"session_id": shared.id}).status == 409


def test_8_1_030_at_capacity_429(start):
    service = start(max_sessions=1)
    service.open()
    answer = service.request("POST", "/sessions", {})
    assert answer.status == 429
    assert "Session limit" in answer.detail and "1" in answer.detail


@pytest.fixture
def broken(start, target):
    """One slot, and a runtime whose image is not there."""
    missing = "dir:/nonexistent/image" if target.kind == "oci" else "sandboxd-no-such-image:none"
    return start(runtimes=target.runtimes(f"broken={missing}"), max_sessions=1)


def test_8_1_031_a_failed_start_is_502_with_the_cause(broken):
    answer = broken.request("POST", "/sessions", {"runtime": "broken"})
    assert answer.status == 502
    assert re.search("nonexistent|no-such-image", answer.detail), answer.detail


def test_8_1_032_a_failed_open_takes_no_capacity(broken):
    assert broken.request("POST", "/sessions", {"runtime": "broken", "session_id": "again"}).status == 502
    assert broken.request("GET", "/healthz").json()["open_sessions"] == 0
    assert broken.request("POST", "/sessions", {"session_id": "again"}).status == 200


def test_8_1_033_inspecting(service):
    with service.open(session_id="inspected") as session:
        info = session.info()
        assert set(info) == {"session_id", "runtime", "tenant", "alive", "state", "created_at", "last_activity",
                             "idle_seconds", "usage"}
        assert (info["session_id"], info["runtime"], info["tenant"]) == ("inspected", "python", None)
        assert (info["alive"], info["state"], info["usage"]) == (True, "running", None)
        assert 0 <= info["idle_seconds"] < 60
        assert abs(time.time() - info["created_at"]) < 60


def test_8_1_034_inspecting_with_usage(service):
    with service.open(session_id="measured") as session:
        usage = session.request("GET", "?usage=true").json()["usage"]
        assert set(usage) == {"memory_bytes", "memory_limit_bytes", "pids", "cpu_percent"}
        assert usage["memory_bytes"] > 0
        assert usage["memory_limit_bytes"] == 2**30
        assert usage["pids"] >= 1
        assert usage["cpu_percent"] is None or usage["cpu_percent"] >= 0


def test_8_1_035_listing(start):
    service = start(max_sessions=20)
    for id in ("third", "first", "second"):
        service.open(session_id=id)
    listing = service.request("GET", "/sessions").json()
    assert [row["session_id"] for row in listing["sessions"]] == ["third", "first", "second"]
    assert [row["usage"] for row in listing["sessions"]] == [None] * 3
    assert (listing["limit"], listing["open_limit"], listing["tenant_limit"]) == (20, None, None)


def test_8_1_036_listing_with_usage(service, shared):
    rows = service.request("GET", "/sessions?usage=true").json()["sessions"]
    mine = next(row for row in rows if row["session_id"] == shared.id)
    assert mine["usage"]["memory_bytes"] > 0


def test_8_1_037_delete_forgets(service):
    session = service.open()
    answer = session.close()
    assert (answer.status, answer.body) == (204, b"")
    assert service.request("GET", f"/sessions/{session.id}").status == 404
    assert service.request("DELETE", f"/sessions/{session.id}").status == 404
    assert service.request("POST", f"/sessions/{session.id}/exec", {"command": "true"}).status == 404


def test_8_1_038_shutdown_stops_every_session(start):
    service = start()
    pids = [sandbox_pid(service.open()) for _ in range(3)]
    service.stop()  # ours: also checks the exit status and that nothing is left
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), what="the end of the sandboxes")


def test_8_1_072_inspecting_an_unknown_session_is_404(service):
    answer = service.request("GET", "/sessions/conformance-unknown")
    assert answer.status == 404
    assert "No such session" in answer.detail


def wait_dead(session):
    until(lambda: session.info()["alive"] is False, what="alive: false")


def test_8_1_073_inspecting_does_not_revive(service):
    with service.open() as session:
        kill_sandbox(session)
        wait_dead(session)
        time.sleep(0.5)
        info = session.info()
        assert (info["alive"], info["state"]) == (False, "running")


def test_8_1_074_an_operation_revives(service):
    with service.open() as session:
        kill_sandbox(session)
        wait_dead(session)
        assert session.sh("echo back") == "back\n"
        assert session.info()["alive"] is True


def test_8_1_092_a_colliding_id_is_refused(service, shared):
    answer = service.request("POST", "/sessions", {"session_id": shared.id, "reuse": False})
    assert answer.status == 409
    assert "Session exists" in answer.detail


def test_8_1_093_reuse_gives_the_session_and_its_token(service):
    with service.open() as session:
        mark = session.sh("cat /proc/sys/kernel/random/uuid > /tmp/mark; cat /tmp/mark")
        again = service.open(session_id=session.id, reuse=True)
        assert again.token == session.token
        assert again.created["session"]["created_at"] == session.created["session"]["created_at"]
        assert again.sh("cat /tmp/mark") == mark


def test_8_1_095_reuse_without_a_session_opens_one(service):
    with service.open(session_id="reused-first", reuse=True) as session:
        assert session.info()["alive"] is True


def test_8_1_096_reuse_with_another_runtime_is_409(service, shared):
    answer = service.request("POST", "/sessions", {"session_id": shared.id, "reuse": True, "runtime": "node"})
    assert answer.status == 409
    assert "Close it before changing runtime" in answer.detail
    same = service.request("POST", "/sessions", {"session_id": shared.id, "reuse": True, "runtime": "python"})
    assert same.status == 200


def test_8_1_097_a_reaped_session_disappears(start):
    service = start(idle_timeout=1, cleanup_interval=1)
    session = service.open(session_id="idle")
    until(lambda: service.request("GET", "/healthz").json()["open_sessions"] == 0, what="reaping")
    assert service.request("GET", "/sessions").json()["sessions"] == []
    assert service.request("GET", f"/sessions/{session.id}").status == 404


def test_8_1_098_after_reaping_a_fresh_sandbox(start):
    service = start(idle_timeout=6, cleanup_interval=1)
    session = service.open(session_id="idle")
    session.sh("touch /tmp/old")
    until(lambda: service.request("GET", "/healthz").json()["open_sessions"] == 0, what="reaping")
    again = service.open(session_id="idle")
    assert again.token != session.token
    assert again.info()["alive"] is True
    assert again.exec("test -e /tmp/old")["exit_code"] == 1


def test_8_1_265_liveness_is_true_then_false(service):
    with service.open() as session:
        assert session.info()["alive"] is True
        kill_sandbox(session)
        wait_dead(session)
