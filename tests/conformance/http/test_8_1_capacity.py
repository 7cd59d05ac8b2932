"""Contract 8.1, lines 101 to 106, 203 to 229 and 251 to 260: tenants, ceilings, eviction, sleep, races."""

import concurrent.futures
import threading
import time

import pytest

from target import host, sandbox_pid, until


def statuses(service):
    return {row["session_id"]: row["state"] for row in service.request("GET", "/sessions").json()["sessions"]}


def at_once(count, what):
    """what(0), what(1), ... all started together; their results."""
    barrier = threading.Barrier(count)

    def one(n):
        barrier.wait()
        return what(n)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.fixture(scope="module")
def two_each(services):
    return services(max_sessions_per_tenant=2)


def fill(service, tenant):
    return [service.open(tenant=tenant) for _ in range(2)]


def test_8_1_101_a_tenant_at_its_ceiling_is_429(two_each):
    fill(two_each, "acme-101")
    answer = two_each.request("POST", "/sessions", {"tenant": "acme-101"})
    assert answer.status == 429
    assert "acme-101" in answer.detail


def test_8_1_102_another_tenant_is_served(two_each):
    fill(two_each, "acme-102")
    assert two_each.request("POST", "/sessions", {"tenant": "other-102"}).status == 200


def test_8_1_103_closing_frees_the_place(two_each):
    first, _ = fill(two_each, "acme-103")
    first.close()
    assert two_each.request("POST", "/sessions", {"tenant": "acme-103"}).status == 200


def test_8_1_104_sessions_without_a_label_are_not_counted(two_each):
    assert [two_each.request("POST", "/sessions", {}).status for _ in range(4)] == [200] * 4


def test_8_1_105_the_label_is_listed(two_each):
    session = two_each.open(tenant="acme-105")
    rows = two_each.request("GET", "/sessions").json()["sessions"]
    assert [row["tenant"] for row in rows if row["session_id"] == session.id] == ["acme-105"]
    assert session.info()["tenant"] == "acme-105"


def test_8_1_106_the_ceiling_is_in_the_policy(two_each):
    assert two_each.request("GET", "/policy").json()["max_sessions_per_tenant"] == 2
    assert two_each.request("GET", "/sessions").json()["tenant_limit"] == 2


def test_8_1_203_no_ceiling_is_null(start):
    service = start(max_sessions="")
    assert service.request("GET", "/sessions").json()["limit"] is None
    assert service.request("GET", "/healthz").json()["limit"] is None
    assert service.request("POST", "/sessions", {}).status == 200


@pytest.fixture
def evicting(start, own_root):
    """evicting(**settings): a service that puts sessions to sleep to make room."""
    def make(**settings):
        return start(**{"workspace_root": own_root, "evict_idle_after": 0, "max_sessions": 1, **settings})

    return make


@pytest.fixture
def asleep(evicting):
    """(service, sleeping session, resident session)"""
    service = evicting()
    session = service.open(session_id="asleep", tenant="acme")
    session.sh("echo kept > note.txt")
    other = service.open(session_id="awake")
    assert statuses(service) == {"asleep": "hibernated", "awake": "running"}
    return service, session, other


def test_8_1_206_the_longest_idle_is_put_to_sleep(evicting):
    service = evicting(max_sessions=2)
    oldest = service.open(session_id="oldest")
    service.open(session_id="newest").sh("true")
    time.sleep(0.1)
    assert service.request("POST", "/sessions", {"session_id": "third"}).status == 200
    assert statuses(service) == {"oldest": "hibernated", "newest": "running", "third": "running"}
    assert oldest.info()["session_id"] == "oldest"


def test_8_1_207_its_workspace_stays(asleep, own_root):
    assert (own_root / "asleep/workspace/note.txt").read_text() == "kept\n"


def test_8_1_208_a_recently_used_one_stays(evicting):
    service = evicting(evict_idle_after=60)
    service.open(session_id="busy")
    answer = service.request("POST", "/sessions", {"session_id": "next"})
    assert answer.status == 429
    assert "Session limit" in answer.detail
    assert statuses(service) == {"busy": "running"}


def test_8_1_209_without_the_setting_429(start, own_root):
    service = start(workspace_root=own_root, max_sessions=1)
    service.open(session_id="only")
    assert service.request("POST", "/sessions", {}).status == 429
    assert statuses(service) == {"only": "running"}


