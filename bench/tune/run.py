#!/usr/bin/env python3
"""How much a search finds with few trials, against other tuners, and what an ask costs.

    bench/tune/run.py [--quick] [--json] [--modes batch,seq] [--seeds 3] [--runs FILE]

23 problems: synthetic functions with known optima (noise, integers, categories, log scales, a part
of the space that fails) and scikit-learn models cross-validated on small data. `batch` is 16 rounds
of 8 trials, `seq` 100 trials one by one, `async` 8 workers with random durations. The score is
bayesmark's, see score.py; `vs random` is what is left to be found, 1 for random search. All of
three modes and seeds take hours. The slowest contenders, which fit a model for each trial where they
fit one for eight in batch mode, are left out of other modes unless --contenders names them. --quick
takes the problems that cost nothing, one seed and three contenders. Runs are kept in --runs (default: a file in the cache), and a second start goes on.

numpy, scikit-learn, Optuna and, for its GPSampler, PyTorch, and HEBO lie in a virtual environment
that is made once. Versions are pinned: the frozen baseline depends on scikit-learn's.
"""

import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import ATH, CACHE, Broken, check, main, median, percentile, scratch  # noqa: E402

NEEDS = ["numpy==1.24.2", "scipy==1.10.1", "scikit-learn==1.2.1", "optuna==5.0.0", "cmaes==0.13.1"]
TORCH = "torch==2.9.1"
# Without asking for what they depend on: resolved for HEBO, pip tries a hundred versions of PyTorch.
HEBO = ["HEBO==0.3.6", "pandas==2.0.3", "python-dateutil", "pytz", "tzdata", "six", "gpytorch==1.11",
        "linear_operator==0.5.2", "jaxtyping==0.2.25", "typeguard==2.13.3", "pymoo==0.6.0",
        "autograd==1.6.2", "future", "cma==3.3.0", "alive-progress==3.1.5", "about-time==4.2.1",
        "grapheme==0.6.0", "dill==0.3.8", "Deprecated==1.2.14", "wrapt", "disjoint-set==0.7.4",
        "catboost==1.2.2", "graphviz", "plotly", "tenacity", "packaging", "matplotlib==3.8.4",
        "contourpy==1.2.1", "cycler==0.12.1", "fonttools==4.51.0", "kiwisolver==1.4.5",
        "pillow==10.3.0", "pyparsing==3.1.2"]
CONTENDERS = ["athanor", "random", "optuna-tpe", "optuna-tpe-mv", "optuna-cmaes", "optuna-gp",
              "gp-logei", "gp-mace", "hebo"]
LEFT_OUT = {"seq": ["hebo"], "async": ["hebo", "optuna-gp", "gp-mace"]}
SLOW = "RF,MLP,GBM"  # left out of seq and async, as in the figures the bars come from
CHEAP = "branin2,hartmann6,levy4,rosen4,mixed-cat8,momentum3,crash3"
BARS = {"batch": (97.3, 0.35), "seq": (91.9, 0.6)}  # score; vs random against optuna-tpe-mv


def environment():
    """The interpreter that has the contenders."""
    folder = os.path.join(CACHE, "tune-1")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(CACHE, exist_ok=True)
        check([sys.executable, "-m", "venv", folder])
        check([python, "-m", "pip", "install", "--quiet", *NEEDS])
        with open(os.path.join(folder, "complete"), "w"):
            pass
    return python


def can_have(python, module, *packages):
    """Whether a module is there, or can be installed."""
    try:
        check([python, "-c", "import " + module])
        return True
    except Broken:
        pass
    try:
        check([python, "-m", "pip", "install", "--quiet", *packages])
        check([python, "-c", "import " + module])
        return True
    except Broken:
        return False


def run_mode(python, mode, options, contenders, path, slow=None):
    """The runs of each contender; `slow`: whether with the slow problems, batch mode's choice if None."""
    command = [python, os.path.join(HERE, "worker.py"), "--ath", ATH, "--mode", mode, "--seeds",
               str(options.seeds), "--contenders", ",".join(contenders), "--out", path]
    if options.quick:
        command += ["--problems", CHEAP]
    elif not (mode == "batch" if slow is None else slow):
        command += ["--skip", SLOW]
    check(command)
    with open(path) as file:
        runs = [run for run in map(json.loads, file) if run["mode"] == mode]
    # The file may have more of some contender from another time.
    seeds = sorted({run["seed"] for run in runs})[:options.seeds]
    return {name: [run for run in runs if run["contender"] == name and run["seed"] in seeds]
            for name in contenders}


def scored(python, runs, function="summary"):
    """What a function of score.py, which needs the environment's numpy, says of each list of runs."""
    program = "\n".join((
        "import json, sys",
        "sys.path.insert(0, %r)" % HERE,
        "import score",
        "base = json.load(open(%r))" % os.path.join(HERE, "baseline.json"),
        "found = {name: score.%s(runs, base) for name, runs in json.load(sys.stdin).items()}" % function,
        "print(json.dumps(found))"))
    with scratch() as folder:
        path = os.path.join(folder, "runs.json")
        with open(path, "w") as file:
            json.dump(runs, file)
        with open(path) as file:
            return json.loads(check([python, "-c", program], stdin=file))


