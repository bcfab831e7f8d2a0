"""The launchers of examples/sagemaker, each with the unmodified SDK from PyPI: 2.122 on the boto3
of its time, the newest 2.x on the current one, SDK 3, and the aws command, Debian's and PyPI's."""

import concurrent.futures
import json
import os
import re
import shutil
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
import venvs
import harness
from harness import until
from sagemaker_server import SageMakerServer

EXAMPLES = os.path.join(harness.TREE, "examples", "sagemaker")
# How the names begin that the SDK gives their jobs.
BASES = {"fit": "pytorch-training-", "s3": "cifar10-s3-", "debugger": "cifar10-debugger-",
         "spot": "cifar10-spot-"}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def needs_torch():
    venvs.system("torch")


class Launchers:
    """All run in setUpClass, side by side: most of an SDK's time is sleep."""

    @classmethod
    def setUpClass(cls):
        needs_torch()
        cls.python = venvs.locked(cls.lock)
        cls.server = SageMakerServer()
        cls.addClassCleanup(cls.server.close)
        cls.folder = os.path.join(cls.server.work, "sagemaker")
        shutil.copytree(EXAMPLES, cls.folder)
        # The SDK makes its bucket at the first use, and two who make it at once quarrel.
        cls.said = {"tuner": cls.launch("tuner")}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = {name: pool.submit(cls.launch, name) for name in ("fit", "s3", "debugger")}
            cls.said.update({name: one.result() for name, one in running.items()})
            spot = pool.submit(cls.launch, "spot")
            cls.interrupt("cifar10-spot")
            cls.said["spot"] = spot.result()
        tuner = cls.said["tuner"][1].rpartition("tuning job: ")[2].strip()
        # The tuner's own jobs have the same beginning as some of the others.
        names = [row["name"] for row in cls.listed() if not row["name"].startswith(tuner)]
        cls.jobs = {kind: ([name for name in names if name.startswith(base)] + ["none"])[0]
                    for kind, base in BASES.items()}
        cls.jobs["tuner"] = tuner

    @classmethod
    def launch(cls, name):
        status, text = cls.server.client(cls.python, "launch_%s.py" % name, cwd=cls.folder)
        return status, COLOUR.sub("", text)

    @classmethod
    def interrupt(cls, base):
        """Takes the machine away once the first epoch is saved."""
        def found():
            return [row["name"] for row in cls.listed() if row["name"].startswith(base)]
        (name,) = until(found, "the spot job is there")
        until(lambda: cls.server.json("checkpoints", name)["checkpoints"], "an epoch is saved")
        cls.server.ath("interrupt", name, check=0)

    @classmethod
    def listed(cls):
        out = cls.server.ath("ps", "-a", "--json", check=0).stdout
        return json.loads(out)["jobs"]

    def text(self, name):
        status, text = self.said[name]
        if status != 0:
            self.fail("launch_%s.py: status %d\n%s\n%s" % (
                name, status, text[-6000:], open(self.server.log).read()[-1000:]))
        return text

    def test_fit(self):
        text = self.text("fit")
        self.assertIn("Finished Training", text)
        self.assertRegex(text, r"Training seconds: [1-9]")
        self.assertRegex(text, r"Billable seconds: [1-9]")
        self.assertRegex(text, r"model: s3://sagemaker-us-west-2-\d{12}/\S+/output/model.tar.gz")
        accuracy = float(re.findall(r"Val Accuracy = ([\d.]+);", text)[-1])
        self.assertGreater(accuracy, 0.3)  # chance is 0.1

    def test_data_in_s3_and_metrics(self):
        text = self.text("s3")
        self.assertIn("FastFile", text, "that it runs as File is said")
        self.assertEqual(len(re.findall(r"Epoch \d+: Train Loss", text)), 3)
        for name in ("train_loss", "val_loss", "val_accuracy"):
            self.assertRegex(text, r"\d\.0 +%s +\d" % name)

    def test_spot_with_checkpoints(self):
        text = self.text("spot")
        self.assertIn("goes on after epoch", text)
        epochs = [int(number) for number in re.findall(r"Epoch (\d+):", text)]
        self.assertEqual(sorted(set(epochs)), list(range(1, 7)))
        self.assertRegex(text, r"Managed Spot Training savings: [1-9]\d*\.\d%")
        self.assertRegex(text, r"checkpoints: \[.*cifar10-checkpoints/last\.pt")

    def test_debugger(self):
        text = self.text("debugger")
        self.assertIn("Finished Training", text)
        for rule in ("VanishingGradient", "Overfit", "LossNotDecreasing"):
            self.assertRegex(text, r"Rule: %s status: \w+ details: .*not evaluated" % rule)
        self.assertNotIn("NoIssuesFound", text)

    def test_tuner(self):
        text = self.text("tuner")
        self.assertRegex(text, r"tuning job: pytorch-training-\d+-\d+")

    def test_what_the_sdk_makes_of_the_jobs(self):
        for name in self.said:
            self.text(name)
        status, text = self.server.client(
            self.python, os.path.join(HERE, "sagemaker_sdk_checks.py"),
            *("%s=%s" % pair for pair in self.jobs.items()), cwd=self.server.work)
        told = [json.loads(line) for line in text.splitlines() if line.startswith('{"check"')]
        self.assertTrue(told, "status %d\n%s" % (status, text[-4000:]))
        for one in told:
            with self.subTest(one["check"]):
                self.assertTrue(one["ok"], one.get("why"))


class Sdk2Old(Launchers, unittest.TestCase):
    lock = "sagemaker-2.122"


class Sdk2New(Launchers, unittest.TestCase):
    lock = "sagemaker-2"


class Sdk3(unittest.TestCase):
    def test_model_trainer(self):
        needs_torch()
        python = venvs.locked("sagemaker-3")
        server = SageMakerServer()
        self.addCleanup(server.close)
        folder = os.path.join(server.work, "sagemaker")
        shutil.copytree(EXAMPLES, folder)
        status, text = server.client(python, "launch_model_trainer.py", cwd=folder)
        self.assertEqual(status, 0, text[-6000:])
        # What it shows of the log depends on the terminal; what became of the job does not.
        (job,) = json.loads(server.ath("ps", "-a", "--json", check=0).stdout)["jobs"]
        self.assertTrue(job["name"].startswith("cifar10-trainer"), job)
        self.assertEqual(job["state"], "Completed", text[-6000:])
        self.assertIn("Finished Training", server.ath("logs", job["id"], check=0).stdout)


class AwsCommand(unittest.TestCase):
    def launch(self, path):
        needs_torch()
        server = SageMakerServer()
        self.addCleanup(server.close)
        folder = os.path.join(server.work, "sagemaker")
        shutil.copytree(EXAMPLES, folder)
        status, text = server.client(os.path.join(folder, "create_training_job.sh"), path=path)
        self.assertEqual(status, 0, text[-6000:])
        self.assertIn("Finished Training", text)
        self.assertRegex(text, r"cifar10-cli-\S+: Completed")
        self.assertRegex(text, r"val_accuracy\s+[01]\.\d")
        self.assertIn("cifar_net.pth", text)

    @unittest.skipUnless(os.path.exists("/usr/bin/aws"), "Debian's awscli is not installed")
    def test_debians(self):
        self.launch("/usr/bin")

    def test_current(self):
        self.launch(os.path.dirname(venvs.locked("awscli")))


if __name__ == "__main__":
    harness.main()
