"""The black box end to end: what made a job fail happens again on this machine."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case

# The seventh batch holds a zero; what is divided depends on the random state and on the weights.
CRASH = """
    import athanor, os, random, sys
    random.seed(11)
    with open(os.path.join(athanor.channel("train"), "numbers.txt")) as file:
        numbers = [int(line) for line in file]
    model = {"w": float(athanor.params["start"])}
    for step, number in enumerate(numbers):
        number = athanor.capture(step, batch=number, model=model)
        noise = random.random()
        if number == 0:
            raise ZeroDivisionError("w=%r noise=%r args=%r" % (model["w"], noise, sys.argv[1:]))
        model["w"] += noise / number
        athanor.checkpoint(step, lambda path: open(path, "w").write(str(model["w"])))
"""

DIVERGE = """
    import athanor, time
    model = {"w": 1.0}
    step = 0
    while True:
        scale = athanor.capture(step, batch=float("inf") if step == 5 else 1.0, model=model)
        model["w"] *= scale * 0.0 if scale > 2 else scale
        athanor.log(loss=model["w"], step=step)
        time.sleep(0.01)
        step += 1
"""


# Two processes of one job, each a rank of its own, as a launcher in the job would start them.
RANKS = """
    import os
    if os.environ["ATHANOR_RANK"] == "0" and "ATHANOR_SPOOL" in os.environ:  # not in a replay
        if os.fork() == 0: os.environ["ATHANOR_RANK"] = "1"
        else: os.wait()
    import athanor
    for step in range(3):
        # In a replay the batch is the captured one, whichever step the loop is at.
        last = athanor.capture(step, batch=step == 2)
        if last: raise RuntimeError("rank %d" % athanor.rank())
"""


class Replay(Case):
    def crashed(self):
        self.server.script("crash.py", CRASH)
        self.server.script("data/numbers.txt", "".join("%d\n" % n for n in [3, 1, 4, 1, 5, 9, 2, 0, 6]))
        self.server.script("job.yaml", """
            run: python3 crash.py --lr ${lr}
            params: {start: 0.5, lr: "a b"}
            data: {train: ./data}
            source: {ignore: [data/]}
        """)
        job = json.loads(self.server.ath("run", "-d", "--json", "job.yaml", check=0).stdout)["id"]
        self.ended(job, "Failed")
        return job

    def test_a_crash_happens_again_with_the_same_values(self):
        """Red if weights, random state, batch, parameters or data are not the job's."""
        job = self.crashed()
        raised = [line for line in self.server.logs(job).decode().splitlines()
                  if line.startswith("ZeroDivisionError")]
        self.assertEqual(len(raised), 1)
        out = self.server.ath("replay", job, check=1)
        self.assertIn(raised[0], out.stderr.splitlines())
        self.assertIn("step 7 raised ZeroDivisionError", out.stderr)
        self.assertIn("step 6: ath resume", out.stderr)  # the checkpoint before it
        # Through TCP, by an earlier step, laid out where it can be looked at.
        target = os.path.join(self.server.root, "laid-out")
        said = self.server.json("replay", job, "--step", "6", "--dir", target,
                                env={"ATHANOR_URL": self.server.url})
        self.assertEqual((said["status"], said["step"], said["dir"]), (0, 6, target))
        self.assertEqual(sorted(os.listdir(target)), ["capture", "ml"])
        # Not over what is there.
        again = self.server.json("replay", job, "--dir", target, check=4)
        self.assertEqual(again["error"]["id"], "ATH-C0041")
        # A step that was not captured: which there are.
        error = self.server.json("replay", job, "--step", "2", check=3)["error"]
        self.assertEqual((error["id"], error["why"]), ("ATH-R0015", "captured: 5, 6, 7"))

    def test_under_the_debugger(self):
        job = self.crashed()
        out = self.server.ath("replay", job, "--pdb", input="p number, step\nq\n")
        self.assertIn("(Pdb)", out.stdout)
        self.assertIn("(0, ", out.stdout)

    def test_a_rule_keeps_the_step_it_stopped(self):
        """Red if SIGTERM ends the script before its black box is on disk."""
        self.server.script("diverge.py", DIVERGE)
        self.server.script("rule.yaml", """
            run: python3 diverge.py
            rules: [{rule: nan, metric: loss, action: stop}]
        """)
        job = json.loads(self.server.ath("run", "-d", "--json", "rule.yaml", check=0).stdout)["id"]
        record = self.server.wait(job)
        self.assertEqual(record["cause"]["kind"], "rule_stop")
        out = self.server.ath("replay", job, check=0)
        self.assertIn("logged loss = nan", out.stderr)

    def test_of_one_rank(self):
        """Red if --rank is not looked at, or the script does not run as the rank that captured."""
        job = self.server.python(RANKS, name="ranks.py")
        self.ended(job, "Failed")
        for rank in (0, 1):
            out = self.server.ath("replay", job, "--rank", rank, check=1)
            self.assertIn("RuntimeError: rank %d" % rank, out.stderr)
            self.assertNotIn("rank %d" % (1 - rank), out.stderr)
        error = self.server.json("replay", job, "--rank", "2", check=3)["error"]
        self.assertEqual((error["id"], error["why"]),
                         ("ATH-R0015", "ranks that captured: 0, 1"))
        error = self.server.json("replay", job, "--rank", "1", "--step", "9", check=3)["error"]
        self.assertIn("--rank 1", error["hint"])

    def test_no_capture_says_how_to_get_one(self):
        job = self.server.python("print('fine')", name="fine.py")
        self.ended(job)
        error = self.server.json("replay", job, check=3)["error"]
        self.assertEqual(error["id"], "ATH-R0015")
        self.assertIn("athanor.capture(", error["hint"])

    def test_files_outside_the_capture_are_not_given(self):
        """Red if the path of a captured file is joined instead of resolved beneath its folder."""
        job = self.crashed()
        base = "/api/v1/jobs/%s/capture" % job
        captures = self.server.http("GET", base).json()["captures"]
        name = captures[0]["name"]
        self.assertEqual(self.server.http("GET", "%s/%s/meta.json" % (base, name)).json()["step"], 7)
        folder = os.path.join(self.server.home, "jobs", job, "capture", name)
        os.symlink("/etc/passwd", os.path.join(folder, "link"))
        os.mkfifo(os.path.join(folder, "fifo"))
        for path in ("link", "fifo", ".", "%2e%2e/meta.json", "..%2f..%2fmanifests", "absent"):
            reply = self.server.http("GET", "%s/%s/%s" % (base, name, path))
            self.assertIn(reply.status, (400, 404), path)
            self.assertNotIn(b"root:", reply.body)
        listed = self.server.http("GET", base).json()["captures"][0]["files"]
        self.assertEqual(sorted(file["name"] for file in listed), ["data.pkl", "meta.json"])


if __name__ == "__main__":
    harness.main()
