"""Parameters tell the truth: what the script was given, how, and whether it asked for it."""

import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, kill, until

PYTHON = "/usr/bin/python3"
ARGS = """
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--shift", type=float, default=0)
    parser.add_argument("--layers", type=int, nargs="*", default=[])
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--note", default="")
    args = parser.parse_args()
    print("lr=%g shift=%g layers=%s amp=%s note=%r" % (args.lr, args.shift, args.layers, args.amp, args.note))
    print("loss=%g step=1" % args.lr)
    """


class Passing(Case):
    def setUp(self):
        self.server.script("train.py", ARGS)

    def said(self, job):
        return self.server.logs(job).decode().splitlines()[0]

    def test_flags_of_the_command_line(self):
        job = self.server.submit(PYTHON, "train.py", flags=["-P", "-p", "lr=0.02", "-p", "shift=-1e-5",
                                                            "-p", "amp=true", "-p", "note=it's \"$HOME\""])
        record = self.ended(job)
        self.assertEqual(self.said(job), "lr=0.02 shift=-1e-05 layers=[] amp=True note='it\\'s \"$HOME\"'")
        self.assertNotIn("unread", record)

    def test_the_job_file_in_either_order_and_where_it_says(self):
        params = "params: {lr: 0.02, layers: [64, 32], amp: false, note: null}\n"
        for text in ("args: flags\nrun: %s train.py\n" % PYTHON, "run: %s train.py\nargs: flags\n" % PYTHON,
                     "run: [%s, train.py]\nargs: flags\n" % PYTHON,
                     "run: '%s train.py ${args} | cat'\n" % PYTHON):
            job = self.server.file(text + params)
            self.assertNotIn("unread", self.ended(job))
            self.assertEqual(self.said(job), "lr=0.02 shift=0 layers=[64, 32] amp=False note=''", text)

    def test_it_asks_where_the_flags_belong(self):
        path = self.server.script("job.yaml", "run: 'python3 train.py | tee log'\nargs: flags\n")
        said = self.server.ath("run", path)
        self.assertNotEqual(said.returncode, 0)
        self.assertRegex(said.stderr, r"job.yaml:2:[\s\S]*\$\{args\}")

    def test_retry_passes_a_new_parameter_too(self):
        job = self.server.submit(PYTHON, "train.py", flags=["-P", "-p", "lr=0.02"])
        self.ended(job)
        again = self.server.json("retry", "-d", job, "-p", "shift=3")["id"]
        self.ended(again)
        self.assertEqual(self.said(again)[:15], "lr=0.02 shift=3")

    def test_the_command_is_shown_as_it_ran(self):
        job = self.server.submit(PYTHON, "train.py", "--lr", "${lr}",
                                 flags=["-p", "lr=0.02", "--name", "shown"])
        self.ended(job)
        self.assertRegex(self.server.ath("show", job).stdout, r"command +\S+ train.py --lr 0.02\n")
        self.assertIn("train.py --lr 0.02", self.server.ath("ps").stdout)

    def test_a_study_passes_what_it_searches(self):
        path = self.server.script("study.yaml", """
            run: %s train.py
            args: flags
            metrics: [{name: loss, regex: 'loss=(\\S+)'}]
            tune: {name: passed, metric: loss, strategy: grid, space: {lr: [0.1, 0.2]}, max_trials: 2}
            """ % PYTHON)
        said = self.server.ath("tune", path, check=0)
        self.assertRegex(said.stdout, r"best +0.1 ")
        self.assertNotIn("not read", said.stdout + said.stderr)


