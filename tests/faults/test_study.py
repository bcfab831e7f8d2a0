"""A tuning job goes on after its server was killed: no trial is lost, none is doubled, and what it
tries is what it would have tried. Real processes, real SIGKILL.

Each docstring names a planted bug that turns the test red.
"""

import json
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import TERMINAL, Server, until

TRIALS = 12
SCRIPT = """
    import os, athanor
    x, y = float(os.environ["SM_HP_X"]), float(os.environ["SM_HP_Y"])
    athanor.log(loss=(x - 0.3) ** 2 + (y - 0.6) ** 2, step=1)
"""
JOB = """
    name: killed
    run: python3 train.py
    tune:
      metric: loss
      seed: 5
      max_trials: %d
      parallel: %d
      space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}}
"""


def study(server):
    return json.loads(server.ath("tune", "show", "killed", "--json", check=0).stdout)


def over(server):
    return until(lambda: (lambda s: s if s["state"] in TERMINAL else None)(study(server)),
                 "the study is over")


def begin(server, parallel):
    server.script("train.py", SCRIPT)
    server.script("job.yaml", JOB % (TRIALS, parallel))
    server.ath("tune", "-d", "job.yaml", check=0)


class ServerKilledDuringAStudy(unittest.TestCase):
    def test_one_at_a_time_the_kills_do_not_show(self):
        """Red if a trial is ordered before its `asked` line is durable, if a restart asks anew for
        a trial that was asked for (Studies::OpenStudy without FindKey), or if the search is not
        told the same values in the same order."""
        with Server() as server:
            begin(server, parallel=1)
            straight = over(server)
        chance = random.Random(int(os.environ.get("ATHANOR_TEST_SEED", "1")))
        with Server() as server:
            begin(server, parallel=1)
            for kill in range(4):
                # At any place of a trial's life: after so many lines of the journal.
                lines = 3 + 9 * kill + chance.randrange(6)
                until(lambda: study(server)["lines"] >= lines, "the journal has %d lines" % lines)
                server.kill()
                server.start()
            killed = over(server)
            jobs = server.json("ps", "-a")["jobs"]
        self.assertEqual([t["params"] for t in straight["trials"]],
                         [t["params"] for t in killed["trials"]])
        self.assertEqual([t["value"] for t in straight["trials"]],
                         [t["value"] for t in killed["trials"]])
        self.assertEqual(len(jobs), TRIALS)

    def test_in_parallel_no_trial_is_lost_or_doubled(self):
        """Red if the key of a trial's job is not made of the study and the trial alone."""
        with Server() as server:
            begin(server, parallel=3)
            for kill in range(3):
                until(lambda: study(server)["counts"]["done"] >= 2 + 3 * kill, "some trials are done")
                server.kill()
                server.start()
            ended = over(server)
            jobs = server.json("ps", "-a")["jobs"]
        self.assertEqual((ended["state"], ended["counts"]["done"]), ("Completed", TRIALS))
        self.assertEqual(sorted(t["job"] for t in ended["trials"]), sorted(job["id"] for job in jobs))
        self.assertEqual(len({json.dumps(t["params"]) for t in ended["trials"]}), TRIALS)


if __name__ == "__main__":
    harness.main()
