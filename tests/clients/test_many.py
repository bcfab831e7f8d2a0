"""Many jobs: lists that are cut say so and can be read on, and stops of many at once."""

import json
import os
import pty
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import ATH, Case, UnixConnection, until

JSON = {"Content-Type": "application/json"}


class Crowd(Case):
    """One job has the machine; all others wait."""

    def setUp(self):
        self.holder = self.server.submit("sleep", "600", flags=["--name", "holder", "--cpus",
                                                                os.cpu_count()])
        self.server.until_state(self.holder, "Running")
        self.addCleanup(self.stop, all=True, grace_ms=0)

    def stop(self, **what):
        reply = self.server.http("POST", "/api/v1/stop", what, JSON)
        return reply.json() if reply.status == 200 else reply

    def crowd(self, names, experiment="crowd", threads=4):
        """Submits a waiting job of each name, over a few connections that stay open."""
        failed = []

        def submit(mine):
            connection = UnixConnection(self.server.socket, harness.PATIENCE)
            for name in mine:
                spec = {"name": name, "experiment": experiment, "command": ["true"],
                        "resources": {"cpu_millis": 1000}}
                connection.request("POST", "/api/v1/jobs", json.dumps({"spec": spec}), JSON)
                reply = connection.getresponse()
                body = reply.read()
                if reply.status != 201:
                    failed.append((reply.status, body))
            connection.close()

        workers = [threading.Thread(target=submit, args=(names[i::threads],))
                   for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failed, [])

    def states(self):
        """How many there are of each state."""
        return self.server.http("GET", "/api/v1/server").json()["states"]


class Lists(Crowd):
    def pages(self, target, token, rows, key):
        """All rows of a list that is read page by page."""
        found, after = [], ""
        while True:
            page = self.server.http("GET", target + after).json()
            found += page[rows]
            if "next" not in page:
                return found, page
            self.assertEqual(len(page[rows]), 7)
            after = "&%s=%s" % (token, page["next"])

    def test_pages_of_the_queue_and_of_jobs(self):
        names = ["p-%02d" % i for i in range(30)]
        self.crowd(names, threads=1)
        waiting, last = self.pages("/api/v1/queue?limit=7", "after", "waiting", "job")
        self.assertEqual([one["job"]["name"] for one in waiting], names)
        self.assertEqual([one["position"] for one in waiting], list(range(1, 31)))
        self.assertEqual(last["matched"], 30)
        jobs, last = self.pages("/api/v1/jobs?limit=7&state=queued&count=true", "before", "jobs",
                                "id")
        self.assertEqual([job["name"] for job in jobs], names[::-1])
        self.assertEqual(last["matched"], 30)
        views = self.server.http("GET", "/api/v1/jobs?state=Stopping,Queued&limit=7&count=true")
        self.assertEqual((len(views.json()["jobs"]), views.json()["matched"]), (7, 30))

    def test_a_page_goes_on_behind_its_last_though_that_has_left(self):
        self.crowd(["a", "b", "c", "d"], threads=1)
        first = self.server.http("GET", "/api/v1/queue?limit=2").json()
        self.stop(jobs=[first["waiting"][1]["job"]["id"]])
        second = self.server.http("GET", "/api/v1/queue?limit=2&after=" + first["next"]).json()
        self.assertEqual([one["job"]["name"] for one in second["waiting"]], ["c", "d"])
        for place in ("x", "1", "1:x", ":"):
            refused = self.server.http("GET", "/api/v1/queue?after=" + place)
            self.assertEqual(refused.status, 400, place)

    def test_the_command_line_says_what_is_cut_and_shows_all_when_asked(self):
        count = 2100  # more than one page of either list
        self.crowd(["many-%04d" % i for i in range(count)], experiment="many")
        shown = self.server.ath("ps", "--experiment", "many", "--state", "queued", check=0)
        self.assertEqual(len(shown.stdout.splitlines()), 21)
        self.assertIn("20 of 2,100 jobs; all of them: ath ps -a --state queued --experiment many",
                      shown.stderr)
        quiet = self.server.ath("ps", "-q", check=0)
        self.assertEqual(quiet.stderr, "")
        everyone = self.server.ath("ps", "-a", "--state", "queued", "--experiment", "many", check=0)
        self.assertEqual(len(everyone.stdout.splitlines()), count + 1)
        self.assertEqual(everyone.stderr, "")
        told = self.server.json("ps", "-a", "--experiment", "many")
        self.assertEqual(told["matched"], count)
        self.assertEqual(len({job["id"] for job in told["jobs"]}), count)
        queue = self.server.ath("queue", check=0)
        self.assertEqual(len(queue.stdout.splitlines()), 21)
        self.assertIn("20 of 2,100 waiting jobs; all of them: ath queue -a", queue.stderr)
        whole = self.server.json("queue", "-a")
        self.assertEqual([one["position"] for one in whole["waiting"]],
                         list(range(1, count + 1)))
        usual = self.server.http("GET", "/api/v1/queue").json()
        self.assertEqual((len(usual["waiting"]), usual["matched"]), (100, count))
        # Runs of jobs: their list is cut, too, and repeats what it was asked for.
        runs = self.server.ath("runs", "--experiment", "many", "-n", "5", check=0)
        self.assertIn("5 of 2,100 runs; all of them: ath runs --limit 2100 --experiment many",
                      runs.stderr)
        stopped = self.server.ath("stop", "--experiment", "many", "--yes", check=0)
        self.assertEqual(stopped.stdout, "stopped 2100 jobs\n")


