"""The control page the agent maintains: stops, and when to save. No system call per look."""

import mmap
import os
from time import monotonic, time

from . import _term

_BYTES = 4096
_MAGIC = b"ATHCTL1\0"
_SEQLOCK, _STOP = 2, 3  # words of 4 bytes
_DEADLINE, _STOP_AT, _EVERY = 2, 3, 12  # words of 8 bytes
_CHECKPOINT_NOW, _CAPTURE_NOW = 26, 27  # words of 4 bytes
_CAUSE = slice(32, 96)
_NO_STEP = -(1 << 63)


class Stop:
    """What should_stop() returns: true when the run is to end.

    cause     why, in a few words ("" while the run goes on)
    deadline  seconds left until the process is killed, or None
    """

    __slots__ = ("_stop", "cause", "_deadline_ms")

    def __init__(self, stop=False, cause="", deadline_ms=0):
        self._stop = stop
        self.cause = cause
        self._deadline_ms = deadline_ms

    def __bool__(self):
        return self._stop

    @property
    def deadline(self):
        if not self._stop or self._deadline_ms == 0:
            return None
        return max(0.0, self._deadline_ms / 1000 - time())

    def __repr__(self):
        if not self._stop:
            return "<athanor: go on>"
        return "<athanor: stop (%s), deadline %s>" % (self.cause, self.deadline)


GO_ON = Stop()
_NO_REQUESTS = (0, 0, 0)


def _map(directory):
    """The page as words of 4 bytes, words of 8 bytes and bytes; None if there is none."""
    fd = -1
    try:
        fd = os.open(directory + "/control",
                     os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        if os.fstat(fd).st_size != _BYTES:
            return None
        page = memoryview(mmap.mmap(fd, _BYTES, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ))
        if bytes(page[:8]) != _MAGIC:
            return None
        return page.cast("I"), page.cast("q"), page
    except Exception:
        return None
    finally:
        if fd >= 0:
            os.close(fd)


def open_control(directory):
    """should_stop() and requests() for the rank whose spool is `directory`."""
    words = longs = page = None
    next_try = 0.0
    holds = False  # SIGTERM, as this is where the script looks instead

    def find():
        nonlocal words, longs, page, next_try
        if monotonic() < next_try:
            return False
        next_try = monotonic() + 1.0
        found = _map(directory)
        if found is not None:
            words, longs, page = found
        return found is not None

    def read():
        for _ in range(50):
            before = words[_SEQLOCK]
            stop, deadline, step = words[_STOP], longs[_DEADLINE], longs[_STOP_AT]
            cause = bytes(page[_CAUSE])
            if before % 2 == 0 and words[_SEQLOCK] == before:
                return stop, deadline, step, cause.split(b"\0")[0].decode("utf-8", "replace")
        return 0, 0, _NO_STEP, ""

    def should_stop(step=None):
        """Whether to save and end now; see athanor._stop.Stop.

        Pass the step where all ranks must stop at the same one: then it is true from the
        step on that was agreed.
        """
        nonlocal holds
        if not holds:
            holds = True
            _term.take(looks=True)
        return look(step)

    def look(step=None):
        try:
            if words is None and not find():
                return GO_ON
            if not words[_STOP]:
                return GO_ON
            stop, deadline, stop_at, cause = read()
            if not stop or (step is not None and stop_at != _NO_STEP and step < stop_at):
                return GO_ON
            return Stop(True, cause, deadline)
        except Exception:
            return GO_ON

    def requests():
        """(milliseconds between checkpoints or 0, checkpoints asked for, captures asked for)"""
        try:
            if words is None and not find():
                return _NO_REQUESTS
            # Each number is independent: no seqlock.
            return longs[_EVERY], words[_CHECKPOINT_NOW], words[_CAPTURE_NOW]
        except Exception:
            return _NO_REQUESTS

    should_stop.look = look
    return should_stop, requests
