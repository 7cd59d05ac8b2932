"""A virtual machine with an arm64 kernel: what is built for that architecture is run on it, system-call filter, namespaces and
OCI runtime included, which an emulator of programs alone does not have.

It needs qemu-system-aarch64 (scripts/setup machine) and the programs (scripts/build arm64 sandboxd sandboxd-agent test_agent).
The emulated processor is slow: about the fiftieth part of a real one."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "arm64"
DEBIAN = ROOT / "build" / "machine-arm64"  # the files of the machine's packages
PROGRAMS = ("sandboxd", "sandboxd-agent", "tests/test_agent")
MODULES = ("virtio_ring", "virtio", "virtio_mmio", "virtio_blk", "overlay")  # in the order of their needs
PATIENCE = 3600  # s

INIT = f"""#!/bin/busybox sh
for module in {' '.join(MODULES)}; do /bin/busybox insmod /modules/$module.ko; done
/bin/busybox mount -t devtmpfs dev /dev
while [ ! -e /dev/vda ]; do /bin/busybox sleep 0.2; done
/bin/busybox mount -t ext4 /dev/vda /disk
exec /bin/busybox switch_root /disk /bin/busybox sh /start
"""


def missing():
    """Why there can be no machine; nothing when there can."""
    if shutil.which("qemu-system-aarch64") is None:
        return "there is no qemu-system-aarch64: scripts/setup machine"
    absent = [name for name in PROGRAMS if not (BUILD / name).exists()]
    return f"not built for arm64: scripts/build arm64 {' '.join(name.rsplit('/', 1)[-1] for name in absent)}" if absent else None


def libraries_of_the_image():
    """What the Dockerfile installs beside the service."""
    last = (ROOT / "Dockerfile").read_text().rsplit("apt-get install -y --no-install-recommends", 1)[1]
    return [word for word in re.findall(r"[a-z0-9][\w.+-]+", last.split("&&", 1)[0]) if word != "poppler-utils"]


def run(folder):
    """What the machine says from its start to its end; `folder` takes its disk."""
    packages = ["linux-image-cloud-arm64", "busybox-static", "runc", "curl", "libboost-test1.81.0", *libraries_of_the_image()]
    subprocess.run([ROOT / "scripts/lib/foreign_debian", DEBIAN, "arm64", *packages], check=True, timeout=PATIENCE)
    _first_files(folder / "first")
    _disk(folder / "disk", folder / "disk.img")
    done = subprocess.run(
        ["nice", "-n", "5", "qemu-system-aarch64", "-M", "virt", "-cpu", "max", "-smp", "2", "-m", "1024", "-nographic", "-no-reboot", "-nic", "none",
         "-kernel", _the(DEBIAN, "boot/vmlinuz-*"), "-initrd", folder / "first.gz", "-append", "console=ttyAMA0 quiet panic=-1",
         "-drive", f"if=none,file={folder}/disk.img,format=raw,id=disk", "-device", "virtio-blk-device,drive=disk"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    return done.stdout.decode(errors="replace").replace("\r\n", "\n")


def _the(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def _first_files(tree):
    """What the kernel starts from, as an archive beside the tree: just enough to find the disk."""
    for name in ("bin", "modules", "disk", "dev"):
        (tree / name).mkdir(parents=True)
    shutil.copy(_the(DEBIAN, "bin/busybox"), tree / "bin")
    for name in MODULES:
        shutil.copy(_the(DEBIAN, f"lib/modules/*/kernel/**/{name}.ko"), tree / "modules")
    (tree / "init").write_text(INIT)
    (tree / "init").chmod(0o755)
    names = "".join(f"{path.relative_to(tree)}\n" for path in sorted(tree.rglob("*")))
    packed = subprocess.run(["busybox", "cpio", "-o", "-H", "newc"], input=names.encode(), cwd=tree, capture_output=True, check=True).stdout
    tree.with_suffix(".gz").write_bytes(gzip.compress(packed, 1))


def _busybox(tree):
    """Every tool that is not there already."""
    (tree / "bin").mkdir(parents=True, exist_ok=True)
    if not (tree / "bin/busybox").exists():
        shutil.copy(_the(DEBIAN, "bin/busybox"), tree / "bin")
    for name in subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split():
        if not (tree / "bin" / name).exists():
            (tree / "bin" / name).symlink_to("busybox")
    for name in ("dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp"):
        (tree / name).mkdir(parents=True, exist_ok=True)
    (tree / "root").chmod(0o700)
    for name in ("tmp", "var/tmp"):
        (tree / name).chmod(0o1777)
    (tree / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n")
    (tree / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")


def _disk(tree, image):
    """A file system with Debian's libraries, the programs where they were built, and an image for sandboxes."""
    unwanted = shutil.ignore_patterns("modules", "doc", "man", "locale")
    for name in ("bin", "sbin", "lib", "usr", "etc"):
        shutil.copytree(DEBIAN / name, tree / name, symlinks=True, ignore=unwanted)
    _busybox(tree)
    _busybox(tree / "box")
    for name in PROGRAMS:
        target = tree / str(BUILD / name)[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / name, target)
    (tree / "start").write_text((HERE / "start.sh").read_text().replace("@BUILD@", str(BUILD)))
    with open(image, "wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, image], check=True, stdin=subprocess.DEVNULL, timeout=600)
    shutil.rmtree(tree)
