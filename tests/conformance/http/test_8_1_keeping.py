"""Contract 8.1, lines 100 and 108 to 123, 224 to 245, 271 to 277: workspaces, purge, sweeps, kept containers, owners."""

import os
import time

import pytest

from target import sandbox_pid, until

HOUR = 3600


def test_8_1_100_each_session_has_its_own_workspace(service, root):
    with service.open(session_id="mine-100") as mine, service.open(session_id="other-100") as other:
        mine.sh("echo mine > a.txt")
        assert (root / "mine-100/workspace/a.txt").read_text() == "mine\n"
        (root / "other-100/workspace/b.txt").write_text("from the host\n")
        assert other.sh("ls; cat b.txt") == "b.txt\nfrom the host\n"


def test_8_1_110_purge_removes_the_directory(service, root):
    session = service.open(session_id="purged")
    session.sh("mkdir -p deep/er; echo x > deep/er/f; chmod 000 deep/er")
    assert session.request("DELETE", "?purge=true").status == 204
    assert not (root / "purged").exists()


def test_8_1_111_a_plain_close_keeps_it(service, root):
    session = service.open(session_id="kept")
    session.sh("echo x > f")
    session.close()
    assert (root / "kept/workspace/f").read_text() == "x\n"


@pytest.fixture
def sweeping(start, own_root):
    """A service that deletes workspaces unused for an hour, every second."""
    return lambda **settings: start(workspace_root=own_root, cleanup_interval=1, **settings)


def aged(path, seconds):
    path.mkdir(parents=True, exist_ok=True)
    (path / "workspace").mkdir(exist_ok=True)
    (path / "workspace/f").write_text("x")
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_8_1_115_116_old_workspaces_are_deleted_and_recent_ones_kept(sweeping, own_root):
    aged(own_root / "old", 2 * HOUR)
    aged(own_root / "recent", HOUR / 2)
    sweeping(workspace_ttl=HOUR)
    until(lambda: not (own_root / "old").exists(), what="the sweep")
    assert (own_root / "recent/workspace/f").exists()


def test_8_1_114_without_a_ttl_nothing_is_swept(sweeping, own_root):
    aged(own_root / "old", 1000 * HOUR)
    sweeping()
    time.sleep(2.5)
    assert (own_root / "old/workspace/f").exists()


def test_8_1_117_an_open_session_is_never_swept(sweeping, own_root):
    service = sweeping(workspace_ttl=HOUR)
    session = service.open(session_id="open")
    aged(own_root / "open", 2 * HOUR)
    aged(own_root / "old", 2 * HOUR)
    until(lambda: not (own_root / "old").exists(), what="the sweep")
    assert session.sh("cat f") == "x"


def test_8_1_118_plain_files_are_ignored(sweeping, own_root):
    (own_root / "a-file").write_text("x")
    os.utime(own_root / "a-file", (1, 1))
    aged(own_root / "old", 2 * HOUR)
    sweeping(workspace_ttl=HOUR)
    until(lambda: not (own_root / "old").exists(), what="the sweep")
    assert (own_root / "a-file").read_text() == "x"


def test_8_1_119_a_missing_root_is_harmless(start, own_root):
    service = start(workspace_root=own_root / "not-yet", workspace_ttl=1, cleanup_interval=1)
    time.sleep(1.5)
    assert service.request("GET", "/healthz").status == 200


def test_8_1_120_opening_refreshes_the_directorys_time(service, root):
    aged(root / "stale", 1000 * HOUR)
    with service.open(session_id="stale"):
        assert abs((root / "stale").stat().st_mtime - time.time()) < 60


def test_8_1_123_the_loop_goes_on_after_a_pass(sweeping, own_root):
    sweeping(workspace_ttl=HOUR)
    for name in ("first", "second"):
        aged(own_root / name, 2 * HOUR)
        until(lambda: not (own_root / name).exists(), what="a pass")


@pytest.fixture
def persistent(start):
    return lambda **settings: start(persist_containers=1, **settings)


def reopened(service, id):
    return service.open(session_id=id, reuse=True)


def swept(service, id):
    """The session opened again, once what was installed in its container is gone."""
    for seconds in (4, 8, 16, 32):  # looking at it wakes it, so it is looked at seldom
        time.sleep(seconds)
        again = reopened(service, id)
        if again.exec("cat /opt/tool")["exit_code"] != 0:
            return again
        again.close()
    raise AssertionError("its container is never removed")


def test_8_1_108_what_was_installed_is_kept(persistent):
    service = persistent()
    session = service.open(session_id="keeper")
    session.sh("mkdir -p /opt && echo installed > /opt/tool")
    session.close()
    assert reopened(service, "keeper").sh("cat /opt/tool") == "installed\n"
    service.request("DELETE", "/sessions/keeper?purge=true")


def test_8_1_109_the_flag_is_in_the_policy(persistent):
    assert persistent().request("GET", "/policy").json()["persist_containers"] is True


def test_8_1_112_purge_removes_what_was_installed(persistent):
    service = persistent()
    session = service.open(session_id="purged-112")
    session.sh("mkdir -p /opt && echo installed > /opt/tool")
    assert session.request("DELETE", "?purge=true").status == 204
    again = reopened(service, "purged-112")
    assert again.exec("cat /opt/tool")["exit_code"] == 1
    again.request("DELETE", "?purge=true")


