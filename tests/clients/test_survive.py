"""A job outlives its machine: notices, checkpoints, resume, retries, rules and hangs, with the
real command line and a real server."""

import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, until

# What every script below begins with. A script waits for the test with wait(), saves a number
# with save() and goes on from start.
PRELUDE = """\
import athanor, os, signal, sys, time
ROOT = %r
ATTEMPT = int(os.environ["ATHANOR_ATTEMPT"])
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(time.monotonic()))
def wait(name):
    while not os.path.exists(os.path.join(ROOT, name)): time.sleep(0.01)
def save(step):
    def write(path):
        with open(path, "w") as file: file.write(str(step))
    athanor.checkpoint(step, write)
last = athanor.latest_checkpoint()
start = int(open(last).read()) + 1 if last else 0
print("attempt", ATTEMPT, "from", start, flush=True)
"""

# Told to stop, it saves and leaves with status 0; the second attempt ends well.
OBEDIENT = """
for step in range(start, 1000000):
    athanor.log(loss=1.0 / (step + 1), step=step)
    if told:
        stop = athanor.should_stop()
        print("page", bool(stop), stop.cause, stop.deadline is not None and stop.deadline > 0)
        print("file", sorted(athanor.notice()), flush=True)
        save(step)
        sys.exit(0)
    if ATTEMPT > 1 and step > start + 3: break
    time.sleep(0.01)
athanor.done()
"""

# Does not mind SIGTERM on the first attempt.
DEAF = """
if ATTEMPT == 1:
    while True: time.sleep(0.01)
"""


def has_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch"],
                          stderr=subprocess.DEVNULL).returncode == 0


class Survive(Case):
    def write(self, text, name="train.py"):
        folder = os.path.join(self.server.work, os.path.dirname(name))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(self.server.work, name), "w") as file:
            file.write(PRELUDE % self.server.root + text)
        return name

    def start(self, text, *flags):
        """A job with the script, once it has begun."""
        job = self.server.submit("python3", self.write(text), flags=["--cpus", "0.2", *flags])
        self.server.until_log(job, "attempt 1 from")
        return job

    def file(self, text, rest):
        self.write(text)
        return self.server.file("run: python3 train.py\nresources: {cpus: 0.2}\n" + rest)

    def causes(self, record):
        return [attempt["cause"]["kind"] for attempt in record["attempts"]]

    def events(self, job, name):
        lines = self.server.ath("events", job, "--json", check=0).stdout.splitlines()
        return [event for event in map(json.loads, lines) if event["name"] == name]


