"""Stand-ins for `docker buildx`, for machines without it."""

import os
import shutil
from pathlib import Path

from . import buildx

# The command of the Docker CLI that the service uses, for machines without its plugin: it hands the Dockerfile to the
# classic builder, without what that does not know, and keeps what it was given.
BUILDX = """#!/usr/bin/env python3
import http.client, io, json, os, re, socket, sys, tarfile, urllib.parse
kept = {kept!r}
args = sys.argv[1:]
if args[:2] == ["buildx", "version"]:
    print("github.com/docker/buildx 0.0.0 stand-in")
    sys.exit(0)
assert args[:2] == ["buildx", "build"] and args[-1] == "-", args
text = sys.stdin.read()
open(kept, "a").write(json.dumps({{"args": args, "dockerfile": text}}) + "\\n")
lines = [re.sub(r"--mount=\\S+ ", "", line) for line in text.splitlines() if not line.startswith("# syntax=")]
print("#1 [1/%d] %s" % (len(lines), lines[0]), file=sys.stderr)
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w") as tar:
    data = "\\n".join(lines).encode()
    entry = tarfile.TarInfo("Dockerfile")
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
class Daemon(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["DOCKER_HOST"].removeprefix("unix://"))
one = Daemon("docker", timeout=300)
tag = args[args.index("--tag") + 1]
one.request("POST", "/build?rm=1&t=" + urllib.parse.quote(tag), packed.getvalue(), {{"Content-Type": "application/x-tar"}})
failed = 0
for line in one.getresponse().read().decode().splitlines():
    said = json.loads(line)
    print(said.get("stream", said.get("error", "")), end="", file=sys.stderr)
    failed |= "error" in said
sys.exit(1 if failed else 0)
"""


def command(folder, kept):
    """A folder for PATH with the stand-in; what it is asked is appended to the file `kept`, one JSON object a line."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "docker"
    program.write_text(BUILDX.format(kept=str(kept)))
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


# What `docker` asks its plugins, for machines without the real one.
PLUGIN = """#!/bin/sh
case "$*" in
    docker-cli-plugin-metadata) echo '{"SchemaVersion": "0.1.0", "Vendor": "tests", "Version": "v0.0.0"}' ;;
    *version*) echo "github.com/docker/buildx v0.0.0 stand-in" ;;
    *) exit 1 ;;
esac
"""


def docker_command(folder):
    """The files of an image such as docker:cli, by their paths in it: the machine's `docker` and a buildx plugin."""
    plugin = buildx.installed()
    if plugin is None:
        plugin = Path(folder) / "docker-buildx"
        plugin.write_text(PLUGIN)
        plugin.chmod(0o755)
    return {"usr/local/bin/docker": shutil.which("docker"), "usr/local/libexec/docker/cli-plugins/docker-buildx": plugin}