def test_8_1_224_227_purging_a_sleeping_one_removes_it_all(persistent, own_root):
    service = persistent(workspace_root=own_root, max_sessions=1, evict_idle_after=0)
    session = service.open(session_id="sleeper")
    session.sh("mkdir -p /opt && echo installed > /opt/tool; echo x > f")
    service.open(session_id="other")
    assert session.info()["state"] == "hibernated"
    assert session.request("DELETE", "?purge=true").status == 204
    assert not (own_root / "sleeper").exists()
    again = reopened(service, "sleeper")
    assert again.exec("cat /opt/tool")["exit_code"] == 1
    for id in ("sleeper", "other"):
        service.request("DELETE", f"/sessions/{id}?purge=true")


def test_8_1_231_232_245_a_container_stopped_long_ago_is_removed(persistent, own_root):
    service = persistent(workspace_root=own_root, container_ttl=1, cleanup_interval=1)
    session = service.open(session_id="stopped")
    running = service.open(session_id="running-233")
    for one in (session, running):
        one.sh("mkdir -p /opt && echo installed > /opt/tool; echo x > f")
    session.close()
    again = swept(service, "stopped")
    assert (own_root / "stopped/workspace/f").read_text() == "x\n"
    assert again.sh("cat f") == "x\n"
    assert running.sh("cat /opt/tool") == "installed\n"  # 233
    for id in ("stopped", "running-233"):
        service.request("DELETE", f"/sessions/{id}?purge=true")


def test_8_1_234_238_one_stopped_recently_or_without_a_ttl_is_kept(persistent):
    service = persistent(container_ttl=HOUR, cleanup_interval=1)
    session = service.open(session_id="recent")
    session.sh("mkdir -p /opt && echo installed > /opt/tool")
    session.close()
    time.sleep(2.5)
    assert reopened(service, "recent").sh("cat /opt/tool") == "installed\n"
    service.request("DELETE", "/sessions/recent?purge=true")


@pytest.fixture
def by_hand(target):
    """by_hand(name, run): a container that no service has made; it has ended, or was never started."""
    engine = target.engine()
    made = []

    def make(name, run=True):
        body = {"Image": target.images["node"], "Cmd": ["/bin/true"], "NetworkDisabled": True}
        status, answer = engine.request("POST", f"/containers/create?name={name}", body)
        assert status == 201, answer
        made.append(name)
        if run:
            assert engine.request("POST", f"/containers/{name}/start")[0] == 204
            assert engine.request("POST", f"/containers/{name}/wait")[1]["StatusCode"] == 0

    yield make
    for name in made:
        engine.request("DELETE", f"/containers/{name}?force=1")


def known(target, name):
    return target.engine().request("GET", f"/containers/{name}/json")[0] == 200


@pytest.mark.daemon
def test_8_1_235_240_containers_that_are_none_of_ours_are_left(persistent, target, by_hand):
    by_hand("sandboxd-never-ran", run=False)
    by_hand("unrelated")
    service = persistent(container_ttl=1, cleanup_interval=1)
    session = service.open(session_id="swept-240")
    session.sh("mkdir -p /opt && echo installed > /opt/tool")
    session.close()
    swept(service, "swept-240")
    service.request("DELETE", "/sessions/swept-240?purge=true")
    assert known(target, "sandboxd-never-ran") and known(target, "unrelated")


@pytest.mark.daemon
def test_8_1_239_without_persistence_nothing_is_swept(start, own_root, target, by_hand):
    by_hand("sandboxd-by-hand")
    start(workspace_root=own_root, container_ttl=1, cleanup_interval=1)
    time.sleep(3)
    assert known(target, "sandboxd-by-hand")


@pytest.mark.daemon
@pytest.mark.ours  # found by its label here
def test_8_1_241_a_removal_that_fails_stops_no_other(persistent, target):
    service = persistent(container_ttl=4, cleanup_interval=1)
    uuid = (service.state / "uuid").read_text().strip()
    engine = target.engine()

    def stopped():
        return [one["Id"] for one in engine.containers()
                if one["Labels"].get("sandboxd.service") == uuid and one["State"] == "exited"]

    for id in ("first-241", "second-241"):
        service.open(session_id=id).close()
    there = stopped()
    assert len(there) == 2
    assert engine.request("DELETE", f"/containers/{there[0]}?force=1")[0] == 204  # its removal will fail
    until(lambda: not stopped(), what="the sweep of the other")


def test_8_1_243_the_ttl_is_in_the_policy(persistent):
    assert persistent(container_ttl=77).request("GET", "/policy").json()["container_ttl"] == 77


def test_8_1_273_a_ready_made_image_stays_root(start, own_root):
    session = start(workspace_root=own_root, sandbox_uid=4321).open()
    assert session.sh("id -u") == "0\n"


def test_8_1_274_the_workspace_belongs_to_the_uid(start, own_root):
    session = start(workspace_root=own_root, sandbox_uid=4321).open()
    assert session.sh("stat -c %u .") == "4321\n"
    assert (own_root / session.id / "workspace").stat().st_uid == 4321


def test_8_1_277_the_uid_is_in_the_policy(start):
    assert start(sandbox_uid=4321).request("GET", "/policy").json()["sandbox_uid"] == 4321


def test_8_1_259_without_a_root_a_new_session_has_no_old_files(bare):
    session = bare.open(session_id="rootless")
    session.sh("echo x > f")
    assert sandbox_pid(session) > 1
    session.close()
    with bare.open(session_id="rootless") as again:
        assert again.exec("cat f")["exit_code"] == 1
