"""Stops, parameters and paths; and the package outside a job."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from support import SpoolCase, make_segment, write_control


class StopTest(SpoolCase):
    def control(self):
        return next(line for line in self.dump() if line["kind"] == "control")

    def test_goes_on_until_told_then_says_why_and_how_long(self):
        write_control(self.spool)
        self.assertFalse(self.control()["stop"])
        process = self.start("""
            notice = athanor.should_stop()
            assert not notice and notice.cause == "" and notice.deadline is None
            print("ready", flush=True)
            sys.stdin.readline()
            notice = athanor.should_stop()
            print(bool(notice), notice.cause, notice.deadline)
        """)
        process.stdout.readline()
        deadline_ms = int((time.time() + 1000) * 1000)
        page = os.path.join(self.spool, "control")
        inode = os.stat(page).st_ino
        write_control(self.spool, stop=1, deadline_ms=deadline_ms, cause=b"user stop", seqlock=4)
        self.assertEqual(os.stat(page).st_ino, inode)
        self.assertEqual(self.control(), {"kind": "control", "stop": True, "cause": "user stop",
                                          "deadline_unix_ms": deadline_ms,
                                          "stop_at_step": -(1 << 63), "checkpoint_every_ms": 0,
                                          "checkpoint_now": 0, "capture_now": 0})
        out, err = process.communicate("\n", timeout=60)
        self.assertEqual(err, "")
        stop, *cause, left = out.split()
        self.assertEqual((stop, cause), ("True", ["user", "stop"]))
        self.assertTrue(0 < float(left) <= 1000)

    def test_a_past_deadline_leaves_no_seconds(self):
        write_control(self.spool, stop=1, deadline_ms=1000)
        self.run_script("assert athanor.should_stop().deadline == 0.0")

    def test_ranks_that_pass_their_step_stop_at_the_agreed_one(self):
        write_control(self.spool, stop=1, stop_at=100, cause=b"spot")
        self.run_script("""
            assert not athanor.should_stop(step=99)
            assert athanor.should_stop(step=100) and athanor.should_stop(step=101)
            assert athanor.should_stop()
        """)

    def test_a_page_in_the_middle_of_a_write_is_not_believed(self):
        write_control(self.spool, stop=1, seqlock=3)
        self.run_script("assert not athanor.should_stop()")

    def test_bad_pages_are_no_stop(self):
        for content in (b"", b"x" * 4096, b"ATHCTL1\0" + b"\1" * 100):
            with open(os.path.join(self.spool, "control"), "wb") as file:
                file.write(content)
            self.run_script("assert not athanor.should_stop()")


class NoticeTest(SpoolCase):
    def test_the_notice_file_is_read_and_never_raises(self):
        path = os.path.join(self.spool, "notice.json")
        script = "print(athanor.notice())"
        self.assertEqual(self.run_script(script, ATHANOR_NOTICE_FILE=path), "None\n")
        for text, expected in (("{", "None"), ("[]", "None"), ("", "None"),
                               ('{"cause": "spot", "deadline_unix_ms": 5}',
                                "{'cause': 'spot', 'deadline_unix_ms': 5}")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(self.run_script(script, ATHANOR_NOTICE_FILE=path), expected + "\n")


class JobTest(SpoolCase):
    def params_file(self, text):
        path = os.path.join(self.spool, "params.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_typed_parameters_stay_as_they_are(self):
        values = {"lr": 1e-4, "epochs": 3, "name": "007", "on": True, "sizes": [1, 2], "no": None}
        self.run_script("""
            assert dict(athanor.params) == {"lr": 1e-4, "epochs": 3, "name": "007", "on": True,
                                            "sizes": [1, 2], "no": None}, athanor.params
            assert athanor.params.lr == 1e-4 and athanor.params.get("x", 5) == 5
            from athanor import params
            assert params is athanor.params
        """, ATHANOR_PARAMS_FILE=self.params_file(json.dumps(values)))

    def test_the_strings_of_hyperparameters_json_get_their_types_back(self):
        values = {"lr": "1e-4", "epochs": "3", "opt": "adam", "quoted": '"sgd"', "on": "true",
                  "zip": "007", "sizes": "[1, 2]"}
        self.run_script("""
            assert dict(athanor.params) == {"lr": 1e-4, "epochs": 3, "opt": "adam", "quoted": "sgd",
                                            "on": True, "zip": "007", "sizes": [1, 2]}
        """, ATHANOR_PARAMS_FILE=self.params_file(json.dumps(values)))

    def test_a_missing_parameter_says_which_there_are(self):
        self.run_script("""
            try: athanor.params["momentum"]
            except KeyError as error:
                assert all(part in str(error) for part in ("momentum", "lr", "ath run -p"))
            else: raise AssertionError
            try: athanor.params.momentum
            except AttributeError: pass
            else: raise AssertionError
        """, ATHANOR_PARAMS_FILE=self.params_file('{"lr": 1}'))

    def test_what_is_asked_for_is_noted_once(self):
        folder = os.path.dirname(self.params_file("{}"))
        with open(os.path.join(folder, "values.json"), "w", encoding="utf-8") as file:
            json.dump({"lr": 0.5, "wd": 1, "on": True}, file)
        notes = os.path.join(folder, "read")
        for ask, lines in (("pass", []), ("len(params), bool(params)", []),
                           ("params.lr; params['lr']; params.get('none', 1)", ["name lr", "name none"]),
                           ("'wd' in params; params.pop('on')", ["name wd", "name on"])):
            self.run_script("params = athanor.params\n" + ask, ATHANOR_PARAMS_FILE="/nowhere", ATHANOR_PARAMS_DIR=folder)
            self.assertEqual(self.noted(notes), lines, ask)
        for ask in ("dict(params)", "{**params}", "(lambda **all: 0)(**params)", "list(params)", "params.items()",
                    "str(params)", "__import__('json').dumps(params)", "params.copy()", "params == {}",
                    "__import__('copy').copy(params)", "{'a': 1}.update(params)", "params.values()"):
            self.run_script("params = athanor.params\n" + ask, ATHANOR_PARAMS_FILE="/nowhere", ATHANOR_PARAMS_DIR=folder)
            self.assertIn("all", self.noted(notes), ask)

    @staticmethod
    def noted(path):
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().split("\n")[:-1]
            os.remove(path)
            return lines
        except FileNotFoundError:
            return []

    def test_unreadable_parameters_are_an_error_and_not_the_defaults(self):
        for path in (self.params_file("{"), self.params_file("[1]"), "/nonexistent/p.json"):
            self.run_script("""
                try: athanor.params
                except RuntimeError as error: assert "parameters cannot be read" in str(error)
                else: raise AssertionError
            """, ATHANOR_PARAMS_FILE=path)

    def test_where_things_are(self):
        checkpoints = os.path.join(self.spool, "a", "ckpt")
        self.run_script("""
            import os
            assert athanor.in_job() and athanor.job_id() == "01jtest"
            assert (athanor.rank(), athanor.world_size()) == (3, 8)
            assert os.path.isdir(athanor.checkpoint_dir())
            assert athanor.model_dir().endswith("/model") and os.path.isdir(athanor.model_dir())
            assert athanor.output_dir().endswith("/data") and os.path.isdir(athanor.output_dir())
            assert athanor.channel("train-set") == "/data/train"
            assert athanor.channel("test") == "/data/test"
            try: athanor.channel("valid")
            except KeyError as error: assert "train_set" in str(error) and "data:" in str(error)
            else: raise AssertionError
        """, ATHANOR_RANK="3", ATHANOR_WORLD_SIZE="8", ATHANOR_CHECKPOINT_DIR=checkpoints,
            SM_MODEL_DIR=checkpoints + "/model", SM_OUTPUT_DATA_DIR=checkpoints + "/output/data",
            ATHANOR_CHANNEL_TRAIN_SET="/data/train", SM_CHANNEL_TEST="/data/test")

    def test_secrets_from_the_environment_and_from_files(self):
        folder = tempfile.mkdtemp(dir=self.spool)
        with open(os.path.join(folder, "DB_PASSWORD"), "w", encoding="utf-8") as file:
            file.write("hunter22\n")
        self.run_script("""
            assert athanor.secret("API_TOKEN") == "abcdef"
            assert athanor.secret("DB_PASSWORD") == "hunter22\\n"
            for name in ("NONE", "../control", "..", "", "a/b", "a\\0b"):
                try: athanor.secret(name)
                except KeyError as error: assert "ath secret set" in str(error)
                else: raise AssertionError(name)
        """, ATHANOR_SECRETS_DIR=folder, API_TOKEN="abcdef")


class OutsideTest(unittest.TestCase):
    SCRIPT = """
