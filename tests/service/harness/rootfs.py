"""Root file systems for `dir:` images, made from what the machine has."""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from pathlib import Path

BUSYBOX = "/bin/busybox"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]

# The one program of the image without a shell. First argument: what to do.
TOOL = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char** environ;
int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "args";
    if (strcmp(what, "env") == 0) {
        for (char** e = environ; *e; ++e) puts(*e);
    } else if (strcmp(what, "exit") == 0) {
        return atoi(argv[2]);
    } else if (strcmp(what, "sleep") == 0) {
        sleep((unsigned)atoi(argv[2]));
    } else if (strcmp(what, "cwd") == 0) {
        char path[4096];
        puts(getcwd(path, sizeof path));
    } else {
        for (int i = 1; i < argc; ++i) printf("[%s]\n", argv[i]);
    }
    return 0;
}
"""


def _skeleton(path):
    for name in ("bin", "dev", "etc", "proc", "sys", "tmp", "root"):
        (path / name).mkdir(parents=True, exist_ok=True)
    (path / "tmp").chmod(0o1777)
    (path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (path / "etc/group").write_text("root:x:0:\n")


def busybox(path):
    """A small system with busybox as every tool."""
    path = Path(path)
    _skeleton(path)
    (path / "bin/busybox").write_bytes(Path(BUSYBOX).read_bytes())
    (path / "bin/busybox").chmod(0o755)
    for name in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if name != "busybox":
            (path / "bin" / name).symlink_to("busybox")
    return path


def _with_dependencies(names):
    """The installed packages that these need, themselves included."""
    text = subprocess.run(["dpkg-query", "-W", "-f=${Package}\t${Pre-Depends}, ${Depends}\t${Provides}\n"],
                          capture_output=True, text=True, check=True).stdout
    needs, provided = {}, {}
    for line in text.splitlines():
        package, depends, provides = line.split("\t")
        needs[package] = [[option.split()[0].split(":")[0] for option in group.split("|") if option.strip()]
                          for group in depends.split(",") if group.strip()]
        for name in provides.split(","):
            if name.strip():
                provided[name.split()[0]] = package
    wanted, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name in wanted or name not in needs:
            continue
        wanted.add(name)
        for group in needs[name]:
            todo += [provided.get(option, option) for option in group
                     if option in needs or option in provided][:1]
    return sorted(wanted)


def debian(path, packages=("bash", "coreutils", "dash", "findutils", "grep", "sed", "gawk", "procps", "util-linux", "python3", "git")):
    """A small Debian made of this machine's own packages, without fetching anything."""
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (path / "usr" / name).mkdir(parents=True, exist_ok=True)
        (path / name).symlink_to(f"usr/{name}")
    files = subprocess.run(["dpkg", "-L", *_with_dependencies(packages)], capture_output=True, text=True, check=True).stdout
    unwanted = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/i18n/", "/boot/", "/etc/", "/var/")
    listed = sorted({line for line in files.splitlines() if line.startswith("/") and not line.startswith(unwanted)})
    chosen = [line for line in listed if Path(line).is_symlink() or Path(line).is_file()]
    chosen += [f"/usr/bin/{name}" for name in ("awk", "sh") if Path(f"/usr/bin/{name}").exists()]
    chosen += [str(link) for link in Path("/etc/alternatives").iterdir() if link.name == "awk"]
    chosen += ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"]
    pack = subprocess.Popen(["tar", "-c", "--no-recursion", "--ignore-failed-read", "-T", "-"], cwd="/", stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    unpack = subprocess.Popen(["tar", "-x", "-C", path, "--keep-directory-symlink"], stdin=pack.stdout)
    pack.stdin.write("\n".join(chosen).encode())
    pack.stdin.close()
    assert unpack.wait(120) == 0 and pack.wait(120) in (0, 1)
    for name in ("etc", "tmp", "root", "run", "var/tmp", "dev", "proc", "sys", "home"):
        (path / name).mkdir(parents=True, exist_ok=True)
    (path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/nonexistent:/bin/false\n")
    (path / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (path / "tmp").chmod(0o1777)
    (path / "root").chmod(0o700)
    return path


def scratch(path):
    """One static program, /tool, and nothing else: no shell."""
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    source = path / "tool.c"
    source.write_text(TOOL)
    subprocess.run(["clang-19", "-Os", "-static", "-o", path / "tool", source], check=True, timeout=60)
    source.unlink()
    return path


def _blob(layout, data):
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    (layout / "blobs/sha256" / digest).write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def _layer(tree):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(tree, arcname=".", filter=_as_root)
    return buffer.getvalue()


def _as_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _image_config(layer, config):
    return json.dumps({"architecture": ARCHITECTURE, "os": "linux", "config": config,
                       "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()


def oci_layout(path, tree, tags):
    """An OCI layout; `tags` maps a tag to the image's own configuration (Env, User, Entrypoint, ...)."""
    return layout_of(path, _layer(tree), tags)


def layout_of(path, layer, tags):
    """The same from the bytes of a tar archive."""
    layout = Path(path)
    layout.mkdir(parents=True)
    described = {"mediaType": "application/vnd.oci.image.layer.v1.tar", **_blob(layout, layer)}
    manifests = []
    for tag, config in tags.items():
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                       **_blob(layout, _image_config(layer, config))},
            "layers": [described]}).encode()
        manifests.append({"mediaType": "application/vnd.oci.image.manifest.v1+json", **_blob(layout, manifest),
                          "annotations": {"org.opencontainers.image.ref.name": tag}})
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": manifests}))
    return layout


def docker_archive(path, tree, config):
    """What `docker save` writes."""
    layer = _layer(tree)
    data = _image_config(layer, config)
    name = hashlib.sha256(data).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": ["mine:latest"], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for member, content in ((name, data), ("layer.tar", layer), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return Path(path)
