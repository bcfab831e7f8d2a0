"""Jobs and their checkpoints outlive a server that is away, an agent that is killed while it
keeps one, a machine that goes down, and processes that stand still. Real processes, real signals.
A full disk and a torn store are in test_durability.py, kills during submits in test_kill.py.

Each docstring names a planted bug that turns the test red.
"""

import glob
import hashlib
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SOAK, Server, until

PAUSE = 120 if SOAK else 4  # seconds a process stands still; more than the server's patience
JOBS, POINTS = (20, 100_000) if SOAK else (3, 5_000)

CHATTY = """
    import athanor, os, sys, time
    root, name = sys.argv[1:3]
    count = int(sys.argv[3])
    def wait(word):
        while not os.path.exists(os.path.join(root, word)): time.sleep(0.01)
    def part(begin):
        for i in range(begin, begin + count):
            print("%s line %07d" % (name, i))
            athanor.log(loss=i / 3, step=i)
            if i % 1000 == 999: time.sleep(0.01)
        sys.stdout.flush()
    print("ready", flush=True)
    wait("go on alone")
    part(0)
    open(os.path.join(root, name + " is through"), "w").close()
    wait("go on")
    part(count)
    print("the end", athanor.stats()["dropped"])
"""


class ServerAway(unittest.TestCase):
    def test_what_jobs_log_meanwhile_is_there_once_and_in_order(self):
        """Red if the agent forgets a batch whose post failed, or reads on without bound and
        drops (Shipper::Turn clearing `points` before the acknowledgement)."""
        with Server() as server:
            server.script("train.py", CHATTY)
            names = ["job%d" % i for i in range(JOBS)]
            jobs = [server.submit("python3", "train.py", server.root, name, POINTS,
                                  flags=["--cpus", "0.1"]) for name in names]
            for job in jobs:
                server.until_log(job, "ready")
            agents = [server.agent_pids(job) for job in jobs]
            server.kill()
            server.go("go on alone")
            for name in names:
                until(lambda: os.path.exists(os.path.join(server.root, name + " is through")),
                      name + " is through")
            server.start()
            server.go("go on")
            for name, job, agent in zip(names, jobs, agents):
                record = server.wait(job)
                self.assertEqual(record["state"], "Completed", record["cause"])
                self.assertEqual(len(record["attempts"]), 1)
                self.assertEqual(len(agent), 1)
                self.assertEqual(server.logs(job).decode(), "ready\n" + "".join(
                    "%s line %07d\n" % (name, i) for i in range(2 * POINTS)) + "the end 0\n")
                self.assertEqual([(p["step"], p["value"]) for p in server.points(job, "loss")],
                                 [(i, i / 3) for i in range(2 * POINTS)])


# Saves for ever, or until it is told that the save it made is enough. What it finds it checks.
SAVES = """
    import athanor, hashlib, os, signal, sys, time
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    size, count, root = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    def read(path):
        with open(path, "rb") as file: data = file.read()
        if hashlib.sha256(data[32:]).digest() != data[:32] or len(data) != 32 + size:
            print("TORN", path, flush=True)
        return data
    def write(path):
        data = os.urandom(size)
        with open(path, "wb") as file: file.write(hashlib.sha256(data).digest() + data)
    last = athanor.latest_checkpoint()
    step = 0
    if last:
        read(last)
        step = int(last.rpartition("-")[2])
        count = min(count, 0)
    print("attempt", os.environ["ATHANOR_ATTEMPT"], "from", step, flush=True)
    while count and not os.path.exists(os.path.join(root, "enough")):
        step += 1
        path = athanor.checkpoint(step, write)
        time.sleep(0.1)
        old = os.path.join(os.path.dirname(path), "step-%d" % (step - 4))
        if os.path.exists(old): os.unlink(old)
        count -= 1
        if os.environ["ATHANOR_ATTEMPT"] == "1" and not count: print("saved", flush=True)
    while os.environ["ATHANOR_ATTEMPT"] == "1" and not told: time.sleep(0.01)
"""


