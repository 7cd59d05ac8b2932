"""The system-call filter of a sandbox on oci, asked from within: the agent loads it before anything else exists there."""

import os
import platform
import shutil
from pathlib import Path

import pytest

from harness.client import marker
from harness.host import host_processes, sandbox_init
from harness.wait import until

RUNTIMES = ["runc", "crun"]  # under runsc gVisor's kernel is the wall
EPERM, ENOSYS, EFAULT = 1, 38, 14
NEWUSER, SIGCHLD = 0x10000000, 17

# Name: number on amd64, on arm64, first argument, errno.
CALLS = {
    "mount": (165, 40, 0, EPERM),
    "umount2": (166, 39, 0, EPERM),
    "pivot_root": (155, 41, 0, EPERM),
    "unshare": (272, 97, NEWUSER, EPERM),
    "setns": (308, 268, 0, EPERM),
    "clone with a user namespace": (56, 220, NEWUSER | SIGCHLD, EPERM),
    "clone3": (435, 435, 0, ENOSYS),
    "bpf": (321, 280, 0, EPERM),
    "perf_event_open": (298, 241, 0, EPERM),
    "add_key": (248, 217, 0, EPERM),
    "keyctl": (250, 219, 0, EPERM),
    "io_uring_setup": (425, 425, 1, EPERM),
    "userfaultfd": (323, 282, 0, EPERM),
    "open_tree": (428, 428, 0, EPERM),
    "init_module": (175, 105, 0, EPERM),
    "socket of AF_VSOCK": (41, 198, 40, EPERM),
    "socket of AF_VSOCK, with rubbish above": (41, 198, 1 << 32 | 40, EPERM),
    "personality without random addresses": (135, 92, 0x40000, EPERM),
    "a call that no kernel has yet": (1999, 1999, 0, ENOSYS),
    "openat, which is let through": (257, 56, 0, EFAULT),
}


@pytest.fixture(scope="module")
def service(services, images):
    entries = [f"{name}={images.host_image};oci_runtime={name}" for name in RUNTIMES]
    return services(runtimes=images.runtimes(*entries))


@pytest.fixture(params=RUNTIMES)
def session(service, request):
    with service.open(runtime=request.param) as session:
        yield session


def status_of(text):
    return {name: value.strip() for name, value in (line.split(":", 1) for line in text.splitlines())}


def ask(session, number, first):
    """The errno of a call, 0 without one."""
    return int(session.sh(f"perl -e 'print syscall({number}, {first}, 0, 0, 0, 0) == -1 ? $!+0 : 0'"))


def test_the_agent_and_what_it_starts_are_behind_it(session):
    for who in ("1", "self"):
        status = status_of(session.sh(f"cat /proc/{who}/status"))
        assert (who, status["Seccomp"], status["NoNewPrivs"]) == (who, "2", "1")
    assert session.run(["grep", "-c", "^Seccomp:.2$", "/proc/self/status"])["stdout"] == "1\n"
    mark = marker()  # what lives on, looked at from outside
    session.sh(f"sleep {mark} >/dev/null 2>&1 &")
    (pid,) = until(lambda: host_processes(mark), what="a process of the sandbox")
    for one in (pid, sandbox_init(pid)):
        assert status_of(Path(f"/proc/{one}/status").read_text())["Seccomp"] == "2"


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_answered_as_by_the_engines_filter(session, name):
    amd64, arm64, first, expected = CALLS[name]
    assert ask(session, {"x86_64": amd64, "aarch64": arm64}[platform.machine()], first) == expected


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x32 is a way into amd64's kernel")
def test_x32_does_not_exist(session):
    for number in (39, 165, 272):  # getpid, mount, unshare
        assert ask(session, 0x40000000 | number, 0) == ENOSYS


def test_what_programs_need_is_let_through(session):
    assert session.sh("perl -e 'print syscall(101, 0, 0, 0, 0)'" if platform.machine() == "x86_64" else
                      "perl -e 'print syscall(117, 0, 0, 0, 0)'") == "0"  # ptrace: to be traced by one's parent
    assert session.sh("perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and print 1'") == "1"
    assert session.sh("unshare -r true 2>&1; echo $?").endswith("Operation not permitted\n1\n")


def test_without_it_nothing_is_opened(services, images, tmp_path):
    """A runtime that lets nobody load a filter."""
    front = tmp_path / "front"
    front.mkdir()
    shut = ('{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["seccomp"],"action":"SCMP_ACT_ERRNO","errnoRet":13}]}')
    (front / "runc").write_text("#!/bin/sh\n"
                                "for word; do [ \"$last\" != --bundle ] || "
                                f"sed -i 's/\"linux\":{{/\"linux\":{{\"seccomp\":{shut},/' \"$word/config.json\"; last=$word; done\n"
                                f"exec {shutil.which('runc')} \"$@\"\n")
    (front / "runc").chmod(0o755)
    service = services(runtimes=images.runtimes(), environment={"PATH": f"{front}:{os.environ['PATH']}"})
    answer = service.request("POST", "/sessions", {})
    assert answer.status == 502
    assert "the agent: the system-call filter can't be loaded: Permission denied" in answer.detail
    assert service.request("GET", "/sessions").json()["sessions"] == []
