"""A secret goes to the script that asks for it and nowhere else: a canary value is looked for in
everything that is stored, printed or shown.

Each docstring names a planted bug that turns the test red.
"""

import base64
import json
import os
import stat
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import Case, Server, until

CANARY = "cAnArY/+=7&%vAlUe?zq"
# One that clients let pass as a name.
NAMED = "pLaIn_cAnArY_vAlUe-zq"


def forms(value):
    """How the value could turn up: plain, base64 at each alignment, URL-encoded, in JSON."""
    raw = value.encode()
    found = {raw, urllib.parse.quote(value, safe="").encode(),
             urllib.parse.quote_plus(value).encode(), json.dumps(value)[1:-1].encode()}
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * shift + raw)
            # Only what the value alone decides: the ends mix with their neighbours.
            found.add(text[(shift * 8 + 5) // 6:len(text) // 4 * 4 - 4])
    return found


def hits(data, value=CANARY):
    return [form for form in forms(value) if form in data]


def kept(home):
    """(path, bytes) of every file below the home: database, WAL, logs, series, blobs, attempts."""
    for folder, _, names in os.walk(home):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if stat.S_ISREG(os.lstat(path).st_mode):
                    with open(path, "rb") as file:
                        yield path, file.read()
            except OSError:
                pass  # gone meanwhile


MLFLOW = """
    import json, os, random
    import mlflow
    value, name = os.environ["CANARY"], os.environ["NAMED"]
    mlflow.set_experiment("exp " + name)
    with mlflow.start_run() as run:
        mlflow.log_param("key", value)
        mlflow.log_params({"p" + name: 1, "q": value})
        mlflow.set_tag("t", "at " + value + "!")
        mlflow.set_tag("t" + name, 1)
        mlflow.set_tags({"u" + name: value})
        for step in range(3): mlflow.log_metric("m/" + name, step, step=step)
        mlflow.log_metrics({"n/" + name: 1.5}, step=1)
        mlflow.log_text("the value is " + value + "\\n", "note.txt")
        mlflow.log_text("named", "folder-" + name + "/" + name + ".txt")
        mlflow.log_dict({"k": value}, "d.json")
        long = "x\\n" * 1000000
        mlflow.log_text(long + value, "long.txt")
        with open("data.bin", "wb") as file: file.write(random.Random(1).randbytes(3 << 20))
        mlflow.log_artifact("data.bin")
        with mlflow.start_run(nested=True, run_name="child " + value) as child:
            mlflow.log_param("of", value)
    client = mlflow.MlflowClient()
    client.create_registered_model("model " + name, tags={"t": value}, description=value)
    client.set_terminated(run.info.run_id)
    found = client.get_run(run.info.run_id)
    def read(path):
        with open(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=path), "rb") as file:
            return file.read()
    print("OUT " + json.dumps({
        "params": found.data.params, "tag": found.data.tags["t"], "metrics": list(found.data.metrics),
        "experiment": client.get_experiment(found.info.experiment_id).name,
        "child": client.get_run(child.info.run_id).info.run_name,
        "text": read("note.txt").decode(), "dict": read("d.json").decode(),
        "long": read("long.txt").decode() == long + "***CANARY***",
        "binary": read("data.bin") == random.Random(1).randbytes(3 << 20)}))
"""

READ_EVENTS = """
import glob, json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata, plugin_data_pb2
found = {}
for path in sorted(glob.glob(sys.argv[1] + "/**/*tfevents*", recursive=True)):
    events = EventAccumulator(path).Reload()
    for tag in events.Tags()["tensors"]:
        if tag.startswith("note"):
            found["text"] = events.Tensors(tag)[0].tensor_proto.string_val[0].decode()
    for tag in events.Tags()["scalars"]:
        values = [[e.step, e.value] for e in events.Scalars(tag)]
        if tag == "plain": found["plain"] = values
        if tag.startswith("loss/"): found["loss"] = values
    for tag, content in events._plugin_to_tag_to_content.get(metadata.PLUGIN_NAME, {}).items():
        data = plugin_data_pb2.HParamsPluginData.FromString(content)
        if data.HasField("session_start_info"):
            found["key"] = data.session_start_info.hparams["key"].string_value
print(json.dumps(found))
"""


class Canary(unittest.TestCase):
    """A server for each test: what one leaks is found in its own home only."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        out = self.server.ath("secret", "set", "CANARY", input=CANARY + "\n", check=0)
        self.assertEqual(hits((out.stdout + out.stderr).encode()), [])

    def everything_kept(self):
        yield from kept(self.server.home)
        with open(self.server.log, "rb") as file:
            yield self.server.log, file.read()

    def assert_nowhere(self, job):
        # The attempt's folder holds what the script itself wrote; it goes with the attempt.
        until(lambda: not os.listdir(os.path.join(self.server.home, "attempts")),
              "the attempt's folder is removed")
        for path, data in self.everything_kept():
            self.assertEqual(hits(data) + hits(data, NAMED), [], path)
            self.assertEqual(hits(path.encode(), NAMED), [])
        for verb in (["show", job, "--json"], ["why", job, "--json"], ["events", job, "--json"],
                     ["events", "--json"], ["logs", job, "--phase", "all"], ["ps", "--json"],
                     ["logs", job, "--json", "--phase", "all"], ["secret", "ls", "--json"]):
            out = self.server.ath(*verb)
            self.assertEqual(hits((out.stdout + out.stderr).encode("utf-8", "surrogateescape")),
                             [], verb)

    def run_script(self, text, flags=("-s", "CANARY")):
        job = self.server.python(text, flags=list(flags))
        record = self.server.wait(job)
        self.assert_nowhere(job)
        return job, record

    def test_script_gets_it_and_the_log_does_not(self):
        """Red if the agent ships raw log bytes (no Scrubber between follower and shipper)."""
        job, record = self.run_script("""
            import os, sys
            value = os.environ["CANARY"]
            print("length", len(value))
            print("the value is", value, "indeed")
            print(value, file=sys.stderr)
        """)
        self.assertEqual(record["state"], "Completed")
        log = self.server.logs(job)
        self.assertIn(b"length %d" % len(CANARY), log)
        self.assertIn(b"the value is ***CANARY*** indeed\n", log)

    def test_split_over_writes(self):
        """Red if each chunk is scrubbed on its own, without what the last one ended with."""
        job, _ = self.run_script("""
            import os, time
            value = os.environ["CANARY"].encode()
            for cut in range(1, len(value)):
                os.write(1, b"<" + value[:cut])
                time.sleep(0.03)  # lets the agent ship the first half
                os.write(1, value[cut:] + b">\\n")
        """)
        self.assertEqual(self.server.logs(job), b"<***CANARY***>\n" * (len(CANARY) - 1))

    def test_encoded(self):
        """Red if only the plain value is looked for."""
        job, _ = self.run_script("""
            import base64, json, os, urllib.parse
            value = os.environ["CANARY"]
            for pad in ("", "x", "xx"):
                print(base64.b64encode((pad + value).encode()).decode())
                print(base64.urlsafe_b64encode((pad + value).encode()).decode())
            print(urllib.parse.quote(value, safe=""))
            print(urllib.parse.quote_plus(value))
            print("https://user:%s@host.invalid/" % urllib.parse.quote(value, safe=""))
            print(json.dumps({"token": value}))
        """)
        self.assertGreaterEqual(self.server.logs(job).count(b"***CANARY***"), 10)

    def test_traceback_and_reason(self):
        """Red if the diagnosis reads the raw log, so that `why` shows the value."""
        job, record = self.run_script("""
            import os
            raise RuntimeError("cannot log in with " + os.environ["CANARY"])
        """)
        self.assertEqual(record["cause"]["kind"], "python_exception")
        self.assertIn("***CANARY***", record["cause"]["text"])

    def named(self):
        self.server.ath("secret", "set", "NAMED", input=NAMED + "\n", check=0)
        return ["-s", "CANARY", "-s", "NAMED"]

    def test_names_of_metrics(self):
        """Red if a report's frames are sent as they were made (no ScrubFrames in Post)."""
        self.server.script("named.py", """
            import athanor, os
            name = os.environ["NAMED"]
            for step in range(3): athanor.log({"of " + name: step, "loss": 1}, step=step)
            print(name + "_loss: 0.5")
        """)
        job = self.server.submit("python3", "named.py", flags=self.named())
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assert_nowhere(job)
        self.assertEqual([p["value"] for p in self.server.points(job, "of ***NAMED***")], [0, 1, 2])

    def check_mlflow(self, version):
        python = venvs.venv("mlflow-skinny==" + version)
        self.server.script("log.py", MLFLOW)
        job = self.server.submit(python, "log.py", flags=self.named())
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", self.server.logs(job)[-4000:])
        self.assertNotIn("mlflow_refused", json.dumps(self.server.events(job)))
        self.assert_nowhere(job)
        out = json.loads(self.server.logs(job).decode().rpartition("OUT ")[2].splitlines()[0])
        self.assertEqual(out["params"], {"key": "***CANARY***", "p___NAMED___": "1", "q": "***CANARY***"})
        self.assertEqual(out["tag"], "at ***CANARY***!")
        self.assertIn("m/___NAMED___", out["metrics"])
        self.assertEqual(out["experiment"], "exp ***NAMED***")
        self.assertEqual(out["child"], "child ***CANARY***")
        self.assertEqual(out["text"], "the value is ***CANARY***\n")
        self.assertEqual(json.loads(out["dict"]), {"k": "***CANARY***"})
        self.assertTrue(out["long"], "a text that goes through a file is scrubbed")
        self.assertTrue(out["binary"], "what is no text is kept byte for byte")

    def test_mlflow_old_client(self):
        """Red if the proxy keeps and passes calls as they come (no gate in Handle and Ask)."""
        self.check_mlflow("2.22.5")

    def test_mlflow_new_client(self):
        """Red if the proxy keeps and passes calls as they come (no gate in Handle and Ask)."""
        self.check_mlflow("3.17.2")

    def test_tensorboard(self):
        """Red if event files are kept as links to the script's own, or a record's new length is not
        put into the messages around it (ScrubText for ScrubMessage)."""
        python = venvs.venv("tensorboard==2.21.0", "tensorboardX==2.6.5", inherit=True)
        self.server.script("events.py", """
            import os
            from torch.utils.tensorboard import SummaryWriter
            value, name = os.environ["CANARY"], os.environ["NAMED"]
            for folder in ("runs", "runs/" + name):
                w = SummaryWriter(folder, filename_suffix="." + name)
                w.add_text("note", "the value is " + value + " indeed", 1)
                for step in range(3): w.add_scalar("loss/" + name, 0.5, step)
                w.add_scalar("plain", 0.25, 7)
                w.add_custom_scalars({value: {"both": ["Multiline", [name]]}})
                w.close()
            with SummaryWriter("runs") as w:
                w.add_hparams({"key": value, name: 0.1}, {"hparam/acc": 1})
        """)
        job = self.server.submit(python, "events.py", flags=self.named())
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", self.server.logs(job)[-4000:])
        self.assert_nowhere(job)
        out = subprocess.run(
            [python, "-c", READ_EVENTS, os.path.join(self.server.home, "jobs", job, "events")],
            stdout=subprocess.PIPE, check=True).stdout
        found = json.loads(out)
        self.assertEqual(found["text"], "the value is ***CANARY*** indeed")
        self.assertEqual(found["plain"], [[7, 0.25]])
        self.assertEqual(found["loss"], [[0, 0.5], [1, 0.5], [2, 0.5]])
        self.assertEqual(found["key"], "***CANARY***")
        self.assertEqual([p["value"] for p in self.server.points(job, "loss/***NAMED***")], [0.5] * 3)

    def test_failure_file(self):
        """Red if output/failure is taken over without scrubbing."""
        _, record = self.run_script("""
            import os
            open("/opt/ml/output/failure", "w").write("bad key " + os.environ["CANARY"])
            raise SystemExit(1)
        """)
        self.assertEqual(record["state"], "Failed")

    def test_failure_file_cut_in_the_middle_of_it(self):
        """Red if the file's text is cut to its limit before it is scrubbed."""
        half = len(CANARY) // 2
        _, record = self.run_script("""
            import os
            value = os.environ["CANARY"]
            open("/opt/ml/output/failure", "w").write("x" * (1024 - %d) + value)
            raise SystemExit(1)
        """ % half)
        self.assertNotIn(CANARY[:half], json.dumps(record))

    def test_as_a_file(self):
        """Red if the file is readable by others, or stays when the job is over."""
        self.server.script("secret.yaml", """
            run: python3 read.py
            secrets:
              - {name: CANARY, as: file}
        """)
        self.server.script("read.py", """
            import os, stat
            path = os.environ["CANARY"]
            import athanor
            assert athanor.secret("CANARY") == open(path).read()
            print(oct(stat.S_IMODE(os.stat(path).st_mode)), len(open(path).read()))
            print(open(path).read())
        """)
        job = self.server.json("run", "-d", "secret.yaml")["id"]
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertEqual(self.server.logs(job),
                         b"0o600 %d\n***CANARY***\n" % len(CANARY))
        self.assert_nowhere(job)

    def test_sdk_reads_it(self):
        """Red if athanor.secret() looks elsewhere than where the agent put it."""
        job, record = self.run_script("""
            import athanor, os
            assert athanor.secret("CANARY") == os.environ["CANARY"]
            print("same")
        """)
        self.assertEqual(record["state"], "Completed", record["cause"])

    def test_process_list_while_it_runs(self):
        """Red if a value is put on a command line, or where another user can read it."""
        job = self.server.python("""
            import os, time
            print("up", len(os.environ["CANARY"]))
            while True: time.sleep(0.05)
        """, flags=["-s", "CANARY"])
        self.server.until_log(job, "up")
        for pid, command in harness.processes().items():
            self.assertEqual(hits(command.encode()), [], command)
        # What is on disk while it runs is for the owner only.
        for path, data in self.everything_kept():
            if hits(data):
                self.assertIn("/attempts/", path)
                self.assertEqual(os.stat(path).st_mode & 0o077, 0, path)
        self.server.ath("stop", "--now", job, check=0)
        self.assertEqual(self.server.wait(job)["state"], "Stopped")
        self.assert_nowhere(job)

    def test_exec_has_what_the_script_has(self):
        """Red if exec's environment is that of the plan on disk, which has no secrets; or if the
        value reaches a file or a command line on its way."""
        job = self.server.python("""
            import os, time
            print("up", len(os.environ["CANARY"]))
            while True: time.sleep(0.05)
        """, flags=["-s", "CANARY"])
        self.server.until_log(job, "up")
        inside = self.server.popen("exec", job, "--", "sh", "-c", 'printf %s "$CANARY"; cat',
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(inside.stdout.read(len(CANARY)), CANARY.encode())
        for pid, command in harness.processes().items():
            self.assertEqual(hits(command.encode()), [], command)
        inside.communicate(b"", 2 * harness.PATIENCE)
        self.assertEqual(inside.returncode, 0)
        other = self.server.python("""
            import time
            print("up")
            while True: time.sleep(0.05)
        """)
        self.server.until_log(other, "up")
        out = self.server.ath("exec", other, "--", "env", check=0)
        self.assertNotIn("CANARY", out.stdout)
        for one in (job, other):
            self.server.ath("stop", "--now", one, check=0)
            self.assertEqual(self.server.wait(one)["state"], "Stopped")
        self.assert_nowhere(job)

    def test_job_without_it_does_not_get_it(self):
        """Red if all secrets are given to all jobs."""
        job = self.server.python("""
            import os
            print("CANARY" in os.environ, os.listdir(os.environ["ATHANOR_SECRETS_DIR"]))
        """)
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertEqual(self.server.logs(job), b"False []\n")

    def test_job_cannot_read_the_servers_files(self):
        """Red if the server's folder is visible in the job's mount namespace."""
        job = self.server.python("""
            import os, sys
            for folder, _, names in os.walk(sys.argv[1]):
                for name in names:
                    print(name)
        """, os.path.join(self.server.home, "server"))
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        off = self.server.show(job)["attempts"][-1].get("off")
        if off:
            self.skipTest("no mount namespace here: %s" % off)
        self.assertNotIn(b"secret.key", self.server.logs(job))
        self.assertNotIn(b"athanor.db", self.server.logs(job))

    def test_key_is_for_its_owner_and_the_store_is_encrypted(self):
        """Red if the key file is made with the umask's mode."""
        key = os.path.join(self.server.home, "server", "secret.key")
        self.assertEqual(os.stat(key).st_mode & 0o777, 0o600)


class Setting(Case):
    def test_short_values_are_refused(self):
        """Red if a value too short to scrub is taken: it would turn logs into stars."""
        out = self.server.ath("secret", "set", "SHORT", input="12345", check=2)
        self.assertNotIn("12345", out.stdout + out.stderr)
        self.assertEqual(self.server.json("secret", "ls")["secrets"], [])

    def test_list_replace_and_remove(self):
        """Red if `ls` shows values, or `rm` leaves the row."""
        self.server.ath("secret", "set", "A_TOKEN", input="first-value", check=0)
        self.server.ath("secret", "set", "A_TOKEN", input="second-value", check=0)
        out = self.server.ath("secret", "ls", check=0)
        self.assertIn("A_TOKEN", out.stdout)
        self.assertNotIn("value", out.stdout.replace("VALUE", ""))
        job = self.server.python("import os; print(len(os.environ['A_TOKEN']))",
                                 flags=["-s", "A_TOKEN"])
        self.ended(job)
        self.assertEqual(self.server.logs(job), b"%d\n" % len("second-value"))
        self.server.ath("secret", "rm", "A_TOKEN", check=0)
        self.assertEqual(self.server.ath("secret", "rm", "A_TOKEN").returncode, 3)
        self.assertEqual(self.server.ath("run", "-d", "-s", "A_TOKEN", "--", "true").returncode, 2)

    def test_from_environment_file_and_command(self):
        """Red if a source other than the store is not scrubbed."""
        path = os.path.join(self.server.root, "token.txt")
        with open(path, "w") as file:
            file.write("from-a-file-value\n")
        self.server.script("s.yaml", """
            run: python3 -c "import os; print(os.environ['FROM_FILE'], os.environ['FROM_CMD'])"
            secrets:
              - {name: FROM_FILE, from: "file:%s"}
              - {name: FROM_CMD, from: "command:printf %%s-%%s from-a command-value"}
        """ % path)
        out = self.server.ath("run", "-d", "--json", "s.yaml")
        self.assertEqual(out.returncode, 0, out.stdout)
        job = json.loads(out.stdout)["id"]
        self.ended(job)
        self.assertEqual(self.server.logs(job), b"***FROM_FILE*** ***FROM_CMD***\n")
        until(lambda: not os.listdir(os.path.join(self.server.home, "attempts")),
              "the attempt's folder is removed")
        for path, data in kept(self.server.home):
            self.assertEqual(hits(data, "from-a-file-value"), [], path)
            self.assertEqual(hits(data, "from-a-command-value"), [], path)

    def test_missing_source_is_a_clear_end(self):
        """Red if a job starts without a secret it needs."""
        self.server.script("m.yaml", """
            run: echo started
            secrets:
              - {name: GONE, from: "file:/not/there/at/all"}
        """)
        out = self.server.ath("run", "--json", "m.yaml")
        self.assertNotEqual(out.returncode, 0)
        self.assertIn("GONE", out.stdout)
        self.assertNotIn("started\\n", out.stdout)


if __name__ == "__main__":
    harness.main()
