"""Waiting for something to become true, with a limit."""

import time


def until(condition, seconds=120.0, what="the condition"):
    """Calls `condition` until it gives something true and returns that; fails the test after `seconds`: many, as the
    machine may be busy with something else, and only a test that fails waits for them."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come true in {seconds} s"
        time.sleep(0.05)


def come_so_far(ask, printed, deadlines=(1, 5, 30)):
    """The answer to `ask(deadline)` of a command that prints something and then waits: that of the next deadline where
    `printed(answer)` says that it did not come so far, on a machine that is busy with something else."""
    for deadline in deadlines:
        answer = ask(deadline)
        if printed(answer):
            break
    return answer


def in_time(most, tries=5):
    """`for _ in in_time(5): ...` does it again where it took longer than so many seconds, as on a machine that stalls,
    and fails when it always did."""
    for _ in range(tries):
        watch = Stopwatch()
        yield
        if watch.seconds < most:
            return
    raise AssertionError(f"it takes longer than {most} s, each of {tries} times")


class Stopwatch:
    def __init__(self):
        self.started = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self.started
