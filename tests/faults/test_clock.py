"""The wall clock jumps by hours and days; nothing is ended, delayed or charged for it. The clock
is libfaketime's, for the server and the agents it starts; the monotonic clock is left alone, as
the kernel does.

Each docstring names a planted bug that turns the test red.
"""

import glob
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server, until

LIBRARY = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") + [""])[0]
HOUR, DAY = 3600, 86400


class Jumping(Server):
    """A server whose wall clock can be set; verbs have the real one."""

    def __init__(self):
        super().__init__(start=False)
        self.offset = os.path.join(self.root, "offset")
        self.jump(0)
        self.start()

    def start(self):
        plain = self.environment
        self.environment = dict(plain, LD_PRELOAD=LIBRARY, FAKETIME_TIMESTAMP_FILE=self.offset,
                                FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1",
                                NO_FAKE_STAT="1")
        try:
            return super().start()
        finally:
            self.environment = plain

    def jump(self, seconds):
        """To so many seconds from the real time."""
        with open(self.offset + ".new", "w") as file:
            file.write("%+d\n" % seconds)
        os.rename(self.offset + ".new", self.offset)

    def shows(self, seconds):
        """Whether the server's own log is so far from the real time."""
        job = self.submit("true", flags=["--cpus", "0.01"])
        created = self.show(job)["created"]
        import datetime
        at = datetime.datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp()
        return abs(at - time.time() - seconds) < HOUR / 2


@unittest.skipUnless(LIBRARY, "libfaketime is not installed")
class ClockJumps(unittest.TestCase):
    def setUp(self):
        self.server = Jumping()
        self.addCleanup(self.server.close)

    def jumps(self):
        """Forth and back, each seen by the server."""
        for seconds in (HOUR, -HOUR, DAY, -DAY, 0):
            self.server.jump(seconds)
            self.assertTrue(self.server.shows(seconds), "the server sees the jump to %+d" % seconds)

    def test_no_limit_fires_and_nothing_is_charged(self):
        """Red if held time, limits.max_runtime, resources.spot.max_wait or the agent's silence is
        reckoned by the wall clock (CheckWaits with Wall() in place of Monotonic())."""
        began = time.monotonic()
        self.server.script("train.py", """
            import os, sys, time
            print("up", flush=True)
            while not os.path.exists(sys.argv[1]): time.sleep(0.01)
        """)
        go = os.path.join(self.server.root, "go")
        job = self.server.file(
            "run: python3 train.py '%s'\n"
            "resources: {cpus: 0.2, spot: {use: true, max_wait: 20m}}\n"
            "limits: {max_runtime: 20m, lost_after: 20m, hang: {after: 20m, action: fail}}\n" % go)
        self.server.until_log(job, "up")
        self.jumps()
        self.assertEqual(self.server.state(job), "Running")
        self.server.go("go")
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(len(record["attempts"]), 1)
        held = sum(attempt["held_ms"] for attempt in record["attempts"])
        self.assertGreater(held, 0)
        self.assertLessEqual(held, 1000 * (time.monotonic() - began))
        lines = self.server.ath("events", job, "--json", check=0).stdout.splitlines()
        events = [json.loads(line) for line in lines]
        self.assertEqual([event["seq"] for event in events], list(range(1, len(events) + 1)))
        self.assertEqual([event["name"] for event in events][-1], "ended")

    def test_lists_are_in_the_order_of_submits(self):
        """Red when lists go by the time of creation (ORDER BY created in ListSql), or when ids begin
        with the clock after a restart (no KeepIdsAbove)."""
        jobs = []
        for seconds in (0, DAY, -DAY):
            self.server.jump(seconds)
            jobs.append(self.server.submit("true", flags=["--name", "same"]))
        self.server.kill()
        self.server.jump(-2 * DAY)
        self.server.start()
        jobs.append(self.server.submit("true", flags=["--name", "same"]))
        newest_first = jobs[::-1]
        self.assertEqual(sorted(jobs), jobs)
        self.assertEqual([row["id"] for row in self.server.json("ps", "-a")["jobs"]], newest_first)
        pages, before = [], ""
        while page := self.server.http("GET", "/api/v1/jobs?limit=1" + before).json()["jobs"]:
            pages.append(page[0]["id"])
            before = "&before=" + page[0]["id"]
        self.assertEqual(pages, newest_first)
        self.assertEqual(self.server.show("@last")["id"], jobs[-1])
        self.assertEqual(self.server.show("@last~1")["id"], jobs[-2])
        self.assertEqual(self.server.show("same")["id"], jobs[-1])

    def test_pause_before_a_retry_is_as_long_as_asked(self):
        """Red if the end of a pause is a wall time: a clock set back a day makes it a day."""
        self.server.script("train.py", """
            import os, sys
            sys.exit(0 if int(os.environ["ATHANOR_ATTEMPT"]) > 1 else 75)
        """)
        job = self.server.file("run: python3 train.py\nresources: {cpus: 0.2}\n"
                               "retry: {max: 1, on: ['exit:75'], backoff: 3s}\n")
        until(lambda: self.server.show(job).get("cause", {}).get("kind") == "backoff", "it pauses")
        self.server.jump(-DAY)
        record = self.server.wait(job)
        self.assertEqual((record["state"], len(record["attempts"])), ("Completed", 2))

    def test_checkpoints_are_kept_and_found_in_their_order(self):
        """Red if the newest checkpoint is told by its time, or if a file is taken as unchanged
        because its time is older than that of the last look."""
        self.server.script("train.py", """
            import athanor, os, signal, sys, time
            told = []
            signal.signal(signal.SIGTERM, lambda *_: told.append(1))
            last = athanor.latest_checkpoint()
            step = int(open(last).read()) if last else 0
            print("from", step, flush=True)
            for step in range(step + 1, 4):
                def write(path):
                    with open(path, "w") as file: file.write(str(step))
                athanor.checkpoint(step, write)
                while not told and not os.path.exists(os.path.join(sys.argv[1], "kept %d" % step)):
                    time.sleep(0.01)
                if told: sys.exit(0)
        """)
        job = self.server.submit("python3", "train.py", self.server.root)
        for step, seconds in ((1, -DAY), (2, DAY), (3, 0)):
            self.server.until_checkpoint(job, step)
            self.server.jump(seconds)
            if step == 2:
                self.server.ath("interrupt", job, check=0)
                self.server.until_log(job, "from 2")
            self.server.go("kept %d" % step)
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(record["attempts"][1]["resumed_step"], 2)
        self.assertEqual(self.server.logs(job), b"from 0\nfrom 2\n")

    def test_server_that_starts_in_another_time_adopts_what_runs(self):
        """Red if a restarted server takes an attempt whose last report lies in the future, or a
        day back, for lost."""
        self.server.script("train.py", """
            import os, sys, time
            print("up", flush=True)
            while not os.path.exists(sys.argv[1]): time.sleep(0.01)
        """)
        go = os.path.join(self.server.root, "go")
        job = self.server.submit("python3", "train.py", go)
        self.server.until_log(job, "up")
        for seconds in (-DAY, DAY):
            self.server.kill()
            self.server.jump(seconds)
            self.server.start()
            self.assertEqual(self.server.state(job), "Running")
        self.server.go("go")
        record = self.server.wait(job)
        self.assertEqual((record["state"], len(record["attempts"])), ("Completed", 1))


if __name__ == "__main__":
    harness.main()