import athanor, os, sys
os.chdir(sys.argv[1])
athanor.log(loss=1, step=1); athanor.log(None, 3, x="bad", step="bad")
athanor.progress(1, 2); athanor.progress(); athanor.done()
assert not athanor.should_checkpoint(1) and athanor.notice() is None
assert athanor.latest_checkpoint() is None and athanor.replaying() is None
assert athanor.capture(1, batch="b") == "b" and athanor.capture.flush() is None
assert not athanor.should_stop() and athanor.should_stop(step=4).deadline is None
assert not athanor.in_job()
assert athanor.stats() == {"written": 0, "dropped": 0, "bad": 0}
if "ATHANOR_DISABLE" not in os.environ:
    assert athanor.job_id() is None and athanor.params == {}
    assert (athanor.rank(), athanor.world_size()) == (0, 1)
    assert athanor.checkpoint_dir() == "checkpoints" and os.path.isdir("checkpoints")
    assert athanor.model_dir() == "model" and athanor.output_dir() == "output"
for name in athanor.__all__: getattr(athanor, name)
"""

    def run_with(self, **more):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ATHANOR_")}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", self.SCRIPT, folder], env={**clean, **more},
                           check=True)
            return os.listdir(folder)

    def test_outside_a_job_everything_is_quiet(self):
        self.run_with()

    def test_disabled_writes_nothing(self):
        with tempfile.TemporaryDirectory() as spool:
            path = make_segment(spool, 1)
            with open(path, "rb") as file:
                before = file.read()
            write_control(spool, stop=1)
            self.run_with(ATHANOR_DISABLE="1", ATHANOR_SPOOL=spool, ATHANOR_JOB_ID="x")
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)

    def test_the_import_stays_light(self):
        script = """
import sys; before = set(sys.modules); import athanor
heavy = {"json", "typing", "pathlib", "subprocess", "logging", "threading", "socket", "re",
         "athanor._capture", "athanor.torch", "athanor.replay", "athanor.launch"}
loaded = set(sys.modules) - before
assert not heavy & loaded, heavy & loaded
"""
        with tempfile.TemporaryDirectory() as spool:
            for more in ({}, {"ATHANOR_SPOOL": spool},
                         {"ATHANOR_SPOOL": spool, "ATHANOR_PURE": "1"}):
                clean = {key: value for key, value in os.environ.items()
                         if not key.startswith("ATHANOR_")}
                subprocess.run([sys.executable, "-c", script], env={**clean, **more}, check=True)


if __name__ == "__main__":
    unittest.main()
