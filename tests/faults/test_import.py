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

RUNS, STEPS = 40, 4_000
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
        first = os.path.join(self.folder, "r00")
        subprocess.run([venvs.SYSTEM, "-B", "-c", WRITE, first], check=True,
                       env=dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python")))
        for number in range(1, RUNS):
            shutil.copytree(first, os.path.join(self.folder, "r%02d" % number))

    def stored(self):
        """Bytes of points that the server holds."""
        total = 0
        for folder, _, names in os.walk(os.path.join(self.server.home, "server", "series")):
            total += sum(os.path.getsize(os.path.join(folder, name)) for name in names
                         if name.endswith(".series"))
        return total

    def cut_off(self, victim):
        """Ends `victim` of a new import once that has stored something."""
        before = self.stored()
        importing = self.server.popen("import", "tb", self.folder, "--json",
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self.stored() > before or importing.poll() is not None, "points come")
        victim(importing)
        return importing.wait() != 0

    def check(self):
        done = self.server.json("import", "tb", self.folder)
        self.assertEqual(len(done["runs"]), RUNS)
        self.assertEqual([run["points"] for run in done["runs"]], [2 * STEPS] * RUNS)
        for number, run in enumerate(done["runs"]):
            told = self.server.http("GET", "/api/v1/runs/" + run["id"]).json()["metrics"]
            self.assertEqual({name: metric["count"] for name, metric in told.items()},
                             {"accuracy": STEPS, "loss": STEPS})
            if number % 8 == 0:
                points = self.server.points(run["id"], "loss")
                self.assertEqual([(p["step"], p["value"]) for p in points],
                                 [(step, step * 0.5) for step in range(STEPS)])
        again = self.server.json("import", "tb", self.folder)
        self.assertEqual([run["stored"] for run in again["runs"]], [0] * RUNS)
        return sum(run["stored"] for run in done["runs"])

    def test_the_server_dies(self):
        """Red if SeriesStore::Write takes points into its state before they are in the file, or if
        KeepFresh does not look at what is stored."""
        def victim(_):
            self.server.kill()
            self.server.start()
        cut = [self.cut_off(victim) for _ in range(3)]
        self.assertTrue(any(cut), "no import was cut off")
        self.check()

    def test_the_client_dies(self):
        """Red if a client's points are numbered by a counter instead of their place in the file."""
        cut = [self.cut_off(lambda importing: kill(importing.pid)) for _ in range(3)]
        self.assertTrue(any(cut), "no import was cut off")
        self.assertLess(self.check(), RUNS * 2 * STEPS)


if __name__ == "__main__":
    harness.main()
