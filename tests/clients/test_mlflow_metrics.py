"""Which value of a metric counts: logged without a step, several times at one step, or printed as
well, with MLflow's clients from PyPI, old and new, and by hand.

Each docstring names a planted bug that turns the test red."""

import json
import os
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import until

OLD, NEW = "2.22.5", "3.17.2"

WITHOUT_A_STEP = """
import json, mlflow
mlflow.set_experiment("of " + mlflow.__version__)
with mlflow.start_run(run_name="nostep " + mlflow.__version__) as run:
    for value in (0.1, 0.5, 0.9, 0.7): mlflow.log_metric("loss", value)
    mlflow.log_metrics({"loss": 0.4, "once": 3})
client = mlflow.MlflowClient()
data = client.get_run(run.info.run_id).data
history = client.get_metric_history(run.info.run_id, "loss")
found = {clause: len(mlflow.search_runs(filter_string="metrics.loss " + clause, output_format="list"))
         for clause in ("= 0.4", "< 0.2", "> 0.45")}
print(json.dumps({"run": run.info.run_id, "data": data.metrics, "found": found,
                  "history": [[m.step, m.value] for m in history]}))
"""


class Case(harness.Case):
    def call(self, method, path, body=None):
        reply = self.server.http(method, "/api/2.0/mlflow/" + path,
                                 body=json.dumps(body) if body is not None else None,
                                 headers={"Content-Type": "application/json"})
        self.assertEqual(reply.status, 200, reply.body[:500])
        return reply.json()

    def new_run(self, name="by hand"):
        run = self.call("POST", "runs/create", {"experiment_id": "0", "run_name": name})
        return run["run"]["info"]["run_id"]

    def log(self, run, value, step=0, timestamp=1, key="m"):
        self.call("POST", "runs/log-metric", {"run_id": run, "key": key, "value": value,
                                              "timestamp": timestamp, "step": step})

    def latest(self, run, key="m"):
        metrics = self.call("GET", "runs/get?run_id=" + run)["run"]["data"]["metrics"]
        return {m["key"]: (m["step"], m["value"]) for m in metrics}[key]


class Latest(Case):
    def check_client(self, version):
        python = venvs.venv("mlflow-skinny==" + version)
        out = json.loads(subprocess.run(
            [python, "-B", "-c", WITHOUT_A_STEP], check=True, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "MLFLOW_TRACKING_URI": self.server.url}).stdout.splitlines()[-1])
        self.assertEqual(out["data"], {"loss": 0.4, "once": 3.0})
        self.assertEqual(sorted(out["history"]), [[0, 0.1], [0, 0.4], [0, 0.5], [0, 0.7], [0, 0.9]])
        self.assertEqual(out["found"], {"= 0.4": 1, "< 0.2": 0, "> 0.45": 0})
        # The same for our own eyes.
        row, = [r for r in self.server.json("runs")["runs"] if r["name"] == "nostep " + version]
        self.assertEqual(row["metrics"]["loss"]["last"], 0.4)
        points = self.server.http("GET", "/api/v1/runs/%s/metrics/loss" % out["run"]).body
        points = [json.loads(line) for line in points.splitlines()]
        self.assertEqual([p["value"] for p in points], [0.1, 0.5, 0.9, 0.7, 0.4])
        self.assertFalse([p for p in points if "step" in p])

    def test_old_client(self):
        """Red if the store keeps the step of the first point (DropZeroSteps): it is the last then."""
        self.check_client(OLD)

    def test_new_client(self):
        """As test_old_client."""
        self.check_client(NEW)

    def test_of_one_step_the_newest_time_counts_then_the_last_logged(self):
        """Red if DropReplaced does not look at the time."""
        run = self.new_run()
        self.log(run, 1, step=0, timestamp=5)
        self.log(run, 2, step=4, timestamp=50)
        self.log(run, 3, step=4, timestamp=40)
        self.assertEqual(self.latest(run), (4, 2))
        self.log(run, 4, step=4, timestamp=50)
        self.assertEqual(self.latest(run), (4, 4))
        self.log(run, 5, step=4, timestamp=60)
        self.log(run, 6, step=0, timestamp=99)
        self.assertEqual(self.latest(run), (4, 5))
        history = self.call("GET", "metrics/get-history?metric_key=m&run_id=" + run)["metrics"]
        self.assertEqual([m["value"] for m in history], [1, 3, 2, 4, 5, 6])

    def test_order_by_and_a_restart(self):
        """Red if an index, or the summary that is kept up, knows another last value than the file."""
        runs = [self.new_run("ordered") for _ in range(3)]
        for number, run in enumerate(runs):
            for i, value in enumerate((9, 5, number)):
                self.log(run, value, timestamp=100 + i, key="sorted")
        for restarted in (False, True):
            if restarted:
                self.server.kill()
                self.server.start()
            found = self.call("POST", "runs/search", {
                "experiment_ids": ["0"], "filter": "metrics.sorted < 3",
                "order_by": ["metrics.sorted DESC"]})
            self.assertEqual([r["info"]["run_id"] for r in found["runs"]], runs[::-1])


