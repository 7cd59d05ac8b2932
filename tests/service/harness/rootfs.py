"""Root file systems for `dir:` images, made from what the machine has."""

import subprocess
from pathlib import Path

BUSYBOX = "/bin/busybox"

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
