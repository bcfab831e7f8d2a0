"""Which GPUs a job sees: those it reserved, or, if it asked for none, those that nobody reserved.
On a fake driver's tree, since the machine that runs the tests need not have a GPU; all else is real.
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import Server, main

SEES = ('import json, os; e = os.environ; print("sees", json.dumps([e["CUDA_VISIBLE_DEVICES"], '
        'e["SM_NUM_GPUS"], json.loads(e["SM_TRAINING_ENV"])["num_gpus"], '
        'e.get("CUDA_DEVICE_ORDER")]))')
WAITS = SEES + r'''
import time
print(flush=True)
while not os.path.exists(os.path.join(os.environ["GO"], os.environ["GO_NAME"])): time.sleep(0.02)
'''


class MachineWithGpus(Server):
    """`count` GPUs, as the NVIDIA driver shows them below /proc."""

    def __init__(self, count):
        super().__init__(start=False)
        driver = os.path.join(self.root, "driver")
        for i in range(count):
            folder = os.path.join(driver, "gpus", "0000:%02x:00.0" % (i + 1))
            os.makedirs(folder)
            with open(os.path.join(folder, "information"), "w") as file:
                file.write("Model: \t\t NVIDIA Test\nIRQ:   \t\t 10\nDevice Minor: \t %d\n" % i)
        self.environment["ATHANOR_NVIDIA_DRIVER"] = driver
        self.start()

    def holds(self, name, *flags):
        """A job that runs until end(name); what it sees."""
        job = self.python(WAITS, flags=["--name", name, "--cpus", "0.1", "-e", "GO=" + self.root,
                                        "-e", "GO_NAME=" + name, *flags], name=name + ".py")
        self.until_log(job, "sees")
        return self.seen(job)

    def end(self, name):
        self.go(name)
        self.wait(name)

    def seen(self, job):
        line = [line for line in self.logs(job).decode().splitlines() if line.startswith("sees")][-1]
        return json.loads(line[5:])


def sees(*devices):
    """What a job tells that was given these."""
    return [",".join(map(str, devices)), str(len(devices)), len(devices),
            "PCI_BUS_ID" if devices else None]


class Gpus(unittest.TestCase):
    def machine(self, count):
        server = MachineWithGpus(count)
        self.addCleanup(server.close)
        return server

    def test_a_job_that_asks_for_nothing_trains_on_the_gpus(self):
        """Red if CUDA_VISIBLE_DEVICES is empty without --gpus."""
        server = self.machine(2)
        script = server.script("train.py", SEES)
        for flags in ([], ["--gpus", "auto"], ["--cpus", "1", "--memory", "64MB"]):
            name = "plain%d" % len(flags)
            out = server.ath("run", "--name", name, *flags, "--", "python3", script, check=0)
            self.assertEqual(server.seen(name), sees(0, 1))
            line = "0,1 (all that no other job reserved)"
            self.assertEqual(out.stderr.count("  gpus    " + line + "\n"), 1, out.stderr)
            self.assertIn("    gpus      " + line, server.ath("show", name, check=0).stdout)
        job = server.file("run: python3 train.py\nresources: {gpus: auto}\n")
        server.wait(job)
        self.assertEqual(server.seen(job), sees(0, 1))

    def test_none_and_some(self):
        """Red if `--gpus 0` is taken for nothing asked, or a reservation shows more than it has."""
        server = self.machine(2)
        script = server.script("train.py", SEES)
        out = server.ath("run", "--name", "none", "--gpus", "0", "--", "python3", script, check=0)
        self.assertEqual(server.seen("none"), sees())
        self.assertNotIn("gpus", out.stderr)
        job = server.file("run: python3 train.py\nresources: {gpus: 0}\n")
        server.wait(job)
        self.assertEqual(server.seen(job), sees())
        server.ath("run", "--name", "one", "--gpus", "1", "--", "python3", script, check=0)
        self.assertEqual(server.seen("one"), sees(0))
        self.assertIn("    gpus      0 (reserved)", server.ath("show", "one", check=0).stdout)
        # A type has what it has, as on SageMaker.
        server.ath("run", "--name", "typed", "--type", "ml.t3.medium", "--", "python3", script,
                   check=0)
        self.assertEqual(server.seen("typed"), sees())
        # A retry keeps what was asked for, and may ask otherwise.
        server.wait(server.json("retry", "none", "-d", "--name", "again")["id"])
        self.assertEqual(server.seen("again"), sees())

    def test_who_reserves_and_who_does_not(self):
        """Red if an auto job is given a reserved GPU, or if a reservation waits for an auto job."""
        server = self.machine(3)
        self.assertEqual(server.holds("reserved", "--gpus", "1"), sees(0))
        self.assertEqual(server.holds("auto"), sees(1, 2))
        # The next one starts with the GPU that the first does not start with.
        self.assertEqual(server.holds("auto2"), sees(2, 1))
        server.end("reserved")
        # GPU 0 is free and no job sees it: it is taken before those that auto jobs share.
        self.assertEqual(server.holds("second", "--gpus", "1"), sees(0))
        # Every GPU is in use; it still does not wait.
        self.assertEqual(server.holds("third", "--gpus", "1"), sees(1))
        self.assertEqual(server.holds("auto3"), sees(2))
        queue = server.http("GET", "/api/v1/queue").json()
        self.assertEqual(queue["machine"]["gpus_used"], 2)
        for name in ("auto", "auto2", "second", "third", "auto3"):
            server.end(name)

    def test_reservations_queue_and_auto_jobs_go_on_the_cpu(self):
        """Red if an auto job waits for a GPU, or if two jobs reserve one."""
        server = self.machine(2)
        self.assertEqual(server.holds("all", "--gpus", "2"), sees(0, 1))
        self.assertEqual(server.holds("auto"), sees())
        job = server.python(SEES, flags=["--name", "waits", "--cpus", "0.1", "--gpus", "1"])
        self.assertEqual(server.show(job)["cause"]["kind"], "waiting_gpus")
        server.end("all")
        server.wait(job)
        self.assertEqual(server.seen(job), sees(0))
        server.end("auto")

    def test_without_gpus_nothing_changes(self):
        """Red if a machine without GPUs prints a line, or refuses `auto`."""
        server = self.machine(0)
        script = server.script("train.py", SEES)
        out = server.ath("run", "--name", "plain", "--gpus", "auto", "--", "python3", script, check=0)
        self.assertEqual(server.seen("plain"), sees())
        self.assertNotIn("gpus", out.stderr)
        self.assertNotIn("gpus", server.ath("show", "plain", check=0).stdout)

    def test_other_words_are_refused(self):
        """Red if any text is taken for auto."""
        server = self.machine(1)
        for word in ("all", "-1", "1.5", "Auto"):
            out = server.ath("run", "--gpus", word, "--", "true")
            self.assertEqual(out.returncode, 2, out.stderr)
            self.assertIn("gpus", out.stderr)


if __name__ == "__main__":
    main()
