"""A base image whose package managers find one small package each, without a network."""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

from . import rootfs

SYSTEM = ("bash", "coreutils", "dash", "findutils", "grep", "sed", "gawk", "tar", "gzip", "util-linux", "passwd", "libc-bin", "libpam-modules",
          "diffutils", "python3", "python3-pip", "python3-venv", "apt", "dpkg", "nodejs", "ca-certificates")
# For `docker import --change`: nothing is asked of the network, and Debian's pip does as it is told.
ENV = "PIP_NO_INDEX=1 PIP_FIND_LINKS=/packages PIP_BREAK_SYSTEM_PACKAGES=1 npm_config_offline=true"


def base(path):
    """The tree of the image."""
    path = rootfs.debian(path, SYSTEM)
    (path / "usr/bin/python").symlink_to("python3")
    shutil.copytree("/etc/pam.d", path / "etc/pam.d")
    for name in ("login.defs", "shells"):
        shutil.copy(f"/etc/{name}", path / f"etc/{name}")
    (path / "etc/shadow").write_text("root:*:19000:0:99999:7:::\n")
    # As it is: npm may have replaced itself since it was installed.
    shutil.copytree("/usr/lib/node_modules/npm", path / "usr/lib/node_modules/npm", symlinks=True, dirs_exist_ok=True)
    (path / "packages").mkdir()
    wheel(path / "packages")
    _apt(path)
    npm(path / "workspace")
    return path


def wheel(folder, name="hello_pip", version="1.0"):
    """A wheel with a module of that name and a program `hello-pip`."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "def main():\n    print('hello from pip')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\nhello-pip = {name}:main\n",
    }
    rows = [f"{file},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}"
            for file, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as packed:
        for file, text in files.items():
            packed.writestr(file, text)


def _apt(path):
    """A repository in a folder with one package, and as much of dpkg's state as apt needs."""
    for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/lib/apt/lists/partial",
                 "var/cache/apt/archives/partial", "var/log/apt", "etc/apt/apt.conf.d", "etc/apt/preferences.d",
                 "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d", "etc/dpkg/dpkg.cfg.d"):
        (path / name).mkdir(parents=True, exist_ok=True)
    (path / "var/lib/dpkg/status").write_text("")
    (path / "var/lib/dpkg/available").write_text("")
    (path / "etc/apt/apt.conf.d/local").write_text('APT::Sandbox::User "root";\n')
    (path / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/packages ./\n")
    made = path / "packages/hello-apt"
    (made / "DEBIAN").mkdir(parents=True)
    (made / "usr/bin").mkdir(parents=True)
    control = "Package: hello-apt\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: a test\n"
    (made / "DEBIAN/control").write_text(control)
    program = made / "usr/bin/hello-apt"
    program.write_text("#!/bin/sh\necho hello from apt\n")
    program.chmod(0o755)
    deb = path / "packages/hello-apt_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", made, deb], check=True, capture_output=True, timeout=60)
    shutil.rmtree(made)
    data = deb.read_bytes()
    (path / "packages/Packages").write_text(
        f"{control}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")


def npm(folder):
    folder.mkdir(parents=True)
    files = {"package/package.json": json.dumps({"name": "hello-npm", "version": "1.0.0", "main": "index.js"}),
             "package/index.js": "module.exports = 'hello from npm';\n"}
    with tarfile.open(folder / "hello-npm.tgz", "w:gz") as packed:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))


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


def buildx(folder, kept):
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
PLUGIN_FOLDERS = [f"{place}/docker/cli-plugins" for place in ("/usr/local/lib", "/usr/local/libexec", "/usr/lib", "/usr/libexec")]


def real_buildx():
    """The buildx plugin of this machine's `docker` command; None where it has none."""
    folders = [Path(os.environ.get("DOCKER_CONFIG", "~/.docker")).expanduser() / "cli-plugins", *map(Path, PLUGIN_FOLDERS)]
    return next((folder / "docker-buildx" for folder in folders if os.access(folder / "docker-buildx", os.X_OK)), None)


def docker_command(folder):
    """The files of an image such as docker:cli, by their paths in it: the machine's `docker` and a buildx plugin."""
    plugin = real_buildx()
    if plugin is None:
        plugin = Path(folder) / "docker-buildx"
        plugin.write_text(PLUGIN)
        plugin.chmod(0o755)
    return {"usr/local/bin/docker": shutil.which("docker"), "usr/local/libexec/docker/cli-plugins/docker-buildx": plugin}
