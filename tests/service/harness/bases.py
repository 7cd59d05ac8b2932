"""Base images for builds: Debians made of this machine's own packages, with a few small packages lying in /packages."""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

from . import rootfs


def _run(*argv):
    subprocess.run([str(one) for one in argv], check=True, capture_output=True, timeout=120)


def wheel(directory):
    """The distribution demo 1.0: a module that says hello."""
    path = Path(directory) / "demo-1.0-py3-none-any.whl"
    files = {"demo.py": "def hello():\n    return 'hello from a wheel'\n",
             "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
             "demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr("demo-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in files))
    return path


def debs(directory):
    """A repository with the package demo: /usr/bin/demo-tool, and an account of its own made by its script."""
    directory = Path(directory)
    tree = directory / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text("Package: demo\nVersion: 1.0\nArchitecture: all\nMaintainer: tests <t@example.org>\n"
                                         "Description: a test\n")
    (tree / "DEBIAN/postinst").write_text("#!/bin/sh\nset -e\nchown 1234:1234 /usr/bin/demo-tool\nchmod 4755 /usr/bin/demo-tool\n")
    (tree / "DEBIAN/postinst").chmod(0o755)
    (tree / "usr/bin/demo-tool").write_text("#!/bin/sh\necho hello from a deb\n")
    (tree / "usr/bin/demo-tool").chmod(0o755)
    package = directory / "demo_1.0_all.deb"
    _run("dpkg-deb", "--root-owner-group", "-b", tree, package)
    control = (tree / "DEBIAN/control").read_text().rstrip("\n")
    data = package.read_bytes()
    (directory / "Packages").write_text(f"{control}\nFilename: ./{package.name}\nSize: {len(data)}\n"
                                        f"SHA256: {hashlib.sha256(data).hexdigest()}\n")


def npm_package(directory):
    """The package demo, demo-1.0.0.tgz."""
    with tarfile.open(Path(directory) / "demo-1.0.0.tgz", "w:gz") as archive:
        for name, text in {"package/package.json": json.dumps({"name": "demo", "version": "1.0.0", "main": "index.js"}),
                           "package/index.js": "module.exports = 'hello from npm';\n"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def python(path):
    """Debian with pip."""
    path = rootfs.debian(path, ("bash", "coreutils", "dash", "grep", "sed", "python3", "python3-pip"))
    for marker in path.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    (path / "packages").mkdir()
    wheel(path / "packages")
    return path


def apt(path):
    """Debian with apt, whose only source is /packages."""
    path = rootfs.debian(path, ("bash", "coreutils", "dash", "grep", "sed", "apt", "dpkg", "libc-bin", "tar", "gzip", "xz-utils",
                                "diffutils"))
    (path / "packages").mkdir()
    debs(path / "packages")
    for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/lib/apt/lists/partial",
                 "var/cache/apt/archives/partial", "var/log/apt", "etc/apt/apt.conf.d", "etc/apt/preferences.d",
                 "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d"):
        (path / name).mkdir(parents=True, exist_ok=True)
    (path / "var/lib/dpkg/status").touch()
    (path / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/packages ./\n")
    return path


def node(path):
    """Debian with npm; the package lies in /workspace, where it is installed."""
    path = rootfs.debian(path, ("bash", "coreutils", "dash", "grep", "sed", "nodejs", "npm"))
    # As it is here: it may have been updated by itself, and then its package no longer tells what belongs to it.
    program = Path(shutil.which("npm")).resolve().parents[1]
    shutil.copytree(program, path / str(program)[1:], symlinks=True, dirs_exist_ok=True)
    (path / "workspace").mkdir()
    npm_package(path / "workspace")
    return path