class Notice(Survive):
    def test_reaches_the_code_under_every_kind_of_wrapper(self):
        """SIGTERM, the control page and the file; the record says what became of it; the next
        attempt goes on where the first one saved."""
        script = self.write(OBEDIENT)
        self.server.script("train.sh", "echo begin\npython3 train.py\nstatus=$?\nexit $status\n")
        commands = {
            "plain": ["python3", script],
            "sh": ["sh", "-c", "python3 %s; exit $?" % script],
            "bash": ["bash", "train.sh"],
            "timeout": ["timeout", "100", "python3", script],
        }
        if has_torch():
            # torch 1.13 with Python 3.11 cannot do without redirecting something.
            commands["torchrun"] = ["/usr/bin/torchrun", "--nproc_per_node=1", "--redirects", "2",
                                    "--tee", "2", script]
        jobs = {name: self.server.submit(*command, flags=["--cpus", "0.2", "--name", name])
                for name, command in commands.items()}
        for name, job in jobs.items():
            self.server.until_log(job, "attempt 1 from 0")
            said = self.server.json("interrupt", job)
            self.assertEqual((said["id"], said["name"]), (job, name))
        for name, job in jobs.items():
            with self.subTest(name):
                record = self.ended(job)
                log = self.server.logs(job).decode()
                self.assertIn("page True preempted True", log)
                self.assertIn("file ['cause', 'deadline_unix_ms']", log)
                self.assertEqual(self.causes(record), ["preempted", "completed"])
                first, second = record["attempts"]
                self.assertRegex(first["cause"]["text"], r"; saved in \S+( \S+)? of 2 m$")
                self.assertGreaterEqual(first["exit"]["saved_ms"], 0)
                self.assertEqual(second["resumed_from"], first["saved"]["id"])
                self.assertEqual(second["resumed_step"], first["saved"]["step"])
                self.assertIn("attempt 2 from %d" % (first["saved"]["step"] + 1), log)
                self.assertEqual(record["spot"]["restarts"], 1)
                self.assertEqual(record["retries"], 0)
                self.assertEqual(record["spot"]["lost_ms"], first["lost_ms"])
                self.assertEqual(record["spot"]["held_ms"], first["held_ms"] + second["held_ms"])
                self.assertLessEqual(record["spot"]["training_ms"], record["spot"]["held_ms"])
                steps = [point["step"] for point in self.server.points(job, "loss")]
                self.assertEqual(steps, list(range(len(steps))), "one value per step")
                text = self.server.ath("show", job, check=0).stdout
                self.assertRegex(text, r"spot +1 restart, held .*, training .*, lost ")
                self.assertIn("from step %d" % second["resumed_step"], text)

    def test_script_that_ignores_it_is_killed_after_the_grace(self):
        job = self.start(DEAF)
        self.server.ath("interrupt", job, "--grace", "1s", check=0)
        record = self.ended(job)
        first = record["attempts"][0]
        self.assertIn("not saved", first["cause"]["text"])
        self.assertEqual((first["exit"]["signal"], first["exit"]["saved_ms"]), (9, -1))
        self.assertEqual(first["interrupt"]["grace_ms"], 1000)
        self.assertNotIn("saved", first)
        self.assertNotIn("resumed_from", record["attempts"][1])

    def test_status_0_after_it_is_an_end_only_with_done(self):
        job = self.start("""
while not told: time.sleep(0.01)
athanor.done()
""")
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertEqual(self.causes(record), ["completed"])
        self.assertTrue(record["attempts"][0]["exit"]["done_called"])

    def test_user_stop_is_no_interruption(self):
        job = self.start(OBEDIENT)
        self.server.ath("stop", job, check=0)
        record = self.ended(job, "Stopped")
        self.assertEqual(self.causes(record), ["user_stop"])
        self.assertEqual(len(self.server.checkpoints(job)), 1, "what it saved was kept")

    def test_who_holds_no_machine_cannot_lose_one(self):
        job = self.server.submit("true")
        self.ended(job)
        out = self.server.ath("interrupt", job)
        self.assertEqual(out.returncode, 4, out.stderr)
        self.assertIn("ath resume", out.stderr)


def planned(seed, every, jitter, attempt):
    """What --preempt-every says of an attempt, in milliseconds."""
    mask = (1 << 64) - 1
    z = seed + 0x9e3779b97f4a7c15 * (attempt + 1) & mask
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & mask
    z = (z ^ z >> 27) * 0x94d049bb133111eb & mask
    return every + (z ^ z >> 31) % (2 * jitter + 1) - jitter


class Replaced(Survive):
    def test_what_a_replaced_attempt_uses_is_not_shown_as_the_jobs(self):
        """Red if usage is taken from any attempt of the job instead of its newest."""
        job = self.start("while True:\n  if told: sys.exit(0)\n  time.sleep(0.01)\n")
        with open(os.path.join(self.server.attempt_dir(job), "plan.json")) as file:
            token = json.load(file)["token"]
        self.server.ath("interrupt", job, check=0)
        self.server.until_log(job, "attempt 2 from")
        until(lambda: self.server.show(job).get("usage"), "the second attempt reports")
        far = 1 << 50
        usage = struct.pack("<qIQQ", 1, 7, far, far)
        self.server.http("POST", "/agent/v1/report", struct.pack("<BI", 4, len(usage)) + usage,
                         {"Authorization": "Bearer " + token}, unix=True)
        self.assertLess(self.server.show(job)["usage"]["memory_bytes"], far)
        self.server.ath("stop", job, check=0)


