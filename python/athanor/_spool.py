"""The spool writer in pure Python: used if the native core could not be built.

Writes exactly the bytes of src/link/spool_writer.h; the format is described in
src/link/spool_layout.h, and a test compares the two byte for byte.
"""

import fcntl
import mmap
import os
import sys
from _thread import get_native_id
from struct import Struct
from struct import error as StructError
from time import sleep, time_ns

_HEADER = Struct("<8sIIQIIQ24x")
_MAGIC = b"ATHSPL1\0"
_FREE, _CLAIMED, _CLOSED = 0, 1, 2
# Words of the header, for single stores: struct would write the "<" forms byte by byte.
_COMMITTED, _DROPPED = 2, 4  # of 8 bytes
_STATE, _PID = 6, 7  # of 4 bytes
_HEADER_BYTES = 64
_NAME = Struct("@IIII")  # length, kind, and a name's id and length
_POINT = Struct("@16sqqd")  # behind length, kind, name id and flags, packed once per name
_MARK = Struct("@IIIIq")
_THREE = Struct("@IIqqq")  # progress and checkpoints
_MAX_NAME = 1024
_MAX_SEGMENT = 1 << 30
_LOW, _HIGH = -(1 << 63), (1 << 63) - 1
_RETRY_NS = 1_000_000
_TRIES_AT_ONCE = 64
_WAIT_S, _WAITS = 0.0001, 5
_STUCK = 1000


def _to_float(value):
    """A float, or None if it is not a number."""
    if isinstance(value, (str, bytes, bytearray)):
        return None  # float() would parse them, which hides mistakes
    try:
        return float(value)
    except Exception:
        return None


def _to_int(value):
    """An int of 64 bits, or None."""
    try:
        whole = value.__index__()
    except Exception:
        number = _to_float(value)
        if number is None or number != number or number in (float("inf"), float("-inf")):
            return None
        whole = int(number)
        if whole != number:
            return None
    return whole if _LOW <= whole <= _HIGH else None


def _serial_of(name):
    if len(name) == 18 and name.startswith("seg-") and name.endswith(".spool"):
        digits = name[4:12]
        if digits.isascii() and digits.isdigit():
            return int(digits)
    return 0


class Segment:
    """One claimed segment, mapped. The lock lives with the map's own descriptor."""

    def __init__(self, fd, capacity):
        size = _HEADER_BYTES + capacity
        # Populated at once: a page fault in the middle of a step may wait for a disk.
        populate = getattr(mmap, "MAP_POPULATE", 0) if size <= 1 << 20 else 0
        self.map = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | populate)
        head = memoryview(self.map)[:_HEADER_BYTES]
        self.longs = head.cast("Q")
        self.words = head.cast("I")
        head.release()
        self.capacity = capacity

    def release(self):
        self.longs.release()
        self.words.release()
        self.map.close()


def _free_capacity(fd, serial):
    """The capacity of a free, sound segment; 0 for anything else."""
    magic, own_serial, capacity, committed, state, _, _ = _HEADER.unpack(
        os.pread(fd, _HEADER_BYTES, 0))
    size = os.fstat(fd).st_size
    sound = (magic == _MAGIC and own_serial == serial and state == _FREE and committed == 0
             and size <= _MAX_SEGMENT and size == _HEADER_BYTES + capacity)
    return capacity if sound else 0


def _claim_one(directory, serial):
    path = "%s/seg-%08d.spool" % (directory, serial)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not _free_capacity(fd, serial):
            return None
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        capacity = _free_capacity(fd, serial)
        return Segment(fd, capacity) if capacity else None
    except Exception:
        return None
    finally:
        os.close(fd)  # the map has a copy of it


class Claimer:
    """Finds free segments, lowest serial first; never tries more than 64 at once."""

    def __init__(self, directory):
        self.directory = directory
        self.seen = 0

    def claim(self):
        try:
            serials = sorted(s for s in map(_serial_of, os.listdir(self.directory))
                             if s > self.seen)[:_TRIES_AT_ONCE]
        except OSError:
            serials = []
        for serial in serials:
            self.seen = serial
            segment = _claim_one(self.directory, serial)
            if segment is not None:
                return segment
        if len(serials) < _TRIES_AT_ONCE:
            self.seen = 0  # a process that died while claiming leaves a low one free
        return None


