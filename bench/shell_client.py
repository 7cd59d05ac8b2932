"""Run by the Python that has release 0.2.37 of the reference's clients: one write by its shell scripts.

    shell_client.py URL TOKEN BYTES [RECORD]      prints {"seconds": ...}; the commands go to RECORD as JSON"""

import asyncio
import json
import sys
import time

import httpx
from pydantic_ai.workspaces import Workspace, WorkspaceCommand
from pydantic_ai_backends.workspaces import SandboxdWorkspace


class CommandsOnly:
    """A session without native files: every operation becomes commands."""

    def __init__(self, backend):
        self.backend = backend
        self.ran = []

    @property
    def ref(self):
        return self.backend.ref

    async def working_dir(self):
        return await self.backend.working_dir()

    async def run(self, command: WorkspaceCommand, *, shell=False, env=None, timeout=None):
        self.ran.append(["/bin/sh", "-c", command] if shell else list(command))
        return await self.backend.run(command, shell=shell, env=env, timeout=timeout)


async def main(url, token, size, record=None):
    data = bytes(range(256)) * (int(size) // 256)
    async with httpx.AsyncClient() as client:
        supply = SandboxdWorkspace(service_url=url, token=token, client=client)
        backend = supply.backend()
        place = await backend.working_dir()
        commands = CommandsOnly(backend)
        begin = time.perf_counter()
        await Workspace(commands).write_bytes(f"{place}/large", data)
        seconds = time.perf_counter() - begin
        written = await backend.run(["wc", "-c", f"{place}/large"])
        assert written.stdout.split()[0] == str(len(data)), written
        await supply.destroy(backend.ref)
    if record:
        with open(record, "w") as out:
            json.dump(commands.ran, out)
    print(json.dumps({"seconds": seconds}))


asyncio.run(main(*sys.argv[1:]))
