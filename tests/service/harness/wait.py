"""Waiting for something to become true, with a limit."""

import time


def until(condition, seconds=60.0, what="the condition"):
    """Calls `condition` until it gives something true and returns that; fails the test after `seconds`: many, as the
    machine may be busy with something else, and only a test that fails waits for them."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come true in {seconds} s"
        time.sleep(0.05)


class Stopwatch:
    def __init__(self):
        self.started = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self.started
