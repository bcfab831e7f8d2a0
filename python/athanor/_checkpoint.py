"""Checkpoints: when to save, and how to save so that a file is complete or absent."""

import errno
import os
from time import monotonic, perf_counter_ns

from . import _term
from ._job import checkpoint_dir, rank

TEMPORARY = ".~tmp-"  # a save in progress; the agent skips names that begin with .~
_PATTERN = "step-{step}"
_EVERY_MS = 600_000
_NO_ANSWER = object()


def open_advice(should_stop, requests):
    """should_checkpoint(), and saved() that tells it of a save.

    `should_stop` and `requests` are those of open_control(), or None outside a job.
    """
    try:
        first_ms = int(os.environ.get("ATHANOR_CHECKPOINT_EVERY_MS", ""))
    except ValueError:
        first_ms = 0
    if first_ms <= 0:
        first_ms = _EVERY_MS
    since = monotonic()
    answered = _NO_ANSWER  # the step that was told to save
    answers = 0  # the agent's requests that were passed on
    stop = _NO_ANSWER  # the step that was told of a stop
    holds = False
    look = getattr(should_stop, "look", should_stop)  # without ending by itself for it

    def saved():
        nonlocal since, answered
        since, answered = monotonic(), _NO_ANSWER
        if stop is not _NO_ANSWER:
            _term.saved()

    def should_checkpoint(step=None):
        """Whether to save now: it is time, the run is about to end, or the agent asks.

        Once true, the next step starts a new interval, whether or not athanor.checkpoint() does
        the saving; asked again at the same step, it says the same until that is done.
        """
        nonlocal since, answered, answers, stop, holds
        try:
            every_ms = asked = 0
            if requests is not None:
                if not holds:
                    holds = True
                    _term.take(saves=True)
                if look(step):
                    if stop is not _NO_ANSWER and (step is None or step != stop):
                        _term.saved()  # by itself, as it was told to
                    stop = step
                    return True
                every_ms, asked, _ = requests()
            if step is not None and step == answered:
                return True
            now = monotonic()
            if asked > answers or (now - since) * 1000 >= (every_ms if every_ms > 0 else first_ms):
                since, answered, answers = now, step, asked
                return True
            answers = asked  # lower after an agent that forgot its count
            return False
        except Exception:
            return False

    return should_checkpoint, saved


def _sync(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):  # folders on some file systems
            raise
    finally:
        os.close(fd)


def sync_tree(path):
    """Everything under `path` is on disk."""
    if os.path.isdir(path):
        for folder, _, files in os.walk(path):
            for name in files:
                _sync(os.path.join(folder, name))
            _sync(folder)
    else:
        _sync(path)


def remove(path):
    """A file or a folder; no error if it is not there."""
    if os.path.isdir(path) and not os.path.islink(path):
        from shutil import rmtree
        rmtree(path, ignore_errors=True)
    else:
        try:
            os.unlink(path)
        except OSError:
            pass


def put(temporary, final):
    """Renames into place, over what is there: synced before and after."""
    sync_tree(temporary)
    aside = None
    if os.path.isdir(final) and not os.path.islink(final):
        # A folder cannot be renamed over one. Between the two renames there is none: that is
        # an earlier checkpoint less, never a torn one.
        aside = temporary + ".old"
        os.rename(final, aside)
    os.rename(temporary, final)
    _sync(os.path.dirname(final) or ".")
    if aside is not None:
        remove(aside)


_token = os.urandom(4).hex()  # an earlier attempt may have had our process id
_serials = iter(range(1 << 62))  # two threads may save under one name
_cleaned = set()


def _mine():
    # Ranks of one host may each have their own process ids.
    return "%s%s-%d-" % (TEMPORARY, os.uname().nodename, rank())


def temporary_path(folder, name):
    """Says whose it is, so that leftovers of dead processes differ from saves in progress.

    With a dot that is not its first letter: torch.save() wants a name before the last one.
    """
    return os.path.join(folder, "%s%d-%s-%d.%s" % (_mine(), os.getpid(), _token, next(_serials),
                                                   name))


def _is_leftover(entry):
    """Whether the process of this rank that was writing `entry` is gone."""
    mine = _mine()
    pid, token = (entry[len(mine):].split("-") + [""])[:2]
    if not entry.startswith(mine) or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
        return int(pid) == os.getpid() and token != _token
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False