def test_8_1_211_the_setting_is_in_the_policy(evicting):
    assert evicting(evict_idle_after=45).request("GET", "/policy").json()["evict_idle_after"] == 45


def test_8_1_212_it_is_still_listed(asleep):
    service, _, _ = asleep
    [row] = [row for row in service.request("GET", "/sessions").json()["sessions"] if row["session_id"] == "asleep"]
    assert (row["state"], row["alive"], row["tenant"], row["usage"]) == ("hibernated", False, "acme", None)


def test_8_1_213_inspecting_lets_it_sleep(asleep):
    service, session, _ = asleep
    answer = session.request("GET", "?usage=true")
    assert answer.status == 200
    assert (answer.json()["state"], answer.json()["usage"]) == ("hibernated", None)
    assert service.request("GET", "/sessions?usage=true").status == 200
    assert session.events()["latest_seq"] == 1
    assert statuses(service)["asleep"] == "hibernated"


def test_8_1_214_a_command_wakes_it(asleep):
    service, session, _ = asleep
    assert session.sh("cat note.txt") == "kept\n"
    assert statuses(service) == {"asleep": "running", "awake": "hibernated"}
    assert [row["seq"] for row in session.events()["events"]] == [1, 2]


def test_8_1_215_reuse_wakes_it(asleep):
    service, session, _ = asleep
    again = service.open(session_id="asleep", reuse=True)
    assert (again.created["session"]["state"], again.created["session"]["alive"]) == ("running", True)
    assert again.token == session.token


def test_8_1_216_without_a_place_429(evicting):
    service = evicting(evict_idle_after=8)
    session = service.open(session_id="asleep")
    time.sleep(8.1)
    service.open(session_id="awake")
    answer = session.request("POST", "/exec", {"command": "true"})
    assert answer.status == 429
    assert answer.detail.startswith("Cannot wake session asleep")
    again = service.request("POST", "/sessions", {"session_id": "asleep", "reuse": True})
    assert again.status == 429
    assert "Cannot wake session asleep" in again.detail


def test_8_1_217_asleep_too_long_is_closed(evicting):
    service = evicting(idle_timeout=2, cleanup_interval=1)
    service.open(session_id="forgotten")
    service.open(session_id="other")
    until(lambda: "forgotten" not in statuses(service), what="the end of the sleeping session")


def test_8_1_218_closing_a_sleeping_one(asleep, own_root):
    service, session, _ = asleep
    assert session.close().status == 204
    assert statuses(service) == {"awake": "running"}
    assert (own_root / "asleep/workspace/note.txt").exists()


def test_8_1_219_purging_a_sleeping_one(asleep, own_root):
    service, session, _ = asleep
    assert session.request("DELETE", "?purge=true").status == 204
    assert statuses(service) == {"awake": "running"}
    assert not (own_root / "asleep").exists()


def test_8_1_221_at_the_open_ceiling_the_longest_asleep_is_closed(evicting):
    service = evicting(max_open_sessions=3)
    for id in ("first", "second", "third"):
        service.open(session_id=id)
        time.sleep(0.05)
    assert service.request("POST", "/sessions", {"session_id": "fourth"}).status == 200
    assert statuses(service) == {"second": "hibernated", "third": "hibernated", "fourth": "running"}


def test_8_1_222_all_resident_429(evicting):
    service = evicting(max_sessions=2, max_open_sessions=2)
    service.open(session_id="a")
    service.open(session_id="b")
    answer = service.request("POST", "/sessions", {"session_id": "c"})
    assert answer.status == 429
    assert "all of them are in use" in answer.detail
    assert statuses(service) == {"a": "running", "b": "running"}


def test_8_1_223_both_ceilings_are_told(evicting):
    service = evicting(max_sessions=2, max_open_sessions=5)
    service.open()
    policy, health = service.request("GET", "/policy").json(), service.request("GET", "/healthz").json()
    assert (policy["max_sessions"], policy["max_open_sessions"]) == (2, 5)
    assert (health["sessions"], health["limit"], health["open_sessions"], health["open_limit"]) == (1, 2, 1, 5)


