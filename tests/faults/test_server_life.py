"""A server that is killed: verbs that wait say so, and go on; studies go on although nobody types; a
server that was stopped stays stopped; and nothing outlives a home that is removed. Real SIGKILL.

Each docstring names a planted bug that turns the test red.
"""

import contextlib
import json
import os
import shutil
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import TERMINAL, Server, alive, kill, until

# Prints a hundred lines each time it is let go on.
SCRIPT = """
    import os, sys, time
    root = sys.argv[1]
    for part in range(3):
        for line in range(100):
            print("line", 100 * part + line, flush=True)
        while part < 2 and not os.path.exists(os.path.join(root, "go%d" % part)):
            time.sleep(0.02)
"""
LINES = "".join("line %d\n" % i for i in range(300))


class Waiting:
    """A verb in the background, with what it says."""

    def __init__(self, server, *arguments):
        self.out_path = os.path.join(server.root, "out-" + "-".join(arguments[:2]).replace("/", "_"))
        self.err_path = self.out_path + ".err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = server.popen(*arguments, stdout=out, stderr=err)

    def out(self):
        with open(self.out_path) as file:
            return file.read()

    def err(self):
        with open(self.err_path) as file:
            return file.read()

    def until_said(self, text):
        until(lambda: text in self.err() or self.process.poll() is not None, "it said %r" % text)
        assert text in self.err(), self.err()

    def status(self):
        return self.process.wait(2 * harness.PATIENCE)


def record(server):
    """What the home knows of its server."""
    with contextlib.suppress(OSError), open(os.path.join(server.home, "server.started")) as file:
        return dict(line.rstrip("\n").split(" ", 1) for line in file if " " in line)
    return {}


def server_pid(server):
    return int(record(server)["pid"])


def answers(server):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.connect(server.socket)
        return True
    return False


def kill_server(server):
    pid = server_pid(server)
    kill(pid)
    until(lambda: not alive(pid), "it is dead")
    return pid


def until_revived(server, killed):
    until(lambda: record(server).get("pid") not in (None, str(killed)) and answers(server),
          "another server runs")


def spares(server):
    """Agents that wait for an attempt; one that has an attempt has its folder there."""
    return [pid for pid, command in harness.processes().items()
            if server.home + "/attempts/---" in command]


