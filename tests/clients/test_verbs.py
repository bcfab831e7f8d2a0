"""The verbs that act on what jobs left: retry, diff, exec, cp, rm, types, token, and those that
help along: init, check, completion, explain, schema."""

import glob
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import ATH, Case, Server, has_verb, needs_verb, until


@needs_verb("retry")
class Retry(Case):
    def test_same_again_as_a_new_job(self):
        self.server.script("r.py", "import sys; print(sys.argv[1]); sys.exit(3)")
        first = self.server.submit("python3", "r.py", "${lr}", flags=["-p", "lr=1"])
        self.ended(first, "Failed")
        out = self.server.ath("retry", first, "-q")
        self.assertEqual((out.returncode, out.stdout), (3, "1\n"), out.stderr)
        second = self.server.show("@last")
        self.assertNotEqual(second["id"], first)
        self.assertEqual(second["parent"], first)

    def test_with_a_change(self):
        first = self.server.submit("echo", "${lr}", flags=["-p", "lr=1", "-p", "b=2"])
        self.ended(first)
        again = self.server.json("retry", first, "-d", "-p", "lr=5", "--memory", "300MB")["id"]
        record = self.ended(again)
        self.assertEqual(self.server.logs(again), b"5\n")
        params = {p["name"]: p["value"] for p in record["spec"]["params"]}
        self.assertEqual(params, {"lr": "5", "b": "2"})
        self.assertEqual(record["spec"]["resources"]["memory_bytes"], 300_000_000)

    def test_works_when_the_folder_has_changed_since(self):
        self.server.script("old.py", "print('old')")
        first = self.server.submit("python3", "old.py")
        self.ended(first)
        self.server.script("old.py", "print('new')")
        again = self.server.json("retry", first, "-d")["id"]
        self.ended(again)
        self.assertEqual(self.server.logs(again), b"old\n")

    def test_running_job_is_refused(self):
        job = self.server.submit("sleep", "600")
        self.assertEqual(self.server.ath("retry", job).returncode, 4)
        self.server.ath("stop", "--now", job, check=0)
        self.server.wait(job)


@needs_verb("diff")
class Diff(Case):
    def job(self, name, text, **more):
        self.server.script("train.py", text)
        job = self.server.submit("python3", "train.py", flags=["--name", name, *more.get("flags", ())])
        self.ended(job)
        return job

    def test_exactly_the_planted_differences(self):
        same = "import athanor\nathanor.log(loss=%s, step=1)\n"
        a = self.job("a", same % "0.5", flags=["-p", "lr=0.1", "-p", "seed=1", "-e", "MODE=x"])
        b = self.job("b", same % "0.25", flags=["-p", "lr=0.2", "-p", "seed=1", "-e", "MODE=y"])
        rows = {(row["section"], row["key"]): row["values"]
                for row in self.server.json("diff", a, b)["differences"]}
        self.assertEqual(rows[("params", "lr")], ["0.1", "0.2"])
        self.assertNotIn(("params", "seed"), rows)
        self.assertIn("train.py", {key for section, key in rows if section == "source"})
        self.assertTrue(any("MODE" in key for section, key in rows
                            if section == "environment"), rows)
        self.assertTrue(any(key.startswith("loss") for section, key in rows
                            if section == "metrics"), rows)
        self.assertLessEqual({section for section, _ in rows},
                             {"params", "source", "environment", "metrics"}, rows)

    def test_the_same_twice_has_none(self):
        text = "print(1)"
        a, b = self.job("same-a", text), self.job("same-b", text)
        self.assertEqual(self.server.json("diff", a, b)["differences"], [])
        self.assertEqual(self.server.ath("diff", a, b, check=0).stdout, "no differences\n")

    def test_three_at_once(self):
        jobs = [self.job("t%d" % i, "pass", flags=["-p", "x=%d" % i]) for i in range(3)]
        (row,) = self.server.json("diff", *jobs)["differences"]
        self.assertEqual((row["key"], row["values"]), ("x", ["0", "1", "2"]))

    def test_a_name_may_hold_a_comma(self):
        a, b = self.job("odd,name&x=1", "pass"), self.job("plain", "pass", flags=["-p", "x=1"])
        reply = self.server.json("diff", "odd,name&x=1", "plain")
        self.assertEqual([job["id"] for job in reply["jobs"]], [a, b])
        (row,) = reply["differences"]
        self.assertEqual((row["key"], row["values"]), ("x", ["", "1"]))

    def test_one_is_not_enough(self):
        self.assertEqual(self.server.ath("diff", "@last").returncode, 2)


