"""The real `docker buildx`, and the frontend that `# syntax=docker/dockerfile:1` asks for: that image comes from a
registry, which the tests have not, but both programs can be compiled from the Go module proxy. Once: they are kept below
build/buildx. A plugin that is installed is used as it is."""

import fcntl
import functools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from .service import ROOT

KEPT = ROOT / "build" / "buildx"
PLUGIN = ("github.com/docker/buildx@v0.23.0", "cmd/buildx")
FRONTEND = ("github.com/moby/buildkit@v0.21.0", "frontend/dockerfile/cmd/dockerfile-frontend")
# What compiles them where the machine's own Go is older than 1.21, which would fetch it by itself.
TOOLCHAIN = "golang.org/toolchain@v0.0.1-go1.23.8.linux-{}"
PATIENCE = 3600  # s; compiling takes some minutes of a core
FOLDERS = [f"{place}/docker/cli-plugins" for place in ("/usr/local/lib", "/usr/local/libexec", "/usr/lib", "/usr/libexec")]


class Missing(Exception):
    """Why a program can't be had, for whoever may change that."""


def installed():
    """The buildx plugin of this machine's `docker` command; None where it has none."""
    folders = [Path(os.environ.get("DOCKER_CONFIG", "~/.docker")).expanduser() / "cli-plugins", *map(Path, FOLDERS)]
    return next((folder / "docker-buildx" for folder in folders if os.access(folder / "docker-buildx", os.X_OK)), None)


def ready():
    """Whether nothing has to be compiled."""
    return _kept("dockerfile-frontend", FRONTEND[0]).exists() and (installed() or _kept("docker-buildx", PLUGIN[0]).exists())


def plugin():
    """The installed plugin, or one that is compiled."""
    return installed() or _compiled("docker-buildx", *PLUGIN)


def frontend():
    """The static program that is the image docker/dockerfile:1."""
    return _compiled("dockerfile-frontend", *FRONTEND)


def _kept(name, module):
    return KEPT / f"{name}-{module.rsplit('@', 1)[1]}"


def _compiled(name, module, package):
    target = _kept(name, module)
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "lock", "w") as lock:  # by one of the processes that want it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            shutil.rmtree(KEPT / "source", ignore_errors=True)
            # In a copy of the module, as its own makers build it: with the checksums that it brings for all that it needs.
            fetched = json.loads(_run([_go(), "mod", "download", "-json", module], KEPT))["Dir"]
            shutil.copytree(fetched, KEPT / "source")
            _run([_go(), "build", "-p", "2", "-mod=readonly", "-ldflags", "-s -w", "-o", KEPT / "made", f"./{package}"], KEPT / "source")
            (KEPT / "made").rename(target)
            for folder in ("source", "go"):
                shutil.rmtree(KEPT / folder)
    return target


def _environment():
    """The user's own settings for the proxy, but nothing is put into his caches."""
    kept = KEPT / "go"
    return {**os.environ, "GOPATH": str(kept), "GOCACHE": str(kept / "cache"), "GOFLAGS": "-modcacherw -buildvcs=false",
            "GOTOOLCHAIN": "auto", "CGO_ENABLED": "0"}


@functools.cache
def _go():
    """A Go that fetches a newer one where a module asks for it, or is new enough."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        raise Missing("there is no Go to compile docker buildx and its frontend with: apt-get install golang-go")
    found = re.search(r"go1\.(\d+)", _run([go, "version"]))
    if found and int(found[1]) >= 21:
        return go
    module = TOOLCHAIN.format(_run([go, "env", "GOARCH"]).strip())
    root = Path(json.loads(_run([go, "mod", "download", "-json", module], KEPT))["Dir"])
    for folder in (root / "bin", *root.glob("pkg/tool/*")):
        for program in folder.iterdir():
            program.chmod(0o755)  # a module's files are no programs
    return root / "bin/go"


def _run(command, folder="/"):
    done = subprocess.run(["nice", "-n", "10", *command], env=_environment(), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise Missing(f"docker buildx and its frontend can't be compiled from the Go module proxy: {(done.stdout + done.stderr).strip()[-800:]}")
    return done.stdout