class Interval(Case):
    """get-history-bulk-interval gives the rows that MLflow's server gives (3.15)."""

    def rows(self, runs, most=None, start=None, end=None, key="m"):
        fields = [("run_ids", run) for run in runs] + [("metric_key", key)]
        fields += [(name, value) for name, value in
                   (("max_results", most), ("start_step", start), ("end_step", end))
                   if value is not None]
        path = "metrics/get-history-bulk-interval?" + urllib.parse.urlencode(fields)
        return [(m["step"], m["timestamp"]) for m in self.call("GET", path)["metrics"]]

    def test_first_row_of_each_part_and_the_last_row(self):
        """Red if Sampled takes i * rows / most for the beginning of a part."""
        run = self.new_run()
        for step in range(13):
            self.log(run, 1, step)
        steps = lambda *more: [step for step, _ in self.rows([run], *more)]
        self.assertEqual(steps(5), [0, 3, 6, 9, 12])      # 3 3 3 2 2
        self.assertEqual(steps(8), [0, 2, 4, 6, 8, 10, 11, 12])
        self.assertEqual(steps(3), [0, 5, 12])
        self.assertEqual(steps(1), [12])
        self.assertEqual(steps(13), list(range(13)))
        self.assertEqual(steps(), list(range(13)))
        self.assertEqual(steps(3, 4, 9), [4, 6, 9])
        self.assertEqual(steps(3, 0, 0), [0])
        self.assertEqual(steps(3, 20, 30), [])

    def test_rows_and_not_steps_are_counted(self):
        """Red if rows of one step are merged before they are chosen."""
        run, other = self.new_run(), self.new_run()
        for step in range(4):
            for timestamp in (7, 6, 5):
                self.log(run, 1, step, timestamp)
            self.log(other, 1, step)
        self.assertEqual(self.rows([run], 4), [(0, 5), (1, 5), (2, 5), (3, 7)])
        self.assertEqual(len(self.rows([run])), 12)
        both = self.rows(sorted([run, other]), 2)
        self.assertEqual(sorted(both), [(0, 1), (0, 5), (3, 1), (3, 7)])

    def test_what_is_wrong_is_said_in_mlflows_words(self):
        for fields, text in (
                ("metric_key=m", "Missing value for required parameter 'run_ids'."),
                ("run_ids=a", "Missing value for required parameter 'metric_key'"),
                ("metric_key=m" + "&run_ids=a" * 101, "must specify at most 100 run_ids."),
                ("run_ids=a&metric_key=m&max_results=0", "max_results must be between 1 and 2500"),
                ("run_ids=a&metric_key=m&max_results=2501", "max_results must be between 1 and 2500"),
                ("run_ids=a&metric_key=m&start_step=1", "both must be specified."),
                ("run_ids=a&metric_key=m&start_step=1&end_step=0", "must be greater than start_step")):
            reply = self.server.http(
                "GET", "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?" + fields)
            self.assertEqual((reply.status, reply.json()["error_code"]),
                             (400, "INVALID_PARAMETER_VALUE"))
            self.assertIn(text, reply.json()["message"])

    def test_without_steps_all_are_at_step_0(self):
        run = self.new_run()
        for timestamp in range(6):
            self.log(run, 1, 0, timestamp)
        self.assertEqual(self.rows([run], 3), [(0, 0), (0, 2), (0, 5)])
        self.assertEqual(self.rows([run], 3, 0, 5), [(0, 0), (0, 2), (0, 5)])
        self.assertEqual(self.rows([run], 3, 1, 5), [])


