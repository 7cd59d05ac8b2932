"""Contract 4.2 on oci: every limit proven by exceeding it; the walls of design.md ("The oci backend")."""

import os
import re
import signal
from pathlib import Path

import pytest

from harness.client import marker
from harness.host import host_processes, process_tree, sandbox_init
from harness.wait import until


@pytest.fixture(scope="module")
def service(services, images):
    return services(runtimes=images.runtimes(f"tight={images.host_image};mem_limit=64m;pids_limit=20;cpus=0.5;cpu_shares=512"))


@pytest.fixture
def tight(service):
    with service.open(runtime="tight") as session:
        yield session


def inside(session):
    """The host pid of a process of the sandbox, kept alive for the test."""
    mark = marker()
    session.sh(f"sleep {mark} >/dev/null 2>&1 &")
    (pid,) = until(lambda: host_processes(mark), what="a process of the sandbox")
    return pid


# Memory ------------------------------------------------------------------------------------------------------------

EAT = "a=x; while :; do a=$a$a; done"


def test_4_2_memory_beyond_the_limit_is_an_end_with_evidence(tight):
    result = tight.exec(EAT, timeout=30)
    assert (result["exit_code"], result["signal"], result["oom_killed"], result["timed_out"]) == (137, 9, True, False)
    # The sandbox and its agent live on.
    assert tight.sh("echo alive") == "alive\n"
    ran = tight.run(["sh", "-c", EAT], timeout=30)
    assert (ran["exit_code"], ran["oom_killed"]) == (137, True)


def test_4_2_a_kill_that_was_not_for_memory_is_not_called_so(tight):
    tight.exec(EAT, timeout=30)
    result = tight.exec("kill -9 $$")
    assert (result["exit_code"], result["oom_killed"]) == (137, False)


def test_4_2_memory_below_the_limit_is_fine(tight):
    assert tight.exec("head -c 20000000 /dev/zero | tail -c 20000000 | wc -c", timeout=30)["output"] == "20000000\n"


def test_4_2_swap_is_pinned_to_memory(tight):
    usage = tight.request("GET", "?usage=true").json()["usage"]
    assert usage["memory_limit_bytes"] == 64 << 20


def test_4_2_files_in_tmp_count_as_memory(tight):
    result = tight.exec("head -c 63000000 /dev/zero >/tmp/a; head -c 60000000 /dev/zero | tail -c 60000000 | wc -c; "
                        "echo done", timeout=30)
    assert result["output"].splitlines()[-1:] != ["60000000"]


# Processes ---------------------------------------------------------------------------------------------------------


def test_4_2_processes_beyond_the_limit_are_refused(tight):
    result = tight.exec("for i in $(seq 50); do sleep 2 & done; wait", timeout=10)
    assert re.search("[Cc]annot fork|[Rr]esource temporarily unavailable|retry", result["output"]), result
    assert result["exit_code"] != 0
    # At a normal end nobody is killed: those that did start sleep on for a while.
    until(lambda: tight.exec("echo alive")["output"] == "alive\n", what="room for a command")


def test_4_2_at_the_limit_a_command_gets_a_defined_answer(tight):
    pids = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do sleep 15 >/dev/null 2>&1 & done; true"
    tight.exec(pids)
    result = tight.exec("true", timeout=10)
    assert result["exit_code"] in (0, 1, 2, 126, 137, 254, 255)
    if result["exit_code"] != 0:
        assert result["output"] != ""


def test_4_2_a_fork_bomb_is_held_and_cleared_away(tight):
    result = tight.exec("f() { f | f & }; f; sleep 60", timeout=2)
    assert result["exit_code"] is not None
    until(lambda: tight.exec("true", timeout=5)["exit_code"] == 0, what="a command after the bomb")


# Space, CPU, network, devices --------------------------------------------------------------------------------------


