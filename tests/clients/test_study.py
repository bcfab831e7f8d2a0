"""Tuning jobs with real jobs: `ath tune job.yaml`, its verbs, and the API below them."""

import csv
import io
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, until

# Cheap to start: no package but the one that logs.
SCRIPT = """
    import os, sys, athanor
    x, n = float(os.environ["SM_HP_X"]), int(os.environ["SM_HP_N"])
    kind = sys.argv[1]
    if os.environ.get("FAILS") and n == 2:
        raise SystemExit("n must not be 2")
    athanor.log(loss=(x - 0.3) ** 2 + 0.1 * abs(n - 2) + (kind == "b"), step=1)
"""
JOB = """
    name: digits
    run: python3 train.py ${kind}
    tune:
      metric: loss
      space:
        x: {type: float, low: 0, high: 1}
        n: {type: int, low: 1, high: 3}
        kind: [a, b]
      seed: 7
      max_trials: %(trials)d
      parallel: %(parallel)d
"""


class Studies(Case):
    def setUp(self):
        self.server.script("train.py", SCRIPT)

    def job(self, trials=4, parallel=2, extra="", name="job.yaml"):
        self.server.script(name, JOB % {"trials": trials, "parallel": parallel} + extra)
        return name

    def tune(self, *arguments, **more):
        return self.server.ath("tune", *arguments, **more)

    def study(self, name="@last"):
        return json.loads(self.tune("show", name, "--json").stdout)

    def over(self, name="@last"):
        return until(lambda: (lambda s: s if s["state"] in harness.TERMINAL else None)(self.study(name)),
                     "the study is over")

    def test_runs_trials_as_jobs_to_the_best(self):
        done = self.tune(self.job(trials=5))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trial 5", done.stdout)
        study = self.study("digits")
        self.assertEqual((study["state"], study["cause"]["kind"]), ("Completed", "max_trials"))
        self.assertEqual(study["counts"]["done"], 5)
        for trial in study["trials"]:
            p = trial["params"]
            loss = (p["x"] - 0.3) ** 2 + 0.1 * abs(p["n"] - 2) + (p["kind"] == "b")
            self.assertAlmostEqual(trial["value"], loss)
            job = self.server.show(trial["job"])
            self.assertEqual(job["name"], "digits-%d" % trial["trial"])
            # What it took is what its job took: waiting for a place is no part of it.
            self.assertEqual(trial["started"], job["started"])
            self.assertEqual(trial["shown_state"], "done")
            self.assertEqual(job["spec"]["tags"]["athanor.trial"], str(trial["trial"]))
        self.assertEqual(study["best"]["value"], min(t["value"] for t in study["trials"]))
        rows = list(csv.DictReader(io.StringIO(self.tune("export", "digits").stdout)))
        self.assertEqual([int(row["trial"]) for row in rows], [1, 2, 3, 4, 5])
        self.assertEqual(float(rows[0]["x"]), study["trials"][0]["params"]["x"])
        self.assertIn("digits", self.tune("ls").stdout)

    def test_a_trial_whose_job_waits_is_not_said_to_run(self):
        cpus = self.server.http("GET", "/api/v1/server").json()["machine"]["cpu_millis"] / 1000
        holds = self.server.submit("sleep", "600", flags=["--cpus", "%g" % cpus])
        self.addCleanup(self.server.ath, "stop", "--now", holds)
        self.server.until_state(holds, "Running")
        self.assertEqual(self.tune(self.job(trials=1), "-d", "--name", "waiting").returncode, 0)
        trial = until(lambda: [t for t in self.study("waiting")["trials"] if t.get("job")], "it has a job")[0]
        self.assertEqual((trial["shown_state"], trial.get("started")), ("queued", None))
        self.assertIn("queued", self.tune("show", "waiting").stdout)
        self.tune("stop", "waiting")

    def test_the_same_seed_is_the_same_search(self):
        asked = []
        for name in ("one", "two"):
            self.assertEqual(self.tune(self.job(parallel=1), "--name", name, "-q").returncode, 0)
            asked.append([trial["params"] for trial in self.study(name)["trials"]])
        self.assertEqual(*asked)

    def test_a_metric_that_never_comes_fails_at_the_first_trial(self):
        self.server.script("quiet.py", "import athanor\nathanor.log(los=1.0)\nprint('no loss here')\n")
        self.server.script("quiet.yaml", "name: quiet\nrun: python3 quiet.py\ntune: {metric: loss, "
                           "space: {x: [1, 2, 3]}, parallel: 1}\n")
        done = self.tune("quiet.yaml")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no loss here", done.stdout)
        study = self.study("quiet")
        self.assertEqual((study["state"], study["cause"]["kind"]), ("Failed", "no_objective"))
        self.assertEqual(len(study["trials"]), 1)
        self.assertIn("did you mean los?", study["cause"]["hint"])

    def test_failed_trials_are_learnt_and_the_search_goes_on(self):
        done = self.tune(self.job(trials=6, extra="    env: {FAILS: 1}\n"), "--name", "some-fail")
        self.assertEqual(done.returncode, 0, done.stderr)
        study = self.study("some-fail")
        self.assertEqual(study["counts"]["done"] + study["counts"]["failed"], 6)
        for trial in study["trials"]:
            self.assertEqual(trial["state"], "failed" if trial["params"]["n"] == 2 else "done")

    def test_stop_extend_and_own_points(self):
        self.server.script("slow.py", SCRIPT + "\n    import time\n    time.sleep(float(os.environ.get('NAP', 0)))\n")
        self.server.script("slow.yaml", (JOB % {"trials": 50, "parallel": 2}).replace("train.py", "slow.py")
                           + "    env: {NAP: 600}\n    limits: {stop_grace: 1s}\n")
        self.assertEqual(self.tune("slow.yaml", "-d", "--name", "slow").returncode, 0)
        until(lambda: self.study("slow")["counts"]["running"] == 2, "two trials run")
        self.assertEqual(self.tune("stop", "slow").returncode, 0)
        study = self.over("slow")
        self.assertEqual((study["state"], len(study["trials"])), ("Stopped", 2))
        for trial in study["trials"]:
            job = self.server.show(trial["job"])
            self.assertEqual((job["state"], job["cause"]["kind"]), ("Stopped", "trial_stopped"))
        self.assertEqual(self.tune(self.job(trials=2), "--name", "more").returncode, 0)
        self.assertEqual(self.tune("extend", "more", "--max-trials", "4", "--parallel", "1").returncode, 0)
        self.tune("add", "more", "x=0.3", "n=2", "kind=a")  # the study may be over by then
        study = self.over("more")
        self.assertEqual(len(study["trials"]), 4)
        self.assertEqual(self.tune("rm", "more").returncode, 0)
        self.assertNotEqual(self.tune("show", "more").returncode, 0)

    def test_other_ranges_hold_for_the_trials_that_follow(self):
        self.assertEqual(self.tune(self.job(trials=2), "--name", "moved").returncode, 0)
        refused = self.tune("extend", "moved", "--range", "y=0..1")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("no such parameter: y", refused.stderr)
        self.assertEqual(self.tune("extend", "moved", "--range", "x=2..2.5", "--range", "kind=b",
                                   "--max-trials", "5").returncode, 0)
        trials = self.over("moved")["trials"]
        self.assertEqual(len(trials), 5)
        for trial in trials[:2]:
            self.assertLessEqual(trial["params"]["x"], 1)
        for trial in trials[2:]:
            self.assertTrue(2 <= trial["params"]["x"] <= 2.5 and trial["params"]["kind"] == "b", trial)

    def test_bad_trials_are_stopped_early(self):
        self.server.script("curve.py", """
            import os, time, athanor
            x = float(os.environ["SM_HP_X"])
            for step in range(1, 10):
                athanor.log(loss=x + 1 / step, step=step)
                if athanor.should_stop(step):
                    raise SystemExit(0)
                time.sleep(0.15)
        """)
        self.server.script("curve.yaml", """
            name: curve
            run: python3 curve.py
            tune:
              metric: loss
              strategy: sobol
              seed: 3
              space: {x: {type: float, low: 0, high: 1}}
              max_trials: 9
              parallel: 2
              early_stopping: {rule: asha, first: 1, last: 9, eta: 3}
        """)
        self.assertEqual(self.tune("curve.yaml", "-q").returncode, 0)
        study = self.study("curve")
        self.assertGreater(study["counts"]["stopped"], 1)
        best = study["best"]["params"]["x"]
        for trial in study["trials"]:
            if trial["state"] == "stopped":
                self.assertEqual(trial["cause"]["kind"], "trial_stopped")
                self.assertGreater(trial["params"]["x"], best)

    def test_paused_trials_go_on_from_their_checkpoints_when_they_are_among_the_best(self):
        self.server.script("rungs.py", """
            import os, re, time, athanor
            x = float(os.environ["SM_HP_X"])
            last = athanor.latest_checkpoint()
            begin = int(open(last).read()) + 1 if last else 1
            print("begins at", begin, flush=True)
            for step in range(begin, 5):
                athanor.log(loss=x + 1 / step, step=step)
                def write(path):
                    with open(path, "w") as file:
                        file.write(str(step))
                athanor.checkpoint(step, write)
                # At the rungs, 1 and 2, the pause is sure to come.
                for _ in range(3000 if step < 3 else 1):
                    if athanor.should_stop():
                        raise SystemExit(0)
                    time.sleep(0.02)
        """)
        self.server.script("rungs.yaml", """
            name: rungs
            run: python3 rungs.py
            tune:
              metric: loss
              strategy: sobol
              seed: 3
              space: {x: {type: float, low: 0, high: 1}}
              max_trials: 4
              parallel: 2
              early_stopping: {rule: asha, first: 1, last: 4, eta: 2, form: promotion}
        """)
        done = self.tune("rungs.yaml", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        study = self.study("rungs")
        self.assertGreaterEqual(study["counts"]["done"], 1)
        self.assertEqual(study["counts"]["done"] + study["counts"]["paused"], 4, study["counts"])
        shown = self.tune("show", "rungs").stdout
        self.assertIn("paused %d" % study["counts"]["paused"], shown)
        best = study["best"]
        self.assertEqual((best["state"], best["promotions"]), ("done", 2))
        self.assertEqual(best["params"]["x"], min(t["params"]["x"] for t in study["trials"]))
        job = json.loads(self.server.ath("show", best["job"], "--json").stdout)
        self.assertTrue(job["resume_job"])
        self.assertNotIn("begins at 1\n", self.server.ath("logs", best["job"]).stdout)
        for trial in study["trials"]:
            if trial["state"] == "paused":
                self.assertEqual(trial["cause"]["kind"], "trial_paused")

    def test_a_target_ends_it_and_a_warm_start_begins_from_it(self):
        self.server.script("first.yaml", JOB % {"trials": 40, "parallel": 2} + "      target: 1.0\n")
        self.assertEqual(self.tune("first.yaml", "--name", "first", "-q").returncode, 0)
        first = self.study("first")
        self.assertEqual(first["cause"]["kind"], "target_reached")
        self.server.script("second.yaml", JOB % {"trials": 2, "parallel": 1} + "      warm_start: [first]\n")
        self.assertEqual(self.tune("second.yaml", "--name", "second", "-q").returncode, 0)
        self.assertEqual(self.study("second")["imported"], first["counts"]["done"])

    def test_mistakes_are_said_before_anything_runs(self):
        cases = (
            ("run: x\n", "ATH-T0014"),
            ("run: python3 train.py\ntune: {metric: loss, space: {x: {type: float, low: 1, high: 0}}}\n", "ATH-T0001"),
            ("run: python3 train.py\ntune: {metric: loss, space: {x: [1, 2]}, max_trial: 3}\n", "max_trials"),
            ("run: x\ntune:\n  metric: loss\n  space: {x: [1, 2]}\n  trials: 3\n", "bad.yaml:5:3"),
            ("run: python3 train.py\ntune: {metric: loss, space: {x: [1, 2]}, early_stopping: asha}\n", "last"),
            ("run: python3 train.py ${y}\ntune: {metric: loss, space: {x: [1, 2]}}\n", "y"),
            ("run: python3 train.py\ntune: {metric: loss, space: {x: [1]}, warm_start: [none]}\n", "none"),
        )
        for text, expected in cases:
            self.server.script("bad.yaml", text)
            done = self.tune("bad.yaml")
            self.assertNotEqual(done.returncode, 0, text)
            self.assertIn(expected, done.stderr, text)
        self.server.script("good.yaml", "run: x\ntune: {metric: loss, space: {x: [1, 2]}}\n")
        self.assertIn("--> --max-trials", self.tune("good.yaml", "--max-trials", "none").stderr)


if __name__ == "__main__":
    harness.main()
