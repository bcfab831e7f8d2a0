"""Agent and server cannot hear each other: silence is not death. Real processes; the network
between them is a proxy in the place of the server's socket.

Each docstring names a planted bug that turns the test red.
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import Server, until
from network import network_of

# Logs in parts, each when the test says so. A second one of us at the same time would not get
# the lock, and says so where no network is needed.
PARTS = """
    import athanor, fcntl, os, signal, sys, time
    root = sys.argv[1]
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    alone = open(root + "/alone", "w")
    try: fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: open(root + "/two of us", "w").close()
    def wait(name):
        while not os.path.exists(root + "/" + name) and not told: time.sleep(0.01)
    def part(number):
        for i in range(1000 * number, 1000 * number + 1000):
            print("line %05d" % i)
            athanor.log(loss=i / 7, step=i)
        sys.stdout.flush()
        open(root + "/part %d is out" % number, "w").close()
    part(0)
    for number in (1, 2):
        wait("go %d" % number)
        part(number)
    print("the end")
"""

SAVES = """
    import athanor, fcntl, os, signal, sys, time
    root = sys.argv[1]
    alone = open(root + "/alone", "w")
    try: fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: open(root + "/two of us", "w").close()
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    last = athanor.latest_checkpoint()
    print("from", open(last).read() if last else "nothing", flush=True)
    while not last and not told: time.sleep(0.01)
    if told:
        def write(path):
            with open(path, "w") as file: file.write("what was saved")
        athanor.checkpoint(41, write)
        open(root + "/saved", "w").close()
"""


class Partition(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.network = network_of(self.server)
        self.addCleanup(self.network.close)

    def there(self, name):
        return os.path.exists(os.path.join(self.server.root, name))

    def seen(self, job):
        """The record as the server has it, past the cut."""
        return json.loads(self.server.ath("show", job, "--json", env=self.network.direct,
                                          check=0).stdout)

    def polled(self, job):
        """Until the server has looked for the attempt's host a few times."""
        # It looks once a second, and only after an attempt's first three.
        began = self.clock()
        until(lambda: self.clock() - began > 4.5, "some polls have passed")
        record = self.seen(job)
        self.assertEqual((record["state"], len(record["attempts"])), ("Running", 1))

    @staticmethod
    def clock():
        import time
        return time.monotonic()

    def check_all_there_once(self, job):
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(len(record["attempts"]), 1, "never replaced")
        self.assertFalse(self.there("two of us"))
        self.assertEqual(self.server.logs(job).decode(),
                         "".join("line %05d\n" % i for i in range(3000)) + "the end\n")
        self.assertEqual([(p["step"], p["value"]) for p in self.server.points(job, "loss")],
                         [(i, i / 7) for i in range(3000)])

    def test_job_goes_on_and_reports_later(self):
        """Red if an attempt is taken for lost when its agent is silent (PolledGone on a status
        other than the back end's word), or if what was read from the spool is forgotten when a
        post fails."""
        job = self.server.python(PARTS, self.server.root)
        self.server.until_log(job, "line 00999")
        self.network.cut()
        self.server.go("go 1")
        until(lambda: self.there("part 1 is out"), "it works while cut off")
        self.polled(job)
        # It even ends while cut off.
        self.server.go("go 2")
        (supervisor,) = self.server.supervisor_in(self.folder(job))
        until(lambda: not harness.alive(supervisor), "the script ended")
        self.assertEqual(self.seen(job)["state"], "Running", "nobody told the server")
        self.network.heal()
        self.check_all_there_once(job)

    def folder(self, job):
        return os.path.join(self.server.attempts, self.seen(job)["attempts"][-1]["id"])

    def test_replies_that_do_not_arrive_double_nothing(self):
        """Red if the server takes a batch that it has taken before (the duplicate check by
        sequence or offset is left out), or if the agent moves on before the reply."""
        job = self.server.python(PARTS, self.server.root)
        self.server.until_log(job, "line 00999")
        self.network.cut(up=False)
        self.server.go("go 1")
        until(lambda: self.there("part 1 is out"), "it works while cut off")
        until(lambda: self.network.swallowed >= 5, "replies were lost")
        until(lambda: "line 01999" in self.server.ath(
            "logs", job, "--quiet", env=self.network.direct, check=0).stdout, "requests arrived")
        self.server.go("go 2")
        self.network.heal()
        self.check_all_there_once(job)

    def test_job_that_asks_for_it_stops_itself_and_goes_on_elsewhere_later(self):
        """Red if silence is counted from the start and not from the last answer, if the agent
        does not save before it leaves, or if the server starts a second attempt on its own while
        the first one lives."""
        self.server.script("train.py", SAVES)
        job = self.server.file("run: python3 train.py '%s'\nlimits: {lost_after: 10s}\n"
                               % self.server.root)
        self.server.until_log(job, "from nothing")
        self.network.cut()
        until(lambda: self.there("saved"), "it saved by itself")
        self.assertEqual(len(self.seen(job)["attempts"]), 1)
        self.network.heal()
        record = self.server.wait(job)
        self.assertEqual([attempt["cause"]["kind"] for attempt in record["attempts"]],
                         ["server_silent", "completed"], record)
        self.assertEqual(record["attempts"][1]["resumed_step"], 41)
        self.assertFalse(self.there("two of us"))
        self.assertEqual(self.server.logs(job), b"from nothing\nfrom what was saved\n")

    def test_interruption_asked_for_meanwhile_is_not_forgotten(self):
        """Red if a stop is handed out once instead of until the agent has it."""
        self.server.script("train.py", SAVES)
        job = self.server.submit("python3", "train.py", self.server.root)
        self.server.until_log(job, "from nothing")
        self.network.cut()
        self.server.ath("interrupt", job, env=self.network.direct, check=0)
        self.assertEqual(len(self.seen(job)["attempts"]), 1)
        self.network.heal()
        record = self.server.wait(job)
        self.assertEqual([attempt["cause"]["kind"] for attempt in record["attempts"]],
                         ["preempted", "completed"], record)
        self.assertFalse(self.there("two of us"))

    def test_reply_to_an_interruption_is_lost(self):
        """Red if a request that may have been acted on is sent again blindly, so that the next
        attempt is interrupted too."""
        if self.server.machine:
            self.skipTest("on a machine apart only agents are cut off, not the verb")
        self.server.script("train.py", SAVES)
        job = self.server.submit("python3", "train.py", self.server.root)
        self.server.until_log(job, "from nothing")
        self.network.cut(up=False)
        out = self.server.ath("interrupt", job)
        self.network.heal()
        record = self.server.wait(job)
        self.assertEqual(len(record["attempts"]), 2, (out, record))
        self.assertNotEqual(out.returncode, 0, "it cannot know")


if __name__ == "__main__":
    harness.main()