class Unread(Case):
    """Which parameters a script did not read, and how sure that is."""

    def unread(self, record):
        return [one["name"] for one in record.get("unread", {}).get("params", [])]

    def of(self, text, *flags, name="train.py"):
        return self.ended(self.server.submit(PYTHON, self.server.script(name, text),
                                             flags=["-p", "lr=0.9", "-p", "wd=0.1", *flags]))

    def test_a_script_that_asks_for_nothing(self):
        self.server.script("train.py", "print('loss=1 step=1')")
        said = self.server.ath("run", "--name", "left", "-p", "lr=0.9", "--", PYTHON, "train.py", check=0)
        self.assertIn("lr=0.9 was not read by the script; ath run -P passes it as --lr", said.stderr)
        self.assertRegex(self.server.ath("show", "left", check=0).stdout, "lr=0.9 was not read by the script")
        self.assertRegex(self.server.ath("events", "left", check=0).stdout, "lr=0.9 was not read")
        other = self.server.ath("run", "-P", "--name", "right", "-p", "lr=0.8", "--", PYTHON, "-c", "", check=0)
        self.assertNotIn("not read", other.stderr)
        self.assertRegex(self.server.ath("compare", "left", "right", check=0).stdout,
                         r"lr +0.9 \(not read by the script\) +0.8\n")

    def test_what_python_asks_for_one_by_one(self):
        for text in ("import athanor; athanor.params.lr", "import athanor; athanor.params.get('lr', 1)",
                     "import os; os.environ['SM_HP_LR']", "import os; os.getenv('SM_HP_LR')",
                     "import os; 'SM_HP_LR' in os.environ",
                     "import subprocess; subprocess.run(['uname'])\nimport os; os.environ['SM_HP_LR']"):
            record = self.of(text)
            self.assertEqual(self.unread(record), ["wd"], text)
            self.assertEqual(record["unread"]["text"], "wd=0.1 was not read by the script")

    def test_what_reads_all_of_them(self):
        for text in ("import athanor; dict(athanor.params)", "import athanor; print(athanor.params)",
                     "import athanor; (lambda **all: 0)(**athanor.params)",
                     "import athanor, json; json.dumps(athanor.params)",
                     "import os; os.environ['SM_HPS']", "import os; os.environ['SM_TRAINING_ENV']",
                     "open('/opt/ml/input/config/hyperparameters.json').read()"
                     if os.getuid() == 0 else "import os; open(os.environ['SM_INPUT_CONFIG_DIR'] + '/hyperparameters.json')",
                     "import os; open(os.environ['ATHANOR_PARAMS_FILE']).read()",
                     "import os, subprocess; subprocess.run(['cat', os.environ['ATHANOR_PARAMS_FILE']])"):
            self.assertEqual(self.unread(self.of(text)), [], text)

    def test_a_copy_of_the_environment_is_no_proof_either_way(self):
        for text in ("import os; dict(os.environ)", "import os; os.environ.copy()",
                     "import os; {k: v for k, v in os.environ.items()}"):
            record = self.of(text)
            self.assertEqual(self.unread(record), ["lr", "wd"], text)
            self.assertEqual(record["unread"]["text"],
                             "there is no sign that the script read lr=0.9, wd=0.1", text)
        text = "import os; [os.environ[k] for k in os.environ if k.startswith('SM_HP_')]"
        self.assertEqual(self.unread(self.of(text)), [], text)

    def test_what_other_programs_read_nobody_claims_to_know(self):
        for command in (["sh", "-c", "test $SM_HP_LR"], ["sh", "-c", "true"],
                        ["sh", "-c", PYTHON + " -c pass"], [PYTHON, "-I", "-c", "pass"],
                        [PYTHON, "-c", "import subprocess; subprocess.run(['sh', '-c', 'test $SM_HP_LR'])"],
                        [PYTHON, "-c", "import os; os.system('true')"],
                        [PYTHON, "-c", "import os; os.execv('/bin/true', ['true'])"]):
            record = self.ended(self.server.submit(*command, flags=["-p", "lr=0.9", "-p", "wd=0.1"]))
            if "unread" in record:
                self.assertNotIn("not read", record["unread"]["text"], command)
                self.assertIn("no sign that the script read", record["unread"]["text"], command)
        record = self.ended(self.server.submit("sh", "-c", "test $SM_HP_LR", flags=["-p", "lr=0.9", "-p", "wd=0.1"]))
        self.assertEqual(self.unread(record), ["wd"])

    @unittest.skipUnless(shutil.which("cc"), "no compiler")
    def test_a_program_that_calls_getenv(self):
        self.server.script("train.c", '#include <stdlib.h>\nint main(void) { return getenv("SM_HP_LR") ? 0 : 1; }\n')
        os.system("cc -o %s/train %s/train.c" % (self.server.work, self.server.work))
        record = self.ended(self.server.submit("./train", flags=["-p", "lr=0.9"]))
        self.assertEqual(record["unread"]["text"], "there is no sign that the script read lr=0.9")

    def test_nothing_is_said_of_a_script_that_broke(self):
        record = self.ended(self.server.submit(PYTHON, "-c", "1/0", flags=["-p", "lr=0.9"]), "Failed")
        self.assertNotIn("unread", record)

    def test_nothing_is_said_of_a_run_that_an_agent_did_not_see_whole(self):
        script = self.server.script("slow.py", """
            import os, time
            print("up", flush=True)
            while not os.path.exists(%r): time.sleep(0.01)
            """ % os.path.join(self.server.root, "go-on"))
        job = self.server.submit(PYTHON, script, flags=["-p", "lr=0.9"])
        self.server.until_log(job, "up")
        agent = until(lambda: self.server.agent_pids(job), "the agent is there")
        for pid in agent:
            kill(pid)
        until(lambda: [pid for pid in self.server.agent_pids(job) if pid not in agent], "another agent came")
        self.server.go("go-on")
        self.assertNotIn("unread", self.ended(job))

    def test_the_newest_attempt_counts(self):
        job = self.server.submit(PYTHON, self.server.script("again.py", """
            import athanor, os, time
            print("up", flush=True)
            while os.environ["ATHANOR_ATTEMPT"] == "1": time.sleep(0.01)
            print(athanor.params)
            """), flags=["-p", "lr=0.9"])
        self.server.until_log(job, "up")
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertEqual(len(record["attempts"]), 2)
        self.assertEqual(self.unread(record), [])
        notes = [event for event in self.server.events(job) if "not read" in event.get("cause", {}).get("text", "")]
        self.assertEqual(len(notes), 1)

    def test_a_study_warns_with_its_first_trial(self):
        self.server.script("train.py", "print('loss=1')")
        path = self.server.script("study.yaml", """
            run: %s train.py
            metrics: [{name: loss, regex: 'loss=(\\S+)'}]
            tune: {name: unread, metric: loss, strategy: grid, space: {lr: [0.1, 0.2, 0.3]}, max_trials: 3, parallel: 1}
            """ % PYTHON)
        said = self.server.ath("tune", path, check=0)
        self.assertRegex(said.stderr, r"warning lr=0.1 was not read by the script")
        self.assertIn("ath tune -P", said.stderr)
        self.assertRegex(said.stdout, "hint +lr=0.1 was not read by the script")
        fixed = self.server.script("train.py", "import sys; print('loss=%s' % sys.argv[2])")
        passed = self.server.ath("tune", "-P", "--name", "fixed", path, check=0)
        self.assertNotIn("not read", passed.stdout + passed.stderr, fixed)


