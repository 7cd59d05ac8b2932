"""Directories that services of tests use."""

import shutil
import tempfile
from pathlib import Path


def removed_at_the_end():
    """For a fixture: make(prefix) gives a new directory. A fixture of services that needs this one ends its services
    before the directories go: who still works in one would be in the way of its removal."""
    made = []

    def make(prefix):
        made.append(Path(tempfile.mkdtemp(prefix=prefix)))
        return made[-1]

    yield make
    for one in made:
        shutil.rmtree(one)