class AutomaticServer(unittest.TestCase):
    """A server that a command started."""

    def setUp(self):
        self.server = Server(start=False)
        self.addCleanup(self.server.close)
        self.server.script("train.py", SCRIPT)

    def attached(self):
        run = Waiting(self.server, "run", "--", "python3", "train.py", self.server.root)
        until(lambda: "line 99\n" in run.out(), "the first part is printed")
        return run

    def test_an_attached_run_says_that_the_job_goes_on_and_reattaches(self):
        """Red if the verb gives up, starts no server, or asks for the log from its beginning."""
        run = self.attached()
        for part in range(2):
            until(lambda: spares(self.server), "a spare agent waits")
            for pid in spares(self.server):
                kill(pid)  # it may be quicker, and then there is nothing to say
            killed = kill_server(self.server)
            self.server.go("go%d" % part)  # printed while no server may be there
            until(lambda: "line %d99\n" % (part + 1) in run.out(), "it reattached")
            self.assertNotEqual(server_pid(self.server), killed)
        self.assertEqual(run.status(), 0, run.err())
        self.assertEqual(run.out(), LINES)
        self.assertIn("continues. Starting the server again", run.err())
        self.assertEqual(len(self.server.json("ps", "-a")["jobs"]), 1)

    def test_every_verb_that_waits_goes_on(self):
        """Red if one of them ends with its connection."""
        job = self.server.submit("python3", "train.py", self.server.root)
        self.server.until_log(job, "line 99\n")
        verbs = [Waiting(self.server, *words) for words in
                 (("wait", job), ("logs", "-f", job), ("events", "-f", "--json"))]
        logs, events = verbs[1:]
        until(lambda: "line 99\n" in logs.out() and '"script_started"' in events.out(), "they follow")
        killed = kill_server(self.server)
        # Whoever notices first starts it; the others may find it there and have nothing to say.
        until_revived(self.server, killed)
        for part in range(2):
            self.server.go("go%d" % part)
        self.assertEqual([verb.status() for verb in verbs[:2]], [0, 0], [v.err() for v in verbs])
        self.assertEqual(logs.out(), LINES)
        until(lambda: '"ended"' in events.out(), "the end is told of")
        kill(events.process.pid)
        events.process.wait()
        told = events.out().splitlines()
        self.assertEqual(len(told), len(set(told)), told)
        self.assertEqual([json.loads(line)["name"] for line in told],
                         [event["name"] for event in self.server.events(job)])

    def test_a_wait_with_a_time_limit_keeps_it(self):
        """Red if waiting for a server that stays away knows no end."""
        job = self.server.submit("python3", "train.py", self.server.root)
        self.server.until_log(job, "line 99\n")
        self.server.ath("server", "stop", check=0)
        self.server.start()  # by hand: nobody else starts it again
        wait = Waiting(self.server, "wait", job, "--timeout", "5s")
        until(lambda: alive(wait.process.pid), "it waits")
        self.server.kill()
        self.assertEqual(wait.status(), 7, wait.err())
        self.assertIn("has not ended yet", wait.err())

    def test_a_stopped_server_stays_stopped(self):
        """Red if the record outlives `ath server stop`, or if anybody starts a server without one."""
        run = self.attached()
        agents = spares(self.server)
        self.server.ath("server", "stop", check=0)
        run.until_said("the server was stopped")
        self.assertIn("ath server start", run.err())
        until(lambda: not any(alive(pid) for pid in agents), "the spare agent has left")
        for part in range(2):
            self.server.go("go%d" % part)
        until(lambda: os.path.exists(os.path.join(self.server.home, "attempts")) and
              not any("train.py" in command and self.server.root in command and "agent" not in command
                      and " run " not in command for command in harness.processes().values()),
              "the script has ended")
        self.assertEqual(record(self.server), {})
        self.assertFalse(answers(self.server))
        self.server.ath("server", "start", check=0)
        self.assertEqual(run.status(), 0, run.err())
        self.assertEqual(run.out(), LINES)

    def test_a_stop_right_after_the_kill_is_a_stop(self):
        """Red if `ath server stop` leaves the record if it finds no server."""
        self.server.ath("server", "start", check=0)
        until(lambda: spares(self.server), "a spare agent waits")
        agents = spares(self.server)
        kill_server(self.server)
        self.server.ath("server", "stop", check=0)
        until(lambda: not any(alive(pid) for pid in agents), "the spare agent has left")
        self.assertEqual(record(self.server), {})
        self.assertFalse(answers(self.server))

    def test_an_agent_alone_starts_it_again(self):
        """Red if only the spare agent looks after the server."""
        job = self.server.submit("python3", "train.py", self.server.root)
        self.server.until_log(job, "line 99\n")
        until(lambda: spares(self.server), "a spare agent waits")
        killed = server_pid(self.server)
        for pid in [*spares(self.server), killed]:
            kill(pid)
        until_revived(self.server, killed)
        for part in range(2):
            self.server.go("go%d" % part)
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertEqual(self.server.logs(job).decode(), LINES)

    def test_the_revived_server_keeps_its_port(self):
        """Red if a revival takes another port: shells have the old one."""
        self.server.ath("server", "start", check=0)
        until(lambda: spares(self.server), "a spare agent waits")
        before = record(self.server)["url"]
        until_revived(self.server, kill_server(self.server))
        self.assertEqual(record(self.server)["url"], before)