class Retry(Case):
    def test_it_says_which_source_it_runs(self):
        self.server.script("train.py", "raise SystemExit('broken')")
        job = self.server.submit(PYTHON, "train.py", flags=["--name", "first"])
        self.ended(job, "Failed")
        same = self.server.ath("retry", "first")
        self.assertNotIn("--current", same.stderr)
        self.server.script("train.py", "print('mended')")
        old = self.server.ath("retry", "first")
        self.assertRegex(old.stderr, "runs the source of first as it was; ath retry --current first "
                                     "takes the folder as it is now")
        self.assertNotEqual(old.returncode, 0)
        new = self.server.ath("retry", "--current", "first", check=0)
        self.assertIn("mended", new.stdout)
        self.assertNotIn("as it was", new.stderr)
        again = self.server.json("ps", "-n", "1")["jobs"][0]
        self.assertTrue(re.match("first", again["name"]), again["name"])

    def test_current_needs_the_folder(self):
        folder = os.path.join(self.server.root, "gone")
        os.mkdir(folder)
        job = self.server.submit("true", cwd=folder)
        self.ended(job)
        os.rmdir(folder)
        said = self.server.ath("retry", "--current", job)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn(folder, said.stderr)
        self.server.ath("retry", job, check=0)

    def test_debug(self):
        self.server.script("train.py", "import sys, os; print(sys.flags.dev_mode, os.environ.get('ATHANOR_DEBUG'))")
        job = self.server.submit(PYTHON, "train.py")
        self.ended(job)
        self.assertIn("True 1", self.server.ath("retry", "--debug", job, check=0).stdout)


if __name__ == "__main__":
    harness.main()
