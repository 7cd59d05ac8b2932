"""Base images for builds: Debians made of this machine's own packages, with package managers that find one small package each
in the image itself, without a network."""

import base64
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

from . import rootfs

SYSTEM = ("bash", "coreutils", "dash", "findutils", "grep", "sed", "util-linux", "passwd", "libpam-modules")
NEEDS = {
    "pip": ("python3", "python3-pip", "python3-venv", "ca-certificates"),
    "apt": ("apt", "dpkg", "libc-bin", "tar", "gzip", "xz-utils", "diffutils", "gawk"),
    "npm": ("nodejs",),
    "cargo": ("cargo",),  # and with it rustc, and what links
}
PACKAGES = "/packages"
WORDS = "hello from {}\n"  # what each of the packages says


def missing(manager):
    """Why this machine can't give a base image that manager; nothing when it can."""
    program = {"pip": "pip3", "apt": "apt-get", "npm": "npm", "cargo": "/usr/bin/cargo"}[manager]
    return None if shutil.which(program) else f"this machine has no {program} to put into a base image"


def base(path, *managers):
    """The tree of the image."""
    path = rootfs.debian(path, (*SYSTEM, *(package for one in managers for package in NEEDS[one])))
    shutil.copytree("/etc/pam.d", path / "etc/pam.d")
    for name in ("login.defs", "shells"):
        shutil.copy(f"/etc/{name}", path / f"etc/{name}")
    (path / "etc/shadow").write_text("root:*:19000:0:99999:7:::\n")
    (path / PACKAGES[1:]).mkdir()
    for one in managers:
        {"pip": _pip, "apt": _apt, "npm": _npm, "cargo": _cargo}[one](path)
    return path


def _write(folder, files):
    for name, text in files.items():
        file = Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _pack(archive, files):
    with tarfile.open(archive, "w:gz") as packed:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


def _pip(path):
    (path / "usr/bin/python").symlink_to("python3")
    # Debian's pip does as it is told.
    _write(path, {"etc/pip.conf": f"[global]\nno-index = true\nfind-links = {PACKAGES}\nbreak-system-packages = true\n"})
    _wheel(path / PACKAGES[1:])


def _wheel(folder, name="hello_pip", version="1.0"):
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
    """A repository in a folder with one package, and as much of dpkg's state as apt needs. The package gives its program
    to an account and a mode of its own."""
    for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/lib/apt/lists/partial",
                 "var/cache/apt/archives/partial", "var/log/apt", "etc/apt/apt.conf.d", "etc/apt/preferences.d",
                 "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d", "etc/dpkg/dpkg.cfg.d"):
        (path / name).mkdir(parents=True, exist_ok=True)
    _write(path, {"var/lib/dpkg/status": "", "var/lib/dpkg/available": "",
                  "etc/apt/apt.conf.d/local": 'APT::Sandbox::User "root";\n',
                  "etc/apt/sources.list": f"deb [trusted=yes] file:{PACKAGES} ./\n"})
    control = "Package: hello-apt\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: a test\n"
    folder = path / PACKAGES[1:]
    made = folder / "hello-apt"
    _write(made, {"DEBIAN/control": control, "usr/bin/hello-apt": "#!/bin/sh\necho hello from apt\n",
                  "DEBIAN/postinst": "#!/bin/sh\nset -e\nchown 1234:1234 /usr/bin/hello-apt\nchmod 4755 /usr/bin/hello-apt\n"})
    for program in ("usr/bin/hello-apt", "DEBIAN/postinst"):
        (made / program).chmod(0o755)
    deb = folder / "hello-apt_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", made, deb], check=True, capture_output=True, timeout=60)
    shutil.rmtree(made)
    data = deb.read_bytes()
    (folder / "Packages").write_text(f"{control}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {_sha256(data)}\n")


def _npm(path):
    """The package lies in /workspace, where it is installed."""
    # As it is here: npm may have replaced itself, and then its package no longer tells what belongs to it.
    program = Path(shutil.which("npm")).resolve().parents[1]
    shutil.copytree(program, path / str(program)[1:], symlinks=True, dirs_exist_ok=True)
    if not (path / "usr/bin/npm").exists():
        (path / "usr/bin/npm").symlink_to(program / "bin/npm-cli.js")
    _write(path, {"usr/etc/npmrc": "offline=true\naudit=false\n"})
    (path / "workspace").mkdir()
    _pack(path / "workspace/hello-npm.tgz",
          {"package/package.json": json.dumps({"name": "hello-npm", "version": "1.0.0", "main": "index.js"}),
           "package/index.js": "module.exports = 'hello from npm';\n"})


# In the place of crates.io a registry in a folder; where Debian has no `cc`, gcc links; programs go where PATH finds them.
CARGO_CONFIG = f"""
[source.crates-io]
replace-with = "here"
[source.here]
local-registry = "{PACKAGES}/crates"
[install]
root = "/usr/local"
[build]
rustflags = ["-Clinker=gcc"]
[net]
offline = true
"""


# Of the C compiler only what links is needed: 115 MB less.
COMPILES = ("usr/bin/*-lto-dump-*", "usr/lib/gcc/*/*/lto1", "usr/lib/gcc/*/*/cc1", "usr/lib/*/lib?san.so.*")


def _cargo(path):
    """A program, and a library that it needs."""
    for one in (file for pattern in COMPILES for file in path.glob(pattern)):
        one.unlink()
    _write(path / "root/.cargo", {"config.toml": CARGO_CONFIG})
    crates = path / PACKAGES[1:] / "crates"
    _crate(crates, "hello-words", {"src/lib.rs": "pub const FROM: &str = \"cargo\";\n"})
    _crate(crates, "hello-cargo", {"src/main.rs": "fn main() {\n    println!(\"hello from {}\", hello_words::FROM);\n}\n"},
           needs=["hello-words"])


def _crate(folder, name, files, needs=(), version="1.0.0"):
    dependencies = "".join(f'{one} = "1"\n' for one in needs)
    manifest = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n[dependencies]\n{dependencies}'
    place = folder / f"index/{name[:2]}/{name[2:4]}"
    place.mkdir(parents=True, exist_ok=True)
    crate = folder / f"{name}-{version}.crate"
    _pack(crate, {f"{name}-{version}/{file}": text for file, text in {"Cargo.toml": manifest, **files}.items()})
    (place / name).write_text(json.dumps({
        "name": name, "vers": version, "cksum": _sha256(crate.read_bytes()), "features": {}, "yanked": False,
        "deps": [{"name": one, "req": "^1", "features": [], "optional": False, "default_features": True, "target": None,
                  "kind": "normal"} for one in needs]}) + "\n")
