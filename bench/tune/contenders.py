"""Tuners under one interface: ask() -> params, tell(params, value) and close(); those whose asks
are timed also have preload(params, value). The value is NaN for a failed trial; several asks may be
open at once, and tells come in any order."""

import json
import math
import subprocess

import numpy as np


class Random:
    def __init__(self, space, seed):
        self.space, self.rng = space, np.random.default_rng(seed)

    def ask(self):
        return self.space.from_unit(self.space.sample_unit(self.rng, 1)[0])

    def tell(self, params, value):
        pass

    preload = tell

    def close(self):
        pass


class External:
    """A program that speaks the JSON lines of `ath tune --stdio`."""

    def __init__(self, command, space, seed):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.ids = {}
        self.call({"op": "init", "space": space.params, "seed": int(seed)})

    def call(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the tuner ended, status %s" % self.process.poll())
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError("the tuner says: %s" % answer["error"])
        return answer

    def ask(self):
        answer = self.call({"op": "ask"})
        key = json.dumps(answer["params"], sort_keys=True)
        self.ids.setdefault(key, []).append(answer["id"])
        return answer["params"]

    def tell(self, params, value):
        trial = self.ids[json.dumps(params, sort_keys=True)].pop(0)
        self.call({"op": "tell", "id": trial, "params": params,
                   "value": float(value) if math.isfinite(value) else None})

    def preload(self, params, value):
        self.call({"op": "tell", "id": None, "params": params, "value": float(value)})

    def memory(self):
        """Most it ever held, in MiB."""
        with open("/proc/%d/status" % self.process.pid) as status:
            return next(int(line.split()[1]) / 1024 for line in status
                        if line.startswith("VmHWM:"))

    def close(self):
        try:
            self.process.stdin.write('{"op":"quit"}\n')
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Optuna:
    """reverse_log is shown to Optuna as the log of 1 - x, its best native form."""

    def __init__(self, space, seed, kind):
        import warnings
        import optuna
        from optuna import distributions as dist
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore")
        samplers = {
            "optuna-tpe": lambda: optuna.samplers.TPESampler(seed=seed),
            "optuna-tpe-mv": lambda: optuna.samplers.TPESampler(
                seed=seed, multivariate=True, group=True, constant_liar=True),
            "optuna-cmaes": lambda: optuna.samplers.CmaEsSampler(seed=seed),
            "optuna-gp": lambda: optuna.samplers.GPSampler(seed=seed),
        }
        self.optuna = optuna
        self.study = optuna.create_study(sampler=samplers[kind]())
        self.space, self.open, self.dist = space, {}, {}
        for p in space.params:
            if p["type"] == "cat":
                made = dist.CategoricalDistribution(p["choices"])
            elif p["type"] == "int":
                made = dist.IntDistribution(p["low"], p["high"], log=p["scale"] == "log")
            elif p["scale"] == "reverse_log":
                made = dist.FloatDistribution(1 - p["high"], 1 - p["low"], log=True)
            else:
                made = dist.FloatDistribution(p["low"], p["high"], log=p["scale"] == "log")
            self.dist[p["name"]] = made

    def ask(self):
        trial = self.study.ask(self.dist)
        params = dict(trial.params)
        for p in self.space.params:
            if p.get("scale") == "reverse_log":
                params[p["name"]] = min(max(1 - params[p["name"]], p["low"]), p["high"])
        self.open.setdefault(json.dumps(params, sort_keys=True), []).append(trial)
        return params

    def tell(self, params, value):
        trial = self.open[json.dumps(params, sort_keys=True)].pop(0)
        if value != value:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, value)

    def preload(self, params, value):
        params = dict(params)
        for p in self.space.params:
            if p.get("scale") == "reverse_log":
                params[p["name"]] = 1 - params[p["name"]]
        self.study.add_trial(self.optuna.trial.create_trial(
            params=params, distributions=self.dist, value=value))

    def close(self):
        pass


class Hebo:
    """HEBO suggests for a whole round at once, which is what it was made for, and models nothing that
    is still running. Logarithmic scales are shown to it as powers of ten."""

    def __init__(self, space, seed, width):
        import random
        import warnings
        warnings.filterwarnings("ignore")
        import pandas
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO
        torch.set_num_threads(1)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.space, self.width, self.pandas = space, width, pandas
        self.waiting, self.rows = [], {}
        self.tuner = HEBO(DesignSpace().parse([self.parameter(p) for p in space.params]),
                          scramble_seed=seed)

    @staticmethod
    def parameter(p):
        if p["type"] == "cat":
            return {"name": p["name"], "type": "cat", "categories": p["choices"]}
        low, high = p["low"], p["high"]
        if p["scale"] == "reverse_log":
            low, high = 1 - high, 1 - low
        kinds = {"int": ("int", "pow_int"), "float": ("num", "pow")}[p["type"]]
        return {"name": p["name"], "type": kinds[p["scale"] != "linear"], "base": 10,
                "lb": low, "ub": high}

    def ask(self):
        if not self.waiting:
            found = self.tuner.suggest(n_suggestions=self.width)
            self.waiting = [found.iloc[[i]] for i in range(len(found))]
        row = self.waiting.pop(0)
        params = {}
        for p in self.space.params:
            value = row[p["name"]].iloc[0]
            if p["type"] == "cat":
                params[p["name"]] = next(c for c in p["choices"] if str(c) == str(value))
                continue
            value = 1 - float(value) if p["scale"] == "reverse_log" else float(value)
            value = min(max(value, p["low"]), p["high"])
            params[p["name"]] = round(value) if p["type"] == "int" else value
        self.rows.setdefault(json.dumps(params, sort_keys=True), []).append(row)
        return params

    def tell(self, params, value):
        row = self.rows[json.dumps(params, sort_keys=True)].pop(0)
        self.tuner.observe(row, np.array([[value]]))

    def close(self):
        pass


def make(name, space, seed, ath, width=1):
    """One contender by its name; `width` trials are asked for before the first is told."""
    if name == "athanor":
        return External([ath, "tune", "--stdio"], space, seed)
    if name == "random":
        return Random(space, seed)
    if name.startswith("optuna"):
        return Optuna(space, seed, name)
    if name == "hebo":
        return Hebo(space, seed, width)
    if name in ("gp-logei", "gp-mace"):
        from prototype import GPOpt
        return GPOpt(space, seed, name)
    raise KeyError(name)