def test_8_1_228_229_work_in_flight_is_never_put_to_sleep(evicting):
    service = evicting()
    session = service.open(session_id="working")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.exec, "echo > started; while ! test -e go; do sleep 0.05; done; echo done")
        until(lambda: service.request("POST", "/sessions/working/exec", {"command": "cat started"}).json()["exit_code"]
              == 0, what="the command's start")
        answer = service.request("POST", "/sessions", {"session_id": "next"})
        assert answer.status == 429
        assert statuses(service) == {"working": "running"}
        service.request("POST", "/sessions/working/exec", {"command": "touch go"})
        assert running.result(60)["output"] == "done\n"
    assert service.request("POST", "/sessions", {"session_id": "next"}).status == 200
    assert statuses(service) == {"working": "hibernated", "next": "running"}


def test_8_1_251_260_a_session_that_vanishes_meanwhile_is_404(service):
    seen = set()

    def look(n):
        path = f"/sessions/{session.id}" + ("?usage=true" if n % 2 else "/events")
        seen.update(service.request("GET", path).status for _ in range(6))

    for _ in range(3):
        session = service.open()
        at_once(5, lambda n: look(n) if n < 4 else session.close())
        look(0)
    assert seen == {200, 404}


def test_8_1_252_a_listing_drops_what_vanishes(service):
    with service.open() as kept:
        for _ in range(3):
            gone = service.open()
            answers = at_once(3, lambda n: gone.close() if n == 2 else service.request("GET", "/sessions?usage=true"))
            assert [answer.status for answer in answers] == [200, 200, 204]
            assert all(kept.id in {row["session_id"] for row in answer.json()["sessions"]} for answer in answers[:2])


def test_8_1_253_of_two_opens_of_one_id_one_wins(service):
    for n in range(3):
        body = {"session_id": f"contested-{n}"}
        first, second = sorted(at_once(2, lambda _: service.request("POST", "/sessions", body)),
                               key=lambda answer: answer.status)
        assert (first.status, second.status) == (200, 409)
        assert "opening" in second.detail or "Session exists" in second.detail
        token = first.json()["token"]
        assert service.request("GET", f"/sessions/contested-{n}", token=token).status == 200
        service.request("DELETE", f"/sessions/contested-{n}")


def test_8_1_254_a_failed_open_frees_the_id(start, target):
    missing = "dir:/nonexistent/image" if target.kind == "oci" else "sandboxd-no-such-image:none"
    service = start(runtimes=target.runtimes(f"broken={missing}"))
    for _ in range(2):
        assert service.request("POST", "/sessions", {"session_id": "same", "runtime": "broken"}).status == 502
    assert service.request("POST", "/sessions", {"session_id": "same"}).status == 200


def test_8_1_255_a_tenants_opens_in_progress_count(start):
    service = start(max_sessions_per_tenant=1)
    answers = at_once(5, lambda _: service.request("POST", "/sessions", {"tenant": "burst"}))
    assert sorted(answer.status for answer in answers) == [200, 429, 429, 429, 429]
    assert all("burst" in answer.detail for answer in answers if answer.status == 429)


def test_n_086_of_two_opens_at_a_ceiling_of_one_one_wins(start):
    service = start(max_sessions=1)
    answers = at_once(2, lambda _: service.request("POST", "/sessions", {}))
    assert sorted(answer.status for answer in answers) == [200, 429]


@pytest.mark.ours
def test_n_087_an_open_in_progress_is_counted_by_the_eviction(evicting):
    service = evicting(max_sessions=2)
    service.open(session_id="idle")
    time.sleep(0.2)
    answers = at_once(2, lambda n: service.request("POST", "/sessions", {"session_id": f"new-{n}"}))
    assert [answer.status for answer in answers] == [200, 200]
    assert statuses(service) == {"idle": "hibernated", "new-0": "running", "new-1": "running"}


def test_n_088_a_long_command_is_not_reaped(start):
    service = start(idle_timeout=4, cleanup_interval=1)
    session = service.open(session_id="working")
    assert session.run(["sh", "-c", "sleep 8; echo done"])["stdout"] == "done\n"
    until(lambda: statuses(service) == {}, what="reaping")


@pytest.mark.ours  # the reference's daemon would start new processes beside the stopped ones
def test_8_1_230_a_frozen_operation_counts_as_work(evicting):
    service = evicting(execute_timeout=2)
    session = service.open(session_id="frozen")
    pid = sandbox_pid(session)
    with host.frozen(pid), concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.request, "POST", "/exec", {"command": "true"})
        time.sleep(0.5)
        assert service.request("POST", "/sessions", {"session_id": "next"}).status == 429
        assert running.result(60).status == 504
