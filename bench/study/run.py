#!/usr/bin/env python3
"""What a tuning job costs beside its trials: 200 trials of a script that takes one second, two at a
time; how much of the time both places were in scripts. The rest is asking, submitting, starting,
and taking in how it ended; also Python's own start, which is told beside it. The interpreter is
Debian's: others may have packages that make each start take long.

    bench/study/run.py [--quick] [--json]
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import Broken, Server, check, main, median, until

PYTHON = "/usr/bin/python3"
SCRIPT = """
import os, time
begun = time.time()
# A second from the script's own first line to its last.
x = float(os.environ["SM_HP_X"])
print("loss=%r" % ((x - 0.3) ** 2), flush=True)
left = 1.0 - (time.time() - begun)
time.sleep(max(0.0, left))
with open(os.environ["STAMPS"], "a") as file:
    file.write("%r %r\\n" % (begun, time.time()))
"""
JOB = """
name: bench
run: %s train.py
env: {STAMPS: %s}
resources: {cpus: 0.5}
metrics: [{name: loss, regex: 'loss=(.*)'}]
tune:
  metric: loss
  seed: 1
  max_trials: %d
  parallel: 2
  space:
    x: {type: float, low: 0, high: 1}
    lr: {type: float, low: 1e-5, high: 1, scale: log}
    layers: {type: int, low: 1, high: 8}
    optimizer: [sgd, adam, rmsprop]
"""


def python_start(repeats):
    """Milliseconds from a bare start of the interpreter to a script's first line."""
    taken = []
    for _ in range(repeats):
        begun = time.time()
        taken.append(1000 * (float(check([PYTHON, "-c", "import time; print(time.time())"]))
                             - begun))
    return median(taken)


def run(report, options):
    trials = 20 if options.quick else 200
    with Server() as server:
        stamps = os.path.join(server.root, "stamps")
        with open(os.path.join(server.work, "train.py"), "w") as file:
            file.write(SCRIPT)
        with open(os.path.join(server.work, "job.yaml"), "w") as file:
            file.write(JOB % (PYTHON, stamps, trials))
        begun = time.time()
        server.ath("tune", "-d", "job.yaml")

        def over():
            study = json.loads(server.ath("tune", "show", "bench", "--json"))
            return study if study["state"] in ("Completed", "Failed", "Stopped") else None
        study = until(over, "the study is over", patience=trials * 4 + 60, pause=0.5)
        if study["counts"]["done"] != trials:
            raise Broken("%r" % study["counts"])
        with open(stamps) as file:
            spans = [tuple(map(float, line.split())) for line in file]
        elapsed = max(end for _, end in spans) - begun
        busy = sum(end - start for start, end in spans)
        report.row("time in scripts, 2 at a time", 100 * busy / (2 * elapsed), "%", bar=90,
                   at_least=True, note="%d trials of 1 s in %.1f s" % (trials, elapsed))
        report.row("beside the script, a trial", 1000 * (2 * elapsed - busy) / trials, "ms",
                   note="%.0f ms of it are the interpreter's, bare" % python_start(10))


if __name__ == "__main__":
    main("study", __doc__, run)
