"""The capture: the inputs of the last steps, kept in memory and written out when it matters.

    for step, batch in enumerate(loader):
        batch = athanor.capture(step, batch=batch, model=model, optimizer=optimizer)
        ...

Written to $ATHANOR_CAPTURE_DIR/step-<step>-rank<rank>/ when an exception ends the script, when the
agent asks, and by athanor.capture.flush():

    meta.json           what, when, why; versions
    data.pt | data.pkl  {"steps": [...], "weights": ..., "optimizer": ...}, by torch.save if the
                        script uses torch, else pickled

`python -m athanor.replay FOLDER train.py` runs the last of these steps again.
"""

import os
import sys
from collections import UserDict, deque

from . import _term
from ._checkpoint import put, remove, remove_leftovers, temporary_path
from ._job import job_id, rank

_STEPS, _BYTES = 3, 256 << 20
_MARK_CAPTURE = 2


class _TooBig(Exception):
    pass


class _Copier:
    """Copies tensors and arrays to the CPU; containers are rebuilt, everything else is shared."""

    def __init__(self, most=None):
        self.bytes = 0
        self._most = most
        self._torch, self._numpy = sys.modules.get("torch"), sys.modules.get("numpy")

    def _count(self, size):
        self.bytes += size
        if self._most is not None and self.bytes > self._most:
            raise _TooBig

    def copy(self, value):
        if self._torch is not None and isinstance(value, self._torch.Tensor):
            self._count(value.numel() * value.element_size())
            return value.detach().to("cpu", copy=True)
        if self._numpy is not None and isinstance(value, self._numpy.ndarray):
            self._count(value.nbytes)
            return value.copy()
        if isinstance(value, (dict, UserDict)):
            copied = value.copy()
            for key in copied:
                copied[key] = self.copy(copied[key])
            return copied
        if isinstance(value, list):
            return [self.copy(item) for item in value]
        if isinstance(value, tuple):
            items = [self.copy(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value


def _random_state():
    """Of every generator the script has loaded."""
    state = {}
    if "random" in sys.modules:
        state["python"] = sys.modules["random"].getstate()
    if "numpy.random" in sys.modules:
        state["numpy"] = sys.modules["numpy.random"].get_state()
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def _state_of(thing):
    """A model's or an optimizer's weights; None for what has none."""
    if thing is None or isinstance(thing, dict):
        return thing
    return thing.state_dict() if hasattr(thing, "state_dict") else None


class _Versions:
    """Whether a torch module was changed in place since the last capture: by torch's own counters,
    which cost nothing to read."""

    def __init__(self, model):
        self.model = model
        self._tensors = {}
        self._seen = {}
        for kind in ("parameters", "buffers"):
            if hasattr(model, kind):
                self._tensors[kind] = list(getattr(model, kind)())

    def remember(self):
        self._seen = {kind: [tensor._version for tensor in tensors]
                      for kind, tensors in self._tensors.items()}

    def compare(self, kind):
        if kind not in self._seen:
            return "unknown"
        now = [tensor._version for tensor in self._tensors[kind]]
        return "before" if now == self._seen[kind] else "after"


def _number(name, default):
    try:
        value = int(os.environ.get(name, ""))
    except ValueError:
        return default
    return value if value > 0 else default


class Capture:
    """athanor.capture. Outside a job, and without ATHANOR_CAPTURE_DIR, it stores nothing."""

    def __init__(self, folder, requests=None, mark=None):
        self.error = None  # the last one of its own, which never reaches the script
        self._folder = folder
        self._requests, self._mark = requests, mark
        self._most_steps = _number("ATHANOR_CAPTURE_STEPS", _STEPS)
        self._most_bytes = _number("ATHANOR_CAPTURE_BYTES", _BYTES)
        self._ring = deque()
        self._model = self._optimizer = self._versions = None
        self._answers = 0
        self._pid = None
        self._busy = self._ends = False

    def __call__(self, step, batch=None, model=None, optimizer=None, weights="last", **more):
        """Keep what this step works on; returns the batch. Call it first thing in the step.

        batch      what the step reads: tensors, arrays, and dicts, lists and tuples of them
        model      saved when the steps are written out, and with weights="every" copied before
        optimizer  each step: then earlier steps than the last can be replayed exactly, too
        more       kept beside the batch, to look at

        A step of more than ATHANOR_CAPTURE_BYTES is not kept, but for its random state.
        """
        if weights not in ("last", "every"):
            raise ValueError("weights is 'last' or 'every', not %r" % (weights,))
        if _replay is not None:
            return _replay.substitute(batch, model, optimizer)
        if self._folder is not None:
            self._busy = True
            try:
                self._keep(step, batch, model, optimizer, weights, more)
            except Exception as error:
                self.error = error
            self._busy = False
            if self._ends:
                self._ends = False
                if not self._last_words():
                    _term.end()
        return batch

    def _last_words(self):
        """Before SIGTERM ends the process; true: not now, it is in the middle of a capture."""
        if self._busy:
            self._ends = True
            return True
        self._busy = True
        self._answer()
        self._busy = False
        return False

    def _answer(self):
        asked = self._requests()[2] if self._requests is not None else 0
        new = asked > self._answers
        self._answers = asked
        if new and self._pid == os.getpid():
            self.flush("asked")

    def _keep(self, step, batch, model, optimizer, weights, more):
        if self._pid != os.getpid():
            self._begin()
        entry = {"step": step.__index__(), "random": _random_state(), "left_out": []}
        copier = _Copier(self._most_bytes)
        try:
            values = {**more, "batch": batch} if batch is not None else more
            entry["values"] = {name: copier.copy(value) for name, value in values.items()}
        except _TooBig:
            entry["values"], copier.bytes = {}, 0
            entry["left_out"] = sorted(values)
        entry["bytes"] = copier.bytes
        if weights == "every":
            entry["weights"] = _Copier().copy(_state_of(model))
            entry["optimizer"] = _Copier().copy(_state_of(optimizer))
        if self._versions is None or self._versions.model is not model:
            self._versions = _Versions(model)
        self._versions.remember()
        self._model, self._optimizer = model, optimizer
        self._ring.append(entry)
        # Before the oldest is dropped: the step that caused the request is more likely to be there.
        self._answer()
        while (len(self._ring) > self._most_steps
               or sum(kept["bytes"] for kept in self._ring) > self._most_bytes):
            self._ring.popleft()

    def _begin(self):
        """In this process, and not in one it was forked from."""
        forked = self._pid is not None
        self._pid = os.getpid()
        self._ring.clear()
        if forked:
            return
        _term.take(last_words=self._last_words)
        previous = sys.excepthook

        def hook(kind, error, trace):
            previous(kind, error, trace)
            if issubclass(kind, Exception) and self._pid == os.getpid():
                self.flush("exception", error)

        sys.excepthook = hook

    def flush(self, reason="flush", error=None):
        """Write the kept steps and the current weights to disk; the folder, or None."""
        if self._folder is None or not self._ring:
            return None
        try:
            return self._write(reason, error)
        except Exception as failure:
            self.error = failure
            return None

    def _write(self, reason, error):
        os.makedirs(self._folder, exist_ok=True)
        remove_leftovers(self._folder)
        final = os.path.join(self._folder, "step-%s-rank%d" % (self._ring[-1]["step"], rank()))
        temporary = temporary_path(self._folder, os.path.basename(final))
        os.mkdir(temporary, 0o700)
        try:
            data = {"steps": list(self._ring), "weights": _state_of(self._model),
                    "optimizer": _state_of(self._optimizer)}
            try:
                name = _dump(data, temporary)
            except Exception:
                _leave_out_what_cannot_be_saved(data)
                name = _dump(data, temporary)
            self._write_meta(temporary, name, data, reason, error)
            put(temporary, final)
        except BaseException:
            remove(temporary)
            raise
        if self._mark is not None:
            self._mark(_MARK_CAPTURE)
        return final

    def _write_meta(self, folder, name, data, reason, error):
        import json
        from time import time_ns
        saved = "none" if data["weights"] is None else self._versions.compare("parameters")
        steps = []
        for entry in data["steps"]:
            last = saved if entry is data["steps"][-1] else "none" if saved == "none" else "after"
            steps.append({"step": entry["step"], "keys": sorted(entry["values"]),
                          "left_out": entry["left_out"],
                          "weights": "before" if entry.get("weights") is not None else last})
        versions = {module: str(getattr(sys.modules[module], "__version__", ""))
                    for module in ("athanor", "torch", "numpy") if module in sys.modules}
        meta = {"format": 1, "job": job_id(), "rank": rank(), "wall_ns": time_ns(),
                "reason": reason, "data": name, "steps": steps, "argv": sys.argv,
                "error": None if error is None else "%s: %s" % (type(error).__name__, error),
                # Of the last step: the state it began with, or that after it.
                **{key: steps[-1][key] for key in ("step", "keys", "weights")},
                "buffers": self._versions.compare("buffers"),
                "python": sys.version.split()[0], "versions": versions}
        with open(os.path.join(folder, "meta.json"), "w", encoding="utf-8") as file:
            json.dump(meta, file, indent=1, default=str)


def _dump(data, folder):
    """Writes `data`; the name of its file."""
    torch = sys.modules.get("torch")
    name = "data.pkl" if torch is None else "data.pt"
    with open(os.path.join(folder, name), "wb") as file:
        if torch is None:
            import pickle
            pickle.dump(data, file, protocol=5)
        else:
            torch.save(data, file)
    return name


def _leave_out_what_cannot_be_saved(data):
    import pickle

    def saves(value):
        try:
            pickle.dumps(value)
            return True
        except Exception:
            return False

    for entry in data["steps"]:
        bad = [name for name, value in entry["values"].items() if not saves(value)]
        entry["values"] = {k: v for k, v in entry["values"].items() if k not in bad}
        entry["left_out"] = sorted(entry["left_out"] + bad)
    for part in ("weights", "optimizer"):
        if not saves(data[part]):
            data[part] = None


_replay = None  # set by athanor.replay


def replaying():
    """None; while `python -m athanor.replay` runs a captured step, that run, with its .step."""
    return _replay


def _make():
    import athanor
    folder = os.environ.get("ATHANOR_CAPTURE_DIR")
    if athanor._disabled:
        folder = None
    return Capture(folder or None, athanor._requests, athanor._mark)


capture = _make()
