"""One client of another generation, in its own Python: reads one JSON request a line, answers one a line."""

import asyncio
import json
import sys


def first(url, token, session):
    from pydantic_ai_backends.remote import RemoteSandbox

    sandbox = RemoteSandbox(url, token=token, session_id=session, reuse=True)

    def answer(op, path, text):
        return sandbox.write(path, text).error if op == "write" else sandbox.read(path)

    return answer


def second(url, token, session):
    from pydantic_ai.workspaces import Workspace
    from pydantic_ai_backends.workspaces import SandboxdWorkspace

    workspace = Workspace(SandboxdWorkspace(service_url=url, token=token, session_name=session).backend())

    def answer(op, path, text):
        if op == "write":
            return asyncio.run(workspace.write_bytes(path, text.encode()))
        return asyncio.run(workspace.read_bytes(path)).decode()

    return answer


if __name__ == "__main__":
    kind, *where = sys.argv[1:]
    respond = {"first": first, "second": second}[kind](*where)
    for line in sys.stdin:
        print(json.dumps(respond(*json.loads(line))), flush=True)