class Spot(Survive):
    settings = "instances: simulate\n"

    def test_preempt_after_comes_once(self):
        job = self.start(OBEDIENT, "--preempt-after", "300ms")
        record = self.ended(job)
        self.assertEqual(self.causes(record), ["preempted", "completed"])
        self.assertEqual(record["attempts"][0]["interrupt"]["who"], "athanor")

    def test_preempt_every_follows_its_seed(self):
        """An attempt is never taken before its time, and its time is the seed's."""
        text = """
for step in range(start, 1000000):
    if told:
        save(step)
        sys.exit(0)
    if ATTEMPT == 6: break
    time.sleep(0.005)
"""
        record = self.ended(self.start(text, "--preempt-every", "400ms±300ms", "--seed", "7"))
        spot = record["spec"]["resources"]["spot"]
        self.assertEqual((spot["preempt_every_ms"], spot["preempt_jitter_ms"],
                          spot["preempt_seed"]), (400, 300, 7))
        self.assertEqual(self.causes(record), ["preempted"] * 5 + ["completed"])
        plan = [planned(7, 400, 300, attempt) for attempt in range(1, 6)]
        self.assertGreater(max(plan) - min(plan), 100)
        for attempt, least in zip(record["attempts"], plan):
            began, taken = (until_ms(attempt["started"]), until_ms(attempt["interrupt"]["at"]))
            self.assertGreaterEqual(taken - began, least - 2, attempt["number"])

    def test_max_wait_ends_it_or_makes_it_ordinary(self):
        text = """
while not told and not os.path.exists(os.path.join(ROOT, "fell back")): time.sleep(0.01)
"""
        spot = "resources: {cpus: 0.2, spot: {use: true, max_wait: 1s%s}}\n"
        self.write(text)
        ends = self.server.file("run: python3 train.py\n" + spot % "")
        falls = self.server.file("run: python3 train.py\n" + spot % ", fallback: true")
        until(lambda: self.server.show(falls)["spot_fell_back"], "it falls back")
        self.server.go("fell back")
        record = self.ended(falls)
        self.assertEqual(len(record["attempts"]), 1, "it goes on where it is")
        self.assertTrue(self.events(falls, "fell_back"))
        record = self.ended(ends, "Stopped")
        self.assertEqual(record["cause"]["kind"], "max_wait")
        self.assertIn("fallback", self.server.ath("why", ends, check=0).stdout)

    def test_saving_and_rate_are_measured(self):
        job = self.server.submit("python3", self.write(OBEDIENT),
                                 flags=["--type", "ml.m5.large", "--spot"])
        self.server.until_log(job, "attempt 1 from 0")
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertTrue(all(attempt["spot"] for attempt in record["attempts"]))
        spot = record["spot"]
        self.assertGreater(spot["on_demand_micros"], 0)
        self.assertEqual(spot["on_demand_micros"] - record["cost_micros"], spot["saved_micros"])
        self.assertGreater(spot["saved_micros"], 0)
        out = self.server.ath("types", "--spot", "-a", "ml.m5.large", check=0).stdout
        self.assertIn("ml.m5.large", out)
        self.assertRegex(out, r"here: 1 in \d")


def until_ms(text):
    """Milliseconds of an RFC 3339 time."""
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


