"""The launcher, against a program that answers as `ath` does and writes down what it was asked."""

import json
import os
import pickle
import stat
import sys
import tempfile
import unittest
from unittest import mock

import athanor
from athanor import launch

FAKE = """#!%s
import json, os, sys
asked = sys.argv[1:]
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(json.dumps(asked) + "\\n")
reply = json.load(open(os.environ["FAKE_REPLIES"])).get(asked[0], {})
sys.stdout.write(reply.get("out", ""))
sys.stderr.write(reply.get("err", ""))
sys.exit(reply.get("exit", 0))
""" % sys.executable

STARTED = json.dumps({"id": "01j8", "name": "calm-forge", "state": "Queued"}) + "\n"


class LaunchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        program = self.path("ath")
        with open(program, "w", encoding="utf-8") as file:
            file.write(FAKE)
        os.chmod(program, stat.S_IRWXU)
        environment = {"ATHANOR_BIN": program, "FAKE_LOG": self.path("log"),
                       "FAKE_REPLIES": self.path("replies")}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        self.replies(run={"out": STARTED})

    def path(self, name):
        return os.path.join(self.folder, name)

    def replies(self, **replies):
        with open(self.path("replies"), "w", encoding="utf-8") as file:
            json.dump(replies, file)

    def asked(self):
        with open(self.path("log"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_a_script_with_type_params_and_flags(self):
        job = athanor.run("train.py", type="ml.c5.xlarge", name="first",
                          params={"lr": 0.1, "opt": "adam", "sizes": [1, 2], "on": True},
                          max_time="2h", tag=["a=1", "b=2"], spot=True, debug=False)
        self.assertEqual((job.id, job.name), ("01j8", "calm-forge"))
        self.assertEqual(self.asked(), [[
            "run", "-d", "--json", "--type=ml.c5.xlarge", "--name=first", "-p", "lr=0.1",
            "-p", "opt=adam", "-p", "sizes=[1, 2]", "-p", "on=true", "--max-time=2h",
            "--tag=a=1", "--tag=b=2", "--spot", "--", "python3", "train.py"]])

    def test_commands_and_job_files(self):
        athanor.run(["bash", "-c", "echo --hi"])
        athanor.run("job.yaml")
        self.assertEqual([asked[3:] for asked in self.asked()],
                         [["--", "bash", "-c", "echo --hi"], ["job.yaml"]])

    def test_waiting_for_a_job_that_completes(self):
        self.replies(run={"out": STARTED}, wait={"out": '{"id":"01j8","state":"Completed"}\n'})
        job = athanor.run("train.py")
        self.assertIs(job.wait(), job)
        self.assertEqual(self.asked()[-1], ["wait", "01j8", "--json"])

    def test_a_failed_job_raises_with_the_reason(self):
        self.replies(run={"out": STARTED},
                     wait={"out": '{"id":"01j8","state":"Failed"}\n', "exit": 3},
                     why={"out": "out of memory: 2.1 GB of 2 GB\n"})
        with self.assertRaises(athanor.JobFailed) as caught:
            athanor.run("train.py", detach=False)
        self.assertEqual((caught.exception.id, caught.exception.state, caught.exception.why),
                         ("01j8", "Failed", "out of memory: 2.1 GB of 2 GB"))
        self.assertIn("out of memory", str(caught.exception))

    def test_a_refused_submit_passes_the_message_on(self):
        refused = {"code": "invalid", "what": "no such type ml.c9", "hint": "ath types\nath check", "id": "ATH-S1"}
        words = "error[ATH-S1]: no such type ml.c9\n  next: ath types\n        ath check\n"
        for reply in ({"out": json.dumps({"error": refused}) + "\n"}, {"err": words}):
            self.replies(run=dict(reply, exit=2))
            with self.assertRaises(launch.LaunchError) as caught:
                athanor.run("train.py", type="ml.c9")
            error = caught.exception
            self.assertIsInstance(error, athanor.AthanorError)
            self.assertEqual((error.what, error.why, error.next, error.code),
                             ("no such type ml.c9", "", "ath types\nath check", "ATH-S1"))
            self.assertEqual(str(error), "no such type ml.c9\n  next: ath types\n        ath check")
            self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))

    def test_what_nobody_explained_is_passed_on(self):
        self.replies(run={"err": "Segmentation fault\n", "exit": 139})
        with self.assertRaises(launch.LaunchError) as caught:
            athanor.run("train.py")
        self.assertEqual((caught.exception.what, caught.exception.why),
                         ("`ath run` failed (exit 139)", "Segmentation fault"))

    def test_a_server_that_is_gone_is_not_a_failed_job(self):
        self.replies(run={"out": STARTED}, wait={"err": "no server answers\n", "exit": 69})
        with self.assertRaises(launch.LaunchError):
            athanor.run("train.py").wait()

    def test_state_logs_metrics_and_stop(self):
        points = [{"name": "loss", "step": 1, "value": 0.5, "time": "t1"},
                  {"name": "loss", "step": None, "value": "-Infinity", "time": "t2"}]
        self.replies(run={"out": STARTED},
                     show={"out": '{\n "id": "01j8",\n "state": "Running"\n}'},
                     logs={"out": "line 1\nline 2\n"},
                     metrics={"out": "".join(json.dumps(p) + "\n" for p in points)})
        job = athanor.run("train.py")
        self.assertEqual(job.state, "Running")
        self.assertEqual(job.logs(), "line 1\nline 2\n")
        self.assertEqual(job.metrics("loss"), [("loss", 1, 0.5, "t1"),
                                               ("loss", None, float("-inf"), "t2")])
        job.stop()
        self.assertEqual(self.asked()[1:], [["show", "01j8", "--json"], ["logs", "01j8"],
                                            ["metrics", "01j8", "loss", "--json"],
                                            ["stop", "01j8"]])

    def test_no_program_says_what_to_do(self):
        with mock.patch.dict(os.environ, {"PATH": self.folder + "/none"}):
            os.environ["ATHANOR_BIN"] = self.path("missing")
            with self.assertRaisesRegex(launch.LaunchError, "cannot be run"):
                athanor.run("train.py")


if __name__ == "__main__":
    unittest.main()
