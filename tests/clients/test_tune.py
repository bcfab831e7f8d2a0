"""Searches as other programs see them: `ath tune --stdio`, athanor.tune, and an Optuna study."""

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import ATH, BUILD

SPACE = [{"name": "lr", "type": "float", "scale": "log", "low": 1e-5, "high": 1.0},
         {"name": "layers", "type": "int", "low": 1, "high": 12},
         {"name": "opt", "type": "cat", "choices": ["a", "b", True]}]
OPTUNA = "5.0.0"


def loss(params):
    return ((math.log10(params["lr"]) + 2) ** 2 + 0.1 * (params["layers"] - 4) ** 2
            + (0.0 if params["opt"] == "b" else 0.3))


class Stdio:
    """One `ath tune --stdio`."""

    def __init__(self, *arguments, **environment):
        self.process = subprocess.Popen([ATH, "tune", "--stdio", *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **environment))

    def __call__(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def run(self, trials, fails=lambda params: False):
        asked = []
        for _ in range(trials):
            answer = self(op="ask")
            params = answer["params"]
            asked.append(params)
            self(op="tell", id=answer["id"], params=params,
                 value=None if fails(params) else loss(params))
        return asked

    def end(self, kill=False):
        if kill:
            self.process.kill()
        _, errors = self.process.communicate()
        return errors


class Lines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="athanor-tune-")
        self.addCleanup(folder.cleanup)
        self.journal = os.path.join(folder.name, "search.journal")

    def start(self, *arguments, **environment):
        tuner = Stdio(*arguments, **environment)
        self.addCleanup(tuner.end, True)
        self.assertTrue(tuner(op="init", space=SPACE, seed=7)["ok"])
        return tuner

    def test_fifty_trials_equal_25_a_kill_and_25(self):
        # Red when what an ask draws depends on anything but the seed and the journal.
        straight = self.start().run(50)
        first = self.start("--journal", self.journal)
        halves = first.run(25)
        first.end(kill=True)
        halves += self.start("--journal", self.journal).run(25)
        self.assertEqual(straight, halves)
        self.assertEqual(len({json.dumps(each) for each in straight}), 50)
        self.assertLess(min(map(loss, straight)), 0.05)

    def test_the_processor_changes_no_byte(self):
        # Red when the two builds of lanes_impl.h add in different orders, or one contracts.
        with open("/proc/cpuinfo") as processor:
            if " avx2" not in processor.read():
                self.skipTest("this processor has one build only")
        journals = []
        for lanes in ("", "plain"):
            path = self.journal + lanes
            tuner = self.start("--journal", path, ATHANOR_TUNE_LANES=lanes)
            tuner.run(45, fails=lambda params: params["lr"] > 0.2)
            tuner.end()
            with open(path, "rb") as file:
                journals.append(file.read())
        self.assertEqual(journals[0], journals[1])
        self.assertIn(b"null", journals[0])

    def test_a_space_that_cannot_be_searched_is_refused(self):
        tuner = Stdio()
        self.addCleanup(tuner.end, True)
        for parameter, why in (
                ({"type": "float", "low": 1, "high": 0}, "empty range"),
                ({"type": "float", "low": 0, "high": 1, "scale": "log"}, "low > 0"),
                ({"type": "cat", "choices": []}, "no choices"),
                ({"type": "int", "low": 0, "high": 0.5}, "not an integer")):
            answer = tuner(op="init", space=[dict(parameter, name="x")], seed=1)
            self.assertIn(why, answer["error"])
            self.assertTrue(answer["hint"])
        self.assertTrue(tuner(op="init", space=SPACE, seed=1)["ok"])

    def test_a_journal_has_one_writer_and_shows_damage(self):
        first = self.start("--journal", self.journal)
        first.run(3)
        second = Stdio("--journal", self.journal)
        self.assertIn("in use", second.end())
        self.assertNotEqual(second.process.returncode, 0)
        first.end()
        with open(self.journal, "r+b") as file:
            file.seek(200)
            file.write(b"!")
        damaged = Stdio("--journal", self.journal)
        self.assertIn("damaged", damaged.end())
        self.assertNotEqual(damaged.process.returncode, 0)

    def test_a_bad_line_is_answered_and_the_search_goes_on(self):
        tuner = self.start()
        tuner.process.stdin.write("nonsense\n\n")
        self.assertIn("error", tuner(op="fly"))
        tuner.process.stdout.readline()
        self.assertIn("error", tuner(op="tell", id=5, value=1.0))
        self.assertIn("params", tuner(op="ask"))


NATIVE = """
import json, math, sys
from athanor import tune
space = {"lr": tune.Float(1e-5, 1.0, scale="log"), "layers": tune.Int(1, 12),
         "opt": tune.Choice(["a", "b", True]), "epochs": tune.Constant(3)}
search = tune.Search(space, seed=3, journal=sys.argv[1])
for _ in range(20):
    trial = search.ask()
    search.tell(trial, None if trial.params["opt"] is True else math.log10(trial.params["lr"]) ** 2)
left = search.ask()
try:
    search.tell(99, 1.0)
    raise SystemExit("an unknown trial was taken")
except tune.TuneError:
    pass
del search
again = tune.Search(space, seed=3, journal=sys.argv[1])
assert again.trials == 21 and again.open == [left], (again.trials, again.open)
again.add({"lr": 2.0, "layers": 40, "opt": "a"}, 0.5)
print(json.dumps(again.best().params))
"""

STUDY = """
import optuna, sys
from athanor.tune import OptunaSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)

def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    lr = trial.suggest_float("lr", 1e-5, 1, log=True)
    n = trial.suggest_int("n", 0, 30, step=3)
    kind = trial.suggest_categorical("kind", ["a", ("b", 1)[0], None])
    if kind is None and trial.number % 2:
        raise optuna.TrialPruned()
    return (x - 1) ** 2 + abs(n - 12) / 10 + (0 if kind == "a" else 1) + (lr - 0.01) ** 2

def best(sampler, jobs=1):
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=40, n_jobs=jobs)
    return study

one, two = best(OptunaSampler(seed=5)), best(OptunaSampler(seed=5))
assert [t.params for t in one.trials] == [t.params for t in two.trials], "not repeatable"
random = sum(best(optuna.samplers.RandomSampler(seed=s)).best_value for s in range(3)) / 3
ours = sum(best(OptunaSampler(seed=s)).best_value for s in range(3)) / 3
assert ours < 0.5 * random, (ours, random)
import pickle
for repeat in range(6):  # without the sampler's lock two threads began one search each
    parallel = best(pickle.loads(pickle.dumps(OptunaSampler(seed=repeat))), jobs=4)
    points = [tuple(t.params.items()) for t in parallel.trials]
    assert len(set(points)) == len(points), "duplicates"
"""


class Package(unittest.TestCase):
    def python(self, program, *arguments, interpreter="/usr/bin/python3"):
        done = subprocess.run([interpreter, "-c", program, *arguments], text=True,
                              capture_output=True,
                              env=dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python")))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_searches_in_this_process_and_goes_on_from_a_journal(self):
        with tempfile.TemporaryDirectory(prefix="athanor-tune-") as folder:
            out = self.python(NATIVE, os.path.join(folder, "journal"))
        self.assertIn("lr", json.loads(out))

    def test_a_study_of_optuna_finds_more_with_our_sampler(self):
        self.python(STUDY, interpreter=venvs.venv("optuna==" + OPTUNA))


if __name__ == "__main__":
    harness.main()