class Checkpoints(Survive):
    def test_kept_by_age_and_by_metric_and_gone_on_from_any(self):
        job = self.file("""
if not start:
    for step, value in enumerate([0.9, 0.1, 0.5, 0.6, 0.7]):
        athanor.log(val=value, step=step)
        save(step)
        wait("go-on-%d" % step)
print("the end")
""", "checkpoints: {keep: {last: 2, best: 1, metric: val, goal: min}}\n")
        for step in range(5):
            one = self.server.until_checkpoint(job, step)
            self.assertEqual(one["files"], min(step + 1, 2), "what did not change is named again")
            self.assertEqual(one["new_bytes"], 1, "and not stored again")
            self.server.go("go-on-%d" % step)
        record = self.ended(job)
        kept = [one["step"] for one in self.server.checkpoints(job)]
        self.assertEqual(kept, [4, 3, 1], "the two newest and the best")
        table = self.server.ath("checkpoints", job, check=0).stdout
        self.assertEqual([line.split()[1] for line in table.splitlines()[1:]], ["4", "3", "1"])
        out = self.server.ath("resume", job, "--from", "2", "-d")
        self.assertEqual(out.returncode, 3, out.stderr)
        self.assertIn("4, 3, 1", out.stderr)
        for flags, begin in (([], 5), (["--from", "1"], 2)):
            other = self.server.json("resume", job, "-d", *flags)["id"]
            again = self.ended(other)
            self.assertEqual(again["resume_job"], job)
            self.assertIn(b"attempt 1 from %d\n" % begin, self.server.logs(other))
            self.assertEqual(again["attempts"][0]["resumed_step"], begin - 1)
        self.assertEqual(self.server.show(job)["updated"], record["updated"])

    def test_best_of_an_earlier_attempt_stays(self):
        job = self.file("""
if ATTEMPT == 1:
    athanor.log(val=0.1, step=0)
    save(0)
    wait("first kept")
    while not told: time.sleep(0.01)
else:
    for step in range(start, start + 3):
        athanor.log(val=0.5 + step, step=step)
        save(step)
        wait("kept %d" % step)
""", "checkpoints: {keep: {last: 1, best: 1, metric: val}}\n")
        self.server.until_checkpoint(job, 0)
        self.server.go("first kept")
        self.server.ath("interrupt", job, check=0)
        for step in (1, 2, 3):
            self.server.until_checkpoint(job, step)
            self.server.go("kept %d" % step)
        self.ended(job)
        self.assertEqual([one["step"] for one in self.server.checkpoints(job)], [3, 0])

    def test_plain_files_are_kept_without_the_package(self):
        """As torch.save(..., "/opt/ml/checkpoints/model.pt") does; folders too."""
        self.server.script("plain.py", """
            import os, signal, time
            told = []
            signal.signal(signal.SIGTERM, lambda *_: told.append(1))
            folder = os.environ.get("SM_CHECKPOINT_DIR") or "/opt/ml/checkpoints"
            path = os.path.join(folder, "deep", "model.pt")
            if os.path.exists(path):
                print("found", open(path).read())
            else:
                os.makedirs(os.path.dirname(path))
                print("ready", flush=True)
                while not told: time.sleep(0.01)
                with open(path, "w") as file: file.write("weights")
        """)
        job = self.server.submit("python3", "plain.py")
        self.server.until_log(job, "ready")
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertIn(b"found weights", self.server.logs(job))
        self.assertIn("; saved in", record["attempts"][0]["cause"]["text"])
        (one,) = self.server.manifest(job, record["attempts"][1]["resumed_from"])["files"]
        self.assertEqual((one["name"], one["size"]), ("deep/model.pt", 7))

    def test_shared_folder_is_kept_in_place(self):
        folder = os.path.join(self.server.root, "on a shared disk")
        os.mkdir(folder)
        job = self.file(OBEDIENT, "checkpoints: {store: shared, dir: '%s'}\n" % folder)
        self.server.until_log(job, "attempt 1 from 0")
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        step = record["attempts"][1]["resumed_step"]
        self.assertIn(b"attempt 2 from %d\n" % (step + 1), self.server.logs(job))
        self.assertEqual(os.listdir(folder), ["step-%d" % step])
        self.assertTrue(self.server.manifest(job, record["attempts"][1]["resumed_from"])["shared"])
        parts = os.path.join(self.server.home, "jobs", job, "parts")
        self.assertEqual([name for _, _, names in os.walk(parts) for name in names], [])

    def test_torn_newest_is_passed_over(self):
        job = self.start("""
if ATTEMPT == 1:
    for step in (10, 20):
        save(step)
        wait("torn-%d" % step)
    while not told: time.sleep(0.01)
""")
        first = self.server.until_checkpoint(job, 10)
        self.server.go("torn-10")
        second = self.server.until_checkpoint(job, 20)
        self.server.go("torn-20")
        old = self.server.manifest(job, first["id"])["files"]
        new = self.server.manifest(job, second["id"])["files"]
        (name,) = {file["name"] for file in new} - {file["name"] for file in old}
        (part,) = [file["parts"] for file in new if file["name"] == name][0]
        path = os.path.join(self.server.home, "jobs", job, "parts", part[:2], part)
        os.chmod(path, 0o600)
        with open(path, "r+b") as file:  # as long as before: only its sha256 can tell
            file.write(b"X")
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertEqual(record["attempts"][1]["resumed_from"], first["id"])
        self.assertIn(b"attempt 2 from 11\n", self.server.logs(job))
        setup = self.server.logs(job, "--phase", "setup").decode()
        self.assertRegex(setup, r"checkpoint %s is not whole and was passed over" % second["id"])

    def test_file_being_written_when_killed_is_in_no_manifest(self):
        job = self.start("""
if ATTEMPT == 1:
    save(1)
    torn = open(os.path.join(athanor.checkpoint_dir(), "step-2"), "w")
    torn.write("half of it")
    torn.flush()
    print("half", flush=True)
""" + DEAF)
        self.server.until_log(job, "half")
        self.server.ath("interrupt", job, "--grace", "1s", check=0)
        record = self.ended(job)
        self.assertIn(b"attempt 2 from 2\n", self.server.logs(job))
        for one in self.server.checkpoints(job):
            names = [file["name"] for file in self.server.manifest(job, one["id"])["files"]]
            self.assertEqual(names, ["step-1"])
        self.assertIn("not saved", record["attempts"][0]["cause"]["text"])

    def test_job_without_one_has_nothing_to_go_on_from(self):
        job = self.server.submit("true")
        self.ended(job)
        self.assertIn("no complete checkpoints", self.server.ath("checkpoints", job, check=0).stdout)
        out = self.server.ath("resume", job)
        self.assertEqual(out.returncode, 3, out.stderr)
        self.assertIn("ath retry", out.stderr)