class StudyAlone(unittest.TestCase):
    def test_a_study_goes_on_although_nobody_types(self):
        """Red if a killed server waits for the next command."""
        with Server(start=False) as server:
            server.script("trial.py", """
                import os, athanor
                athanor.log(loss=float(os.environ["SM_HP_X"]), step=1)
            """)
            server.script("job.yaml", """
                name: alone
                run: python3 trial.py
                tune:
                  metric: loss
                  seed: 5
                  max_trials: 8
                  parallel: 2
                  space: {x: {type: float, low: 0, high: 1}}
            """)
            server.ath("tune", "-d", "job.yaml", check=0)
            def study():
                with contextlib.suppress(OSError, ValueError):
                    return server.http("GET", "/api/v1/studies/alone", unix=True).json()
                return None

            server.url = record(server)["url"]
            for kills in range(3):
                until(lambda: (study() or {}).get("counts", {}).get("done", 0) >= 2 * kills,
                      "some trials are done")
                until_revived(server, kill_server(server))
            ended = until(lambda: (lambda s: s if s and s["state"] in TERMINAL else None)(study()),
                          "the study is over")
            self.assertEqual((ended["state"], ended["counts"]["done"]), ("Completed", 8))
            self.assertEqual(len(server.json("ps", "-a")["jobs"]), 8)

    def test_an_attached_study_reattaches(self):
        """Red if `ath tune` ends with its connection."""
        with Server(start=False) as server:
            server.script("trial.py", """
                import os, sys, time, athanor
                while not os.path.exists(os.path.join(sys.argv[1], "go0")):
                    time.sleep(0.02)
                athanor.log(loss=float(os.environ["SM_HP_X"]), step=1)
            """)
            server.script("job.yaml", """
                name: attached
                run: [python3, trial.py, %s]
                tune:
                  metric: loss
                  max_trials: 2
                  space: {x: {type: float, low: 0, high: 1}}
            """ % server.root)
            tune = Waiting(server, "tune", "job.yaml")
            until(lambda: "study   attached" in tune.err(), "it follows")
            until_revived(server, kill_server(server))
            server.go("go0")
            self.assertEqual(tune.status(), 0, tune.err())
            self.assertIn("Completed", tune.out())


class ByHand(unittest.TestCase):
    def test_a_server_that_was_started_by_hand_is_waited_for(self):
        """Red if a verb or an agent starts a server in place of the user's own."""
        with Server() as server:
            server.script("train.py", SCRIPT)
            run = Waiting(server, "run", "--", "python3", "train.py", server.root)
            until(lambda: "line 99\n" in run.out() and spares(server), "the first part is printed")
            agents = spares(server)
            server.kill()
            run.until_said("You started it by hand, so start it again:")
            self.assertIn("ath serve\n", run.err())
            until(lambda: not any(alive(pid) for pid in agents), "the spare agent has left")
            self.assertFalse(answers(server))
            for part in range(2):
                server.go("go%d" % part)
            server.start()
            self.assertEqual(run.status(), 0, run.err())
            self.assertEqual(run.out(), LINES)


def remove(home):
    """Again and again: who still lives there writes files meanwhile."""
    until(lambda: shutil.rmtree(home, ignore_errors=True) or not os.path.exists(home), "it is gone")


class RemovedHome(unittest.TestCase):
    def left(self, server):
        return [command for command in
                (harness.processes().get(pid, "") for pid in server.leftovers()) if command]

    def test_everything_ends_with_the_home(self):
        """Red if the server stays, if the home is created again, or if a script is left running."""
        for idle in (True, False):
            with self.subTest(idle=idle), Server(start=False) as server:
                server.script("train.py", SCRIPT)
                server.ath("server", "start", check=0)
                if not idle:
                    job = server.submit("python3", "train.py", server.root)
                    server.until_log(job, "line 99\n")
                remove(server.home)
                until(lambda: not self.left(server), "nothing is left: %r" % self.left(server))
                self.assertFalse(os.path.exists(server.home))

    def test_a_verb_that_waits_says_so(self):
        """Red if it waits for a server that can never come back."""
        with Server(start=False) as server:
            server.script("train.py", SCRIPT)
            run = Waiting(server, "run", "--", "python3", "train.py", server.root)
            until(lambda: "line 99\n" in run.out(), "the first part is printed")
            remove(server.home)
            self.assertNotEqual(run.status(), 0)
            # The server may live long enough to tell how the script ended.
            self.assertRegex(run.err(), "ATH-C0004|Failed")


if __name__ == "__main__":
    harness.main()
