"""The docker backend on a real daemon (contract 4.1 to 4.3 and 4.5; design "Decided" 2, 5, 6; rows B6 and B7)."""

import json
import os
import threading
import time

import pytest

from harness.client import marker
from harness.host import host_processes
from harness.relay import Relay
from harness.wait import come_so_far, until

pytestmark = pytest.mark.only("docker")

ENTRY = ["/bin/sh", "-c", 'echo "$@" >/tmp/entry; exec "$@"', "entry"]


def container_of(daemon, service):
    """The one container of a service."""
    uuid = (service.state / "uuid").read_text().strip()
    (one,) = [c for c in daemon.containers() if c["Labels"].get("sandboxd.service") == uuid]
    return one["Id"]


@pytest.fixture(scope="module")
def far(docker, services):
    """A service whose daemon is reached over TCP: its agents are attached to. (service, relay)"""
    relay = Relay(docker.socket)
    yield services(environment={"DOCKER_HOST": relay.host}, on_shutdown="stop"), relay
    relay.close()


@pytest.fixture(params=["near", "far"])
def either(request, service):
    """Both ways to an agent: the socket it dials, and its attached standard streams."""
    return service if request.param == "near" else request.getfixturevalue("far")[0]


# Making one --------------------------------------------------------------------------------------------------------


def test_4_2_the_container_is_as_the_contract_says(docker, services, images):
    service = services(runtimes=images.runtimes("tight=box;mem_limit=64m;cpus=1.5;cpu_shares=512;pids_limit=50"), tmpfs_size="8m")
    with service.open(runtime="tight") as session:
        found = docker.inspect(container_of(docker, service))
        host, config = found["HostConfig"], found["Config"]
        assert config["Labels"]["sandboxd.service"] == (service.state / "uuid").read_text().strip()
        assert config["Entrypoint"][:2] == ["/.sandboxd/bin/sandboxd-agent", "serve"]
        assert config["WorkingDir"] == "/workspace"
        assert (config["OpenStdin"], config["StdinOnce"], config["Tty"]) == (True, False, False)
        assert host["LogConfig"]["Type"] == "none"
        assert host["SecurityOpt"] == ["no-new-privileges:true"]
        assert host["NetworkMode"] == "none"
        assert (host["Memory"], host["MemorySwap"]) == (64 << 20, 64 << 20)
        assert (host["NanoCpus"], host["CpuShares"], host["PidsLimit"]) == (1_500_000_000, 512, 50)
        assert host["Tmpfs"] == {"/tmp": "size=8388608,exec"}
        assert (host["AutoRemove"], host["Init"], host["Privileged"]) == (False, False, False)
        assert {"GIT_CONFIG_COUNT=5", "PAGER=cat", "LANG=C.UTF-8", "NO_COLOR=1"} <= set(config["Env"])
        # And inside.
        assert session.sh("pwd; cat /proc/1/comm") == "/workspace\nsandboxd-agent\n"
        assert session.sh("touch /.sandboxd/bin/x 2>&1; touch /.sandboxd/link/x 2>&1; true").count("Read-only file system") == 2
        assert "NoNewPrivs:\t1" in session.sh("cat /proc/self/status")
    assert container_is_gone(docker, found["Id"])


def container_is_gone(daemon, container):
    return daemon.request("GET", f"/containers/{container}/json")[0] == 404


def test_4_2_memory_beyond_the_limit_is_an_end_with_evidence(services, images):
    service = services(runtimes=images.runtimes("tight=box;mem_limit=32m"))
    with service.open(runtime="tight") as session:
        result = session.exec("a=x; while :; do a=$a$a; done", timeout=30)
        assert (result["exit_code"], result["signal"], result["oom_killed"]) == (137, 9, True)
        assert session.sh("echo alive") == "alive\n"
        usage = session.request("GET", "?usage=true").json()["usage"]
        assert usage["memory_limit_bytes"] == 32 << 20
        assert 1 <= usage["pids"] <= 10


