"""The operations of a session with each OCI runtime ("Decided" 16 of the design): runc, crun and gVisor on the oci backend,
and gVisor as a runtime of the daemon's.

What a test asserts is the same for all, but for what a runtime can't do; on oci the policy then says so."""

import hashlib
import os
import signal
import threading

import pytest

from harness.client import marker, run_id
from harness.wait import come_so_far, until
from test_files_model import Model, tree_of

RUNTIMES = {"oci": ["runc", "crun", "runsc"], "docker": ["runsc"]}
LIMITS = {"oci": ";mem_limit=256m;pids_limit=60;cpus=2", "docker": ""}  # gVisor under Docker here runs without cgroups


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", RUNTIMES[metafunc.config.getoption("--backend")])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("workspaces")


@pytest.fixture(scope="module")
def service(services, images, root, backend):
    entries = [f"{name}={images.host_image};oci_runtime={name}{LIMITS[backend]}" for name in RUNTIMES[backend]]
    return services(on_shutdown="keep", workspace_root=root, runtimes=images.runtimes(*entries))


@pytest.fixture(scope="module")
def sessions(service):
    """One session for each runtime, opened when it is first asked for; they are shared."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = service.open(runtime=name)
        return made[name]

    yield get
    for session in made.values():
        assert session.close().status == 204
    assert service.terminate() == 0


@pytest.fixture
def session(sessions, name):
    return sessions(name)


# Commands ----------------------------------------------------------------------------------------------------------


def test_exec(session):
    result = session.exec("id -u; pwd; echo wrong >&2; cat; exit 3")
    assert result["output"] == "0\n/workspace\nwrong\n"
    assert (result["exit_code"], result["signal"], result["timed_out"]) == (3, None, False)


def test_run(session):
    result = session.run(["sh", "-c", "echo $GREETING; echo wrong >&2"], env={"GREETING": "hello there"})
    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("hello there\n", "wrong\n", 0)
    missing = session.run(["no-such-program"])
    assert missing["exit_code"] == 127


def test_a_signal_is_told(session):
    result = session.run(["sh", "-c", "kill -SEGV $$"])
    assert (result["exit_code"], result["signal"]) == (139, 11)


def test_much_output_arrives_whole(session):
    script = "i=0; while [ $i -lt 4000 ]; do printf '%064d' $i; i=$((i+1)); done"
    result = session.run(["sh", "-c", script], timeout=60)
    expected = "".join(f"{i:064d}" for i in range(4000))
    assert hashlib.sha256(result["stdout"].encode()).digest() == hashlib.sha256(expected.encode()).digest()


@pytest.mark.parametrize("size", [40_000, 65_536, 72_500, 75_000, 131_000])
def test_a_long_argument_arrives_whole(session, size):
    word = "".join(f"{i:08d}" for i in range(size // 8))
    result = session.run(["sh", "-c", 'printf %s "$1"', "sh", word], timeout=60)
    assert (result["stdout"] == word, result["stderr"], result["exit_code"]) == (True, "", 0)


def test_commands_at_once(session):
    outputs = {}

    def one(i):
        outputs[i] = session.exec(f"sleep 0.3; echo {i}", timeout=30)["output"]

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outputs == {i: f"{i}\n" for i in range(6)}


def test_a_timeout_ends_the_whole_tree(session):
    mark = marker()
    daemon = f"(setsid sh -c 'trap \"\" TERM; sleep {mark}; sleep {mark}' &)"  # deaf, orphaned, in a session of its own
    script = f"setsid sleep {mark} & (sleep {mark} &) ; {daemon}; trap '' TERM; echo begun; while :; do sleep {mark}; done"
    result = come_so_far(lambda timeout: session.exec(script, timeout=timeout, deadline=60), lambda answer: answer["output"])
    assert (result["exit_code"], result["timed_out"]) == (124, True)
    assert result["output"].startswith("begun\n")
    assert session.running(mark) == []


def test_a_stop_ends_the_whole_tree(session):
    mark, id = marker(), run_id()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(
        session.run(["sh", "-c", f"setsid sleep {mark} & sleep {mark}"], id=id, timeout=60)))
    thread.start()
    until(lambda: len(session.running(mark)) == 2, what="both processes")
    assert session.stop_run(id).status == 204
    thread.join(60)
    assert len(answers) == 1 and answers[0]["exit_code"] != 0
    assert session.running(mark) == []


def test_what_a_command_leaves_in_the_background_lives_on(session):
    mark = marker()
    assert session.sh(f"sleep {mark} & setsid sleep {mark} >/dev/null 2>&1 & echo started") == "started\n"
    until(lambda: len(session.running(mark)) == 2, what="both processes")
    session.exec(f"for pid in {' '.join(str(pid) for pid in session.running(mark))}; do kill $pid; done")
    until(lambda: session.running(mark) == [], what="the end of both")


# Files and walls ---------------------------------------------------------------------------------------------------


def test_the_workspace_is_shared_with_the_host(root, session):
    session.sh("echo inside >file; mkdir -p d; echo deep >d/f")
    workspace = root / session.id / "workspace"
    assert (workspace / "file").read_text() == "inside\n"
    assert os.stat(workspace / "file").st_uid == 0
    (workspace / "from-host").write_text("outside\n")
    # No `stat` here: coreutils ask with a flag of statx that gVisor of 2022 does not know.
    assert session.sh("cat from-host; test -O from-host && echo own") == "outside\nown\n"
    session.sh("rm -r file d from-host")
    assert not (workspace / "file").exists()


def test_random_steps_on_files_agree_with_a_model(root, sessions, name, seed, long):
    """The nine operations, `files/*` and commands on a session of this runtime; see test_files_model.py."""
    session = sessions(name)
    empty = "rm -rf -- * .[!.]*"
    session.sh(empty)
    with session.connect() as connection:
        model = Model(session, connection, seed)
        for number in range(5000 if long else 150):
            try:
                model.step()
            except Exception as problem:
                raise AssertionError(f"seed {seed}, step {number}: {problem}") from problem
        assert tree_of(root / session.id / "workspace") == (model.files, model.directories)
    session.sh(empty)


@pytest.mark.only("oci")
def test_the_system_is_read_only_and_there_is_no_network(session):
    assert session.exec("touch /usr/x")["exit_code"] != 0
    assert session.exec("touch /dev/.sandboxd/x /dev/.sandboxd-agent")["exit_code"] != 0
    assert session.sh("touch /etc/x && rm /etc/x && echo layer") == "layer\n"
    names = session.sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").split()
    assert set(names) <= {"lo"}


def test_the_agent_outlives_what_root_inside_does_to_it(session):
    session.exec("kill -9 1; kill -TERM 1; kill -STOP 1")
    assert session.sh("echo alive") == "alive\n"


# Limits ------------------------------------------------------------------------------------------------------------

EAT = "a=x; while :; do a=$a$a; done"


@pytest.mark.only("oci")
def test_memory_beyond_the_limit(service, name):
    with service.open(runtime=name) as session:
        if name != "runsc":
            result = session.exec(EAT, timeout=60, deadline=90)
            assert (result["exit_code"], result["signal"], result["oom_killed"]) == (137, 9, True)
            assert session.sh("echo alive") == "alive\n"
            return
        # gVisor's memory and that of its processes is one: the sandbox ends, and that is said at once.
        answer = session.request("POST", "/run", {"argv": ["sh", "-c", EAT], "run_id": run_id(),
                                                  "timeout_seconds": 60}, deadline=90)
        assert answer.status in (410, 502), answer
        until(lambda: not session.info()["alive"], what="the end of the sandbox")


@pytest.mark.only("oci")
def test_processes_beyond_the_limit(service, name):
    if name == "runsc":
        notes = service.request("GET", "/policy").json()["not_enforced"]
        assert any("'runsc': the pids limit is not enforced" in note for note in notes)
        return
    with service.open(runtime=name) as session:
        result = session.exec("for i in $(seq 100); do sleep 2 & done; wait", timeout=20)
        assert "fork" in result["output"].lower() or "retry" in result["output"].lower(), result
        until(lambda: session.exec("echo alive")["output"] == "alive\n", what="room for a command")


@pytest.mark.only("oci")
def test_usage_is_told(session):
    usage = session.request("GET", "?usage=true").json()["usage"]
    assert usage["memory_limit_bytes"] == 256 << 20
    assert 0 < usage["memory_bytes"] < 256 << 20


# Life --------------------------------------------------------------------------------------------------------------


def test_a_restarted_service_finds_commands_and_processes(service, sessions, backend):
    names = RUNTIMES[backend]
    marks = {name: marker() for name in names}
    ids = {name: run_id() for name in names}
    threads = []
    for name in names:
        session = sessions(name)
        session.sh(f"echo kept >/etc/kept; sleep {marks[name]} >/dev/null 2>&1 &")
        script = "echo begun >/workspace/begun; while [ ! -e /workspace/go ]; do sleep 0.1; done; echo done >/workspace/done"
        body = {"argv": ["sh", "-c", script], "run_id": ids[name]}
        threads.append(threading.Thread(target=quietly, args=(session, body)))
        threads[-1].start()
    for name in names:
        until(lambda: sessions(name).exec("cat /workspace/begun")["output"] == "begun\n", what=f"{name}: its start")
    service.kill()
    for thread in threads:
        thread.join(60)
    service.start()
    for name in names:
        session = sessions(name)
        assert session.info()["alive"] is True
        assert session.request("POST", "/run", {"argv": ["true"], "run_id": ids[name]}).status == 409
        assert session.sh("cat /etc/kept") == "kept\n"
        assert len(session.running(marks[name])) == 1
    for name in names:
        session = sessions(name)
        session.sh("touch /workspace/go")
        until(lambda: session.exec("cat /workspace/done")["output"] == "done\n", what=f"{name}: its end")
    # And once more, at rest.
    assert service.terminate() == 0
    service.start()
    for name in names:
        assert sessions(name).sh("echo again") == "again\n"


@pytest.mark.only("oci")
def test_a_death_is_seen(service, name):
    before = {path.name for path in (service.state / "oci").iterdir()}
    with service.open(runtime=name) as session:
        (slot,) = {path.name for path in (service.state / "oci").iterdir()} - before
        assert session.sh("echo alive") == "alive\n"
        text = (service.state / "oci" / slot / "state.json").read_text()
        assert f'"runtime":"{name}"' in text
        os.kill(int(text.split('"pid":')[1].split(",")[0]), signal.SIGKILL)
        until(lambda: not session.info()["alive"], what="the death to be seen")
        # The next command gets a new sandbox, of the same runtime.
        assert session.sh("echo new") == "new\n"
        (after,) = {path.name for path in (service.state / "oci").iterdir()} - before - {slot}
        assert f'"runtime":"{name}"' in (service.state / "oci" / after / "state.json").read_text()
    assert not (service.state / "oci" / slot).exists()
    assert [path.name for path in (service.state / name).iterdir() if slot in path.name] == []
    left = [directory for directory, _, _ in os.walk("/sys/fs/cgroup") if directory.endswith("/" + slot)]
    assert left == []


@pytest.mark.only("oci")
def test_a_close_ends_all_and_leaves_nothing(service, name):
    before = {path.name for path in (service.state / "oci").iterdir()}
    session = service.open(runtime=name)
    (slot,) = {path.name for path in (service.state / "oci").iterdir()} - before
    session.sh("trap '' TERM; setsid sleep 100000 >/dev/null 2>&1 & sleep 100000 >/dev/null 2>&1 &")
    assert session.close().status == 204
    assert not (service.state / "oci" / slot).exists()
    assert [path.name for path in (service.state / name).iterdir() if slot in path.name] == []
    left = [directory for directory, _, _ in os.walk("/sys/fs/cgroup") if directory.endswith("/" + slot)]
    assert left == []


def quietly(session, body):
    try:
        session.request("POST", "/run", body, deadline=60)
    except Exception:  # the service dies under it, in whatever way that shows
        pass
