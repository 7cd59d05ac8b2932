"""A pytest plugin that lets the reference's own tests run against this service: `create_app` gives an application that
starts the service as a process, with the settings of the configuration it was given, and hands every request on.

What a test asks of the reference's process itself (its fake sandboxes, its internals) is not there: such tests, and those
that ask nothing of a service, are listed in not_applicable/ and left out."""

import asyncio
import dataclasses
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from environments import RELEASES  # noqa: E402
from pending import PENDING  # noqa: E402
from target import Target, client  # noqa: E402

import pydantic_ai_backends.remote.server as reference  # noqa: E402

PROGRAM = os.environ.get("CONFORMANCE_PROGRAM", str(HERE.parents[2] / "build/release/sandboxd"))
IMAGES = {"python": "host", "node": "host"}  # under any name the tests give
# A test that looks at how long the client is ready to wait, and at nothing else, need not wait.
SHORTER = {b'"command":"sleep 120"': b'"command":"sleep 1"'}


def runtime_entry(entry):
    """A runtime of the configuration, with an image that is here."""
    if isinstance(entry, str):
        return "host"
    values = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry) if f.name not in ("image", "runtime")}
    return {"image": "host", **{name: value for name, value in values.items() if value not in (None, "")}}


def settings_of(config):
    values = {}
    for one in dataclasses.fields(config):
        value = getattr(config, one.name)
        if one.name == "runtimes":
            value = json.dumps({alias: runtime_entry(entry) for alias, entry in value.items()})
        elif isinstance(value, bool):
            value = int(value)
        elif value is None:
            value = ""
        values[one.name] = value
    return values


class State:
    """There is none: a test that looks for it is about the reference's process."""

    def __getattr__(self, name):
        raise AttributeError(f"not the reference's process: app.state.{name}")


class App:
    """The application: an ASGI proxy to a service of its own."""

    made = []

    def __init__(self, config):
        self.config = config
        self.service = None
        self.state = State()
        App.made.append(self)

    def start(self):
        if self.service is None:
            target = Target("oci", PROGRAM, IMAGES, {})
            self.service = target.service(**settings_of(self.config)).start()
        return self.service

    def stop(self):
        if self.service is not None:
            service, self.service = self.service, None
            try:
                service.stop()
            finally:
                service.discard()

    def forward(self, method, path, headers, body):
        connection = client.HTTPConnection("127.0.0.1", self.start().port, timeout=90)  # skips the 102 of a slow open
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                if name not in (b"content-length", b"connection", b"transfer-encoding"):
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.putheader("Connection", "close")
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await asyncio.to_thread(self.start)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await asyncio.to_thread(self.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        for command, shorter in SHORTER.items():
            body = body.replace(command, shorter)
        path = scope["raw_path"].decode() if scope.get("raw_path") else scope["path"]
        if scope["query_string"]:
            path += "?" + scope["query_string"].decode()
        status, headers, answer = await asyncio.to_thread(self.forward, scope["method"], path, scope["headers"], body)
        headers = [(name.lower().encode(), value.encode()) for name, value in headers
                   if name.lower() not in ("connection", "transfer-encoding")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def create_app(config, *_, **__):
    return App(config)


reference.create_app = create_app


GENERATION = next(name for name, release in RELEASES.items() if release == version("pydantic-ai-backend"))


def not_applicable():
    """Test to reason, for the release that is installed."""
    found, reason = {}, None
    for line in (HERE / "not_applicable" / f"{GENERATION}.txt").read_text().splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            found[line] = reason
    return found


def short(item):
    """test_file.py::Class::test, without the case."""
    return "::".join([item.nodeid.split("::")[0].rsplit("/", 1)[-1], *item.nodeid.split("[")[0].split("::")[1:]])


def pytest_collection_modifyitems(config, items):
    left_out = not_applicable()
    unknown = set(left_out) - {short(item) for item in items}
    if unknown and not config.option.keyword:
        raise pytest.UsageError(f"not_applicable/ names tests that are not there: {sorted(unknown)[:5]}")
    for item in items:
        reason = PENDING.get(f"reference-{GENERATION}::" + short(item).split("::")[-1])
        if reason:
            item.add_marker(pytest.mark.xfail(strict=True, reason=f"not yet: {reason}"))
    config.hook.pytest_deselected(items=[item for item in items if short(item) in left_out])
    items[:] = [item for item in items if short(item) not in left_out]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    yield
    for app in App.made:
        if not _module_scoped(item):
            app.stop()
    if not _module_scoped(item):
        App.made.clear()


def _module_scoped(item):
    return any(name in item.fixturenames for name in ("service", "capability"))


def pytest_sessionfinish():
    for app in App.made:
        app.stop()


