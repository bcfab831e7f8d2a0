#!/usr/bin/env python3
"""Runs contenders on problems, in the environment that has them all: one JSON object a run,
appended to a file that a second start goes on from. Called by run.py; by hand:

    worker.py --ath build/ath --mode batch --seeds 3 --contenders athanor,random --out runs.jsonl
"""

import argparse
import heapq
import json
import math
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

import contenders  # noqa: E402
import problems  # noqa: E402
from space import C, F, I, Space  # noqa: E402

TRIALS = {"batch": 128, "seq": 100, "async": 128}


class Run:
    """One tuner on one problem. `batch`: rounds of 8 asks, then 8 tells; `seq`: one by one;
    `async`: 8 workers with random durations. Work that a tuner does when told counts as asking."""

    def __init__(self, problem, tuner, seed):
        self.problem, self.tuner = problem, tuner
        self.rng = np.random.default_rng([seed, 99])
        self.visible, self.true, self.ms, self.points = [], [], [], []

    def ask(self):
        begun = time.perf_counter()
        params = self.tuner.ask()
        self.ms.append((time.perf_counter() - begun) * 1e3)
        self.problem.space.check(params)
        return params

    def tell(self, params):
        seen, true = self.problem.observe(params, self.rng)
        self.visible.append(seen)
        self.true.append(true)
        self.points.append(json.dumps(params, sort_keys=True))
        begun = time.perf_counter()
        self.tuner.tell(params, seen)
        self.ms[-1] += (time.perf_counter() - begun) * 1e3

    def go(self, mode):
        trials = TRIALS[mode]
        if mode == "async":
            running, asked, clock = [], 0, 0.0
            while len(self.true) < trials:
                while asked < trials and len(running) < 8:
                    end = clock + math.exp(0.5 * self.rng.standard_normal())
                    heapq.heappush(running, (end, asked, self.ask()))
                    asked += 1
                clock, _, params = heapq.heappop(running)
                self.tell(params)
            return
        width = 8 if mode == "batch" else 1
        while len(self.true) < trials:
            for params in [self.ask() for _ in range(min(width, trials - len(self.true)))]:
                self.tell(params)


def finite(values):
    return [value if math.isfinite(value) else None for value in values]


def run_all(options):
    done = set()
    if os.path.exists(options.out):
        with open(options.out) as file:
            for line in file:
                row = json.loads(line)
                done.add((row["mode"], row["contender"], row["problem"], row["seed"]))
    wanted = [p for p in problems.problems()
              if (not options.problems or any(w in p.name for w in options.problems.split(",")))
              and not (options.skip and any(w in p.name for w in options.skip.split(",")))]
    for seed in range(problems.SEED_BASE, problems.SEED_BASE + options.seeds):
        for problem in wanted:
            for name in options.contenders.split(","):  # in turns: noise hits all alike
                if (options.mode, name, problem.name, seed) in done:
                    continue
                width = 8 if options.mode == "batch" else 1
                tuner = contenders.make(name, problem.space, seed, options.ath, width)
                run = Run(problem, tuner, seed)
                try:
                    run.go(options.mode)
                finally:
                    tuner.close()
                row = {"mode": options.mode, "contender": name, "problem": problem.name,
                       "seed": seed, "visible": finite(run.visible), "true": finite(run.true),
                       "ask_ms": [round(each, 3) for each in run.ms],
                       "duplicates": len(run.points) - len(set(run.points))}
                with open(options.out, "a") as file:
                    file.write(json.dumps(row) + "\n")
                print(options.mode, name, problem.name, seed, file=sys.stderr, flush=True)


def latency(options):
    """Asks after preloaded observations in 20 mixed dimensions; one JSON object."""
    space = Space([F("f%d" % i, 0, 1) for i in range(8)]
                  + [F("l%d" % i, 1e-5, 1, "log") for i in range(4)]
                  + [I("i%d" % i, 1, 64) for i in range(4)]
                  + [C("c%d" % i, ["a", "b", "c"]) for i in range(4)])

    def objective(d):
        return (sum((d["f%d" % i] - .3) ** 2 for i in range(8))
                + .1 * sum(d["c%d" % i] == "a" for i in range(4))
                + .1 * (np.log10(d["l0"]) + 2) ** 2)

    rng = np.random.default_rng(options.seeds)
    tuner = contenders.make(options.contenders, space, 1, options.ath)
    for unit in space.sample_unit(rng, options.latency):
        params = space.from_unit(unit)
        tuner.preload(params, objective(params))
    taken = []
    for _ in range(options.asks):
        begun = time.perf_counter()
        params = tuner.ask()
        tuner.tell(params, objective(params))
        taken.append((time.perf_counter() - begun) * 1e3)
    memory = tuner.memory() if hasattr(tuner, "memory") else None
    tuner.close()
    print(json.dumps({"ms": taken, "memory": memory}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ath", required=True)
    parser.add_argument("--mode", choices=list(TRIALS), default="batch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--contenders", default="athanor")
    parser.add_argument("--problems", default="", help="parts of names; empty: all")
    parser.add_argument("--skip", default="", help="parts of names to leave out")
    parser.add_argument("--out", help="runs are appended here")
    parser.add_argument("--latency", type=int, help="time asks after that many observations")
    parser.add_argument("--asks", type=int, default=25)
    options = parser.parse_args()
    latency(options) if options.latency else run_all(options)


if __name__ == "__main__":
    main()
