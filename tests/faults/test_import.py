"""An import of event files that is cut off is typed again, and each point is there once: real
SIGKILL of the server and of the client, in the middle of many runs.

Each docstring names a planted bug that turns the test red.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import BUILD, Server, kill, until

RUNS, STEPS = 40, 4_000  # a round of runs, and what each has of two metrics
WRITE = """
import sys
from athanor import SummaryWriter
writer = SummaryWriter(sys.argv[1])
for step in range(%d):
    writer.add_scalar("loss", step * 0.5, step)
    writer.add_scalar("accuracy", -step, step)
writer.close()
""" % STEPS


class CutOff(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.folder = os.path.join(tempfile.mkdtemp(prefix="ath-cut-"), "logs")
        self.addCleanup(shutil.rmtree, os.path.dirname(self.folder), ignore_errors=True)
        self.first = os.path.join(self.folder, "r000")
        subprocess.run([venvs.SYSTEM, "-B", "-c", WRITE, self.first], check=True,
                       env=dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python")))
        self.runs = 1
        self.more_runs(RUNS)

    def more_runs(self, upto):
        for number in range(self.runs, upto):
            shutil.copytree(self.first, os.path.join(self.folder, "r%03d" % number))
        self.runs = upto

    def stored(self):
        """Bytes of points that the server holds."""
        total = 0
        for folder, _, names in os.walk(os.path.join(self.server.home, "server", "series")):
            total += sum(os.path.getsize(os.path.join(folder, name)) for name in names
                         if name.endswith(".series"))
        return total

    def cut_off(self, victim):
        """Ends `victim` of a new import once that has stored something; whether it came in time."""
        before = self.stored()
        importing = self.server.popen("import", "tb", self.folder, "--json",
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # A nap might be longer than the import.
        until(lambda: self.stored() > before or importing.poll() is not None, "points come", longest_nap=0)
        if importing.poll() is None:
            victim(importing)
        return importing.wait() != 0

    def cut_off_some(self, victim):
        """Three times; an import that was over before the victim died leaves nothing to cut, so the
        next one has more runs."""
        cut = 0
        for _ in range(12):
            if self.cut_off(victim):
                cut += 1
            else:
                self.more_runs(self.runs + RUNS)
            if cut == 3:
                return
        self.assertGreater(cut, 0, "no import was cut off")

    def check(self):
        done = self.server.json("import", "tb", self.folder)
        self.assertEqual(len(done["runs"]), self.runs)
        self.assertEqual([run["points"] for run in done["runs"]], [2 * STEPS] * self.runs)
        for number, run in enumerate(done["runs"]):
            told = self.server.http("GET", "/api/v1/runs/" + run["id"]).json()["metrics"]
            self.assertEqual({name: metric["count"] for name, metric in told.items()},
                             {"accuracy": STEPS, "loss": STEPS})
            if number % 8 == 0:
                points = self.server.points(run["id"], "loss")
                self.assertEqual([(p["step"], p["value"]) for p in points],
                                 [(step, step * 0.5) for step in range(STEPS)])
        again = self.server.json("import", "tb", self.folder)
        self.assertEqual([run["stored"] for run in again["runs"]], [0] * self.runs)
        return sum(run["stored"] for run in done["runs"])

    def test_the_server_dies(self):
        """Red if SeriesStore::Write takes points into its state before they are in the file, or if
        KeepFresh does not look at what is stored."""
        def victim(_):
            self.server.kill()
            self.server.start()
        self.cut_off_some(victim)
        self.check()

    def test_the_client_dies(self):
        """Red if a client's points are numbered by a counter instead of their place in the file."""
        self.cut_off_some(lambda importing: kill(importing.pid))
        self.assertLess(self.check(), self.runs * 2 * STEPS)


if __name__ == "__main__":
    harness.main()
