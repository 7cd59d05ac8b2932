"""The measurements behind bench/run."""

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(ROOT / "tests/service"), str(ROOT / "tests/conformance")]

import docker  # noqa: E402
import environments  # noqa: E402
import oci  # noqa: E402
from harness import rootfs  # noqa: E402
from probes import PROGRAM, STARTED, say  # noqa: E402
from table import Table  # noqa: E402


def text_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip() or None
    except OSError:
        return None


def facts(quick):
    """What the figures were measured on."""
    model = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "service": text_of(PROGRAM, "--version"),
            "processors": os.cpu_count(), "processor": model[0] if model else platform.machine(),
            "kernel": platform.release(), "dockerd": text_of("dockerd", "--version"), "runc": text_of("runc", "--version"),
            "load average before": os.getloadavg()[0], "quick": quick, "complete": False}


def references(wanted):
    """The interpreter of a generation of the reference, made when it is first needed; None where there are none."""
    if not wanted:
        return None
    say("the reference's releases, each in an environment of its own (made once, from PyPI)")
    try:
        for generation in ("g3", "g1"):
            environments.make(generation)
    except SystemExit as problem:
        say(f"NOT MEASURED beside the reference, its releases can't be installed: {problem}")
        return None
    return environments.python


def own_file_system(directory):
    """Mounts one with a journal there, as hosts have: in ext4 without a journal a new file costs up to a millisecond more,
    by what other programs have deleted in the last minutes. It is gone with the last process that uses it."""
    image = directory.with_suffix(".image")
    image.touch()
    os.truncate(image, 16 << 30)
    for command in (["mkfs.ext4", "-q", "-N", "400000", "-E", "lazy_itable_init=0,lazy_journal_init=0", image],
                    ["mount", "-o", "loop", image, directory]):
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as failed:
            say(f"measured on the file system of {directory.parent}: {getattr(failed, 'stderr', None) or failed}".strip())
            break
    image.unlink()


def main():
    parser = argparse.ArgumentParser(prog="bench/run")
    parser.add_argument("--quick", action="store_true", help="shorter, and less certain")
    parser.add_argument("--json", metavar="FILE", help="every figure as a number, with the machine it was measured on")
    parser.add_argument("--no-reference", action="store_true", help="leave the reference's releases out")
    parser.add_argument("--only", choices=["oci", "docker"], help="one backend")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench/run: told to end"))  # nothing is left behind
    known = facts(arguments.quick)
    if known["load average before"] > 1:
        say(f"this machine is busy (load {known['load average before']:.1f}): compare columns, not runs")
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir="/var/tmp"))
    own_file_system(scratch)
    os.chmod(scratch, 0o755)
    os.environ["TMPDIR"] = str(scratch)
    tempfile.tempdir = None
    table = Table()
    try:
        rootfs.busybox(scratch / "box")
        if arguments.only != "docker":
            oci.measure(scratch, table, arguments.quick)
        if arguments.only == "oci":
            pass
        elif shutil.which("dockerd"):
            docker.measure(scratch, table, arguments.quick, references(not arguments.no_reference))
        else:
            say("NOT MEASURED under Docker: there is no dockerd")
        known["complete"] = True
    finally:  # what was measured is shown, whatever came in between
        subprocess.run(["umount", "--lazy", scratch], stderr=subprocess.DEVNULL)
        shutil.rmtree(scratch, ignore_errors=True)
        say("done\n" if known["complete"] else "NOT COMPLETE\n")
        table.show()
        if arguments.json:
            known["seconds"] = round(time.monotonic() - STARTED)
            table.write(Path(arguments.json), known)


if __name__ == "__main__":
    main()