@needs_verb("exec")
class Exec(Case):
    def setUp(self):
        self.server.script("target.py", """
            import time
            print("up")
            while True: time.sleep(0.05)
        """)
        self.job = self.server.submit("python3", "target.py", flags=["-p", "lr=3"])
        self.server.until_log(self.job, "up")
        self.addCleanup(self.server.ath, "stop", "--now", self.job)

    def test_sees_what_the_script_sees(self):
        out = self.server.ath("exec", self.job, "--", "sh", "-c",
                              "echo $SM_HP_LR; hostname; pwd; ls; tr '\\0' ' ' </proc/1/cmdline")
        lines = out.stdout.splitlines()
        self.assertEqual(lines[0], "3", out.stderr)
        record = self.server.show(self.job)
        if not record["attempts"][-1].get("off"):
            self.assertEqual(lines[1:3], ["algo-1", "/opt/ml/code"])
            self.assertIn("athanor-supervisor", lines[-1])
        self.assertIn("target.py", lines)

    def test_status_and_stdin(self):
        self.assertEqual(self.server.ath("exec", self.job, "--", "sh", "-c", "exit 9").returncode, 9)
        out = self.server.ath("exec", self.job, "--", "cat", input="through the wall")
        self.assertEqual(out.stdout, "through the wall")
        self.assertEqual(self.server.ath("exec", self.job, "--", "no-such-cmd").returncode, 127)
        self.assertEqual(self.server.ath("exec", self.job, "--", "sh", "-c",
                                         "kill -9 $$").returncode, 137)

    def test_ended_job_is_refused(self):
        done = self.server.submit("true")
        self.ended(done)
        out = self.server.ath("exec", done, "--", "true")
        self.assertEqual(out.returncode, 4)
        self.assertIn("not running", out.stderr)

    def test_nothing_after_the_dashes(self):
        self.assertEqual(self.server.ath("exec", self.job).returncode, 2)


@needs_verb("cp")
class Copy(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("keep.py", """
            import os
            os.makedirs("/opt/ml/model/sub")
            open("/opt/ml/model/a.bin", "wb").write(bytes(range(256)))
            open("/opt/ml/model/sub/b.txt", "w").write("b")
            open("/opt/ml/output/data/plot.txt", "w").write("plot")
        """)
        cls.job = cls.server.submit("python3", "keep.py", flags=["--name", "kept"])
        cls.server.wait(cls.job)

    def setUp(self):
        self.to = tempfile.mkdtemp(dir=self.server.root)

    def tree(self):
        return sorted(os.path.relpath(os.path.join(d, n), self.to)
                      for d, _, names in os.walk(self.to) for n in names)

    def test_folder_file_and_source(self):
        self.server.ath("cp", "kept:model/", self.to, check=0)
        self.assertEqual(self.tree(), ["a.bin", "sub/b.txt"])
        with open(os.path.join(self.to, "a.bin"), "rb") as file:
            self.assertEqual(file.read(), bytes(range(256)))
        self.server.ath("cp", "kept:model/sub/b.txt", os.path.join(self.to, "c.txt"), check=0)
        self.assertIn("c.txt", self.tree())
        self.server.ath("cp", "kept:output/plot.txt", self.to, check=0)
        self.assertIn("plot.txt", self.tree())
        self.server.ath("cp", "kept:code/keep.py", self.to, check=0)
        self.assertIn("keep.py", self.tree())

    def test_what_is_not_there(self):
        for source, code in (("kept:model/nothing", 3), ("kept:other/x", 3), ("kept", 2),
                             ("nobody:model/", 3), ("kept:model/../../etc/passwd", 2),
                             ("kept:model//etc/passwd", 2)):
            out = self.server.ath("cp", source, self.to)
            self.assertEqual(out.returncode, code, (source, out.stderr))
        self.assertEqual(self.tree(), [])


@needs_verb("rm")
class Remove(Case):
    def test_takes_everything_of_the_job(self):
        job = self.server.python("import athanor; athanor.log(a=1.0, step=1); print('x')")
        self.ended(job)
        other = self.server.submit("true")
        self.ended(other)
        self.server.ath("rm", job, check=0)
        self.assertEqual(self.server.ath("show", job).returncode, 3)
        for folder, _, names in os.walk(self.server.home):
            for name in names + [folder]:
                self.assertNotIn(job, name)
        self.assertEqual(self.server.state(other), "Completed")
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.ath("show", job).returncode, 3)

    def test_running_job_is_refused(self):
        job = self.server.submit("sleep", "600")
        self.server.until_state(job, "Running")
        out = self.server.ath("rm", job)
        self.assertEqual(out.returncode, 4, out.stderr)
        self.assertIn("ath stop", out.stderr)
        self.server.ath("stop", "--now", job, check=0)
        self.server.wait(job)
        self.server.ath("rm", job, check=0)

    def test_key_of_a_removed_job_is_free_again(self):
        job = self.server.json("run", "-d", "--key", "gone", "--", "true")["id"]
        self.ended(job)
        self.server.ath("rm", job, check=0)
        again = self.server.json("run", "-d", "--key", "gone", "--", "true")["id"]
        self.assertNotEqual(again, job)
        self.ended(again)