# Logs and prints more than an agent holds for a server, then what a rule waits for.
GOES_WRONG = """
    import athanor, math, os, sys, time
    print("ready", flush=True)
    while not os.path.exists(os.path.join(sys.argv[1], "go")): time.sleep(0.01)
    for i in range(60000):
        athanor.log(loss=1 / (i + 1), step=i)
        if i % 1000 == 0: time.sleep(0.01)  # a burst beyond the spare segments is dropped
    for i in range(40000):
        print("printed=%d and enough words that a megabyte is soon full of them" % i)
    sys.stdout.flush()
    if sys.argv[2] == "logged": athanor.log(loss=math.nan, step=60000)
    else: print("printed=nan", flush=True)
    time.sleep(600)
"""


class RulesWhileAway(unittest.TestCase):
    def test_a_rule_acts_on_what_could_not_be_sent_yet(self):
        """Red if the agent shows rules only what it has room to hold for the server
        (Shipper::Parts::LookAhead taken out), or sends what was only looked at never or twice."""
        for how in ("logged", "printed"):
            with self.subTest(how=how), Server() as server:
                server.script("train.py", GOES_WRONG)
                job = server.file("""
                    run: python3 train.py %s %s
                    metrics: [{name: printed, regex: 'printed=(\\S+)'}]
                    rules: [{rule: nan, metric: '*', action: stop}]
                """ % (server.root, how))
                server.until_log(job, "ready")
                (supervisor,) = server.supervisor_pids(job)
                server.kill()
                server.go("go")
                until(lambda: not harness.alive(supervisor), "the rule ended the script")
                server.start()
                record = server.wait(job)
                self.assertEqual((record["state"], record["cause"]["kind"]),
                                 ("Stopped", "rule_stop"))
                self.assertEqual(len(record["firings"]), 1)
                losses = server.points(job, "loss")
                self.assertEqual([p["step"] for p in losses][:60000], list(range(60000)))
                self.assertEqual(len(losses), 60001 if how == "logged" else 60000)
                values = [p["value"] for p in server.points(job, "printed")]
                self.assertEqual(values[:40000], list(range(40000)))
                self.assertEqual(len(values), 40000 if how == "logged" else 40001)



