"""A script that logs with MLflow neither waits for a server that is dead nor loses a point: real
clients from PyPI, real SIGKILL.

Each docstring names a planted bug that turns the test red.
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import Server, kill, until
from network import Network

OLD, NEW = "2.22.5", "3.17.2"

# Logs until `stop` is there, or as many points as are asked for, and says how far it is. "tick" has
# no step: one that is delivered twice is there twice.
SCRIPT = """
    import os, sys, time
    import mlflow
    root, most = sys.argv[1], int(sys.argv[2])
    mlflow.start_run()
    step = 0
    while step < most and not os.path.exists(root + "/stop"):
        mlflow.log_metric("loss", step / 7, step=step)
        mlflow.log_metric("tick", step)
        step += 1
        if step % 10 == 0:
            mlflow.log_param("p%d" % step, step)
            mlflow.set_tag("at", step)
            mlflow.log_metrics({"many": step}, step=step)
        with open(root + "/at.tmp", "w") as file: file.write(str(step))
        os.rename(root + "/at.tmp", root + "/at")
        time.sleep(0.002)
    mlflow.end_run()
    print("logged", step)
"""


class MlflowNetwork(Network):
    """Holds MLflow's calls back, or loses every third answer to one, and lets all else pass."""

    def __init__(self, server):
        super().__init__(server)
        self.held = self.lossy = False
        self.mlflow = set()  # connections to the server
        self.answers = self.reports = 0

    def passes(self, data, server):
        if b"/api/2.0/mlflow/" in data[:100]:
            self.mlflow.add(server)
        with self.lock:
            self.reports += data.count(b"POST /agent/v1/report ")
        return not (self.held and server in self.mlflow)

    def loses(self, server):
        if not self.lossy or server not in self.mlflow:
            return False
        with self.lock:
            self.answers += 1
            return self.answers % 3 == 0


class Away(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def network(self):
        network = MlflowNetwork(self.server)
        self.addCleanup(network.close)
        return network

    def submit(self, version, most):
        python = venvs.venv("mlflow-skinny==" + version)
        self.server.script("train.py", SCRIPT)
        return self.server.submit(python, "train.py", self.server.root, most)

    def at(self):
        try:
            with open(os.path.join(self.server.root, "at")) as file:
                return int(file.read())
        except OSError:
            return 0

    def until_at(self, step):
        until(lambda: self.at() >= step, "the script is at step %d" % step)

    def check(self, job):
        """Everything that the script logged is there, once."""
        record = self.server.wait(job)
        logs = self.server.logs(job).decode()
        self.assertEqual(record["state"], "Completed", logs[-3000:])
        count = int(logs.rpartition("logged ")[2].split()[0])
        points = self.server.points(job, "loss")
        self.assertEqual([p["step"] for p in points], list(range(count)))
        self.assertEqual([p["value"] for p in points], [step / 7 for step in range(count)])
        ticks = [p["value"] for p in self.server.points(job, "tick")]
        self.assertEqual(sorted(ticks), list(range(count)))
        tens = list(range(10, count + 1, 10))
        self.assertEqual([p["step"] for p in self.server.points(job, "many")], tens)
        found = self.run_of(record)
        data = found["data"]
        self.assertEqual(found["info"]["status"], "FINISHED")
        params = {p["key"]: p["value"] for p in data["params"]}
        self.assertEqual({k: v for k, v in params.items() if k.startswith("p")},
                         {"p%d" % ten: str(ten) for ten in tens})
        self.assertIn({"key": "at", "value": str(tens[-1])}, data["tags"])
        last = {m["key"]: (m["step"], m["value"]) for m in data["metrics"]}
        self.assertEqual(last["loss"], (count - 1, (count - 1) / 7))
        return count

    def post(self, path, body):
        return self.server.http("POST", "/api/2.0/mlflow/" + path, body=json.dumps(body),
                                headers={"Content-Type": "application/json"}).json()

    def run_of(self, record):
        known = self.post("experiments/search", {"max_results": 100})["experiments"]
        runs = self.post("runs/search", {"experiment_ids": [e["experiment_id"] for e in known]})
        (run,) = [r for r in runs["runs"] if r["info"]["run_name"] == record["name"]]
        return run

    def test_answers_are_lost(self):
        """Red if a call is delivered again without its place (kPlaceHeader), or if the door does
        not look at it: ticks are there twice."""
        network = self.network()
        job = self.submit(NEW, 1_000_000)
        self.until_at(10)
        network.lossy = True
        self.until_at(self.at() + 30)
        until(lambda: network.swallowed >= 10, "answers were lost")
        network.lossy = False
        self.server.go("stop")
        self.check(job)

    def test_the_end_waits_for_what_was_logged(self):
        """Red if Agent::Finish does not wait for the proxy (MlflowProxy::Drain) before it says that
        the attempt ended: the token is void then, and the rest is refused."""
        network = self.network()
        job = self.submit(OLD, 1_000_000)
        self.until_at(20)
        network.held = True
        network.break_open()
        self.until_at(self.at() + 20)
        self.server.go("stop")
        supervisor = self.server.supervisor_pids(job)
        until(lambda: not any(map(harness.alive, supervisor)), "the script has ended")
        # The agent goes on to report, several times, but not the end.
        before = network.reports
        until(lambda: network.reports >= before + 4, "the agent reports")
        self.assertEqual(self.server.state(job), "Running")
        network.held = False
        self.check(job)

    def test_the_server_dies_again_and_again(self):
        """Red if a call is answered without being kept: points are missing; or if the script waits
        for the server, and so never comes on."""
        job = self.submit(NEW, 1_000_000)
        for _ in range(4):
            self.until_at(self.at() + 30)
            self.server.kill()
            self.until_at(self.at() + 30)
            self.server.start()
        self.until_at(self.at() + 30)
        self.server.go("stop")
        self.assertGreater(self.check(job), 200)

    def test_the_script_ends_while_the_server_is_dead(self):
        """Red if a run that was read before is not answered while the server is away (MayBeOld): the
        client reads it once more at its end, and tries for minutes."""
        job = self.submit(OLD, 1_000_000)
        self.until_at(20)
        supervisor = self.server.supervisor_pids(job)
        self.server.kill()
        self.until_at(self.at() + 50)
        self.server.go("stop")
        until(lambda: not any(map(harness.alive, supervisor)), "the script has ended")
        self.server.start()
        self.assertGreater(self.check(job), 50)

    def test_the_agent_dies_too(self):
        """Red if a new agent listens on another port, or begins with an empty spool."""
        job = self.submit(NEW, 1_000_000)
        self.until_at(20)
        agents = self.server.agent_pids(job)
        self.server.kill()
        self.until_at(self.at() + 20)
        for pid in agents:
            kill(pid)
        self.server.start()
        self.until_at(self.at() + 20)
        self.server.go("stop")
        self.assertGreater(self.check(job), 50)


if __name__ == "__main__":
    harness.main()
