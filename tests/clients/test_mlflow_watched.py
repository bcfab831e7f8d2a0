"""A script that logs with MLflow only, with the client from PyPI as it is, is watched like one that
logs with athanor.log: rules, early stopping of trials, the best checkpoint, hangs, live charts.

Each docstring names a planted bug that turns the test red."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
import venvs
from test_page_api import Live

NEW = "3.17.2"
STOPPED = """
import os, signal, sys, time
import mlflow
ROOT = %r
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
def wait(name):
    while not os.path.exists(os.path.join(ROOT, name)): time.sleep(0.01)
"""


class Watched(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = venvs.venv("mlflow-skinny==" + NEW)

    def file(self, text, rest):
        with open(os.path.join(self.server.work, "train.py"), "w") as file:
            file.write(STOPPED % self.server.root + text)
        return self.server.file("run: %s train.py\nresources: {cpus: 0.2}\n%s" % (self.python, rest))

    def test_a_rule_on_its_metric_fires_and_stops(self):
        """Planted bug: the proxy does not show the agent what it keeps."""
        job = self.file("""
with mlflow.start_run():
    for step, loss in enumerate([0.5, 0.4, float("nan"), 0.3]):
        mlflow.log_metric("loss", loss, step=step)
    wait("never")
""", "rules: [{rule: nan, metric: loss, action: stop}]\n")
        record = self.ended(job, "Stopped")
        self.assertEqual(record["cause"]["kind"], "rule_stop")
        (firing,) = record["firings"]
        self.assertEqual((firing["metric"], firing["step"]), ("loss", 2))
        self.assertNotIn("rules_without_metric", record)

    def test_a_rule_on_batches_fires_on_values_logged_twice_only_once(self):
        """Planted bug: what is printed, too, counts twice, and fills the window."""
        job = self.file("""
with mlflow.start_run():
    for step in range(2):
        mlflow.log_metrics({"loss": 20.0, "acc": 0.5}, step=step)
        print("loss=20.0 acc=0.5", flush=True)
wait("printed")
""", "rules: [{rule: above, metric: loss, value: 10, window: 3, action: stop}]\n")
        self.server.until_log(job, "acc=0.5\nloss=20.0")
        self.server.go("printed")
        record = self.ended(job)
        self.assertNotIn("firings", record)

    def test_the_best_checkpoint_is_chosen_by_its_metric(self):
        """Planted bug: values of keep.metric come from athanor.log only."""
        job = self.file("""
import athanor
with mlflow.start_run():
    for step, value in enumerate([0.9, 0.1, 0.5, 0.6, 0.7]):
        mlflow.log_metric("val", value, step=step)
        def write(path):
            with open(path, "w") as file: file.write(str(step))
        athanor.checkpoint(step, write)
        wait("kept %d" % step)
""", "checkpoints: {keep: {last: 2, best: 1, metric: val, goal: min}}\n")
        for step in range(5):
            self.server.until_checkpoint(job, step)
            self.server.go("kept %d" % step)
        self.ended(job)
        self.assertEqual([one["step"] for one in self.server.checkpoints(job)], [4, 3, 1])

    def test_a_trial_is_stopped_early_by_its_metric(self):
        """Planted bug: the MLflow door does not tell studies about points."""
        with open(os.path.join(self.server.work, "train.py"), "w") as file:
            file.write(STOPPED % self.server.root + """
x = float(os.environ["SM_HP_X"])
with mlflow.start_run():
    for step in range(1, 10):
        mlflow.log_metric("loss", x + 1 / step, step=step)
        time.sleep(0.15)
""")
        self.server.script("curve.yaml", """
            name: curve
            run: %s train.py
            resources: {cpus: 0.2}
            tune:
              metric: loss
              strategy: sobol
              seed: 3
              space: {x: {type: float, low: 0, high: 1}}
              max_trials: 9
              parallel: 2
              early_stopping: {rule: asha, first: 1, last: 9, eta: 3}
        """ % self.python)
        done = self.server.ath("tune", "curve.yaml", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        study = self.server.json("tune", "show", "curve", "--json")
        self.assertGreater(study["counts"]["stopped"], 1)
        for trial in study["trials"]:
            if trial["state"] == "stopped":
                self.assertEqual(trial["cause"]["kind"], "trial_stopped")

    def test_logging_is_progress_and_its_end_a_hang(self):
        """Planted bug: a script that logs, and prints nothing, is called hung."""
        job = self.file("""
with mlflow.start_run():
    for step in range(30):
        mlflow.log_metric("loss", 1, step=step)
        time.sleep(0.1)
    wait("never")
""", "limits: {hang: {after: 2s, action: fail}, stop_grace: 1s}\n")
        record = self.ended(job, "Failed")
        self.assertEqual(record["cause"]["kind"], "hung")
        self.assertEqual(len(self.server.points(job, "loss")), 30, "it was ended while it logged")

    def test_live_charts_are_told(self):
        """Planted bug: points come by a way that the live stream does not know."""
        with Live(self.server) as live:
            job = self.file("""
with mlflow.start_run(): mlflow.log_metric("loss", 0.25, step=3)
wait("seen")
""", "")
            told = live.until(lambda n, d: n == "run" and d["metrics"])
            self.assertEqual((told["metrics"][0]["name"], told["metrics"][0]["last"]), ("loss", 0.25))
            self.server.go("seen")
            self.ended(job)

    def test_a_rule_whose_metric_never_came_says_so(self):
        """Planted bug: a rule with a misspelt metric never fires, and nobody knows."""
        job = self.file("""
with mlflow.start_run(): mlflow.log_metric("loss", 0.25, step=3)
""", "rules: [{rule: nan, metric: los, action: stop}, {rule: nan, metric: loss}]\n")
        record = self.ended(job)
        said = "rule nan on 'los': no metric of that name was logged; did you mean loss?"
        self.assertEqual(record["rules_without_metric"], [said])
        for verb in ("why", "show"):
            self.assertEqual(self.server.ath(verb, job, check=0).stdout.count(said), 1, verb)


if __name__ == "__main__":
    harness.main()
