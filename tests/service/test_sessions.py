"""Contract 1.3, 1.4.1, 1.4.3, 1.4.4, 1.5.1, 1.5.3, 2.2 to 2.6, 2.12; N9.6, N16.4 (H.N.7, H.N.85, H.N.86)."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from harness.client import marker
from harness.host import host_processes
from harness.service import free_port
from harness.wait import until

SESSION_INFO = {"session_id", "runtime", "tenant", "alive", "state", "created_at", "last_activity", "idle_seconds",
                "usage"}
POLICY = {"runtimes", "default_runtime", "max_sessions", "max_open_sessions", "max_sessions_per_tenant",
          "evict_idle_after", "mem_limit", "memswap_limit", "cpus", "cpu_shares", "pids_limit", "network_mode",
          "oci_runtime", "work_dir", "idle_timeout", "execute_timeout", "max_read_bytes", "persist_containers",
          "sandbox_uid", "workspace_ttl", "container_ttl", "tmpfs_size", "prewarm", "buildkit", "native_files",
          "native_writes", "native_realpath"}
RUNTIME = {"alias", "image", "description", "builds", "mem_limit", "memswap_limit", "cpus", "cpu_shares", "pids_limit",
           "network_mode", "oci_runtime"}

# Those of this release; the union of H.N.7 grows with the routes.
ENDPOINTS = {"/healthz", "/policy", "/sessions", "/sessions/{session_id}", "/sessions/{session_id}/events",
             "/sessions/{session_id}/exec", "/sessions/{session_id}/run",
             "/sessions/{session_id}/runs/{run_id}/stop"}


# 1.3: without a token ---------------------------------------------------------------------------------------------


def test_1_3_1_and_h_n_7_the_index_lists_the_routes(service):
    answer = service.request("GET", "/", token=None)
    assert answer.status == 200
    index = answer.json()
    assert {"service", "health", "docs_url", "openapi_url", "ui_url", "endpoints"} <= set(index)
    assert index["service"] == "sandboxd"
    assert index["health"]["status"] == "ok"
    assert index["ui_url"] is None
    assert index["endpoints"] == sorted(set(index["endpoints"]))
    assert ENDPOINTS <= set(index["endpoints"])
    assert "/" not in index["endpoints"] and "/ui" not in index["endpoints"]


def test_1_3_1_what_the_index_lists_is_routed(service):
    for template in service.request("GET", "/", token=None).json()["endpoints"]:
        path = template.replace("{session_id}", "abc").replace("{run_id}", "0" * 32)
        answer = service.request("PATCH", path, token=None)
        assert answer.status == 405, f"{template}: {answer}"


def test_1_3_2_health(services):
    service = services(max_sessions=7, max_open_sessions=9)
    expected = {"status": "ok", "degraded": None, "warming": [], "sessions": 0, "limit": 7, "open_sessions": 0, "open_limit": 9,
                "runtimes": ["box", "host", "scratch"]}
    assert service.request("GET", "/healthz", token=None).json() == expected
    with service.open():
        expected.update(sessions=1, open_sessions=1)
        assert service.request("GET", "/healthz", token="wrong").json() == expected
    expected.update(sessions=0, open_sessions=0)
    assert service.request("GET", "/healthz", token=None).json() == expected


def test_1_3_2_no_ceiling_is_null(services):
    health = services(max_sessions="").request("GET", "/healthz").json()
    assert (health["limit"], health["open_limit"]) == (None, None)


def test_1_3_3_no_dashboard_unless_enabled(service):
    assert service.request("GET", "/ui", token=None).status == 404


# 1.4.1: policy ----------------------------------------------------------------------------------------------------


def test_1_4_1_the_policy_has_every_field(services, images):
    service = services(runtimes=images.runtimes(f"big={images.host_image};mem_limit=2g;cpus=1.5;pids_limit=100"), mem_limit="256m",
                       execute_timeout=60)
    answer = service.request("GET", "/policy")
    assert answer.status == 200
    policy = answer.json()
    assert set(policy) >= POLICY
    assert [runtime["alias"] for runtime in policy["runtimes"]] == ["big", "box", "host", "scratch"]
    assert all(set(runtime) >= RUNTIME for runtime in policy["runtimes"])
    by_alias = {runtime["alias"]: runtime for runtime in policy["runtimes"]}
    assert (by_alias["big"]["mem_limit"], by_alias["big"]["cpus"], by_alias["big"]["pids_limit"]) == ("2g", 1.5, 100)
    assert (by_alias["host"]["mem_limit"], by_alias["host"]["cpus"], by_alias["host"]["pids_limit"]) == ("256m", 2.0, 512)
    assert by_alias["host"]["image"] == images.host_image
    assert by_alias["host"]["builds"] is False
    assert by_alias["host"]["network_mode"] == "none"
    assert policy["default_runtime"] == "host"
    assert policy["execute_timeout"] == 60
    assert policy["work_dir"] == "/workspace"
    assert policy["max_read_bytes"] == 8388608
    assert policy["tmpfs_size"] == "64m"
    assert policy["sandbox_uid"] is None
    assert (policy["native_files"], policy["native_writes"], policy["native_realpath"]) == (False, False, False)
    # What this host can't enforce is told as it was logged at start.
    said = [line.split(" this host: ", 1)[1] for line in service.log.read_text().splitlines() if " this host: " in line]
    assert policy["not_enforced"] == said


# 1.4.3: opening ---------------------------------------------------------------------------------------------------


def test_1_4_3_open_answers_200_with_the_session_and_its_token(service):
    before = time.time()
    answer = service.request("POST", "/sessions", {"tenant": "team.7", "runtime": "host"})
    assert answer.status == 200
    created = answer.json()
    try:
        assert set(created) == {"session", "token"}
        info = created["session"]
        assert set(info) >= SESSION_INFO
        assert re.fullmatch(r"s-[0-9a-f]{16}", info["session_id"])
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", created["token"])
        assert (info["runtime"], info["tenant"], info["alive"], info["state"], info["usage"]) == (
            "host", "team.7", True, "running", None)
        assert before - 1 <= info["created_at"] <= time.time() + 1
        assert before - 1 <= info["last_activity"] <= time.time() + 1
        assert 0 <= info["idle_seconds"] < 60
    finally:
        service.request("DELETE", f"/sessions/{created['session']['session_id']}")


@pytest.mark.only("oci")
def test_n16_20_an_open_that_lasts_is_told_by_102(service):
    """So that a client whose patience is 30 s goes on waiting."""
    launcher, = map(int, Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split())
    os.kill(launcher, signal.SIGSTOP)
    try:
        with service.raw(deadline=60) as raw:
            raw.send(f"POST /sessions HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {service.token}\r\n"
                     "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            assert raw.interim() == 102
            os.kill(launcher, signal.SIGCONT)
            answer = raw.answer()
    finally:
        os.kill(launcher, signal.SIGCONT)
    assert answer.status == 200
    created = answer.json()["session"]["session_id"]
    assert service.request("DELETE", f"/sessions/{created}").status == 204


def test_1_4_3_the_default_runtime_and_an_id_of_the_callers_choice(service):
    with service.open(session_id="my.own_id-7") as session:
        assert session.id == "my.own_id-7"
        assert session.info()["runtime"] == "host"
    with service.open(session_id=None, runtime=None, tenant=None) as session:
        assert session.info()["runtime"] == "host"


def test_1_4_3_an_alias_outside_the_allowlist_is_400(service):
    answer = service.request("POST", "/sessions", {"runtime": "windows"})
    assert answer.status == 400
    assert answer.detail.startswith("Unknown runtime 'windows'")
    assert "box, host, scratch" in answer.detail.replace("'", "")


@pytest.mark.parametrize("field, value, fault", [
    ("session_id", "../etc", "string_pattern_mismatch"), ("session_id", "", "string_pattern_mismatch"),
    ("session_id", "a/b", "string_pattern_mismatch"), ("session_id", 5, "string_type"),
    ("tenant", "a b", "string_pattern_mismatch"), ("tenant", "x" * 65, "string_pattern_mismatch"),
    ("runtime", ["host"], "string_type")])
def test_1_4_3_faults_of_an_open(service, field, value, fault):
    answer = service.request("POST", "/sessions", {field: value})
    assert answer.status == 422
    assert answer.faults() == [(fault, ["body", field])]


def test_1_4_3_an_id_that_is_open_is_409(service, shared):
    answer = service.request("POST", "/sessions", {"session_id": shared.id})
    assert answer.status == 409
    assert "Session exists" in answer.detail
    assert shared.request("GET").status == 200


def test_1_4_3_opens_of_one_id_at_once_one_wins(service):
    answers = []

    def open_it():
        answers.append(service.request("POST", "/sessions", {"session_id": "only-one"}))

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409, 409, 409]
    for answer in answers:
        if answer.status == 409:
            assert "opening" in answer.detail or "Session exists" in answer.detail
        else:
            token = answer.json()["token"]
    assert service.request("GET", "/sessions/only-one", token=token).status == 200
    assert service.request("DELETE", "/sessions/only-one").status == 204


def test_2_2_a_failed_open_is_502_with_the_cause_and_gives_its_place_back(services, images):
    service = services(runtimes=images.runtimes("gone=dir:/no/such/image"), max_sessions=1)
    for _ in range(3):
        answer = service.request("POST", "/sessions", {"session_id": "again", "runtime": "gone"})
        assert answer.status == 502
        assert "/no/such/image" in answer.detail
    assert service.request("GET", "/sessions/again").status == 404
    with service.open(session_id="again", runtime="host") as session:
        assert session.sh("echo works") == "works\n"


@pytest.mark.parametrize("entry, words", [
    ("127.0.0.1:{port}/team/tools:3", ["127.0.0.1:{port}/team/tools:3"]),  # a registry that nobody runs
    pytest.param("host;network_mode=odd", ["network_mode 'odd'"], marks=pytest.mark.only("oci")),
])
def test_1_4_3_what_cannot_be_started_is_502_in_words(services, images, entry, words):
    port = free_port()
    service = services(runtimes=images.runtimes(f"other={entry.format(port=port)}"))
    answer = service.request("POST", "/sessions", {"runtime": "other"})
    assert answer.status == 502
    assert len(answer.detail) > 20
    for word in words:
        assert word.format(port=port) in answer.detail
    assert service.request("GET", "/healthz").json()["sessions"] == 0


# 2.4 to 2.6: ceilings ---------------------------------------------------------------------------------------------


def test_2_4_at_the_resident_ceiling_an_open_is_429_and_a_close_makes_room(services):
    service = services(max_sessions=2)
    first, second = service.open(), service.open()
    answer = service.request("POST", "/sessions", {})
    assert answer.status == 429
    assert "Session limit" in answer.detail and "2" in answer.detail
    assert first.sh("echo served") == "served\n"
    assert first.close().status == 204
    with service.open():
        assert service.request("GET", "/healthz").json()["sessions"] == 2
    assert second.close().status == 204


def test_2_4_a_ceiling_of_zero_refuses_every_open(services):
    assert services(max_sessions=0).request("POST", "/sessions", {}).status == 429


def test_h_n_86_two_opens_at_once_at_a_ceiling_of_one(services):
    service = services(max_sessions=1)
    for _ in range(5):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(service.request("POST", "/sessions", {})))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer.status for answer in answers) == [200, 429]
        (winner,) = [answer.json() for answer in answers if answer.status == 200]
        assert service.request("DELETE", f"/sessions/{winner['session']['session_id']}").status == 204


def test_2_5_a_tenant_at_its_ceiling_is_429_and_others_are_served(services):
    service = services(max_sessions_per_tenant=1)
    with service.open(tenant="acme") as first:
        answer = service.request("POST", "/sessions", {"tenant": "acme"})
        assert answer.status == 429
        assert "acme" in answer.detail
        with service.open(tenant="other"), service.open(), service.open():
            pass
        assert first.info()["tenant"] == "acme"
    with service.open(tenant="acme"):
        pass
    listing = service.request("GET", "/sessions").json()
    assert listing["tenant_limit"] == 1


def test_2_6_at_the_open_ceiling_with_all_in_use_an_open_is_429(services):
    service = services(max_sessions=2, max_open_sessions=2)
    with service.open(), service.open():
        answer = service.request("POST", "/sessions", {})
        assert answer.status == 429
        assert "all of them are in use" in answer.detail


# 1.4.4, 1.5.1: listing and looking --------------------------------------------------------------------------------


def test_1_4_4_the_listing_is_in_the_order_of_opening(services):
    service = services(max_sessions=5)
    empty = service.request("GET", "/sessions")
    assert (empty.status, empty.json()) == (200, {"sessions": [], "limit": 5, "open_limit": None, "tenant_limit": None})
    with service.open(session_id="zz"), service.open(session_id="aa"), service.open(session_id="mm"):
        listing = service.request("GET", "/sessions").json()
        assert [row["session_id"] for row in listing["sessions"]] == ["zz", "aa", "mm"]
        assert all(set(row) >= SESSION_INFO and row["usage"] is None for row in listing["sessions"])


def test_1_5_1_looking_has_no_side_effects(service, session):
    first = session.info()
    time.sleep(0.3)
    second = session.info()
    assert second["last_activity"] == first["last_activity"]
    assert second["idle_seconds"] >= first["idle_seconds"] + 0.25
    session.sh("true")
    assert session.info()["last_activity"] > first["last_activity"]


def test_2_15_usage_is_sampled_only_when_asked_for(service, session):
    assert session.info()["usage"] is None
    usage = session.request("GET", "?usage=true").json()["usage"]
    assert set(usage) == {"memory_bytes", "memory_limit_bytes", "pids", "cpu_percent"}
    assert usage["pids"] >= 1
    assert 0 < usage["memory_bytes"] < 100_000_000
    assert usage["memory_limit_bytes"] == 1 << 30
    rows = service.request("GET", "/sessions?usage=1").json()["sessions"]
    (row,) = [row for row in rows if row["session_id"] == session.id]
    assert row["usage"]["pids"] >= 1


# 1.5.3, 2.12: closing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?purge=true", "?purge=false"])
def test_1_5_3_delete_is_204_without_body(service, query):
    session = service.open()
    answer = session.request("DELETE", query)
    assert (answer.status, answer.body) == (204, b"")
    assert session.request("GET", token=service.token).status == 404
    listed = [row["session_id"] for row in service.request("GET", "/sessions").json()["sessions"]]
    assert session.id not in listed


def test_1_5_3_purge_must_be_a_boolean(session):
    assert session.request("DELETE", "?purge=maybe").faults() == [("bool_parsing", ["query", "purge"])]
    assert session.request("GET").status == 200


def test_h_n_85_a_closed_sessions_token_is_404_and_a_never_valid_one_401(service):
    session = service.open()
    assert session.close().status == 204
    for method, path in [("GET", ""), ("GET", "/events"), ("DELETE", "")]:
        answer = session.request(method, path)
        assert (answer.status, answer.detail) == (404, f"No such session: {session.id}")
        assert session.request(method, path, token="never-valid").status == 401
        assert session.request(method, path, token=service.token).status == 404
    answer = session.request("POST", "/exec", {"command": "true"})
    assert (answer.status, answer.detail) == (404, f"No such session: {session.id}")


def test_n16_4_also_when_the_id_is_open_again_with_another_token(service):
    first = service.open(session_id="twice")
    first.close()
    with service.open(session_id="twice") as second:
        assert second.token != first.token
        assert second.info()["session_id"] == "twice"
        assert first.request("GET").status == 404
        assert first.request("POST", "/exec", {"command": "true"}).status == 404


def test_n16_4_a_closed_sessions_token_stays_404_after_a_restart(services):
    service = services(on_shutdown="keep")
    session = service.open()
    session.close()
    assert service.terminate() == 0
    service.start()
    assert session.request("GET").status == 404
    assert session.request("GET", token="never-valid").status == 401


def test_2_12_closing_ends_the_processes_of_the_sandbox(service):
    session = service.open()
    one, two = marker(), marker()
    session.sh(f"setsid sleep {one} >/dev/null 2>&1 & (sleep {two} >/dev/null 2>&1 &) ; true")
    assert session.running(one) and session.running(two)
    assert host_processes(one) and host_processes(two)
    assert session.close().status == 204
    assert host_processes(one) == [] and host_processes(two) == []


def test_n16_32_closing_ends_a_running_command_promptly(service):
    session = service.open()
    one, two = marker(), marker()
    answers = {}

    def run_it():
        answers["run"] = session.request("POST", "/run", {"argv": ["sleep", one], "run_id": "a" * 32})

    def exec_it():
        answers["exec"] = session.request("POST", "/exec", {"command": f"sleep {two}"})

    threads = [threading.Thread(target=run_it), threading.Thread(target=exec_it)]
    for thread in threads:
        thread.start()
    until(lambda: host_processes(one) and host_processes(two), what="both commands")
    assert session.close().status == 204
    for thread in threads:
        thread.join(60)
    assert answers["run"].status in (404, 410)
    assert answers["exec"].status in (200, 404)
    if answers["exec"].status == 200:
        assert answers["exec"].json()["exit_code"] == 1
        assert answers["exec"].json()["output"].startswith("Error: ")
