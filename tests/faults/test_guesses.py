"""What a client logs takes its name from what was guessed of the log, whoever dies meanwhile: the
real client, real SIGKILL.

Each docstring names a planted bug that turns the test red.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import Server, kill, until

# Prints all the time; logs from `log` on until `stop`; says how far it is with each.
SCRIPT = """
    import os, sys, time
    import mlflow
    root = sys.argv[1]
    there = lambda name: os.path.exists(os.path.join(root, name))
    mlflow.start_run()
    step, logged = 0, []
    while not there("stop"):
        if there("log"):
            mlflow.log_metric("loss", step / 7, step=step)
            logged.append(step)
        print("step=%d loss=%.1f" % (step, step / 7), flush=True)
        step += 1
        with open(root + "/at.tmp", "w") as file: file.write("%d %d" % (step, len(logged)))
        os.rename(root + "/at.tmp", root + "/at")
        time.sleep(0.005)
    mlflow.end_run()
    print("LOGGED %d %d" % (logged[0], len(logged)))
"""


class Guesses(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def at(self):
        try:
            with open(os.path.join(self.server.root, "at")) as file:
                return [int(word) for word in file.read().split()]
        except OSError:
            return [0, 0]

    def more(self, which):
        """Until 20 more lines are printed (0) or points logged (1)."""
        goal = self.at()[which] + 20
        until(lambda: self.at()[which] >= goal, "the script is at %d" % goal)

    def kill_agent(self, job):
        """And waits for the one that takes its place."""
        before = self.server.agent_pids(job)
        self.assertTrue(before)
        for pid in before:
            kill(pid)
        until(lambda: set(self.server.agent_pids(job)) - set(before), "there is a new agent")

    def loss(self, job):
        known = self.server.json("metrics", job)["metrics"]
        return next((m for m in known if m["name"] == "loss"), {"count": 0})

    def test_agent_and_server_die_before_and_after_the_first_call(self):
        """Red if only the agent that saw the call knew of it: the next one reads the log from its
        start, and sends the guesses again; or if the index or a fresh scan of the series counts them
        (KeepSpeakers, RunningSummary::Add)."""
        python = venvs.venv("mlflow-skinny==3.17.2")
        self.server.script("train.py", SCRIPT)
        job = self.server.submit(python, "train.py", self.server.root)
        until(lambda: self.loss(job)["count"] >= 20, "there are guesses")
        self.kill_agent(job)
        self.more(0)
        self.server.kill()
        self.server.start()
        self.server.go("log")
        self.more(1)
        until(lambda: "guessed" not in self.server.points(job, "loss")[-1], "a logged point is there")
        self.kill_agent(job)
        self.more(1)
        self.server.kill()
        self.more(1)
        self.server.start()
        self.more(1)
        self.server.go("stop")
        record = self.server.wait(job)
        logs = self.server.logs(job).decode()
        self.assertEqual(record["state"], "Completed", logs[-3000:])
        first, count = map(int, logs.rpartition("LOGGED ")[2].split()[:2])
        self.assertGreater(first, 20)
        expected = [(step, step / 7) for step in range(first, first + count)]
        for restarted in (False, True):
            if restarted:
                self.server.kill()
                self.server.start()
            points = self.server.points(job, "loss")
            self.assertEqual([(p["step"], p["value"]) for p in points], expected)
            loss = self.loss(job)
            self.assertEqual((loss["count"], loss["last"], loss["min"]),
                             (count, expected[-1][1], expected[0][1]))


if __name__ == "__main__":
    harness.main()