@needs_verb("gc")
class Gc(Case):
    def blobs(self):
        return sorted(glob.glob(os.path.join(self.server.home, "blobs", "??", "*")))

    def age(self, paths, hours):
        for path in paths:
            os.utime(path, (time.time() - 3600 * hours,) * 2)

    def test_what_a_removed_job_leaves(self):
        """Red if blobs of a job that is there are removed, or those of one that is not stay."""
        self.age(self.blobs(), 2)
        self.server.json("gc")  # of other tests
        kept = self.server.python("open('/opt/ml/model/m', 'w').write('kept')", name="kept.py")
        self.ended(kept)
        before = set(self.blobs())
        gone = self.server.python("open('/opt/ml/model/m', 'w').write('gone' * 1000)",
                                  name="gone.py")
        self.ended(gone)
        new = set(self.blobs()) - before
        self.server.ath("rm", gone, check=0)
        self.assertEqual(self.server.json("gc")["blobs"]["removed"], 0, "too young to tell")
        self.age(self.blobs(), 2)
        dry = self.server.json("gc", "--dry-run")
        self.assertEqual((dry["dry_run"], dry["blobs"]["removed"] > 0), (True, True))
        self.assertTrue(all(map(os.path.exists, new)))
        swept = self.server.json("gc")
        self.assertEqual(swept["blobs"], dry["blobs"])
        self.assertEqual(set(self.blobs()), before)
        # What is left is whole: it can be run again, and its model read.
        self.ended(self.server.json("retry", kept, "-d")["id"])
        self.server.ath("cp", kept + ":model/m", "m", check=0)

    def test_nothing_of_a_running_job(self):
        """Red if caches go by their age alone, or a live job's source does not count."""
        self.server.script("held.py", "import time\nprint('up')\nwhile True: time.sleep(0.05)")
        job = self.server.submit("python3", "held.py")
        self.server.until_log(job, "up")
        stray = self.server.http("PUT", "/api/v1/blobs/" + hashlib.sha256(b"stray").hexdigest(),
                                 b"stray")
        self.assertEqual(stray.status, 201)
        self.age(self.blobs(), 2)
        stray = [path for path in self.blobs() if hashlib.sha256(b"stray").hexdigest() in path]
        swept = self.server.json("gc", "--older", "0s")
        self.assertFalse(os.path.exists(*stray), swept)
        bundle = self.server.show(job)["spec"]["source"]["bundle"]
        self.assertEqual(self.server.http("GET", "/api/v1/blobs/" + bundle).status, 200)
        self.assertTrue(os.path.exists(os.path.join(self.server.home, "cache", "sources", bundle))
                        or not swept["sources"]["removed"], swept)
        self.server.ath("stop", "--now", job, check=0)
        self.server.wait(job)

    def test_caches_go_when_they_were_not_used_for_long(self):
        job = self.server.python("print('cached')", name="cached.py")
        self.ended(job)
        sources = glob.glob(os.path.join(self.server.home, "cache", "sources", "*"))
        if not sources:
            harness.skip_without_root(self, "to cache sources, below an overlay")
            self.skipTest("sources are not cached here: no overlay")
        self.age(sources, 24 * 31)
        swept = self.server.json("gc")
        self.assertEqual(swept["sources"]["removed"], len(sources))
        self.assertFalse(any(map(os.path.exists, sources)))
        self.ended(self.server.json("retry", job, "-d")["id"])
        self.assertEqual(self.server.json("gc")["sources"]["removed"], 0)

    def test_needs_an_admin(self):
        token = self.server.json("token", "create", "--scope", "submit")["token"]
        reply = self.server.http("POST", "/api/v1/gc", headers={"Authorization": "Bearer " + token})
        self.assertEqual(reply.status, 403)


