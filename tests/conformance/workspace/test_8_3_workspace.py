"""Contract 8.3 and the K lines of N17: SandboxdWorkspace of releases 0.2.34 and 0.2.37 (run once with each)."""

import asyncio

import httpx
import pytest
from pydantic_ai.workspaces import Workspace, WorkspaceRef, WorkspaceTimeoutError, WorkspaceUnavailableError
from pydantic_ai_backends.workspaces import SandboxdWorkspace

from target import client, host, until


def capability(service, **options):
    return SandboxdWorkspace(service_url=f"http://127.0.0.1:{service.port}", token=service.token, **options)


def sessions(service):
    return {row["session_id"]: row for row in service.request("GET", "/sessions").json()["sessions"]}


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def close(service, ref, purge=False):
    assert service.request("DELETE", f"/sessions/{ref.id}" + ("?purge=true" if purge else "")).status == 204


def test_8_3_002_the_first_use_opens_with_runtime_and_tenant(service):
    before = set(sessions(service))

    async def use():
        backend = capability(service, runtime="node", tenant="acme").backend()
        assert backend.ref is None
        assert set(sessions(service)) == before
        assert await backend.working_dir() == "/workspace"
        return backend.ref

    ref = run(use())
    assert (ref.provider, sessions(service)[ref.id]["runtime"], sessions(service)[ref.id]["tenant"]) == (
        "sandboxd", "node", "acme")
    close(service, ref)


def test_8_3_003_the_calls_environment_wins(service):
    async def use():
        backend = capability(service, env={"BASE": "base", "BOTH": "base"}).backend()
        result = await backend.run(["sh", "-c", 'printf "%s %s" "$BASE" "$BOTH"'], env={"BOTH": "call"})
        return backend.ref, result.stdout

    ref, output = run(use())
    assert output == "base call"
    close(service, ref)


def test_8_3_005_attaching_to_nothing_is_unavailable(service):
    backend = capability(service).backend(WorkspaceRef(provider="sandboxd", id="never-opened"))
    with pytest.raises(WorkspaceUnavailableError, match="no longer exists"):
        run(backend.working_dir())


def test_8_3_006_a_closed_session_with_kept_files_attaches(service):
    async def use():
        first = capability(service).backend()
        await first.run(["sh", "-c", "printf kept > note.txt"])
        close(service, first.ref)
        again = capability(service).backend(first.ref)
        assert (await again.run(["cat", "note.txt"])).stdout == "kept"
        assert again.ref == first.ref
        return first.ref

    close(service, run(use()), purge=True)


def test_8_3_007_a_timeout_is_told_as_itself(service):
    async def use():
        backend = capability(service).backend()
        with pytest.raises(WorkspaceTimeoutError, match="after 3.5 seconds") as raised:
            await backend.run(["sh", "-c", "printf partial; sleep 30"], timeout=3.5)
        return backend.ref, raised.value.stdout

    ref, output = run(use())
    assert output == "partial"
    close(service, ref)


def test_8_3_008_an_unknown_runtime_is_an_http_error(service):
    with pytest.raises(httpx.HTTPStatusError) as raised:
        run(capability(service, runtime="perl").backend().working_dir())
    assert raised.value.response.status_code == 400


def test_8_3_009_a_cancelled_command_is_stopped(service):
    mark = client.marker()

    async def use():
        backend = capability(service).backend()
        await backend.working_dir()
        # With a second process, which ends with the first (N.99).
        task = asyncio.create_task(backend.run(["sh", "-c", f"sleep {mark} & sleep {mark}"]))
        while len(host.host_processes(mark)) < 2:
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return backend.ref

    ref = run(use())
    until(lambda: not host.host_processes(mark), what="the end of the command")
    close(service, ref)


def test_n_099_a_cancelled_run_takes_what_it_started(service):
    test_8_3_009_a_cancelled_command_is_stopped(service)


def test_8_3_011_purging_twice_is_fine(service, root):
    async def use():
        workspace = capability(service)
        backend = workspace.backend()
        await backend.run(["sh", "-c", "echo x > f"])
        assert (root / backend.ref.id / "workspace/f").exists()
        await workspace.destroy(backend.ref)
        await workspace.destroy(backend.ref)
        return backend.ref

    assert not (root / run(use()).id).exists()


def test_n_104_purging_a_closed_session_removes_its_directory(service, root):
    async def use():
        workspace = capability(service)
        backend = workspace.backend()
        await backend.run(["sh", "-c", "echo x > f"])
        close(service, backend.ref)
        assert (root / backend.ref.id).exists()
        await workspace.destroy(backend.ref)
        await workspace.destroy(backend.ref)
        return backend.ref

    assert not (root / run(use()).id).exists()


def test_8_3_018_the_working_directory_is_pwd_p(service):
    async def use():
        backend = capability(service).backend()
        asked = (await backend.run(["sh", "-c", "pwd -P"])).stdout.strip()
        assert await backend.working_dir() == asked
        return backend.ref

    close(service, run(use()))


def test_n_100_two_clients_of_one_name_end_in_one_session(service):
    async def use():
        first, second = (capability(service, session_name="shared-100").backend() for _ in range(2))
        await asyncio.gather(first.working_dir(), second.working_dir())
        await first.run(["sh", "-c", "echo one > f"])
        assert (await second.run(["cat", "f"])).stdout == "one\n"
        assert first.ref == second.ref

    run(use())
    assert list(sessions(service)).count("shared-100") == 1
    close(service, WorkspaceRef(provider="sandboxd", id="shared-100"), purge=True)


def test_n_101_a_name_finds_kept_files_and_a_purged_ref_nothing(service):
    async def use():
        first = capability(service, session_name="named-101").backend()
        await first.run(["sh", "-c", "echo kept > f"])
        close(service, first.ref)
        again = capability(service, session_name="named-101").backend()
        assert (await again.run(["cat", "f"])).stdout == "kept\n"
        close(service, again.ref, purge=True)
        with pytest.raises(WorkspaceUnavailableError):
            await capability(service).backend(first.ref).working_dir()

    run(use())


def test_n_103_a_write_over_the_ceiling_goes_by_the_shell(service):
    data = bytes(range(256)) * (9 * 4096)

    async def use():
        async with httpx.AsyncClient() as shared:
            backend = capability(service, client=shared).backend()
            workspace = Workspace(backend)
            await workspace.write_bytes("big.bin", data)
            assert await workspace.read_bytes("big.bin") == data
            assert (await backend.run(["wc", "-c", "big.bin"])).stdout.split()[0] == str(9 * 2**20)
            return backend.ref

    close(service, run(use()), purge=True)


def test_8_3_001_a_destroyed_environment_is_unavailable(service):
    mark = client.marker()

    async def use():
        backend = capability(service).backend()
        await backend.working_dir()
        task = asyncio.create_task(backend.run(["sleep", mark]))
        while not host.host_processes(mark):
            await asyncio.sleep(0.05)
        await asyncio.to_thread(close, service, backend.ref, True)
        with pytest.raises(WorkspaceUnavailableError):
            await task

    run(use())
