"""Athanor for scripts and launchers.

In a training script:

    import athanor
    for step in range(athanor.params.get("steps", 1000)):
        athanor.log(loss=loss, step=step)
        if athanor.should_checkpoint(step):
            athanor.checkpoint(step, lambda path: torch.save(state, path))
        if athanor.should_stop():
            break

log, progress, done, should_stop and should_checkpoint never raise, never talk to a network
and never hold the script up for more than a millisecond; outside a job they write nothing.

Outside a job, athanor.init() tracks the script as a run of the local server.
From anywhere: athanor.run("train.py", params={"lr": 0.1}).wait()
"""

import os as _os
import sys as _sys

from ._checkpoint import latest_checkpoint, make_checkpoint, open_advice
from ._job import (channel, checkpoint_dir, job_id, model_dir, notice, output_dir, rank, secret,
                   world_size)

__version__ = "0.1.0"
__all__ = ["AthanorError", "JobFailed", "Run", "SummaryWriter", "capture", "channel", "checkpoint", "checkpoint_dir", "done",
           "in_job", "init", "job_id", "latest_checkpoint", "log", "model_dir", "notice", "output_dir", "params",
           "progress", "rank",
           "replaying", "run", "secret", "should_checkpoint", "should_stop", "stats", "world_size"]

_disabled = _os.environ.get("ATHANOR_DISABLE", "") not in ("", "0")


def in_job():
    """Whether this process runs under Athanor."""
    return not _disabled and job_id() is not None


def _start(spool):
    """The telemetry functions: native, otherwise pure Python."""
    if _os.environ.get("ATHANOR_PURE", "") in ("", "0"):
        try:
            from . import _core
            _core.open(spool)
            return _core.log, _core.progress, _core.mark, _core.checkpoint, _core.stats
        except Exception:
            pass
    from ._spool import open_spool
    return open_spool(spool)


def _nothing():
    def run():
        # The module is there once init() was called.
        track = _sys.modules.get("athanor.track")
        return track.current() if track is not None else None

    def log(*args, step=None, **metrics):
        """Record numbers at a step (no job here: in the run of init(), or not at all)."""
        tracked = run()
        if tracked is not None:
            tracked.log(*args, step=step, **metrics)

    def progress(*args):
        """Say how far the run is (no job here: does nothing)."""

    def mark(code):
        pass

    def checkpoint(step, save_ns):
        pass

    def stats():
        tracked = run()
        return tracked.stats() if tracked is not None else (0, 0, 0)

    return log, progress, mark, checkpoint, stats


def _start_or_nothing():
    spool = _os.environ.get("ATHANOR_SPOOL")
    if spool and not _disabled:
        try:
            from ._stop import open_control
            return _start(spool) + open_control(spool)
        except Exception:
            pass  # a broken interpreter or file system: training continues without us

    def should_stop(step=None):
        """Whether to save and end now (no job here: never)."""
        from ._stop import GO_ON
        return GO_ON

    return _nothing() + (should_stop, None)


log, progress, _mark, _record_checkpoint, _stats, should_stop, _requests = _start_or_nothing()
should_checkpoint, _saved = open_advice(should_stop, _requests)
checkpoint = make_checkpoint(_record_checkpoint, _saved)


def done():
    """Say that the training is complete, whatever the exit code will be."""
    _mark(1)


def stats():
    """What became of this process's records, as a dict: written, dropped, bad (values)."""
    return dict(zip(("written", "dropped", "bad"), _stats()))


def __getattr__(name):
    # What a training step does not need is imported on demand.
    if name == "params":
        from ._job import load_params
        value = load_params()
    elif name in ("capture", "replaying"):
        from . import _capture
        value = getattr(_capture, name)
    elif name == "SummaryWriter":
        from .tensorboard import SummaryWriter as value
    elif name in ("replay", "tensorboard", "torch"):
        __import__("athanor." + name)
        return globals()[name]  # the import put it there
    elif name == "init":
        from .track import init as value
    elif name == "AthanorError":
        from ._errors import AthanorError as value
    elif name in ("run", "Run", "JobFailed"):
        from . import launch
        value = getattr(launch, name)
    else:
        raise AttributeError("module 'athanor' has no attribute %r" % name)
    globals()[name] = value
    return value