class Metrics(Survive):
    def test_one_value_per_step_and_the_abandoned_branch_is_kept(self):
        job = self.start("""
for step in range(start, 13):
    athanor.log(loss=100 * ATTEMPT + step, step=step)
    if step in (3, 8) and ATTEMPT == 1:
        athanor.log(rare=step, step=step)
    if step == 4 and ATTEMPT == 1:
        save(step)
        wait("four is kept")
    if step == 9 and ATTEMPT == 1:
        print("nine", flush=True)
        while not told: time.sleep(0.01)
        sys.exit(0)
""")
        self.server.until_checkpoint(job, 4)
        self.server.go("four is kept")
        self.server.until_log(job, "nine")
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertEqual(record["attempts"][1]["resumed_step"], 4)
        self.assertEqual([(p["step"], p["value"]) for p in self.server.points(job, "loss")],
                         [(i, 100 + i) for i in range(5)] + [(i, 200 + i) for i in range(5, 13)])
        (summary,) = [m for m in record["metrics"] if m["name"] == "loss"]
        self.assertEqual((summary["count"], summary["max"], summary["last"]), (13, 212, 212))
        reply = self.server.http("GET", "/api/v1/jobs/%s/metrics/loss?abandoned=true" % job)
        points = [json.loads(line) for line in reply.body.splitlines()]
        self.assertEqual(len(points), 18)
        self.assertEqual([(p["step"], p["value"]) for p in points if p.get("abandoned")],
                         [(i, 100 + i) for i in range(5, 10)])
        # Logged by the first attempt only: what lies beyond the resume counts no more, either.
        self.assertEqual([(p["step"], p["value"]) for p in self.server.points(job, "rare")],
                         [(3, 3)])
        (rare,) = [m for m in record["metrics"] if m["name"] == "rare"]
        self.assertEqual((rare["count"], rare["last"]), (1, 3))