def test_4_2_tmp_is_a_tmpfs_of_its_size_and_may_hold_programs(shared):
    line = shared.sh("grep ' /tmp ' /proc/mounts")
    assert line.split()[2] == "tmpfs"
    assert "noexec" not in line and "nosuid" in line and "nodev" in line
    result = shared.exec("head -c 70000000 /dev/zero >/tmp/big; stat -c %s /tmp/big; rm /tmp/big")
    assert "No space left" in result["output"]
    assert "67108864" in result["output"].split()
    assert shared.sh("printf '#!/bin/sh\\necho ran\\n' >/tmp/p; chmod +x /tmp/p; /tmp/p; rm /tmp/p") == "ran\n"


def test_4_2_the_size_of_tmp_is_a_setting_and_empty_means_none(services):
    with services(tmpfs_size="1m").open() as session:
        assert "No space left" in session.exec("head -c 2000000 /dev/zero >/tmp/big")["output"]
    with services(tmpfs_size="").open() as session:
        assert session.sh("grep -c ' /tmp ' /proc/mounts || true") == "0\n"
        assert session.sh("echo x >/tmp/y; cat /tmp/y") == "x\n"


def test_4_2_network_none_has_a_loopback_and_nothing_else(shared):
    assert [line.split(":")[0].strip() for line in shared.sh("cat /proc/net/dev").splitlines()[2:]] == ["lo"]
    routes = shared.sh("cat /proc/net/route").splitlines()[1:]
    assert routes == []


def test_4_2_network_none_does_not_see_the_hosts_listeners(service, shared):
    port = f"{service.port:04X}"
    assert port not in shared.sh("cat /proc/net/tcp")


