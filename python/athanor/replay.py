"""Runs a captured step again, with its inputs, weights and random numbers.

    python -m athanor.replay [--pdb] [--step N] FOLDER train.py [arguments]
    python -m athanor.replay --module FOLDER package.train [arguments]

The script runs normally until it calls athanor.capture() for the first time. That call puts the
captured weights into the model and the optimizer, sets the random state and returns the captured
batch; the next one ends the process. So a loop of this form replays without changes:

    for step, batch in enumerate(loader):
        batch = athanor.capture(step, batch=batch, model=model, optimizer=optimizer)

Code that depends on the step's number says `if run := athanor.replaying(): step = run.step`.

FOLDER is a captured step's, or one that holds several (then the newest). Captures are Python
pickles: replay only those of your own jobs.
"""

import json
import os
import sys

from . import _capture

__all__ = ["Recording", "load", "main"]


class ReplayEnd(SystemExit):
    """The replayed step is over."""


def _newest(folder):
    """`folder`, or the newest captured step in it."""
    if os.path.exists(os.path.join(folder, "meta.json")):
        return folder
    found = []
    if os.path.isdir(folder):
        for entry in os.listdir(folder):
            path = os.path.join(folder, entry, "meta.json")
            if not entry.startswith(".") and os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    found.append((json.load(file)["wall_ns"], os.path.dirname(path)))
    if not found:
        raise FileNotFoundError("no captured step in %s: there is no meta.json" % folder)
    return max(found)[1]


class Recording:
    """One captured step.

    folder, meta   where it is, and its meta.json
    step, steps    this one, and all that the folder holds
    batch, more    what athanor.capture() was given (None, {} if it could not be kept)
    weights        "before" or "after" the step, "unknown", or "none"
    """

    def __init__(self, folder, step=None):
        self.folder = _newest(folder)
        with open(os.path.join(self.folder, "meta.json"), encoding="utf-8") as file:
            self.meta = json.load(file)
        self.steps = [entry["step"] for entry in self.meta["steps"]]
        self.step = self.meta["step"] if step is None else step
        if self.step not in self.steps:
            raise ValueError("step %s was not captured; there are %s"
                             % (self.step, ", ".join(map(str, self.steps))))
        self._index = len(self.steps) - 1 - self.steps[::-1].index(self.step)
        self.weights = self.meta["steps"][self._index]["weights"]
        self._loaded = None

    def _data(self):
        # Not before it is needed: the batch may be of a type that the script defines.
        if self._loaded is None:
            path = os.path.join(self.folder, self.meta["data"])
            if path.endswith(".pt"):
                import torch
                self._loaded = torch.load(path, map_location="cpu", weights_only=False)
            else:
                import pickle
                with open(path, "rb") as file:
                    self._loaded = pickle.load(file)
        return self._loaded

    def _entry(self):
        return self._data()["steps"][self._index]

    @property
    def batch(self):
        return self._entry()["values"].get("batch")

    @property
    def more(self):
        return {k: v for k, v in self._entry()["values"].items() if k != "batch"}

    def restore(self, model=None, optimizer=None):
        """Puts the weights into what is given, then sets the random state: call it last."""
        for thing, part in ((model, "weights"), (optimizer, "optimizer")):
            state = self._entry().get(part)
            if state is None:
                state = self._data()[part]
            if thing is None or state is None:
                continue
            if isinstance(thing, dict):
                thing.update(state)
            else:
                thing.load_state_dict(state)
        self._restore_random()

    def _restore_random(self):
        state = self._entry()["random"]
        if "python" in state:
            import random
            random.setstate(state["python"])
        if "numpy" in state:
            import numpy
            numpy.random.set_state(state["numpy"])
        if "torch" in state:
            import torch
            torch.set_rng_state(state["torch"])
            if len(state.get("cuda", ())) == torch.cuda.device_count() > 0:
                torch.cuda.set_rng_state_all(state["cuda"])


def load(folder, step=None):
    """The captured step in `folder`; see Recording."""
    return Recording(folder, step)


def _first_device(value, torch):
    """Where the script puts its tensors."""
    if isinstance(value, torch.Tensor):
        return value.device
    inside = value.values() if hasattr(value, "values") else value
    if isinstance(value, (list, tuple)) or hasattr(value, "values"):
        for item in inside:
            device = _first_device(item, torch)
            if device is not None:
                return device
    return None