class Retries(Survive):
    settings = "instances: simulate\n"

    def job(self, text, retry):
        return self.file(text, "retry: %s\n" % retry)

    def test_exit_status_named_in_the_job_file(self):
        jobs = [self.job("sys.exit(75 if ATTEMPT < 3 else 0)", "{max: 2, on: ['exit:75']}"),
                self.job("sys.exit(75)", "{max: 1, on: ['exit:75']}"),
                self.job("sys.exit(3)", "{max: 5, on: ['exit:75']}")]
        record = self.ended(jobs[0])
        self.assertEqual((len(record["attempts"]), record["retries"]), (3, 2))
        record = self.ended(jobs[1], "Failed")
        self.assertEqual((len(record["attempts"]), record["retries"]), (2, 1))
        record = self.ended(jobs[2], "Failed")
        self.assertEqual((len(record["attempts"]), record["retries"]), (1, 0))
        self.assertEqual(record["attempts"][0]["exit"]["code"], 3)

    def test_words_of_the_log(self):
        retry = "{max: 3, on: ['log:link [0-9]+ is down']}"
        jobs = [self.job("if ATTEMPT == 1: sys.exit('oh: link 12 is down')", retry),
                self.job("sys.exit('oh: link is down')", retry)]
        record = self.ended(jobs[0])
        self.assertEqual(record["attempts"][0]["exit"]["matched"], ["log:link [0-9]+ is down"])
        self.assertEqual(len(record["attempts"]), 2)
        self.assertEqual(len(self.ended(jobs[1], "Failed")["attempts"]), 1)

    def test_the_machines_faults_are_not_counted(self):
        job = self.job("""
if ATTEMPT in (1, 2):
    while not told: time.sleep(0.01)
    sys.exit(0)
sys.exit(75 if ATTEMPT == 3 else 0)
""", "{max: 1, on: ['exit:75']}")
        for attempt in (1, 2):
            self.server.until_log(job, "attempt %d from" % attempt)
            self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertEqual(self.causes(record), ["preempted", "preempted", "nonzero_exit",
                                               "completed"])
        self.assertEqual(record["retries"], 1)

    def test_killed_agent_and_supervisor_are_the_machines_fault(self):
        job = self.job("""
if ATTEMPT == 1:
    save(3)
    while True: time.sleep(0.01)
""", "{max: 1}")
        self.server.until_checkpoint(job, 3)
        pids = self.server.agent_pids(job) + self.server.supervisor_pids(job)
        self.assertEqual(len(pids), 2)
        for number in (19, 9):  # SIGSTOP first: neither may see the other die
            for pid in pids:
                os.kill(pid, number)
        record = self.ended(job)
        self.assertEqual(self.causes(record), ["agent_lost", "completed"])
        self.assertEqual((record["retries"], record["attempts"][1]["resumed_step"]), (0, 3))

    def test_out_of_memory_climbs_the_ladder(self):
        text = """
hold = bytearray(200 << 20)
for i in range(0, len(hold), 4096): hold[i] = 1
print("fits")
"""
        self.write(text)
        job = self.server.file("run: python3 train.py\nresources: {cpus: 0.2, memory: 64MB}\n"
                               "retry: {escalate: [ml.t3.medium, ml.m5.4xlarge]}\n")
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(self.causes(record), ["out_of_memory", "completed"])
        self.assertEqual(record["attempts"][1]["type"], "ml.t3.medium")
        self.assertEqual(record["retries"], 0)
        self.assertGreater(record["attempts"][1]["exit"]["memory_limit"], 200 << 20)
        self.assertIn(b"fits", self.server.logs(job))


# Prints what the rules read; knows nothing of Athanor but when to end.
PRINTS = """
    import signal, sys, time
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    for step, loss in enumerate(sys.argv[1].split(",")):
        print("step=%d loss=%s" % (step, loss), flush=True)
    while sys.argv[2] == "stays" and not told: time.sleep(0.01)
    print("told" if told else "not told")
"""


