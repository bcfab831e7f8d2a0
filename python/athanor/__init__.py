"""Athanor for scripts and launchers.

In a training script:

    import athanor
    for step in range(athanor.params.get("steps", 1000)):
        athanor.log(loss=loss, step=step)
        if athanor.should_stop():
            save(); break

log, progress, done and should_stop never raise, never talk to a network and never hold
the script up for more than a millisecond; outside a job they do nothing.

From anywhere: athanor.run("train.py", params={"lr": 0.1}).wait()
"""

import os as _os

from ._job import channel, checkpoint_dir, job_id, rank, secret, world_size

__version__ = "0.1.0"
__all__ = ["JobFailed", "Run", "channel", "checkpoint_dir", "done", "in_job", "job_id", "log",
           "params", "progress", "rank", "run", "secret", "should_stop", "stats", "world_size"]

_disabled = _os.environ.get("ATHANOR_DISABLE", "") not in ("", "0")


def in_job():
    """Whether this process runs under Athanor."""
    return not _disabled and job_id() is not None


def _start(spool):
    """The telemetry functions: native, else pure Python."""
    if _os.environ.get("ATHANOR_PURE", "") in ("", "0"):
        try:
            from . import _core
            _core.open(spool)
            return _core.log, _core.progress, _core.done, _core.stats
        except Exception:
            pass
    from ._spool import open_spool
    return open_spool(spool)


def _nothing():
    def log(*args, step=None, **metrics):
        """Record numbers at a step (no job here: does nothing)."""

    def progress(*args):
        """Say how far the run is (no job here: does nothing)."""

    def done():
        pass

    def stats():
        return 0, 0, 0

    return log, progress, done, stats


def _start_or_nothing():
    spool = _os.environ.get("ATHANOR_SPOOL")
    if spool and not _disabled:
        try:
            from ._stop import open_control
            return _start(spool) + (open_control(spool),)
        except Exception:
            pass  # a broken interpreter or file system: training goes on without us

    def should_stop(step=None):
        """Whether to save and end now (no job here: never)."""
        from ._stop import GO_ON
        return GO_ON

    return _nothing() + (should_stop,)


log, progress, _done, _stats, should_stop = _start_or_nothing()


def done():
    """Say that the training is complete, whatever the exit code will be."""
    _done()


def stats():
    """What became of this process's records, as a dict: written, dropped, bad (values)."""
    return dict(zip(("written", "dropped", "bad"), _stats()))


def __getattr__(name):
    # What a training step does not need is imported when it is asked for.
    if name == "params":
        from ._job import load_params
        value = load_params()
    elif name in ("run", "Run", "JobFailed"):
        from . import launch
        value = getattr(launch, name)
    else:
        raise AttributeError("module 'athanor' has no attribute %r" % name)
    globals()[name] = value
    return value
