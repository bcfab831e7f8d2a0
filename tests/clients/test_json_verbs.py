"""Every verb that `ath --help` lists, with --json, in a home with jobs of all kinds of ends: what it
prints is JSON, one value or one a line, and so is its error. A new verb must be put into the table."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import Case
from verb_list import all_verbs

SCRIPT = """
    import athanor, os
    athanor.log(loss=1.0, step=1)
    athanor.checkpoint(1, lambda path: open(path, "w").write("x"))
    os.makedirs(os.environ["SM_MODEL_DIR"], exist_ok=True)
    open(os.path.join(os.environ["SM_MODEL_DIR"], "w"), "w").write("w")
    print("done")
    """
# How each verb is called when it works, and when it does not. None: it cannot fail like that.
NO_JOB = "no-such-job"
VERBS = {
    "run": (["run", "-d", "--json", "--", "true"], ["run", "--json", "nothing.yaml"]),
    "ps": (["ps"], ["ps", "--state", "wrong"]),
    "logs": (["logs", "done"], ["logs", NO_JOB]),
    "why": (["why", "failed"], ["why", NO_JOB]),
    "show": (["show", "done"], ["show", NO_JOB]),
    "metrics": (["metrics", "done"], ["metrics", NO_JOB]),
    "stop": (["stop", "done"], ["stop", NO_JOB]),
    "retry": (["retry", "-d", "again"], ["retry", NO_JOB]),
    "cp": (["cp", "done:model/", "copied"], ["cp", NO_JOB + ":model/", "there"]),
    "tune": (["tune", "ls"], ["tune", "nothing.yaml"]),
    "tune ls": (["tune", "ls"], None),
    "tune show": (["tune", "show", "search"], ["tune", "show", "nobody"]),
    "tune stop": (None, ["tune", "stop", "nobody"]),
    "tune extend": (["tune", "extend", "search", "--max-trials", "2"],
                    ["tune", "extend", "nobody", "--max-trials", "2"]),
    "tune add": (None, ["tune", "add", "nobody", "lr=1"]),
    "tune export": (["tune", "export", "search", "--format", "json"], ["tune", "export", "nobody"]),
    "tune rm": (None, ["tune", "rm", "nobody"]),
    "ui": (["ui", "--print"], ["ui", "--print", NO_JOB]),
    "queue": (["queue"], None),
    "wait": (["wait", "done"], ["wait", NO_JOB]),
    "exec": (None, ["exec", "done", "--", "true"]),
    "events": (["events", "done"], ["events", NO_JOB]),
    "checkpoints": (["checkpoints", "done"], ["checkpoints", NO_JOB]),
    "resume": (["resume", "-d", "twice"], ["resume", NO_JOB]),
    "interrupt": (None, ["interrupt", NO_JOB]),
    "replay": (None, ["replay", "done"]),
    "diff": (["diff", "done", "failed"], ["diff", "done", NO_JOB]),
    "rm": (["rm", "stopped"], ["rm", NO_JOB]),
    "runs": (["runs"], ["runs", "--filter", "wrong"]),
    "compare": (["compare", "done", "failed"], ["compare", "done", NO_JOB]),
    "export": (["export", "jsonl", "done"], ["export", "jsonl", NO_JOB]),
    "import": (None, ["import", "tb", "nowhere"]),
    "init": (["init", "made.yaml"], ["init", "job.yaml"]),
    "check": (["check"], None),
    "types": (["types"], None),
    "secret": (None, ["secret"]),
    "secret set": (["secret", "set", "NAME"], None),
    "secret ls": (["secret", "ls"], None),
    "secret rm": (["secret", "rm", "NAME"], ["secret", "rm", "NOBODY"]),
    "env": (["env"], ["env", "azure"]),
    "env aws": (["env", "aws"], None),
    "env mlflow": (["env", "mlflow"], None),
    "token": (None, ["token"]),
    "token create": (["token", "create"], ["token", "create", "--expires", "soon"]),
    "token ls": (["token", "ls"], None),
    "token revoke": (None, ["token", "revoke", "nobody"]),
    "completion": (["completion", "bash"], ["completion", "csh"]),
    "schema": (["schema"], None),
    "explain": (["explain", "ATH-J0102"], ["explain", "ATH-X"]),
    "serve": (None, ["serve", "--port", "0"]),  # one runs already
    "server": (None, ["server"]),
    "server start": (["server", "start"], None),
    "server status": (["server", "status"], None),
    "server stop": (None, ["server", "stop", "--timeout", "soon"]),
    "server backup": (["server", "backup", "kept"], ["server", "backup", "kept"]),
    "server restore": (None, ["server", "restore", "nowhere"]),
    "service": (None, ["service"]),
    "service install": (["service", "install", "--print"], ["service", "install", "--nosuch"]),
    "service status": (["service", "status"], None),
    "service remove": (None, ["service", "remove", "--nosuch"]),  # it would change this machine
    "uninstall": (["uninstall", "--dry-run"], ["uninstall", "--nosuch"]),
    "du": (["du"], None),
    "gc": (["gc", "--dry-run"], ["gc", "--older", "soon"]),
    "fsck": (None, ["fsck"]),  # the server runs
    "version": (["version"], None),
}


class JsonVerbs(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        server = cls.server
        server.script("train.py", SCRIPT)
        server.script("job.yaml", """
            run: python3 train.py
            params: {lr: 0.1}
            tune: {metric: loss, strategy: grid, space: {lr: [0.1]}, max_trials: 1}
            """)
        ends = {"done": ["python3", "train.py"], "again": ["true"], "twice": ["python3", "train.py"], "failed": ["sh", "-c", "exit 3"],
                "stopped": ["sleep", "600"], "running": ["sleep", "600"]}
        for name, command in ends.items():
            server.submit(*command, flags=["--name", name, "--cpus", "0.1"])
        server.submit("true", flags=["--name", "waiting", "--cpus", "0.1", "--priority", "-1"])
        for name in ("done", "again", "twice", "failed"):
            server.wait(name)
        server.until_state("stopped", "Running")
        server.ath("stop", "stopped", "--now", check=0)
        server.wait("stopped")
        server.ath("tune", "job.yaml", "--name", "search", check=0)

    def values(self, out, what):
        """The JSON values of an output: one, or one a line."""
        text = out.stdout
        try:
            return [json.loads(text)]
        except ValueError:
            pass
        lines = [line for line in text.split("\n") if line]
        self.assertTrue(lines, "%s printed nothing; stderr: %s" % (what, out.stderr))
        for line in lines:
            try:
                json.loads(line)
            except ValueError:
                self.fail("%s printed what is not JSON: %r" % (what, line[:200]))
        return [json.loads(line) for line in lines]

    def test_the_table_has_every_verb(self):
        self.assertEqual(sorted(set(map(" ".join, all_verbs())) - set(VERBS)), [], "put them into VERBS")

    def test_what_is_printed_is_json(self):
        for verb in all_verbs():
            works, fails = VERBS.get(" ".join(verb), (None, None))
            if works:
                with self.subTest(works=works):
                    more = [] if "--json" in works else ["--json"]
                    out = self.server.ath(*works, *more, input="a longer value" if "set" in works else None)
                    self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
                    self.values(out, " ".join(works))
            if fails:
                with self.subTest(fails=fails):
                    at = fails.index("--") if "--" in fails else len(fails)
                    out = self.server.ath(*fails[:at], "--json", *fails[at:])
                    self.assertNotEqual(out.returncode, 0, out.stdout)
                    error = self.values(out, " ".join(fails))[-1]
                    self.assertEqual(error["error"]["origin"], "athanor")
                    self.assertEqual(error["error"]["exit"], out.returncode)

    def test_a_verb_that_speaks_another_form_refuses_it(self):
        for command in (["export", "csv", "done", "--json"],
                        ["exec", "running", "--json", "--", "true"]):
            out = self.server.ath(*command, input="")
            with self.subTest(command=command):
                self.assertEqual(out.returncode, 2, out.stdout + out.stderr)
                self.assertEqual(json.loads(out.stdout)["error"]["id"], "ATH-C0010")


if __name__ == "__main__":
    harness.main()