def test_4_2_pids_beyond_the_limit_fail_and_the_agent_lives(services, images):
    service = services(runtimes=images.runtimes("tight=box;pids_limit=20"))
    with service.open(runtime="tight") as session:
        result = session.exec("for i in $(seq 40); do sleep 5 & done; wait", timeout=20)
        assert "fork" in result["output"]
        until(lambda: session.exec("echo alive")["output"] == "alive\n", what="room for a command")


@pytest.mark.row("B4-06")
def test_images_with_an_entrypoint_a_user_and_a_directory_of_their_own(docker, services, images):
    docker.load(images.box, "own", ENTRYPOINT=json.dumps(ENTRY), USER="1234:5678", WORKDIR="/srv", ENV="FROM_IMAGE=yes")
    service = services(runtimes=images.runtimes("own=own"))
    with service.open(runtime="own") as session:
        assert until(lambda: session.exec("cat /tmp/entry 2>/dev/null")["output"], what="the entrypoint") == "sleep infinity\n"
        assert session.sh("id -u; id -g; pwd; echo $FROM_IMAGE") == "1234\n5678\n/workspace\nyes\n"


@pytest.mark.row("B4-06")
def test_an_entrypoint_that_ends_does_not_end_the_sandbox(docker, services, images):
    docker.load(images.box, "short", ENTRYPOINT='["/bin/false"]')
    service = services(runtimes=images.runtimes("short=short"))
    with service.open(runtime="short") as session:
        time.sleep(0.5)
        assert session.sh("echo here") == "here\n"


def test_an_image_with_nothing_in_it_runs_programs(either):
    with either.open(runtime="scratch") as session:
        ran = session.run(["/tool", "exit", "7"])
        assert ran["exit_code"] == 7
        assert session.exec("true")["exit_code"] == 127


def test_4_5_an_image_that_cannot_be_had_is_a_502_in_words(services, images):
    service = services(runtimes=images.runtimes("none=localhost:1/no/such:image"))
    answer = service.request("POST", "/sessions", {"runtime": "none"})
    assert answer.status == 502
    assert "localhost:1/no/such" in answer.detail
    # Nothing of it is left, and others go on.
    with service.open(runtime="box") as session:
        assert session.sh("echo fine") == "fine\n"


def test_images_of_the_other_backend_are_refused_in_words(services, images):
    service = services(runtimes=images.runtimes("tree=dir:/srv/tree"))
    answer = service.request("POST", "/sessions", {"runtime": "tree"})
    assert answer.status == 502
    assert "form of the oci backend" in answer.detail


def test_a_runtime_that_the_daemon_lacks_is_refused_with_its_list(services, images):
    service = services(runtimes=images.runtimes("odd=box;oci_runtime=odd"))
    answer = service.request("POST", "/sessions", {"runtime": "odd"})
    assert answer.status == 502
    assert "oci_runtime 'odd' is not registered with the docker daemon: it has " in answer.detail


def test_a_pruned_agent_volume_is_filled_again(docker, services):
    service = services()
    service.open(runtime="box").close()
    volumes = [v["Name"] for v in docker.get("/volumes")["Volumes"] if v["Name"].startswith("sandboxd-agent-")]
    for name in volumes:
        docker.request("DELETE", f"/volumes/{name}")
    with service.open(runtime="box") as session:
        assert session.sh("echo again") == "again\n"


# The ways to an agent ----------------------------------------------------------------------------------------------


def test_decided_5_the_transport_fits_the_daemon(docker, service, far):
    with service.open(runtime="box"):
        assert "--dial" in docker.inspect(container_of(docker, service))["Config"]["Entrypoint"]
    with far[0].open(runtime="box"):
        assert "--stdio" in docker.inspect(container_of(docker, far[0]))["Config"]["Entrypoint"]