# Prints before it logs, while it does and after; `root/go` lies between what is only printed and the
# first call of a client.
PRINTED = """
    import os, sys, time
    root = sys.argv[1]
    %s
    def say(step): print("step=%%d loss=%%.2f acc=%%.1f" %% (step, 1 / (step + 3), step), flush=True)
    for step in range(3): say(step)
    while not os.path.exists(root + "/go"): time.sleep(0.01)
    for step in range(3, 8):
        %s
        say(step)
"""
LOGGED = [(step, 1 / (step + 3)) for step in range(3, 8)]
CLIENTS = {
    "mlflow": ("import mlflow; mlflow.start_run()",
               "mlflow.log_metric('loss', 1 / (step + 3), step=step)"),
    # Past the agent, at the server's own door.
    "door": ("import mlflow; mlflow.set_tracking_uri(sys.argv[2]); mlflow.start_run()",
             "mlflow.log_metric('loss', 1 / (step + 3), step=step)"),
    "athanor": ("import athanor", "athanor.log(loss=1 / (step + 3), step=step)"),
    "events": ("import athanor; writer = athanor.SummaryWriter('runs')",
               "writer.add_scalar('loss', 1 / (step + 3), step); writer.flush()"),
}


class Printed(Case):
    """A metric that is printed and logged is there once, as it was logged."""

    def check(self, client, python="python3", *more):
        self.server.script("train.py", PRINTED % CLIENTS[client])
        root = os.path.join(self.server.root, client)
        os.mkdir(root)
        self.addCleanup(self.server.go, client + "/go")  # also when a check fails
        job = self.server.submit(python, "train.py", root, *more)
        # What was guessed is shown, as long as there is nothing better.
        guessed = until(lambda: len(found := self.points(job, "loss")) == 3 and found,
                        "three guesses are there")
        self.assertEqual([(p["step"], p["value"], p.get("guessed")) for p in guessed],
                         [(0, 0.33, True), (1, 0.25, True), (2, 0.2, True)])
        self.server.go(client + "/go")
        self.ended(job)
        points = self.points(job, "loss")
        logged = [(p["step"], p["value"]) for p in points]
        self.assertEqual([step for step, _ in logged], [step for step, _ in LOGGED])
        for (_, found), (_, value) in zip(logged, LOGGED):
            # An event file has 32 bits for a number.
            self.assertAlmostEqual(found, value, delta=1e-7 if client == "events" else 0)
        self.assertFalse([p for p in points if "guessed" in p])
        summary = {m["name"]: m for m in self.server.json("metrics", job)["metrics"]}
        self.assertEqual(summary["loss"]["count"], 5)
        self.assertAlmostEqual(summary["loss"]["last"], 0.1, delta=1e-7)
        self.assertAlmostEqual(summary["loss"]["max"], 1 / 6, delta=1e-7)
        if client in ("mlflow", "door"):
            # Only this name was logged.
            self.assertEqual(summary["acc"]["count"], 8)
            self.assertEqual(summary["acc"]["last"], 7)
        return job

    def points(self, job, name):
        said = self.server.ath("metrics", job, name, "--json").stdout
        return [json.loads(line) for line in said.splitlines()] if '"value"' in said else []

    def test_old_mlflow_client(self):
        """Red if guesses have the channel of regular expressions (AddPoints), or if KeepSpeakers
        leaves them: the print comes last and wins."""
        job = self.check("mlflow", venvs.venv("mlflow-skinny==" + OLD))
        run = self.server.http("GET", "/api/v1/runs/" + job).json()["run_id"]
        found = self.call("POST", "runs/search", {"experiment_ids": ["0"],
                                                  "filter": "metrics.loss = 0.1"})["runs"]
        self.assertIn(run, [r["info"]["run_id"] for r in found])
        history = self.call("GET", "metrics/get-history?metric_key=loss&run_id=" + run)["metrics"]
        self.assertEqual([(m["step"], m["value"]) for m in history], LOGGED)

    def test_past_the_agent(self):
        """Red if only the agent's proxy, and not the store, knew what is logged."""
        self.check("door", venvs.venv("mlflow-skinny==" + NEW), self.server.url)

    def test_athanor_log(self):
        """Red if what was guessed before the first athanor.log counts on."""
        self.check("athanor")

    def test_event_file(self):
        """Red if what was guessed before the first event counts on."""
        self.check("events")

    def test_a_regex_of_the_job_file_is_no_guess(self):
        """Red if its points had the channel of guesses."""
        self.server.script("train.py", PRINTED % CLIENTS["athanor"])
        root = os.path.join(self.server.root, "regex")
        os.mkdir(root)
        self.server.go("regex/go")
        job = self.server.submit("python3", "train.py", root, flags=[
            "--metric", "printed=loss=([0-9.]+)", "--metric", "acc=acc=([0-9.]+)"])
        self.ended(job)
        self.assertEqual([(p["step"], p["value"]) for p in self.points(job, "loss")], LOGGED)
        self.assertEqual(len(self.points(job, "printed")), 8)
        self.assertNotIn("guessed", self.points(job, "acc")[0])


if __name__ == "__main__":
    harness.main()
