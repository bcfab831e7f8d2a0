"""CloudWatch with unmodified clients on native jobs: boto3 old and new, the aws CLI."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import venvs
from harness import Case

HERE = os.path.dirname(os.path.abspath(__file__))
GROUP = "/aws/sagemaker/TrainingJobs"

TALKER = """\
import athanor, sys
for i in range(40): print("line", i, flush=True)
print("to stderr", file=sys.stderr, flush=True)
for percent in range(0, 101, 10):
    sys.stdout.write("\\r%3d%%" % percent)
    sys.stdout.flush()
print()
print("caf\\u00e9 \\u20ac")
for step in range(6): athanor.log(step=step, loss=1 / (step + 1))
athanor.log(step=6, loss=float("nan"))
athanor.log(step=6, accuracy=0.5)
print("ERROR: disk is full")
sys.stdout.write("no end of line")
"""

# Waits for its reader, then prints much and is over at once.
SLOW = """\
import os, sys, time
print("first", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
for i in range(3000): print("tail", i)
"""


class CloudWatch(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.variables = cls.server.json("env", "aws")
        cls.environment = dict(cls.server.environment, **cls.variables)
        job = cls.server.python(TALKER, flags=("--name", "talker"), name="talker.py")
        record = cls.server.wait(job)
        assert record["state"] == "Completed", record["cause"]

    def run_client(self, *command):
        done = subprocess.run(command, env=self.environment, cwd=self.server.work,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600)
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode != 0:
            raise AssertionError("%s: status %d\n%s\n%s" % (
                " ".join(command)[:300], done.returncode, text[-4000:],
                open(self.server.log).read()[-1000:]))
        return text

    def checks(self, python):
        version = self.run_client(python, "-c", "import boto3; print('x'.join("
                                  "boto3.__version__.split('.')[:2]), end='')")
        flag = os.path.join(self.server.root, "go-" + version)
        job = self.server.python(SLOW, flag, flags=("--name", "slow-" + version), name="slow.py")
        self.server.until_log(job, "first")
        text = self.run_client(python, os.path.join(HERE, "cloudwatch_checks.py"), self.server.url,
                               self.server.root)
        self.assertIn("ok check_metric_refusals", text)
        self.ended(job)

    def test_debians_boto3(self):
        self.checks(venvs.system("boto3"))

    def test_current_boto3(self):
        self.checks(venvs.venv("boto3"))

    @unittest.skipUnless(shutil.which("aws", path="/usr/local/bin:/usr/bin"), "no aws command")
    def test_the_aws_command(self):
        streams = json.loads(self.run_client(
            "aws", "logs", "describe-log-streams", "--log-group-name", GROUP,
            "--log-stream-name-prefix", "talker/", "--output", "json"))["logStreams"]
        found = json.loads(self.run_client(
            "aws", "logs", "get-log-events", "--log-group-name", GROUP, "--start-from-head",
            "--log-stream-name", streams[0]["logStreamName"], "--output", "json"))["events"]
        self.assertEqual(len(found), 45)
        tail = self.run_client("aws", "logs", "tail", GROUP, "--log-stream-name-prefix", "talker/",
                               "--since", "1h", "--filter-pattern", "ERROR", "--format", "short")
        self.assertIn("ERROR: disk is full", tail)
        self.assertEqual(len(tail.splitlines()), 1, tail)
        metrics = json.loads(self.run_client(
            "aws", "cloudwatch", "list-metrics", "--namespace", GROUP, "--output", "json"))
        self.assertIn("loss", [m["MetricName"] for m in metrics["Metrics"]])


if __name__ == "__main__":
    from harness import main
    main()
