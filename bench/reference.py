"""A release of the reference service under uvicorn, beside which ours is measured."""

import os
import time

from harness.service import Service
from probes import run_request, load


class _Service(Service):
    documents = False

    def command(self):
        return [self.program, "-m", "pydantic_ai_backends.remote.server"]

    def environment(self):
        values = {"token": self.token, "host": "127.0.0.1", "port": self.port, "prewarm": 0, "runtimes": "box=bench",
                  "max_sessions": 50, **self.settings_of_reference}
        return {"PATH": os.environ["PATH"], "TMPDIR": str(self.directory), "PYTHONWARNINGS": "ignore", **self.extra,
                **{f"SANDBOXD_{name.upper()}": str(value) for name, value in values.items()}}


class Reference:
    """Starts it; `service` answers as ours does in the tests' harness."""

    def __init__(self, python, daemon, root):
        root.mkdir()
        self.service = _Service(python, environment={"DOCKER_HOST": daemon.host})
        self.service.settings_of_reference = {"workspace_root": root}
        try:
            self.service.start()
        except BaseException:
            self.service.discard()
            raise

    def first_command(self):
        """ms from the open to the end of a first command"""
        begin = time.perf_counter()
        session = self.service.open()
        load(self.service, run_request(session), 1, 0)
        spent = (time.perf_counter() - begin) * 1000
        session.close()
        return spent

    def discard(self):
        self.service.terminate()
        self.service.discard()