@needs_verb("types")
class Types(Case):
    def test_catalogue_by_name(self):
        listed = self.server.json("types", "--all")["types"]
        self.assertGreater(len(listed), 130)
        by_name = {t["name"]: t for t in listed}
        self.assertEqual(by_name["ml.m5.large"]["cpus"], 2)
        self.assertEqual(by_name["ml.p4d.24xlarge"]["gpus"], 8)
        self.assertIn("ml.m5.large", self.server.ath("types", "m5", check=0).stdout)


@needs_verb("token")
class Token(Case):
    def test_create_use_list_revoke(self):
        made = self.server.json("token", "create", "--scope", "read", "--note", "ci")
        remote = {"ATHANOR_URL": self.server.url, "ATHANOR_TOKEN": made["token"]}
        self.server.ath("ps", env=remote, check=0)
        out = self.server.ath("run", "-d", "--", "true", env=remote)
        self.assertEqual(out.returncode, 6, out.stderr)
        self.assertIn("ci", self.server.ath("token", "ls", check=0).stdout)
        self.assertNotIn(made["token"], self.server.ath("token", "ls", "--json").stdout)
        self.server.ath("token", "revoke", made["id"], check=0)
        self.assertEqual(self.server.ath("ps", env=remote).returncode, 6)

    def test_job_over_tcp_with_a_token(self):
        made = self.server.json("token", "create", "--scope", "submit")
        remote = {"ATHANOR_URL": self.server.url, "ATHANOR_TOKEN": made["token"]}
        self.server.script("remote.py", "print('from afar')")
        out = self.server.ath("run", "-q", "--", "python3", "remote.py", env=remote, check=0)
        self.assertEqual(out.stdout, "from afar\n")


