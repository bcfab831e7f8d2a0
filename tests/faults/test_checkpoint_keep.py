"""`checkpoints.keep` bounds the folder and the store, over a thousand saves and while script, agent and
server are killed or interrupted at random moments; after each the job goes on from the newest
checkpoint that was kept. Real processes, real signals. ATHANOR_TEST_SEED repeats a run.
"""

import glob
import os
import random
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server, until

SAVES = 1000
BYTES = 20_000

# Ends with a status that is not tried again when anything is not as it must be.
TRAIN = """
    import athanor, os, sys, time
    folder = athanor.checkpoint_dir()
    def there(): return [name for name in os.listdir(folder) if not name.startswith(".~")]
    last = athanor.latest_checkpoint()
    step = 0
    if last:
        text = open(last).read()
        step = int(text.partition(" ")[0])
        if len(text) != %d or not last.endswith("step-%%d" %% step): sys.exit("torn: " + last)
    print("from", step, flush=True)
    while step < %d:
        step += 1
        athanor.checkpoint(step, lambda path: open(path, "w").write(("%%d " %% step).ljust(%d, "x")))
        if len(there()) > 2: sys.exit("kept too many: %%s" %% there())
        if step %% 50 == 0: print("at", step, flush=True)
    print("left", len(there()), flush=True)
""" % (BYTES, SAVES, BYTES)


class Keep(unittest.TestCase):
    def store(self, job):
        """Bytes of all parts; those that go meanwhile do not count."""
        total = 0
        for path in glob.glob(os.path.join(self.server.home, "jobs", job, "parts", "??", "*")):
            try:
                total += os.path.getsize(path)
            except OSError:
                pass
        return total

    def said(self, job, word):
        return [int(n) for n in re.findall(r"^%s (\d+)$" % word, self.server.logs(job).decode(),
                                           re.MULTILINE)]

    def script_pids(self, job):
        found = []
        for supervisor in self.server.supervisor_pids(job):
            path = "/proc/%d/task/%d/children" % (supervisor, supervisor)
            try:
                with open(path) as file:
                    found += [int(pid) for pid in file.read().split()]
            except OSError:
                pass
        return found

    def hit(self, how, job):
        if how == "script":
            for pid in self.script_pids(job):
                harness.kill(pid)
        elif how == "agent":
            for pid in self.server.agent_pids(job):
                harness.kill(pid)
        elif how == "server":
            self.server.kill()
            self.server.start()
        else:
            self.server.ath("interrupt", job)

    def test_a_thousand_saves_and_random_kills(self):
        """Red if older files stay in the folder (ATHANOR_CHECKPOINT_KEEP), if what a pruned
        checkpoint had stays in the store (ApplyKeep, DropLeftovers), or if a checkpoint is pruned
        that the next attempt needs."""
        seed = int(os.environ.get("ATHANOR_TEST_SEED", random.randrange(1 << 30)))
        dice = random.Random(seed)
        with Server() as self.server, self.subTest(seed=seed):
            server = self.server
            server.script("train.py", TRAIN)
            job = server.file("""
                run: python3 train.py
                checkpoints: {keep: {last: 2}}
                retry: {max: 20, on: [signal], backoff: 10ms}
                limits: {stop_grace: 1s}
            """)
            most = 0
            points = sorted(dice.sample(range(50, SAVES - 100, 50), 5))
            for point, how in zip(points, dice.sample(["script", "agent", "server", "interrupt",
                                                       "script"], 5)):
                until(lambda: max(self.said(job, "at") + [0]) >= point
                      or server.state(job) in harness.TERMINAL, "it saved %d times" % point)
                kept = [one["step"] for one in server.checkpoints(job)]
                begun = len(self.said(job, "from"))
                most = max(most, self.store(job))
                self.hit(how, job)
                if how in ("script", "interrupt"):
                    until(lambda: len(self.said(job, "from")) > begun
                          or server.state(job) in harness.TERMINAL, "it goes on")
                    if kept and len(self.said(job, "from")) > begun:
                        self.assertGreaterEqual(self.said(job, "from")[-1], max(kept), how)
                self.assertLessEqual(len(server.checkpoints(job)), 2)
            record = server.wait(job)
            self.assertEqual(record["state"], "Completed",
                             (record.get("cause"), server.logs(job)[-500:]))
            # More than once if a kill hit right after the last save.
            self.assertEqual(set(self.said(job, "left")), {2})
            newest = server.checkpoints(job)
            self.assertEqual(newest[0]["step"], SAVES)
            self.assertLessEqual(len(newest), 2)
            # Two states of two files each, or of three if the script was ended between a save and
            # the removal of the oldest; and what was on its way.
            self.assertLessEqual(most, 8 * BYTES)
            for one in newest:
                self.assertLessEqual(one["bytes"], 3 * BYTES)
            self.assertLessEqual(self.store(job), sum(one["bytes"] for one in newest))


if __name__ == "__main__":
    harness.main()