def test_exec_and_run_on_both(either):
    with either.open(runtime="box") as session:
        result = session.exec("echo out; echo err >&2; exit 3")
        assert (result["output"], result["exit_code"]) == ("out\nerr\n", 3)
        ran = session.run(["sh", "-c", "echo out; echo err >&2; exit 4"])
        assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("out\n", "err\n", 4)
        late = come_so_far(lambda timeout: session.exec("echo first; sleep 60", timeout=timeout), lambda answer: answer["output"])
        assert (late["output"], late["exit_code"], late["timed_out"]) == ("first\n", 124, True)


@pytest.mark.row("B1-16", "B2-15")
def test_much_output_is_whole_on_both(either):
    with either.open(runtime="box") as session:
        ran = session.run(["sh", "-c", "head -c 9000000 /dev/zero | tr '\\000' x"], timeout=60)
        assert ran["exit_code"] == 0 and ran["stdout"] == "x" * 9_000_000


@pytest.mark.row("B1-14", "B7-08")
def test_many_commands_at_once_on_both(either):
    with either.open(runtime="box") as session:
        answers = []

        def one(number):
            answers.append((number, session.exec(f"echo {number}", timeout=60)["output"]))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [(number, f"{number}\n") for number in range(50)]


@pytest.mark.row("B7-01")
def test_commands_leave_no_descriptor(either, count):
    with either.open(runtime="box") as session, session.connect() as connection:
        session.exec("true", connection=connection)
        before = either.descriptors()
        for _ in range(count(1000)):
            session.exec("true", connection=connection)
        assert either.descriptors() <= before + 2


def test_a_cut_attach_is_had_again_and_no_command_is_lost(far):
    service, relay = far
    with service.open(runtime="box") as session:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(session.exec("echo a; : >/tmp/begun; sleep 2; echo b", timeout=60)))
        thread.start()
        until(lambda: session.exists("/tmp/begun"), what="its start")
        relay.cut()
        thread.join()
        assert (answers[0]["output"], answers[0]["exit_code"]) == ("a\nb\n", 0)
        assert session.sh("echo c") == "c\n"


def test_where_an_attach_stays_silent_the_bridge_carries(docker, services):
    relay = Relay(docker.socket)
    try:
        service = services(environment={"DOCKER_HOST": relay.host})
        service.open(runtime="box").close()
        relay.swallow = b"/attach?"
        with service.open(runtime="box") as session:
            assert relay.swallowed >= 1
            assert session.sh("echo over the bridge") == "over the bridge\n"
            assert session.run(["sh", "-c", "head -c 3000000 /dev/zero"])["stdout"] == "\0" * 3_000_000
            # A command in the sandbox can't come in by the relay: its parent is inside.
            slot = docker.inspect(container_of(docker, service))["Config"]["Labels"]["sandboxd.slot"]
            intruder = session.run(["/.sandboxd/bin/sandboxd-agent", "bridge", slot], timeout=5)
            assert (intruder["stdout"], intruder["exit_code"]) == ("", 0)
            assert session.sh("echo still") == "still\n"
            relay.swallow = None
    finally:
        relay.close()


# Ends, and the service's own restarts ------------------------------------------------------------------------------


def test_an_end_is_noticed_and_healed(docker, either):
    with either.open(runtime="box") as session:
        first = container_of(docker, either)
        docker.request("POST", f"/containers/{first}/kill")
        until(lambda: session.info()["alive"] is False, what="the death")
        assert session.sh("echo new") == "new\n"
        assert container_of(docker, either) != first
        assert container_is_gone(docker, first)