class StopMany(Crowd):
    def test_by_name_state_and_experiment(self):
        self.crowd(["lr-1", "lr-2", "other"], experiment="one")
        self.crowd(["lr-3"], experiment="two")
        self.assertEqual(self.stop(name="lr-*", experiment="one", dry_run=True),
                         {"matched": 2, "stopped": 2, "stopping": 0})
        self.assertEqual(self.states()["Queued"], 4)
        self.assertEqual(self.stop(name="lr-*", experiment="one"),
                         {"matched": 2, "stopped": 2, "stopping": 0})
        self.assertEqual(self.stop(name="lr-*", experiment="one")["matched"], 0)
        self.assertEqual(self.stop(state="queued"), {"matched": 2, "stopped": 2, "stopping": 0})
        self.assertEqual(self.server.state(self.holder), "Running")
        self.assertEqual(self.stop(all=True, grace_ms=0),
                         {"matched": 1, "stopped": 0, "stopping": 1})
        self.ended(self.holder, "Stopped")
        self.assertEqual(self.stop(all=True)["matched"], 0)

    def test_by_name_of_each_and_unknown_ones_stop_nothing(self):
        self.crowd(["x", "y", "z"])
        refused = self.stop(jobs=["x", "nobody"])
        self.assertEqual(refused.status, 404)
        self.assertEqual(self.states()["Queued"], 3)
        self.assertEqual(self.stop(jobs=["x", "y", "x"])["stopped"], 2)
        self.assertEqual(self.states()["Queued"], 1)

    def test_what_is_not_understood_stops_nothing(self):
        self.crowd(["x"])
        for body in ({}, {"jobs": []}, {"al": True}, {"all": "yes"}, {"all": False},
                     {"jobs": ["x"], "all": True}, {"state": "Failed"}, {"state": "nonsense"},
                     {"name": 1}, {"all": True, "grace_ms": -1}, [], {"jobs": [1]}):
            reply = self.server.http("POST", "/api/v1/stop", body, JSON)
            self.assertEqual(reply.status, 400, body)
        self.assertEqual(self.states(), {**self.states(), "Queued": 1, "Running": 1})

    def test_the_command_line(self):
        self.crowd(["a", "b", "c"])
        self.assertEqual(self.server.ath("stop", check=2).stdout, "")
        self.assertEqual(self.server.ath("stop", "a", "--all", check=2).stdout, "")
        dry = self.server.ath("stop", "--all", "--dry-run", check=0)
        self.assertEqual(dry.stdout, "would stop 4 jobs (3 waiting, 1 running)\n")
        self.assertEqual(self.server.ath("stop", "--state", "queued", "--name", "[ab]", "--yes",
                                         check=0).stdout, "stopped 2 jobs\n")
        self.assertEqual(self.server.ath("stop", "--name", "[ab]", check=0).stdout,
                         "no matching jobs\n")
        self.assertEqual(self.server.json("stop", "--name", "c", "--yes"),
                         {"matched": 1, "stopped": 1, "stopping": 0})

    def answer(self, text, *arguments):
        """What `ath` says and how it ends when a person at a terminal answers so."""
        ours, its = pty.openpty()
        with subprocess.Popen([ATH, *arguments], env=self.server.environment, stdin=its,
                              stdout=subprocess.PIPE, stderr=its) as process:
            os.close(its)
            said = b""
            while b"[y/N]" not in said:
                said += os.read(ours, 1000)
            os.write(ours, text)
            out = process.stdout.read().decode()
        os.close(ours)
        return said.decode(), out, process.returncode

    def test_a_person_is_asked(self):
        self.crowd(["a", "b"])
        said, out, status = self.answer(b"n\n", "stop", "--state", "queued")
        self.assertIn("Stop 2 jobs? [y/N]", said)
        self.assertEqual((out, status), ("", 1))
        self.assertEqual(self.states()["Queued"], 2)
        said, out, status = self.answer(b"y\n", "stop", "--state", "queued")
        self.assertEqual((out, status), ("stopped 2 jobs\n", 0))
        self.assertNotIn("Queued", self.states())


class StopNow(Case):
    def test_after_a_stop_that_its_script_does_not_heed(self):
        spec = {"name": "stubborn", "limits": {"stop_grace_ms": 3_600_000},
                "command": ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"]}
        job = self.server.http("POST", "/api/v1/jobs", {"spec": spec}, JSON).json()["id"]
        self.server.until_log(job, "up")
        self.server.ath("stop", job, check=0)
        until(lambda: self.server.show(job)["shown_state"] == "Stopping", "it is stopping")
        until(lambda: "stop_asked" in [e["name"] for e in self.server.events(job)], "it was asked")
        self.server.ath("stop", "--now", job, check=0)
        record = self.ended(job, "Stopped")
        self.assertEqual(record["cause"]["kind"], "user_stop")
        names = [event["name"] for event in self.server.events(job)]
        self.assertIn("stop_hastened", names)


if __name__ == "__main__":
    harness.main()