def remove_leftovers(folder):
    """Once per folder: what killed processes left half-written."""
    if folder in _cleaned:
        return
    _cleaned.add(folder)
    for entry in os.listdir(folder):
        if _is_leftover(entry):
            remove(os.path.join(folder, entry))


def _file_name(step, name):
    name = (_PATTERN if name is None else os.fspath(name)).replace("{step}", str(step))
    if not name or "/" in name or "\0" in name or name.startswith("."):
        raise ValueError("a checkpoint's name is one file name without a dot in front, such as "
                         "'step-{step}.pt', not %r" % name)
    return name


def _what_was_written(temporary):
    """(path, suffix): numpy.save and others append their own suffix to the path."""
    if os.path.lexists(temporary):
        return temporary, ""
    folder, base = os.path.split(temporary)
    found = [entry for entry in os.listdir(folder or ".") if entry.startswith(base + ".")]
    if len(found) != 1:
        raise FileNotFoundError(
            "save_fn did not write to the path it was given, so there is no checkpoint; use it "
            "as in athanor.checkpoint(step, lambda path: torch.save(state, path))")
    return os.path.join(folder, found[0]), found[0][len(base):]


def _steps(entries, name):
    """(step, entry) of each entry that checkpoint() could have written under this name."""
    before, varies, after = (_PATTERN if name is None else os.fspath(name)).partition("{step}")
    for entry in entries if varies else ():
        if not entry.startswith(before) or not entry.endswith(after):
            continue
        number = entry[len(before):len(entry) - len(after)]
        if name is None:
            number = number.partition(".")[0]
        digits = number[1:] if number.startswith("-") else number
        if digits.isascii() and digits.isdigit():
            yield int(number), entry


def _kept():
    """How many checkpoints the job wants to have in its folder; 0: all of them."""
    try:
        return max(0, int(os.environ.get("ATHANOR_CHECKPOINT_KEEP", "")))
    except ValueError:
        return 0


def _prune(folder, step, name):
    """Removes checkpoints from before this step that `checkpoints.keep` does not keep."""
    keep = _kept()
    if not keep:
        return
    try:
        older = sorted(pair for pair in _steps(os.listdir(folder), name) if pair[0] < step)
    except OSError:
        return  # a file system that does not answer: training continues
    for _, entry in older[:max(0, len(older) - (keep - 1))]:
        remove(os.path.join(folder, entry))


def make_checkpoint(record, saved):
    """checkpoint(), which tells `record` (the spool) and `saved` (the clock) of each save."""

    def checkpoint(step, save_fn, name=None):
        """Save so that the checkpoint is complete or absent; returns its path.

        save_fn(path) writes one file, or makes a folder, at a temporary path beside the final
        one. The name is "step-<step>" with the ending of `name`, where {step} stands for the step:
        "step-{step}.pt". What save_fn raises is passed on, and nothing is left behind.
        In a job, older checkpoints of that name are removed beyond `checkpoints.keep.last`.
        """
        try:
            step = step.__index__()
        except AttributeError:
            raise TypeError("a checkpoint's step is a whole number, not %r" % (step,)) from None
        pattern, name = name, _file_name(step, name)
        folder = checkpoint_dir()
        remove_leftovers(folder)
        temporary = written = temporary_path(folder, name)
        start = perf_counter_ns()
        try:
            save_fn(temporary)
            written, suffix = _what_was_written(temporary)
            final = os.path.join(folder, name + suffix)
            put(written, final)
        except BaseException:
            remove(temporary)
            remove(written)
            raise
        record(step, perf_counter_ns() - start)
        saved()
        _prune(folder, step, pattern)
        return final

    return checkpoint


def latest_checkpoint(name=None):
    """The path of the checkpoint with the highest step, or None.

    Without a name: those that checkpoint() names by itself, with any ending. With the `name`
    that was given to checkpoint(): those.
    """
    folder = os.environ.get("ATHANOR_CHECKPOINT_DIR") or "checkpoints"
    fixed = None if name is None or "{step}" in os.fspath(name) else os.fspath(name)
    try:
        entries = os.listdir(folder)
    except OSError:
        return None
    if fixed:
        return os.path.join(folder, fixed) if fixed in entries else None
    best = max(_steps(entries, name), default=None)
    return os.path.join(folder, best[1]) if best else None