@pytest.mark.row("B6-05")
@pytest.mark.parametrize("way", ["near", "far"])
def test_kill_9_of_the_service_loses_nothing(docker, services, request, way):
    where = {} if way == "near" else {"environment": {"DOCKER_HOST": request.getfixturevalue("far")[1].host}}
    service = services(on_shutdown="stop", **where)
    session = service.open(runtime="box", session_id="kept")
    mark = marker()
    session.sh(f"sleep {mark} >/dev/null 2>&1 & echo here >/workspace/f")
    first = container_of(docker, service)
    # A container of ours that no record knows.
    uuid = (service.state / "uuid").read_text().strip()
    status, orphan = docker.request("POST", "/containers/create", {
        "Image": "box", "Cmd": ["true"], "Labels": {"sandboxd.service": uuid, "sandboxd.slot": "orphan"}})
    assert status == 201
    _, foreign = docker.request("POST", "/containers/create", {
        "Image": "box", "Cmd": ["true"], "Labels": {"sandboxd.service": "another"}})
    service.kill()
    service.start()
    assert session.sh("cat /workspace/f") == "here\n"
    assert len(host_processes(mark)) == 1
    assert container_of(docker, service) == first
    assert container_is_gone(docker, orphan["Id"])
    assert not container_is_gone(docker, foreign["Id"])
    docker.request("DELETE", f"/containers/{foreign['Id']}")
    assert session.close().status == 204
    assert container_is_gone(docker, first)


@pytest.mark.row("B4-07")
def test_b4_07_a_paused_container_holds_nobody_and_goes_on_after_a_restart(docker, services):
    service = services(on_shutdown="stop")
    session = service.open(runtime="box")
    session.sh("echo here >/tmp/f")
    container = container_of(docker, service)
    assert docker.request("POST", f"/containers/{container}/pause")[0] == 204
    assert session.exec("true", 1)["exit_code"] == 124
    service.kill()
    service.start()
    assert not docker.inspect(container)["State"]["Paused"]
    assert session.sh("cat /tmp/f") == "here\n"
    assert container_of(docker, service) == container
    assert session.close().status == 204


def test_a_container_that_runs_without_the_agent_is_entered_through_the_bridge(docker, services):
    service = services(on_shutdown="stop")
    session = service.open(runtime="box")
    found = docker.inspect(container_of(docker, service))
    service.kill()
    docker.request("DELETE", f"/containers/{found['Id']}?force=1")
    status, plain = docker.request("POST", "/containers/create", {
        "Image": "box", "Entrypoint": ["sleep", "infinity"], "WorkingDir": "/root", "Labels": found["Config"]["Labels"],
        "HostConfig": {"NetworkMode": "none"}})
    assert status == 201
    assert docker.request("POST", f"/containers/{plain['Id']}/start")[0] == 204
    service.start()
    assert session.sh("cat /proc/1/comm; pwd") == "sleep\n/root\n"
    mark = marker()
    session.sh(f"sleep {mark} >/dev/null 2>&1 &")
    # Its agent, and what it runs, outlive the service as any other's do.
    service.kill()
    service.start()
    assert len(host_processes(mark)) == 1
    assert session.sh("echo still here") == "still here\n"
    assert session.close().status == 204
    assert container_is_gone(docker, plain["Id"])


@pytest.mark.row("B6-07", "B1-10")
def test_cycles_leave_nothing(docker, service, long):
    def left():
        return {"containers": sorted(c["Id"] for c in docker.containers()),
                "volumes": sorted(v["Name"] for v in docker.get("/volumes")["Volumes"] or []),
                "networks": sorted(n["Name"] for n in docker.get("/networks")),
                "shims": len(docker.shims()),
                "doors": sorted(os.listdir(service.state / "docker"))}

    service.open(runtime="box").close()
    until(lambda: len(docker.shims()) <= len([c for c in docker.containers() if c["State"] == "running"]), what="the shims' end")
    before, descriptors = left(), service.descriptors()
    chosen = 300 if long else 30
    problems = []

    def caller(rounds):
        for _ in range(rounds):
            try:
                session = service.open(runtime="box")
                if session.exec("echo x", timeout=60)["output"] != "x\n" or session.close().status != 204:
                    problems.append("a wrong answer")
            except AssertionError as problem:
                problems.append(str(problem))

    threads = [threading.Thread(target=caller, args=(chosen // 3,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    until(lambda: left() == before, what=f"what there was before: {before}, {left()}")
    until(lambda: service.descriptors() <= descriptors + 4, what="as many descriptors as before")