class Rules(Survive):
    METRICS = "metrics: [{name: loss, regex: 'loss=(\\S+)', step: 'step=(\\d+)'}]\n"

    def job(self, losses, rule, stays="stays"):
        self.server.script("prints.py", PRINTS)
        return self.server.file("run: python3 prints.py %s %s\nresources: {cpus: 0.2}\n"
                                % (losses, stays) + self.METRICS + "rules: [%s]\n" % rule)

    def firing(self, record):
        (firing,) = record["firings"]
        self.assertTrue(firing["advice"])
        text = self.server.ath("show", record["id"], check=0).stdout
        self.assertIn("at step %d" % firing["step"], text)
        self.assertIn(firing["advice"], text)
        return firing

    def test_stop(self):
        job = self.job("0.5,0.4,nan,0.3", "{rule: nan, metric: loss, action: stop}")
        plateau = self.job("5,4,3,3,3,3,3", "{rule: plateau, window: 4, action: stop, name: flat}")
        record = self.ended(job, "Stopped")
        self.assertEqual(record["cause"]["kind"], "rule_stop")
        firing = self.firing(record)
        self.assertEqual((firing["kind"], firing["metric"], firing["step"], firing["value"],
                          firing["action"]), ("nan", "loss", 2, "NaN", "stop"))
        self.assertIn(b"told\n", self.server.logs(job))
        why = self.server.ath("why", job, check=0).stdout
        self.assertIn("step 2", why)
        self.assertIn("ath metrics", why)
        record = self.ended(plateau, "Stopped")
        firing = self.firing(record)
        self.assertEqual((firing["rule"], firing["kind"], firing["step"]), ("flat", "plateau", 6))

    def test_mark(self):
        job = self.job("1,11,12,2", "{rule: above, metric: loss, value: 10}", "goes")
        record = self.ended(job)
        firing = self.firing(record)
        self.assertEqual((firing["step"], firing["value"], firing["action"]), (1, "11", "mark"))
        self.assertIn("10", firing["threshold"])

    def test_retry_goes_back_to_the_checkpoint(self):
        job = self.file("""
for step in range(start, 10):
    print("step=%d loss=%d" % (step, 100 if step == 6 and ATTEMPT == 1 else 1), flush=True)
    if step == 4 and ATTEMPT == 1:
        save(step)
        wait("rule: four is kept")
    if step == 6 and ATTEMPT == 1:
        while not told: time.sleep(0.01)
        sys.exit(0)
""", self.METRICS + "rules: [{rule: above, metric: loss, value: 50, action: retry}]\n")
        self.server.until_checkpoint(job, 4)
        self.server.go("rule: four is kept")
        record = self.ended(job)
        self.assertEqual(self.causes(record), ["rule_retry", "completed"])
        self.assertEqual(record["attempts"][1]["resumed_step"], 4)
        self.assertEqual(self.firing(record)["action"], "retry")
        self.assertEqual([(p["step"], p["value"]) for p in self.server.points(job, "loss")],
                         [(i, 1) for i in range(10)])


class Hangs(Survive):
    SLEEPS = """
def stuck_for_ever():
    while ATTEMPT == 1: time.sleep(3600)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
stuck_for_ever()
"""

    def test_named_with_its_stack_and_tried_again_if_asked(self):
        hang = "limits: {hang: {after: 2s, action: %s}}\n"
        fails = self.file(self.SLEEPS, hang % "fail")
        again = self.file(self.SLEEPS, hang % "retry")
        record = self.ended(fails, "Failed")
        self.assertEqual(self.causes(record), ["hung"])
        why = self.server.ath("why", fails, check=0).stdout
        self.assertIn("no output", why)
        line = next(i for i, text in enumerate(
            (PRELUDE + self.SLEEPS).splitlines(), 1) if "sleep(3600)" in text)
        self.assertRegex(why, r'train\.py", line %d in stuck_for_ever' % line)
        record = self.ended(again)
        self.assertEqual(self.causes(record), ["hung", "completed"])