def open_spool(directory):
    """(log, progress, mark, checkpoint, stats) writing to the spool in `directory`.

    Closures rather than methods: reading a cell is the cheapest access there is.
    """
    claimer = Claimer(directory)
    segment = buffer = longs = None
    capacity = used = 0
    apart = 0  # of these, the bytes of what `written` counts already; the rest are points
    heads = unstepped, stepped = {}, {}  # name -> the first 16 bytes of its points
    names = 0
    last_try = _LOW // 2
    pending = dropped = written = bad = 0
    # The lock, as a thread switch may fall between any two lines: who pops the token has it.
    # A third of the price of a Lock, and free in a forked child.
    tokens = [None]
    take_token, give_token = tokens.pop, tokens.append
    failures, failed_at = 0, -1
    pack_point = _POINT.pack_into

    def forget_names():
        for known in heads:
            known.clear()

    def close():
        if segment is not None:
            segment.words[_STATE] = _CLOSED
        let_go()

    def let_go():
        nonlocal segment, buffer, longs, capacity, used, apart, written
        if segment is not None:
            segment.release()
        written = count()
        segment = buffer = longs = None
        capacity = used = apart = 0
        forget_names()

    def count():
        return written + (used - apart) // 40

    def take(claimed):
        nonlocal segment, buffer, longs, capacity, names, pending
        claimed.words[_PID] = os.getpid()
        claimed.longs[_DROPPED] = pending
        claimed.words[_STATE] = _CLAIMED
        pending = names = 0
        segment, buffer, longs, capacity = claimed, claimed.map, claimed.longs, claimed.capacity

    def reserve(size, now):
        nonlocal last_try, pending, dropped
        if capacity - used >= size:
            return True
        close()
        if not 0 <= now - last_try < _RETRY_NS:
            claimed = claimer.claim()
            if claimed is not None:
                take(claimed)
                if capacity >= size:
                    return True
                close()  # a segment that is too small for one record is useless
            last_try = now
        pending += 1
        dropped += 1
        return False

    def append_named(name, flags, step, now, value):
        """Under the lock: defines `name` and puts the point after it."""
        nonlocal used, apart, names, bad
        try:
            text = name.encode()
        except UnicodeEncodeError:
            text = b""
        if not 0 < len(text) <= _MAX_NAME:
            bad += 1
            return
        length = 16 + (len(text) + 7) // 8 * 8
        if not reserve(length + 40, now):
            return
        # In an order in which Ctrl-C between any two lines leaves no point without its name
        # and no id with two.
        names += 1
        both = [_NAME.pack(40, 2, names, i) for i in (0, 1)]
        at = _HEADER_BYTES + used
        _NAME.pack_into(buffer, at, length, 1, names, len(text))
        buffer[at + 16:at + length] = text.ljust(length - 16, b"\0")
        pack_point(buffer, at + length, both[flags], step, now, value)
        used += length + 40
        apart += length
        longs[_COMMITTED] = used
        heads[0][name], heads[1][name] = both

    def interrupted_itself():
        """Whether a signal handler, or a value's __float__, called in from the middle of log."""
        own = (log.__code__, append.__code__)
        frame = sys._getframe(3)
        while frame is not None and frame.f_code not in own:
            frame = frame.f_back
        return frame is not None

    def enter():
        """Takes the token or counts a drop; waits for another thread a little, never for itself."""
        nonlocal pending, dropped, failures, failed_at
        for _ in range(0 if interrupted_itself() else _WAITS):
            sleep(_WAIT_S)
            try:
                take_token()
                return True
            except IndexError:
                pass
        pending += 1
        dropped += 1
        # Ctrl-C between taking the token and the try block loses it. That is the main thread's
        # doing: when it finds the token gone so many times, half a second and more, and
        # nothing at all was written meanwhile, it is put back.
        if get_native_id() == os.getpid():
            failures = failures + 1 if failed_at == count() else 0
            failed_at = count()
            if failures >= _STUCK and not tokens:
                failures = 0
                give_token(None)
        return False

    def append(record, *fields):
        """A record that needs no name."""
        nonlocal used, apart, written
        try:
            take_token()
        except IndexError:
            if not enter():
                return
        try:
            if reserve(record.size, time_ns()):
                record.pack_into(buffer, _HEADER_BYTES + used, record.size, *fields)
                used += record.size
                apart += record.size
                longs[_COMMITTED] = used
                written += 1
        finally:
            give_token(None)

    def log(*args, step=None, **metrics):
        """Record numbers, all at one step. Never raises, never waits."""
        nonlocal used, bad
        try:
            now = time_ns()
            known = stepped
            if type(step) is not int:
                if step is None:
                    known, step = unstepped, 0
                else:
                    step = _to_int(step)
                    if step is None:
                        bad += 1
                        return
            more = [*positional(args), metrics] if args else None
            if more:
                metrics = more.pop(0)
            while True:
                for name in metrics:
                    value = metrics[name]
                    if type(value) is not float:
                        value = _to_float(value)
                        if value is None:
                            bad += 1
                            continue
                    try:
                        take_token()
                    except IndexError:
                        if not enter():
                            continue
                    try:
                        pack_point(buffer, used + 64, known[name], step, now, value)
                        used += 40
                        longs[2] = used  # _COMMITTED
                    except (KeyError, StructError, TypeError):
                        # A new name or segment, no room left, or a step that is too long.
                        if not _LOW <= step <= _HIGH:
                            bad += 1
                            return
                        append_named(name, known is stepped, step, now, value)
                    finally:
                        give_token(None)
                if not more:
                    break
                metrics = more.pop(0)
        except Exception:
            bad += 1

    def positional(args):
        """The mappings among them, with names that are plain strings."""
        nonlocal bad
        mappings = []
        for mapping in args:
            try:
                items = list(mapping.items())
                mappings.append({str.__str__(name): value for name, value in items
                                 if isinstance(name, str)})
                bad += sum(not isinstance(name, str) for name, _ in items)
            except Exception:
                bad += 1
        return mappings

    def progress(*args):
        """Say how far the run is."""
        nonlocal bad
        try:
            done, total = args
            done, total = _to_int(done), _to_int(total)
            if done is None or total is None:
                bad += 1
            else:
                append(_THREE, 4, done, total, time_ns())
        except Exception:
            bad += 1

    def checkpoint(*args):
        """Say that a checkpoint is complete on disk."""
        nonlocal bad
        try:
            step, save_ns = map(_to_int, args)
            if step is None or save_ns is None:
                bad += 1
            else:
                append(_THREE, 5, step, save_ns, time_ns())
        except Exception:
            bad += 1

    def mark(code):
        nonlocal bad
        try:
            append(_MARK, 3, code, 0, time_ns())
        except Exception:
            bad += 1

    def stats():
        """(records written, records dropped, bad values)"""
        return count(), dropped, bad

    def after_fork():
        # The segment and the drops are still the parent's. Closing the copy matters: it
        # would keep the parent's lock alive.
        nonlocal pending
        tokens[:] = [None]
        pending = 0
        let_go()

    os.register_at_fork(after_in_child=after_fork)
    return log, progress, mark, checkpoint, stats