def mode_rows(report, mode, runs, found, quick):
    ours = found["athanor"]
    score_bar, ratio_bar = BARS.get(mode, (None, None))
    for name in sorted(found, key=lambda each: -found[each]["score"]):
        row = found[name]
        report.row("%s, %s: score" % (mode, name), row["score"], "points",
                   bar=score_bar if name == "athanor" and not quick else None, at_least=True,
                   note="vs random %.3f, standard error of the score %.2f, %d runs"
                   % (row["vs_random"], row["error"], len(runs[name])))
    if "optuna-tpe-mv" in found:
        report.row("%s: vs random, against Optuna's multivariate TPE" % mode,
                   ours["vs_random"] / found["optuna-tpe-mv"]["vs_random"], "x",
                   bar=None if quick else ratio_bar)
    report.row("%s: contenders that found more" % mode,
               sum(row["score"] > ours["score"] for row in found.values()), "contenders", bar=0)
    late = [sum(value is None for value in run["true"][-64:]) / 64 for run in runs["athanor"]
            if "nan" in run["problem"]]
    if late:
        report.row("%s: failed among the last 64 trials, -nan problems" % mode,
                   100 * max(late), "%", bar=25)


def async_row(report, python, ours, seeds):
    """Of the problems that both modes have."""
    both = {run["problem"] for run in ours["batch"]} & {run["problem"] for run in ours["async"]}
    found = scored(python, {mode: [run for run in ours[mode] if run["problem"] in both]
                            for mode in ("batch", "async")})
    report.row("async: points below batch, %d seeds" % seeds,
               found["batch"]["score"] - found["async"]["score"], "points",
               bar=2, note="%.1f against %.1f on %d problems, standard errors %.1f and %.1f" % (
                   found["async"]["score"], found["batch"]["score"], len(both),
                   found["async"]["error"], found["batch"]["error"]))


def more_seeds(report, python, options, path):
    """Many seeds tell a problem that is below random, or a mode below another, from bad luck."""
    options.seeds = 10
    ours = run_mode(python, "batch", options, ["athanor"], path)["athanor"]
    below = scored(python, {"athanor": ours}, "below_random")["athanor"]
    report.row("batch: problems below random by two standard errors, %d seeds" % options.seeds,
               len(below), "problems", bar=0, note=", ".join(below))
    options.seeds = 24
    ours = {mode: run_mode(python, mode, options, ["athanor"], path, slow=False)["athanor"]
            for mode in ("batch", "async")}
    async_row(report, python, ours, options.seeds)


def latency_rows(report, python, quick):
    for observations, bars in ((200, (30, 100)), (1000, (200, None))):
        taken, memory = [], 0
        for repeat in range(1 if quick else 5):
            made = json.loads(check([
                python, os.path.join(HERE, "worker.py"), "--ath", ATH, "--contenders", "athanor",
                "--seeds", str(repeat), "--latency", str(observations)]))
            taken += made["ms"]
            memory = max(memory, made["memory"])
        what = "ask after %d observations, 20 mixed dimensions" % observations
        report.row(what + ": median", median(taken), "ms", values=taken, bar=bars[0])
        report.row(what + ": 95th percentile", percentile(taken, 95), "ms", bar=bars[1])
        report.row(what + ": memory at most", memory, "MiB", bar=50)


def run(report, options):
    try:
        python = environment()
    except Broken as why:
        report.skip("everything", "the contenders cannot be had: " + str(why)[-200:])
        return
    latency_rows(report, python, options.quick)
    contenders = list(CONTENDERS)
    if options.quick:
        options.seeds = 1
        contenders = ["athanor", "random", "optuna-tpe-mv"]
    if options.contenders:
        contenders = options.contenders.split(",")
    for name, module, packages in (("optuna-gp", "torch", [TORCH]),
                                   ("hebo", "hebo.optimizers.hebo", ["--no-deps", *HEBO])):
        if name in contenders and not can_have(python, module, *packages):
            contenders.remove(name)
            report.skip(name, module + " cannot be had")
    with scratch() as folder:
        path = options.runs or os.path.join(folder if options.quick else CACHE, "tune-runs.jsonl")
        ours = {}
        for mode in options.modes.split(","):
            taking_part = [name for name in contenders
                           if options.contenders or name not in LEFT_OUT.get(mode, [])]
            runs = run_mode(python, mode, options, taking_part, path)
            mode_rows(report, mode, runs, scored(python, runs), options.quick)
            doubled = sum(each["duplicates"] for each in runs["athanor"]
                          if "kNN" not in each["problem"])
            report.row("%s: duplicates in spaces with a float" % mode, doubled, "trials", bar=0)
            ours[mode] = runs["athanor"]
        if "batch" in ours and "async" in ours:
            async_row(report, python, ours, options.seeds)
            if not options.quick:
                more_seeds(report, python, options, path)


def arguments(parser):
    parser.add_argument("--modes", default="batch,seq,async")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--contenders", default="", help="instead of all of them, by commas")
    parser.add_argument("--runs", help="a file to keep runs in and go on from")


if __name__ == "__main__":
    main("tune", __doc__, run, arguments)
