"""Contract 8.3, lines 20 to 24, and N17, lines 80 to 94 and 96: /run, stop, attach, tokens of closed sessions."""

import concurrent.futures
import json
import time

import pytest

from target import client, host, kill_sandbox, until


def run_body(command, **more):
    return {"argv": command, "env": {}, "timeout_seconds": None, "run_id": client.run_id(), **more}


def test_8_3_020_attach_needs_an_id(service):
    assert service.request("POST", "/sessions", {"attach": True}).status == 400


def test_8_3_021_attach_without_kept_workspaces_is_404(bare):
    assert bare.request("POST", "/sessions", {"attach": True, "session_id": "never-opened"}).status == 404


def test_8_3_023_stopping_an_unknown_run_is_204(shared):
    answer = shared.stop_run(client.run_id())
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize("id", ["not-hex", "A" * 32, "a" * 31, "a" * 33])
def test_8_3_024_a_bad_run_id_is_422(shared, id):
    answer = shared.stop_run(id)
    assert answer.status == 422
    assert answer.faults() == [("string_pattern_mismatch", ["path", "run_id"])]


def dead(service, **body):
    session = service.open(**body)
    session.run(["sh", "-c", "echo x > f"])
    kill_sandbox(session)
    until(lambda: session.info()["alive"] is False, what="alive: false")
    return session


def test_n_080_no_root_and_a_dead_sandbox_is_410(bare):
    session = dead(bare)
    for _ in range(2):
        answer = session.request("POST", "/run", run_body(["true"]))
        assert answer.status == 410
        assert "is gone, and its files with it" in answer.detail
    info = session.info()
    assert (info["state"], info["alive"]) == ("running", False)
    again = bare.open(session_id=session.id, reuse=True)
    assert again.token == session.token


@pytest.mark.ours
def test_n_080_exec_heals_the_same_session(bare):
    session = dead(bare)
    assert session.request("POST", "/run", run_body(["true"])).status == 410
    assert session.exec("cat f")["exit_code"] == 1
    assert session.run(["echo", "ordinary again"])["stdout"] == "ordinary again\n"


@pytest.mark.ours
def test_n_081_with_a_root_the_next_run_finds_the_files(service):
    session = service.open()
    session.run(["sh", "-c", "echo x > f"])
    kill_sandbox(session)
    assert session.run(["cat", "f"])["stdout"] == "x\n"


def test_n_083_killed_while_a_command_runs_is_410(bare):
    session = bare.open()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        mark = client.marker()
        running = pool.submit(session.request, "POST", "/run", run_body(["sleep", mark]))
        until(lambda: host.host_processes(mark), what="the command")
        kill_sandbox(session)
        answer = running.result(60)
        assert answer.status == 410, answer


def test_n_084_killed_by_its_own_signal_is_137(shared):
    assert shared.run(["sh", "-c", "kill -9 $$"])["exit_code"] == 137


@pytest.mark.ours
def test_n_085_a_closed_sessions_token_is_404(service):
    session = service.open()
    session.close()
    for method, path, body in (("GET", "", None), ("POST", "/run", run_body(["true"])), ("GET", "/events", None)):
        answer = session.request(method, path, body)
        assert answer.status == 404
        assert answer.detail == f"No such session: {session.id}"
        assert session.request(method, path, body, token="never-valid").status == 401
        assert session.request(method, path, body, token=service.token).status == 404


def test_n_090_a_queued_command_times_out(start, own_root):
    service = start(max_running_commands=1, workspace_root=own_root)
    session = service.open()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        id = client.run_id()
        mark = client.marker()
        running = pool.submit(session.run, ["sleep", mark], id=id)
        until(lambda: host.host_processes(mark), what="the first command")
        began = time.monotonic()
        answer = session.run(["sh", "-c", "touch ran"], timeout=1)
        assert 0.9 < time.monotonic() - began and len(host.host_processes(mark)) == 1
        assert (answer["timed_out"], answer["exit_code"], answer["stdout"]) == (True, None, "")
        assert not (own_root / session.id / "workspace/ran").exists()
        assert session.request("GET", "?usage=true").json()["usage"]["pids"] >= 1
        assert session.stop_run(id).status == 204
        running.result(60)


