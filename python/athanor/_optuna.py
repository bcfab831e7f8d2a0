"""athanor.tune.OptunaSampler: Athanor's search behind an Optuna study.

    study = optuna.create_study(sampler=athanor.tune.OptunaSampler(seed=7))
    study.optimize(objective, n_trials=100)

The search covers the parameters that all finished trials have in common, as Optuna's own relative
samplers do; others, and those of the first trial, are drawn at random. Trials that run in other
threads or processes count as running, failed ones as failed, pruned ones by their last value.
"""

import json
import math
import threading

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import StudyDirection
from optuna.trial import TrialState

from .tune import Search, TuneError


def _steps(distribution):
    """How many steps a distribution with a step has; 0: no step."""
    step = distribution.step
    if step is None or (isinstance(distribution, IntDistribution) and step == 1):
        return 0
    return int(math.floor((distribution.high - distribution.low) / step + 1e-9))


def _parameter(name, distribution):
    if isinstance(distribution, CategoricalDistribution):
        return {"name": name, "type": "cat", "choices": list(range(len(distribution.choices)))}
    count = _steps(distribution)
    if count:
        return {"name": name, "type": "int", "low": 0, "high": count}
    kind = "int" if isinstance(distribution, IntDistribution) else "float"
    return {"name": name, "type": kind, "scale": "log" if distribution.log else "linear",
            "low": distribution.low, "high": distribution.high}


def _ours(distribution, value):
    if isinstance(distribution, CategoricalDistribution):
        return int(distribution.to_internal_repr(value))
    if _steps(distribution):
        return int(round((value - distribution.low) / distribution.step))
    return value


def _theirs(distribution, value):
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[value]
    if _steps(distribution):
        value = distribution.low + value * distribution.step
        return int(value) if isinstance(distribution, IntDistribution) else float(value)
    return value


class _Followed:
    """A search, and which of the study's trials it knows."""

    def __init__(self, space, seed, strategy, goal):
        self.space = space
        self.search = Search([_parameter(name, each) for name, each in space.items()], seed,
                             strategy=strategy, goal=goal)
        self.running = {}  # trial number -> our id
        self.told = set()

    def follow(self, trials, current):
        for trial in trials:
            if trial.number in self.told or trial.number == current:
                continue
            if not all(name in trial.params and each._contains(each.to_internal_repr(
                    trial.params[name])) for name, each in self.space.items()):
                continue
            params = {name: _ours(each, trial.params[name]) for name, each in self.space.items()}
            if trial.state == TrialState.RUNNING:
                if trial.number not in self.running:
                    self.running[trial.number] = self.search.add_running(params)
                continue
            if not trial.state.is_finished():
                continue
            value = _value(trial)
            known = self.running.pop(trial.number, None)
            if known is None:
                self.search.add(params, value)
            else:
                self.search.tell(known, value)
            self.told.add(trial.number)

    def ask(self, number):
        trial = self.search.ask()
        self.running[number] = trial.id
        return {name: _theirs(each, trial.params[name]) for name, each in self.space.items()}


def _value(trial):
    if trial.state == TrialState.COMPLETE:
        return trial.value
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        return trial.intermediate_values[max(trial.intermediate_values)]
    return None


class OptunaSampler(BaseSampler):
    def __init__(self, seed=0, *, strategy="auto"):
        self._seed, self._strategy = seed, strategy
        self._random = RandomSampler(seed=seed)
        self._intersection = IntersectionSearchSpace()
        self._followed = {}
        self._one_asks = threading.Lock()  # optimize(n_jobs=) asks from many threads

    def __getstate__(self):
        kept = dict(self.__dict__, _followed={})  # read again from the study
        del kept["_one_asks"]
        return kept

    def __setstate__(self, kept):
        self.__dict__.update(kept)
        self._one_asks = threading.Lock()

    def reseed_rng(self):
        self._random.reseed_rng()

    def infer_relative_search_space(self, study, trial):
        with self._one_asks:
            space = self._intersection.calculate(study)
        return {name: each for name, each in space.items() if not each.single()}

    def sample_relative(self, study, trial, search_space):
        if not search_space:
            return {}
        if len(study.directions) > 1:
            raise TuneError("OptunaSampler searches for one objective; the study has %d"
                            % len(study.directions))
        goal = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
        key = (study._study_id, json.dumps([
            (name, optuna.distributions.distribution_to_json(each))
            for name, each in sorted(search_space.items())], default=str))
        with self._one_asks:
            if key not in self._followed:
                self._followed[key] = _Followed(dict(sorted(search_space.items())), self._seed,
                                                self._strategy, goal)
            followed = self._followed[key]
            followed.follow(study.get_trials(deepcopy=False), trial.number)
            return followed.ask(trial.number)

    def sample_independent(self, study, trial, param_name, param_distribution):
        return self._random.sample_independent(study, trial, param_name, param_distribution)