class Helpers(Case):
    @needs_verb("init")
    def test_init_writes_a_file_that_runs(self):
        with tempfile.TemporaryDirectory(dir=self.server.root) as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write("print('trained')")
            self.server.ath("init", cwd=folder, check=0)
            (name,) = [n for n in os.listdir(folder) if n.endswith((".yaml", ".yml"))]
            self.assertEqual(self.server.ath("init", cwd=folder).returncode, 4)
            out = self.server.ath("run", "-q", name, cwd=folder, check=0)
            self.assertIn("trained", out.stdout)

    @needs_verb("check")
    def test_check_looks_the_machine_over(self):
        report = self.server.json("check")
        self.assertEqual({c["check"] for c in report["checks"]} >=
                         {"machine", "home", "disk", "isolation", "limits", "supervisor", "python"},
                         True)

    @needs_verb("explain")
    def test_every_code_the_program_prints_can_be_explained(self):
        codes = set()
        for folder, _, names in os.walk(os.path.join(harness.TREE, "src")):
            for name in names:
                if name.endswith((".cc", ".h")) and not name.endswith("_test.cc"):
                    with open(os.path.join(folder, name)) as file:
                        codes |= set(re.findall(r'"(ATH-[A-Z]\d{4})"', file.read()))
        self.assertGreater(len(codes), 50)
        unknown = [code for code in sorted(codes)
                   if self.server.ath("explain", code).returncode != 0]
        self.assertEqual(unknown, [])
        self.assertEqual(self.server.ath("explain", "ATH-J9999").returncode, 3)

    def test_every_code_is_one_row_of_the_page(self):
        page = subprocess.run([os.path.join(harness.BUILD, "athanor"), "docs", "errors"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        codes = re.findall(r"^\| (ATH-[A-Z]\d{4}) \|", page, re.M)
        self.assertEqual(sorted(set(codes)), codes)

    def test_what_a_person_gets_wrong_has_a_code(self):
        self.server.ath("run", "-q", "--name", "over", "--", "true", check=0)
        held = self.server.submit("sleep", "600", flags=["--name", "held"])
        self.server.until_state(held, "Running")
        for arguments, status, code in [
                (["show", "nobody"], 3, "ATH-R0001"),
                (["logs", "@last~99"], 3, "ATH-R0001"),
                (["show", "@first"], 2, "ATH-R0003"),
                (["exec", "over", "--", "true"], 4, "ATH-R0004"),
                (["retry", "held"], 4, "ATH-R0005"),
                (["rm", "held"], 4, "ATH-R0005"),
                (["resume", "held"], 4, "ATH-R0005"),
                (["metrics", "over", "loss"], 3, "ATH-R0007"),
                (["interrupt", "over"], 4, "ATH-R0009"),
                (["resume", "over"], 3, "ATH-R0010"),
                (["run", "--type", "ml.nothing", "--", "true"], 2, "ATH-S0210"),
                (["run", "--cpus", "999", "--", "true"], 2, "ATH-S0211"),
                (["run", "-s", "NOT_SET", "--", "true"], 2, "ATH-S0204"),
                (["secret", "set", "1X"], 2, "ATH-K0001"),
                (["secret", "set", "SHORT"], 2, "ATH-K0002"),
                (["secret", "rm", "NOT_SET"], 3, "ATH-K0003"),
                (["token", "create", "--scope", "all"], 2, "ATH-K0004"),
                (["token", "revoke", "none"], 3, "ATH-K0005"),
                (["wait", "held", "--timeout", "soon"], 2, "ATH-C0014"),
                (["interrupt", "held", "--grace", "1h30"], 2, "ATH-C0014"),
                (["logs", "over", "--since", "yesterday"], 2, "ATH-C0014"),
                (["gc", "--older", "1 moon"], 2, "ATH-C0014"),
                (["run", "--preflight", "--preflight-sample", "lots", "--", "true"], 2,
                 "ATH-C0015"),
                (["run", "--preflight", "--no-preflight", "--", "true"], 2, "ATH-C0010")]:
            with self.subTest(" ".join(arguments)):
                at = arguments.index("--") if "--" in arguments else len(arguments)
                out = self.server.ath(*arguments[:at], "--json", *arguments[at:], input="abc",
                                      check=status)
                error = json.loads(out.stdout.splitlines()[-1])["error"]
                self.assertEqual(error["id"], code, error)
                self.assertTrue(error["hint"], error)
                self.assertEqual(self.server.ath("explain", code).returncode, 0)
        self.server.ath("stop", "--now", held, check=0)

    @needs_verb("schema")
    def test_schema_knows_every_key_of_the_examples(self):
        schema = json.loads(self.server.ath("schema", check=0).stdout)
        self.assertIn("$schema", schema)
        for key in ("name", "run", "params", "source", "environment", "resources", "limits",
                    "data", "metrics", "secrets", "tags", "retry", "priority"):
            self.assertIn(key, schema["properties"])
        self.assertIs(schema["additionalProperties"], False)

    @needs_verb("completion")
    def test_completion_is_shell_code(self):
        text = self.server.ath("completion", "bash", check=0).stdout
        script = text + "\nCOMP_WORDS=(ath sh); COMP_CWORD=1; _ath; echo ${COMPREPLY[@]}"
        out = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=True,
                             env=dict(self.server.environment, PATH=os.path.dirname(ATH) + ":" +
                                      self.server.environment["PATH"]))
        self.assertEqual(out.stdout.split(), ["show"])
        for shell in ("zsh", "fish"):
            self.assertIn("ath", self.server.ath("completion", shell, check=0).stdout)
        self.assertEqual(self.server.ath("completion", "csh").returncode, 2)

    def test_help_of_every_verb(self):
        for verb in sorted(harness.has_verb.known or (has_verb("run") and harness.has_verb.known)):
            out = self.server.ath(verb, "--help", check=0)
            self.assertIn("Usage: ath " + verb, out.stdout)


class Price(Case):
    settings = "rates: {cpu_hour: 3600, currency: EUR}\n"

    def test_cost_is_whole_held_seconds_at_the_frozen_price(self):
        job = self.server.submit("sleep", "1", flags=["--cpus", "1"])
        record = self.ended(job)
        self.assertEqual(record["price"]["micros_per_hour"], 3600_000_000)
        held = sum(a["held_ms"] for a in record["attempts"])
        self.assertGreaterEqual(held, 1000, "the whole time it held its place is counted")
        self.assertEqual(record["cost_micros"], math.ceil(held / 1000) * 1_000_000)


if __name__ == "__main__":
    harness.main()
