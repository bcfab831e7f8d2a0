"""ath runs, ath compare, ath metrics --plot: over jobs, and over a run that is none."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness


class Runs(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("train.py", """
            import sys, athanor
            scale = float(sys.argv[1])
            for step in range(1, 21):
                athanor.log(loss=scale / step, acc=step / 20, step=step)
            """)
        cls.jobs = {}
        for name, scale in (("slow", "3"), ("fast", "1"), ("middle", "2")):
            cls.jobs[name] = cls.server.submit(
                "python3", "train.py", scale,
                flags=["--name", name, "-p", "scale=" + scale, "--experiment", "digits"])
        for job in cls.jobs.values():
            assert cls.server.wait(job)["state"] == "Completed"
        # A run that is no job.
        reply = cls.server.http("POST", "/api/2.0/mlflow/runs/create", body={"run_name": "alone"},
                                headers={"Content-Type": "application/json"})
        cls.alone = reply.json()["run"]["info"]["run_id"]
        cls.server.http("POST", "/api/2.0/mlflow/runs/log-metric",
                        body={"run_id": cls.alone, "key": "loss", "value": 0.01, "timestamp": 1},
                        headers={"Content-Type": "application/json"})

    def names(self, *arguments):
        return [run["name"] for run in self.server.json("runs", *arguments)["runs"]]

    def test_sorted_by_a_metric_both_ways(self):
        self.assertEqual(self.names("--sort", "loss"), ["alone", "fast", "middle", "slow"])
        self.assertEqual(self.names("--sort=-loss", "-n", "2"), ["slow", "middle"])
        self.assertEqual(self.names("--experiment", "digits", "--sort", "params.scale"),
                         ["fast", "middle", "slow"])

    def test_filtered(self):
        self.assertEqual(self.names("--filter", "metrics.loss > 0.04 AND params.scale != '3'",
                                    "--sort", "loss"), ["fast", "middle"])
        self.assertEqual(self.names("--filter", "status = 'RUNNING'"), ["alone"])
        wrong = self.server.ath("runs", "--filter", "metrics.loss <")
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn("ATH-R0031", wrong.stderr)

    def test_table_has_the_columns_asked_for(self):
        text = self.server.ath("runs", "-c", "loss", "-c", "params.scale", check=0).stdout
        head, *rows = text.splitlines()
        self.assertEqual(head.split(), ["RUN", "NAME", "EXPERIMENT", "STATE", "CREATED", "loss",
                                        "scale"])
        (fast,) = [row.split() for row in rows if " fast " in row]
        self.assertEqual(fast[-2:], ["0.05", "1"])

    def test_compare(self):
        text = self.server.ath("compare", "fast", self.jobs["slow"], "alone", check=0).stdout
        text = text.replace(" (not read by the script)", "")
        rows = {line.split()[-4]: line.split()[-3:] for line in text.splitlines()[1:]}
        self.assertEqual(rows["scale"], ["1", "3", "-"])
        self.assertEqual(rows["loss"], ["0.05", "0.15", "0.01"])
        self.assertEqual(self.server.ath("compare", "fast", "nobody").returncode, 3)

    def test_metrics_with_a_trend_and_a_plot(self):
        text = self.server.ath("metrics", "fast", check=0).stdout
        (loss,) = [line for line in text.splitlines() if line.startswith("loss")]
        self.assertRegex(loss, r"20 +\S{8,}$")
        plot = self.server.ath("metrics", "fast", "loss", "--plot", check=0,
                               env={"ATH_ASCII": "1"}).stdout
        self.assertEqual(len(plot.splitlines()), 14)
        self.assertIn("         1 |*", plot)
        self.assertIn("METRIC", self.server.ath("metrics", self.alone, check=0).stdout)

    def test_points_by_pixels(self):
        target = "/api/v1/runs/%s/metrics/loss?width=4" % self.jobs["slow"]
        points = [json.loads(line) for line in self.server.http("GET", target).body.splitlines()]
        self.assertLess(len(points), 20)
        self.assertEqual((points[0]["step"], points[-1]["step"]), (1, 20))


if __name__ == "__main__":
    harness.main()