def test_4_2_cpu_limits_reach_the_cgroup(tight):
    pid = inside(tight)
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    base = Path("/sys/fs/cgroup")
    if "cpu" in found and (base / "cpu").is_dir():
        group = base / "cpu" / found["cpu"].lstrip("/")
        quota, period = (int((group / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        assert quota / period == 0.5
        assert int((group / "cpu.shares").read_text()) == 512
    else:
        quota, period = (base / found[""].lstrip("/") / "cpu.max").read_text().split()
        assert int(quota) / int(period) == 0.5


def test_4_2_the_working_directory_is_a_setting(services):
    with services(work_dir="/srv/my work").open() as session:
        assert session.sh("pwd; touch here; ls") == "/srv/my work\nhere\n"


# Walls -------------------------------------------------------------------------------------------------------------


@pytest.mark.only("oci")
def test_root_inside_is_nobody_outside_and_no_two_sessions_share_a_uid(service):
    with service.open() as one, service.open() as two:
        uids = []
        for session in (one, two):
            assert session.sh("id -u") == "0\n"
            status = Path(f"/proc/{inside(session)}/status").read_text()
            uids.append(int(re.search(r"^Uid:\s+(\d+)", status, re.M).group(1)))
        assert all(uid >= 0x10000000 for uid in uids)
        assert abs(uids[0] - uids[1]) >= 65536


def test_every_namespace_is_its_own(shared, backend):
    pid = inside(shared)
    for kind in ("pid", "mnt", "net", "ipc", "uts", *(["user", "cgroup"] if backend == "oci" else [])):
        assert os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), kind


def test_no_new_privileges_and_a_system_call_filter(shared):
    status = dict(line.split(":", 1) for line in shared.sh("cat /proc/self/status").splitlines())
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    # No more than a container's default: no admin, no module, no raw I/O, no ptrace of others, no time.
    capabilities = int(status["CapEff"].strip(), 16)
    for bit, name in [(21, "SYS_ADMIN"), (16, "SYS_MODULE"), (17, "SYS_RAWIO"), (12, "NET_ADMIN"), (19, "SYS_PTRACE"),
                      (25, "SYS_TIME"), (22, "SYS_BOOT"), (39, "BPF")]:
        assert not capabilities >> bit & 1, name


@pytest.mark.parametrize("command", [
    "mount -t tmpfs none /mnt", "unshare -m true", "mknod /tmp/sda b 8 0 && cat /tmp/sda", "echo c >/proc/sysrq-trigger",
    "echo x >/proc/sys/kernel/core_pattern", "dmesg", "head -c1 /dev/mem", "head -c1 /proc/kcore",
    "echo 1 >/sys/kernel/uevent_helper", "chroot / true && mount -o bind / /mnt", "date -s 2000-01-01",
    "reboot -f"])
def test_what_a_sandbox_must_not_do(shared, command):
    result = shared.exec(command + " && echo DID IT", timeout=10)
    assert "DID IT" not in result["output"]


def test_nothing_of_the_hosts_secrets_is_seen(service, shared):
    secret = service.directory / "secret"
    secret.write_text("host secret")
    assert shared.exec(f"cat {secret}")["exit_code"] != 0
    for path in ("/etc/shadow", "/root/.ssh", "/root/.bashrc", "/home", "/var/lib/sandboxd", "/run/docker.sock",
                 "/var/run/docker.sock", "/etc/ssh", str(service.state)):
        result = shared.exec(f"test -e {path} && ls -A {path} | head -1 | grep . && echo SEEN")
        assert "SEEN" not in result["output"], f"{path}: {result}"


def test_the_hosts_programs_are_read_only_and_the_rest_is_not(shared):
    assert shared.exec("touch /usr/bin/x")["exit_code"] in (0, 1)
    assert not Path("/usr/bin/x").exists()
    assert shared.sh("echo y >/workspace/z && cat /workspace/z && rm /workspace/z") == "y\n"


def test_a_session_sees_nothing_of_another(service):
    mark = marker()
    with service.open() as one, service.open() as two:
        one.sh(f"echo mine >/workspace/f; echo mine >/tmp/f; sleep {mark} >/dev/null 2>&1 &")
        assert one.running(mark)
        assert two.running(mark) == []
        assert two.exec("cat /workspace/f /tmp/f")["exit_code"] == 1
        pid = host_processes(mark)[0]
        assert two.exec(f"kill -9 {pid}")["exit_code"] != 0
        assert one.running(mark)


def test_the_agent_is_out_of_reach(shared):
    """PID 1 can't be traced, read or stopped by what runs beside it."""
    for command in ("cat /proc/1/environ", "head -c1 /proc/1/mem", "readlink /proc/1/fd/*", "cat /proc/1/maps",
                    "cat </proc/1/fd/3"):
        assert shared.exec(command + " | grep . && echo SEEN")["output"].find("SEEN") == -1, command
    shared.exec("kill -9 1; kill -STOP 1; kill -TERM 1")
    assert shared.sh("echo alive") == "alive\n"


def test_nothing_but_the_agent_stays_resident(service, session):
    """No shim, no runtime: the sandbox is one process, smaller than 1 MB of its own."""
    pid = inside(session)
    agent = sandbox_init(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: Path(f"/proc/{agent}/task/{agent}/children").read_text() == "", what="an agent without children")
    assert process_tree(agent) == [agent]
    rollup = Path(f"/proc/{agent}/smaps_rollup").read_text()
    own = sum(int(number) for number in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", rollup, re.M))
    assert own < 1024, f"{own} kB"
    assert "runc" not in programs_naming(service.directory)


def programs_naming(directory):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(directory).encode() in (entry / "cmdline").read_bytes():
                found.append((entry / "comm").read_text().strip())
        except OSError:
            continue  # it has ended meanwhile
    return found


def test_descriptors_of_the_service_are_not_inherited(shared):
    shown = shared.sh("ls -l /proc/self/fd | awk 'NR>1 {print $9}'").split()
    assert sorted(int(number) for number in shown) in ([0, 1, 2], [0, 1, 2, 3])


def test_an_image_gets_a_layer_of_its_own(box, service):
    box.sh("echo changed >/etc/passwd; rm /bin/wc; mkdir /new; echo x >/new/file")
    assert box.exec("test -e /bin/wc")["exit_code"] == 1
    with service.open(runtime="box") as other:
        assert other.sh("cat /etc/passwd") == "root:x:0:0:root:/root:/bin/sh\n"
        assert other.exec("ls /new")["exit_code"] != 0
        assert other.exec("test -e /bin/wc")["exit_code"] == 0


def test_the_image_itself_is_untouched(images, box):
    box.sh("rm -rf /etc/group; echo more >>/etc/passwd")
    assert (images.box / "etc/passwd").read_text() == "root:x:0:0:root:/root:/bin/sh\n"
    assert (images.box / "etc/group").exists()
