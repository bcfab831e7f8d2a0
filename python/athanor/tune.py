"""Search for good parameters, one trial at a time or many at once.

    from athanor import tune

    search = tune.Search({
        "lr": tune.Float(1e-5, 1.0, scale="log"),
        "layers": tune.Int(1, 12),
        "optimizer": tune.Choice(["sgd", "adam"]),
        "momentum": tune.Float(0.0, 0.999, scale="reverse_log", when="optimizer == sgd"),
    }, seed=7, journal="search.journal")
    for _ in range(50):
        trial = search.ask()
        search.tell(trial, loss_of(**trial.params))     # None or NaN: it failed
    print(search.best())

The same seed and the same history give the same suggestions. With a journal, a search that was
killed goes on where it was: make it again with the same arguments; `open` are the trials it had
under way. `OptunaSampler` puts the search behind an Optuna study.

Calls may come from several threads. The native core is needed (`pip install ./python` builds it).
"""

import json as _json
import math as _math
import threading as _threading
from typing import NamedTuple

try:
    from . import _tune
except ImportError as error:
    raise ImportError("athanor.tune needs the native search, which was not built with this "
                      "package: pip install ./python with a C++ compiler says why") from error

__all__ = ["Choice", "Constant", "Exhausted", "Float", "Int", "OptunaSampler", "Search", "Trial",
           "TuneError"]


class TuneError(ValueError):
    """What was asked for cannot be done; the text says why and what to do."""


class Exhausted(TuneError):
    """A grid has no points left."""


class Trial(NamedTuple):
    id: int
    params: dict
    repeated: bool = False  # the space is used up: this is the best trial again


class Best(NamedTuple):
    id: int
    params: dict
    value: float


def _ranged(kind, low, high, scale, when, default, levels):
    out = {"type": kind, "scale": scale, "low": low, "high": high}
    for key, value in (("if", when), ("default", default), ("levels", levels)):
        if value is not None:
            out[key] = value
    return out


def Float(low, high, scale="linear", *, when=None, default=None, levels=None):
    """A real number; scale is linear, log, reverse_log or auto."""
    return _ranged("float", low, high, scale, when, default, levels)


def Int(low, high, scale="linear", *, when=None, default=None, levels=None):
    """A whole number, both ends included."""
    return _ranged("int", low, high, scale, when, default, levels)


def Choice(choices, *, when=None, default=None):
    """One of a list of strings, numbers, booleans or None."""
    out = {"type": "cat", "choices": list(choices)}
    if when is not None:
        out["if"] = when
    if default is not None:
        out["default"] = default
    return out


def Constant(value):
    return {"type": "const", "value": value}


class Search:
    """One search. `space` maps names to Float, Int, Choice and Constant (or is a list of
    dicts with a "name"); `strategy` is auto, bayes, tpe, sobol, random or grid."""

    def __init__(self, space, seed=0, *, strategy="auto", goal="minimize", journal=None):
        if isinstance(space, dict):
            space = [{"name": name, **parameter} for name, parameter in space.items()]
        self._lock = _threading.Lock()
        try:
            self._core = _tune.Core("" if journal is None else str(journal))
        except ValueError as error:
            raise TuneError(str(error)) from None
        self._open = {}
        answer = self._call({"op": "init", "space": space, "seed": seed, "strategy": strategy,
                             "goal": goal})
        self.trials = answer.get("trials", 0)  # what the journal already had
        for each in answer.get("running", []):
            self._open[each["id"]] = Trial(each["id"], each["params"])

    def _call(self, request):
        try:
            line = _json.dumps(request, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TuneError("cannot be written as JSON: %s" % error) from None
        with self._lock:
            answer = _json.loads(self._core.call(line))
        if "error" in answer:
            text = answer["error"] + ("; " + answer["hint"] if answer.get("hint") else "")
            raise (Exhausted if answer.get("code") == "exhausted" else TuneError)(text)
        return answer

    @property
    def open(self):
        """Trials that were asked for and not yet told."""
        return list(self._open.values())

    def ask(self):
        """The next trial to run. Several may be open at once."""
        answer = self._call({"op": "ask"})
        trial = Trial(answer["id"], answer["params"], answer.get("repeated", False))
        self._open[trial.id] = trial
        return trial

    def tell(self, trial, value):
        """The result of a trial (or of its id); None or a number that is not finite: it failed."""
        number = trial.id if isinstance(trial, Trial) else trial
        self._call({"op": "tell", "id": number, "value": _number(value)})
        self._open.pop(number, None)

    def add(self, params, value):
        """A trial made elsewhere; its parameters may be outside the ranges. Returns its id."""
        return self._call({"op": "tell", "id": None, "params": params,
                           "value": _number(value)})["id"]

    def add_running(self, params):
        """A trial that someone else has started; tell its result by the id that this returns."""
        number = self._call({"op": "running", "params": params})["id"]
        self._open[number] = Trial(number, params)
        return number

    def best(self):
        """The best trial so far; TuneError while none is done."""
        return Best(**self._call({"op": "best"}))


def _number(value):
    if value is None:
        return None
    value = float(value)
    return value if _math.isfinite(value) else None


def __getattr__(name):
    # Optuna is imported only if it is used.
    if name == "OptunaSampler":
        from ._optuna import OptunaSampler
        return OptunaSampler
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
