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
    layout = Path(path)
    layout.mkdir(parents=True)
    layer = _layer(tree)
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
