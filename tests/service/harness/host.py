"""Looks at the host the service runs on."""

import os
from pathlib import Path


def host_processes(argument):
    """Pids on the host that have `argument` as a whole word in their command line, shells with -c left out."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            except OSError:
                continue
            if argument.encode() in words and b"-c" not in words:
                found.append(int(entry))
    return found
