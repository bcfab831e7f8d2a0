"""`ath run --preflight`: a short run here says whether the real one will work, and what it costs."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case

TRAIN = """
    import athanor, os, time
    files = sorted(os.listdir(athanor.channel("train")))
    print("files", len(files), flush=True)
    start = 0
    if path := athanor.latest_checkpoint():
        with open(path) as file:
            start = int(file.read()) + 1
    for step in range(start, 36000):
        athanor.progress(step, 36000)
        athanor.log(loss=1.0 / (step + 1), step=step)
        if athanor.should_checkpoint(step):
            athanor.checkpoint(step, lambda path: open(path, "w").write(str(step)))
        if athanor.should_stop():
            break
        time.sleep(0.02)
"""


class Preflight(Case):
    settings = "preflight_above: 1.0\ninstances: simulate\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("train.py", TRAIN)
        for number in range(200):
            cls.server.script("data/%s/%03d.txt" % ("ab"[number % 2], number), "x" * 100)
        cls.server.script("job.yaml", """
            name: real
            run: python3 train.py
            source: {ignore: [data/]}
            data: {train: ./data}
            resources: {type: ml.m5.large, spot: {use: true}}
            rules: [{rule: nan, metric: loss, action: stop}]
        """)

    def checks(self, out):
        report = json.loads(out.stdout.splitlines()[-1])
        return report, {check["name"]: check for check in report["checks"]}

    def test_what_works_passes_with_an_estimate(self):
        """Red if the data is not a sample, the resume is not tried, or the price is not the type's."""
        before = {job["id"] for job in self.server.json("ps", "-a")["jobs"]}
        out = self.server.ath("run", "job.yaml", "--preflight", "--preflight-time", "20s", "--json",
                              check=0)
        report, checks = self.checks(out)
        self.assertEqual({check["verdict"] for check in checks.values()}, {"ok"}, out.stdout)
        self.assertEqual(set(checks), {"runs", "data", "metrics", "rules", "checkpoint", "memory"})
        self.assertIn("64 of 200 files", checks["data"]["text"])
        self.assertIn("resumed from 1-", checks["checkpoint"]["text"])
        self.assertIn("(ml.m5.large)", checks["memory"]["text"])
        estimate = report["estimate"]
        self.assertEqual(estimate["steps"], 36000)
        self.assertLess(estimate["low_ms"], estimate["high_ms"])
        self.assertGreater(estimate["low_cost_micros"], 0)
        types = self.server.json("types", "ml.m5.large", "--all")["types"]
        spot = [row["spot_micros"] for row in types if row["name"] == "ml.m5.large"]
        self.assertEqual([estimate["micros_per_hour"]], spot)
        # Nothing was submitted, and the short run left nothing.
        after = {job["id"] for job in self.server.json("ps", "-a")["jobs"]}
        self.assertEqual(before, after)

    def test_what_would_fail_is_told_before_it_costs(self):
        self.server.script("plain.py", """
            import time
            for step in range(10000):
                print("step", step, "acc is 0.5", flush=True)
                time.sleep(0.02)
        """)
        self.server.script("plain.yaml", """
            run: python3 plain.py
            metrics: [{name: loss, regex: 'loss=([0-9.]+)'}]
            retry: {max: 2}
        """)
        out = self.server.ath("run", "plain.yaml", "--preflight", "--preflight-time", "3s", "--json",
                              check=2)
        report, checks = self.checks(out)
        self.assertEqual(report["preflight"], "failed")
        self.assertEqual(checks["metrics"]["verdict"], "fail")
        self.assertIn("loss", checks["metrics"]["text"])
        self.assertEqual(checks["checkpoint"]["verdict"], "fail")
        self.assertIn("athanor.progress", report["estimate"]["why_not"])
        # It is there to be looked at, and over.
        self.assertIn(self.server.state(report["job"]), harness.TERMINAL)

    def test_a_checkpoint_that_does_not_load(self):
        """Red if only saving is looked at."""
        self.server.script("broken.py", """
            import athanor, time
            if athanor.latest_checkpoint():
                raise RuntimeError("size mismatch for head.weight")
            for step in range(10000):
                athanor.log(loss=1.0, step=step)
                if athanor.should_checkpoint(step):
                    athanor.checkpoint(step, lambda path: open(path, "w").write("x"))
                time.sleep(0.02)
        """)
        out = self.server.ath("run", "--preflight", "--preflight-time", "15s", "--json", "--",
                              "python3", "broken.py", check=2)
        _, checks = self.checks(out)
        self.assertEqual(checks["runs"]["verdict"], "ok")
        self.assertEqual(checks["checkpoint"]["verdict"], "fail")
        self.assertIn("size mismatch", checks["checkpoint"]["text"])

    def test_a_script_that_fails_at_once(self):
        self.server.script("fail.py", "raise KeyError('no such column')\n")
        out = self.server.ath("run", "--preflight", "--", "python3", "fail.py", check=2)
        self.assertIn("no such column", out.stdout)
        self.assertIn("ATH-C0042", out.stderr)

    def test_settings_ask_for_it_before_a_dear_type(self):
        """Red if preflight_above is not looked at, or also applies below it."""
        self.server.script("quick.py", "print('ran', flush=True)\n")
        flags = ("run", "-d", "--json")
        cheap = self.server.ath(*flags, "--type", "ml.m5.large", "--", "python3", "quick.py", check=0)
        self.assertNotIn("preflight", cheap.stderr + cheap.stdout)
        self.server.script("fail2.py", "raise KeyError('no such column')\n")
        dear = self.server.ath("run", "-d", "--type", "ml.m5.24xlarge", "--", "python3", "fail2.py",
                               check=2)
        self.assertIn("no such column", dear.stdout)
        through = self.server.ath("run", "-d", "--type", "ml.m5.24xlarge", "--no-preflight", "--",
                                  "python3", "fail2.py", check=0)
        self.assertEqual(self.server.wait(through.stdout.strip())["state"], "Failed")


if __name__ == "__main__":
    harness.main()