class KilledWhileKeeping(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def parts(self, job):
        return [path for path in glob.glob(os.path.join(
            self.server.home, "jobs", job, "parts", "??", "*")) if len(os.path.basename(path)) == 64]

    def check_store(self, job):
        """Every checkpoint that is listed is whole, to the byte; how many there are."""
        listed = self.server.json("checkpoints", job)
        self.assertEqual(listed["damaged"], [])
        for one in listed["checkpoints"]:
            try:
                self.check_whole(job, one["id"])
            except FileNotFoundError:
                # Thinned out since it was listed; one that is still listed must be there.
                now = [kept["id"] for kept in self.server.json("checkpoints", job)["checkpoints"]]
                if one["id"] in now:
                    raise
        return len(listed["checkpoints"])

    def check_whole(self, job, checkpoint):
        for file in self.server.manifest(job, checkpoint)["files"]:
            size = 0
            for part in file["parts"]:
                path = os.path.join(self.server.home, "jobs", job, "parts", part[:2], part)
                with open(path, "rb") as stream:
                    data = stream.read()
                self.assertEqual(hashlib.sha256(data).hexdigest(), part, checkpoint)
                size += len(data)
            self.assertEqual(size, file["size"], checkpoint)

    def test_agent_in_the_middle_of_a_large_one(self):
        """Red if the manifest is written before its parts are there, if a new agent takes a part
        that was being written for whole, or if a killed agent means a new attempt."""
        size = 130 << 20  # three parts
        self.server.script("train.py", SAVES)
        job = self.server.submit("python3", "train.py", size, 1, self.server.root)
        until(lambda: self.parts(job), "a part of it is in the store")
        for pid in self.server.agent_pids(job):
            harness.kill(pid)
        self.assertLessEqual(len(self.server.checkpoints(job)), 1)
        until(lambda: self.server.checkpoints(job), "the next agent has kept it")
        self.check_store(job)
        self.assertEqual(len(self.server.show(job)["attempts"]), 1)
        self.server.ath("interrupt", job, check=0)
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(record["attempts"][1]["resumed_step"], 1)
        self.assertEqual(self.server.logs(job).decode().replace("saved\n", ""),
                         "attempt 1 from 0\nattempt 2 from 1\n")
        self.assertEqual(len(self.parts(job)), 3, "nothing is left of what was torn")

    def test_agent_at_random_moments_then_the_machine(self):
        """Red if a manifest is written in place instead of renamed, if its parts are not synced
        before it, or if thinning out removes a part that the newest one needs."""
        seed = int(os.environ.get("ATHANOR_TEST_SEED", random.randrange(1 << 32)))
        chance = random.Random(seed)
        job_file = """
            run: python3 train.py 100000 -1 '%s'
            resources: {cpus: 0.5}
            retry: {max: 1}
            checkpoints: {keep: {last: 3}}
        """ % self.server.root
        self.server.script("train.py", SAVES)
        job = self.server.file(job_file)
        until(lambda: self.server.checkpoints(job), "something to lose")
        for _ in range(20 if SOAK else 3):
            (agent,) = until(lambda: self.server.agent_pids(job), "an agent")
            newest = self.server.checkpoints(job)[0]["step"]
            until(lambda: self.server.checkpoints(job)[0]["step"] > newest, "it keeps on")
            time.sleep(chance.uniform(0, 0.05))  # the random moment itself
            harness.kill(agent)
            self.assertGreater(self.check_store(job), 0, "seed %d" % seed)
        self.assertEqual(len(self.server.show(job)["attempts"]), 1, "seed %d" % seed)
        until(lambda: self.server.agent_pids(job), "an agent")
        pids = self.server.agent_pids(job) + self.server.supervisor_pids(job)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # at once, as when the power goes
            for pid in pids:
                harness.kill(pid, number)
        self.assertGreater(self.check_store(job), 0, "seed %d" % seed)
        self.server.until_log(job, "attempt 2 from")
        self.server.go("enough")
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", (seed, record["cause"]))
        self.assertEqual([attempt["cause"]["kind"] for attempt in record["attempts"]],
                         ["agent_lost", "completed"], "seed %d" % seed)
        self.assertEqual(record["retries"], 0)
        self.assertNotIn(b"TORN", self.server.logs(job), "seed %d" % seed)
        self.assertIn(b"attempt 2 from %d\n" % record["attempts"][1]["resumed_step"],
                      self.server.logs(job), "seed %d" % seed)


STANDS = """
    import athanor, os, sys, time
    for part in range(4):
        for i in range(part * 3000, part * 3000 + 3000):
            print("line %06d, long enough that a pipe nobody reads will fill" % i)
            athanor.log(loss=i / 3, step=i)
        sys.stdout.flush()
        while not os.path.exists(os.path.join(sys.argv[1], "part %d" % part)): time.sleep(0.01)
"""


class StandsStill(unittest.TestCase):
    def test_agent_server_and_supervisor_in_turn(self):
        """Red if an agent that does not answer is taken for dead (a second one started beside
        it), if a server that slept acts on what it knew before it looks again, or if what a
        stopped supervisor left in the pipe is lost."""
        with Server() as server:
            job = server.python(STANDS, server.root)
            server.until_log(job, "line 002999")
            (agent,) = server.agent_pids(job)
            (supervisor,) = server.supervisor_pids(job)
            for part, pid in enumerate((agent, server.pid, supervisor)):
                os.kill(pid, signal.SIGSTOP)
                server.go("part %d" % part)
                time.sleep(PAUSE)  # the fault itself
                os.kill(pid, signal.SIGCONT)
                server.until_log(job, "line %06d" % (part * 3000 + 5999))
            self.assertEqual(server.agent_pids(job), [agent])
            self.assertEqual(server.supervisor_pids(job), [supervisor])
            server.go("part 3")
            record = server.wait(job)
            self.assertEqual(record["state"], "Completed", record["cause"])
            self.assertEqual(len(record["attempts"]), 1)
            self.assertEqual(server.logs(job).decode(), "".join(
                "line %06d, long enough that a pipe nobody reads will fill\n" % i
                for i in range(12000)))
            self.assertEqual([(p["step"], p["value"]) for p in server.points(job, "loss")],
                             [(i, i / 3) for i in range(12000)])


if __name__ == "__main__":
    harness.main()