@pytest.mark.ours
def test_n_091_a_run_stopped_while_queued_never_starts(start, own_root):
    service = start(max_running_commands=1, workspace_root=own_root)
    session = service.open()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first, second, mark = client.run_id(), client.run_id(), client.marker()
        running = pool.submit(session.run, ["sleep", mark], id=first)
        until(lambda: host.host_processes(mark), what="the first command")
        queued = pool.submit(session.request, "POST", "/run", run_body(["touch", "ran"], run_id=second))
        until(lambda: session.stop_run(second).status == 204 and queued.done(), what="its end")
        session.stop_run(first)
        running.result(60)
        queued.result(60)
    assert session.run(["true"])["exit_code"] == 0
    assert not (own_root / session.id / "workspace/ran").exists()


def test_n_092_a_stop_does_not_wait_for_the_pool(start):
    service = start(max_running_commands=2, max_workers=2)
    session = service.open()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [(client.run_id(), client.marker()) for _ in range(2)]
        running = [pool.submit(session.run, ["sleep", mark], id=id) for id, mark in runs]
        for _, mark in runs:
            until(lambda: host.host_processes(mark), what="the command")
        for id, _ in runs:
            assert session.stop_run(id).status == 204  # or it would wait for as long as they run
        for one in running:
            assert one.result(60)["exit_code"] in (143, 137)


@pytest.mark.parametrize("fault, where", [
    ({"timeout_seconds": 0}, "timeout_seconds"), ({"timeout_seconds": -1}, "timeout_seconds"),
    ({"argv": []}, "argv"), ({"run_id": "A" * 32}, "run_id"), ({"env": None}, "env")])
def test_n_093_faulty_requests_are_422(shared, fault, where):
    answer = shared.request("POST", "/run", run_body(["true"], **fault))
    assert answer.status == 422
    assert [loc for _, loc in answer.faults()] == [["body", where]]


@pytest.mark.ours
def test_n_093_not_a_number_is_422(shared):
    text = json.dumps(run_body(["true"])).replace('"timeout_seconds": null', '"timeout_seconds": NaN')
    headers = {"Content-Type": "application/json"}
    assert shared.request("POST", "/run", text.encode(), headers).status == 422


@pytest.mark.ours  # the reference closes the pipe, which ends the server
def test_n_094_a_background_server_that_prints_lives_on(shared):
    mark = client.marker()
    shared.run(["sh", "-c", f"(while echo line; do echo x >> /tmp/{mark}; sleep 0.1; done) & echo started"])
    time.sleep(2)
    lines = lambda: len(shared.run(["cat", f"/tmp/{mark}"])["stdout"].split())
    first = lines()
    until(lambda: lines() > first, what="another line")


def test_n_096_attach(service, root):
    assert service.request("POST", "/sessions", {"attach": True}).status == 400
    unknown = {"attach": True, "session_id": "unknown-096"}
    assert service.request("POST", "/sessions", unknown).status == 404
    session = service.open(session_id="kept-096")
    session.run(["sh", "-c", "echo kept > f"])
    same = service.open(session_id="kept-096", attach=True)
    assert same.token == session.token
    session.close()
    again = service.open(session_id="kept-096", attach=True)
    assert again.token != session.token
    assert again.run(["cat", "f"])["stdout"] == "kept\n"
    assert again.request("DELETE", "?purge=true").status == 204
    assert service.request("POST", "/sessions", {"attach": True, "session_id": "kept-096"}).status == 404


def test_8_3_002_a_session_carries_runtime_and_tenant(service):
    with service.open(runtime="node", tenant="acme") as session:
        info = session.info()
        assert (info["runtime"], info["tenant"]) == ("node", "acme")