class _OnDevice(_capture._Copier):
    def __init__(self, device):
        super().__init__()
        self._device = device

    def copy(self, value):
        if isinstance(value, self._torch.Tensor):
            return value.to(self._device)
        return super().copy(value)


class Replay:
    """What athanor.capture() does while a step is replayed; athanor.replaying() gives it."""

    def __init__(self, recording):
        self.recording = recording
        self.step = recording.step
        self.ran = False
        self.logged = {}

    def substitute(self, batch, model, optimizer):
        if self.ran:
            raise ReplayEnd(0)
        self.ran = True
        self.logged.clear()
        captured = self.recording.batch
        if captured is None and batch is not None:
            _say("the batch of this step was not kept: the script's own is used")
            captured = batch
        torch = sys.modules.get("torch")
        device = None if torch is None else _first_device(batch, torch)
        if device is not None and device.type != "cpu":
            captured = _OnDevice(device).copy(captured)
        self.recording.restore(model, optimizer)
        return captured

    def log(self, *args, step=None, **metrics):
        for mapping in args:
            if hasattr(mapping, "items"):
                self.logged.update(mapping)
        self.logged.update(metrics)


def _say(text):
    print("replay: " + text, file=sys.stderr, flush=True)


def _announce(recording):
    meta = recording.meta
    _say("step %s%s, rank %s, captured: %s" % (
        recording.step, " of job " + meta["job"] if meta["job"] else "", meta["rank"],
        meta["error"] or meta["reason"]))
    if recording.weights != "before":
        _say({"after": "the weights are those after the step: what happens may differ",
              "none": "no model was captured: the script's own weights are used"}.get(
                  recording.weights, "the weights may be those after the step"))


def _find_module(name):
    """The file and the package of what `python -m name` runs."""
    import importlib.util
    sys.path[0] = os.getcwd()
    found = importlib.util.find_spec(name)
    if found is not None and found.submodule_search_locations is not None:
        found = importlib.util.find_spec(name + ".__main__")
    if found is None or not found.has_location:
        raise ImportError("no module named %r" % name)
    return found.origin, found.parent


def _run_script(script, arguments, as_module):
    import types
    module = types.ModuleType("__main__")
    if as_module:
        script, module.__package__ = _find_module(script)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    module.__file__ = script
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.argv = [script] + arguments
    with open(script, "rb") as file:
        exec(compile(file.read(), script, "exec"), module.__dict__)


def _play(replay, script, arguments, as_module, debug):
    """The exit status."""
    try:
        _run_script(script, arguments, as_module)
    except ReplayEnd:
        pass
    except SystemExit as end:
        if not replay.ran:
            raise
        _say("the script ended itself with status %s" % (end.code or 0))
    except Exception as error:
        import traceback
        # Without our own frames on top.
        trace = error.__traceback__.tb_next.tb_next or error.__traceback__
        traceback.print_exception(type(error), error, trace)
        if debug:
            import pdb
            pdb.post_mortem(trace)
        _say("step %s raised %s" % (replay.step, type(error).__name__) if replay.ran else
             "the script failed before its first athanor.capture()")
        return 1
    if not replay.ran:
        _say("the script never called athanor.capture(), so nothing was replayed")
        return 2
    for name, value in replay.logged.items():
        _say("logged %s = %s" % (name, value))
    _say("step %s ran to its end" % replay.step)
    return 0


def main(arguments=None):
    import argparse
    parser = argparse.ArgumentParser(prog="python -m athanor.replay",
                                     description="Run a captured training step again.")
    parser.add_argument("--pdb", action="store_true", help="debug the exception that it raises")
    parser.add_argument("--step", type=int, help="one of the captured steps (the last)")
    parser.add_argument("--module", action="store_true", help="the script is a module, as for -m")
    parser.add_argument("folder")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    try:
        recording = load(options.folder, options.step)
    except (OSError, ValueError, KeyError) as error:
        _say(str(error))
        return 2

    import athanor
    replay = Replay(recording)
    _capture._replay = replay
    # A replay leaves no trace: neither points nor checkpoints.
    athanor.log = replay.log
    athanor.progress = lambda *_: None
    athanor.done = lambda: None
    athanor.should_checkpoint = lambda step=None: False
    athanor.checkpoint = lambda step, save_fn, name=None: None
    _announce(recording)
    return _play(replay, options.script, options.arguments, options.module, options.pdb)


if __name__ == "__main__":
    from athanor.replay import main as _main  # not this copy of the module
    sys.exit(_main())