# Runs the example as it is; but each of the first attempts waits, at a step of its own, until its
# machine is taken away.
PACED = """
    import athanor, os, runpy, time
    attempt = int(os.environ["ATHANOR_ATTEMPT"])
    pauses = [int(step) for step in os.environ["PAUSES"].split()]
    plain = athanor.log
    def log(*values, step=None, **more):
        plain(*values, step=step, **more)
        if attempt <= len(pauses) and step == pauses[attempt - 1]:
            print("attempt", attempt, "waits at step", step, flush=True)
            while not athanor.should_stop(): time.sleep(0.01)
    athanor.log = log
    runpy.run_path("train.py", run_name="__main__")
"""


@unittest.skipUnless(has_torch(), "/usr/bin/python3 has no torch")
class Cifar10(Survive):
    """The example, interrupted eight times, ends as if nothing had happened."""

    EXAMPLE = os.path.join(harness.TREE, "examples", "cifar10")
    PAUSES = [3, 5, 9, 12, 13, 18, 20, 26]  # of 27 steps, 9 an epoch: in the middle and at ends
    UNSAVED = (2, 6)                        # attempts that are killed without a word

    def submit(self, pauses):
        return self.server.submit(
            "/usr/bin/python3", "paced.py", "--samples", "288", "--batch-size", "32", "--epochs",
            "3", "--threads", "1", "--data", self.data,
            flags=["-e", "PAUSES=" + " ".join(map(str, pauses)), "-e", "OMP_NUM_THREADS=1"])

    def results(self, job):
        """The tensors of the model by their bytes, and the series."""
        folder = os.path.join(self.server.root, "model-" + job)
        self.server.ath("cp", job + ":model/", folder, check=0)
        (path,) = [os.path.join(top, name) for top, _, names in os.walk(folder)
                   for name in names if name == "model.pt"]
        tensors = subprocess.run(["/usr/bin/python3", "-c", """if True:
            import hashlib, sys, torch
            for name, tensor in sorted(torch.load(sys.argv[1]).items()):
                print(name, tuple(tensor.shape), tensor.dtype,
                      hashlib.sha256(tensor.numpy().tobytes()).hexdigest())
            """, path], stdout=subprocess.PIPE, text=True, check=True).stdout
        return tensors, {name: [(p["step"], p["value"]) for p in self.server.points(job, name)]
                         for name in ("loss", "accuracy")}

    def test_interrupted_eight_times(self):
        """Red if a save is taken before its step, a metric of an abandoned branch counts, or the
        data order starts anew with an attempt."""
        self.data = os.path.join(self.EXAMPLE, "data")
        if not os.path.exists(self.data):
            subprocess.run(["/usr/bin/python3", os.path.join(self.EXAMPLE, "make_data.py")],
                           check=True)
        shutil.copy(os.path.join(self.EXAMPLE, "train.py"), self.server.work)
        self.server.script("paced.py", PACED)
        undisturbed = self.submit([])
        job = self.submit(self.PAUSES)
        for attempt, step in enumerate(self.PAUSES, 1):
            self.server.until_log(job, "attempt %d waits at step %d" % (attempt, step))
            now = ["--grace", "0s"] if attempt in self.UNSAVED else []
            self.server.ath("interrupt", job, *now, check=0)
        record = self.ended(job)
        self.assertEqual(self.causes(record), ["preempted"] * 8 + ["completed"])
        self.assertEqual([attempt.get("resumed_step") for attempt in record["attempts"]],
                         [None, 3, 3, 9, 12, 13, 13, 20, 26])
        self.assertEqual(len(self.ended(undisturbed)["attempts"]), 1)
        tensors, series = self.results(undisturbed)
        self.assertEqual(len(series["loss"]), 27)
        self.assertEqual([step for step, _ in series["accuracy"]], [9, 18, 27])
        self.assertEqual(self.results(job), (tensors, series))


if __name__ == "__main__":
    harness.main()
