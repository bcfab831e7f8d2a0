"""More than a hundred planted failures (planted.py): `ath why` names the class, says what it must say,
and every `ath` line that it gives as the next step works as it stands."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import ATH, Case
from planted import PLANTED

# Programs that lines of a hint may begin with; anything else is a sentence.
TOOLS = ("df", "ls", "sed", "chmod", "echo", "command", "head", "dmesg", "apt-file", "ulimit", "ss",
         "nvidia-smi", "apt-get", "free")


class Planted(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.jobs, cls.folders = {}, {}
        for name, _, job in PLANTED:
            folder = os.path.join(cls.server.root, "planted", name)
            for path, text in job.files.items():
                path = os.path.join(folder, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", newline="") as file:
                    file.write(textwrap.dedent(text))
                if path.endswith(("run.py", "run.sh", "tool")):
                    os.chmod(path, 0o755)
            os.makedirs(folder, exist_ok=True)
            cls.folders[name] = folder
            cls.jobs[name] = cls.server.json("run", "-d", *job.flags, "--", *job.command, cwd=folder)["id"]
        cls.causes = {}

    def cause(self, name):
        if name not in self.causes:
            self.ended(self.jobs[name], "Failed")
            self.causes[name] = self.server.json("why", self.jobs[name])["cause"]
        return self.causes[name]

    def run_line(self, line, folder):
        """Runs a line of a hint as it stands; what follows jobs is let go of at once."""
        words = shlex.split(line, comments=True)
        self.assertEqual(words[0], "ath")
        if words[1] == "retry":
            words.append("-d")
        return self.server.ath(*words[1:], cwd=folder, input="a-secret-value\n")

    def test_each_next_line_works(self):
        """One job for each shape of line: the shapes are few, the jobs many."""
        seen, odd = set(), []
        for name, _, _ in PLANTED:
            cause = self.cause(name)
            job = self.server.show(self.jobs[name])["name"]
            for line in cause["hint"].splitlines():
                self.assertNotIn("{job}", line, name)
                first = line.split()[0] if line.split() else ""
                if first in ("echo", "chmod", "sed"):  # what the next line needs
                    subprocess.run(["sh", "-c", line], cwd=self.folders[name], check=True)
                    continue
                if first != "ath":
                    # A command inside a sentence would not be seen as one.
                    self.assertNotRegex(line.partition("#")[0], r"(?<![-\w/])ath [a-z]+ ", (name, line))
                    continue
                shape = line.replace(job, "JOB")
                if shape in seen:
                    continue
                seen.add(shape)
                # A retry has the same name, which then means the newest one.
                out = self.run_line(line.replace(job, self.jobs[name]), self.folders[name])
                if out.returncode != 0:
                    odd.append((name, line, out.returncode, out.stderr))
        # The jobs made here are of no more use, and others wait behind them.
        self.server.ath("stop", "--all", "--now", "--yes")
        self.assertEqual(odd, [])
        self.assertGreater(len(seen), 15, seen)

    def test_the_retry_is_the_same_job(self):
        """What is offered keeps the command, the parameters and the file, and adds what it says."""
        self.server.script("job.yaml", """
            run: |
              echo lr=${lr}
              python3 -c 'raise ValueError("from a text")'
            params: {lr: 0.1}
            """)
        id = self.server.json("run", "-d", "job.yaml", "-p", "lr=0.5")["id"]
        self.ended(id, "Failed")
        hint = self.server.json("why", id)["cause"]["hint"]
        line = next(line for line in hint.splitlines() if "--debug" in line)
        self.assertNotIn("ath run", hint)
        out = self.run_line(line, self.server.work)
        self.assertEqual(out.returncode, 0, out.stderr)
        again = out.stdout.split()[0]
        self.ended(again, "Failed")
        first, second = (self.server.show(one)["spec"] for one in (id, again))
        self.assertTrue(second["debug"])
        self.assertEqual((first["command"], first["params"]), (second["command"], second["params"]))
        self.assertIn(b"lr=0.5", self.server.logs(again))

    def test_tools_are_known(self):
        """Lines that are neither ath's nor a known tool's are sentences: they hold no shell syntax."""
        for name, _, _ in PLANTED:
            for line in self.cause(name)["hint"].splitlines():
                if line.split()[0] in TOOLS + ("ath",):
                    subprocess.run(["sh", "-n", "-c", line], check=True)
                else:
                    self.assertNotRegex(line, r"   #| >> | \| ", (name, line))

    def test_a_corrected_crlf_script_runs(self):
        """The lines that edit files do what they say."""
        for name in ("crlf_script", "crlf_shebang"):
            copy = os.path.join(self.server.root, "edited-" + name)
            shutil.copytree(self.folders[name], copy)
            line = self.cause(name)["hint"].splitlines()[0]
            subprocess.run(["sh", "-c", line], cwd=copy, check=True)
            for script in os.listdir(copy):
                with open(os.path.join(copy, script), "rb") as file:
                    self.assertNotIn(b"\r", file.read(), (name, line))

    def test_the_ignore_line_takes_the_file_along(self):
        copy = os.path.join(self.server.root, "edited-ignored")
        shutil.copytree(self.folders["ignored_file"], copy)
        subprocess.run(["sh", "-c", self.cause("ignored_file")["hint"].splitlines()[0]], cwd=copy, check=True)
        job = self.server.json("run", "-d", "--", "python3", "train.py", cwd=copy)["id"]
        self.ended(job)

    def test_a_capture_is_named(self):
        job = self.server.python("""
            import athanor
            for step in range(3):
                batch = athanor.capture(step, batch=step)
                if step == 2: raise ValueError("captured")
            """)
        self.ended(job, "Failed")
        name = self.server.show(job)["name"]
        hint = self.server.json("why", job)["cause"]["hint"]
        self.assertIn("ath replay %s" % name, hint)
        line = next(line for line in hint.splitlines() if "ath replay" in line)
        out = self.run_line(line, self.server.work)
        self.assertIn("captured", out.stdout + out.stderr)

    def test_the_system_python_is_named_and_works(self):
        """In an environment of its own the module is missing; the system's Python has it."""
        found = subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True)
        if found.returncode != 0:
            self.skipTest("this machine's Python has no numpy")
        self.server.script("train.py", "import numpy\nprint('has', numpy.__name__)")
        job = self.server.file("run: python3 train.py\nenvironment: {base: isolated}\n")
        self.ended(job, "Failed")
        cause = self.server.json("why", job)["cause"]
        self.assertEqual(cause["kind"], "bad_import")
        self.assertIn("environment: {base: system}", cause["hint"])
        out = self.run_line(cause["hint"].splitlines()[0], self.server.work)
        self.assertEqual(out.returncode, 0, out.stderr)
        again = out.stdout.split()[0]
        self.ended(again)
        self.assertIn(b"has numpy", self.server.logs(again))

    def test_a_variable_given_as_the_hint_says_is_there(self):
        cause = self.cause("environ_key")
        line = next(line for line in cause["hint"].splitlines() if line.startswith("ath retry"))
        out = self.run_line(line, self.folders["environ_key"])
        self.ended(out.stdout.split()[0])

    def test_the_folders_own_venv_runs_as_typed(self):
        folder = os.path.join(self.server.root, "own-venv")
        os.makedirs(folder)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", os.path.join(folder, ".venv")], check=True)
        with open(os.path.join(folder, "train.py"), "w") as file:
            file.write("import sys; print('prefix', sys.prefix)\n")
        with open(os.path.join(folder, "job.yaml"), "w") as file:
            file.write("run: .venv/bin/python train.py\n")
        for words in (["--", ".venv/bin/python", "train.py"], ["job.yaml"],
                      ["--", "sh", "-c", ". .venv/bin/activate && python train.py"]):
            job = self.server.json("run", "-d", *words, cwd=folder)["id"]
            self.ended(job)
            self.assertIn(os.path.realpath(folder).encode() + b"/.venv", self.server.logs(job), words)

    def test_a_metric_that_never_matched_is_said(self):
        self.server.script("train.py", "print('loss 0.5')\nprint('acc=0.9')")
        out = self.server.ath("run", "--metric", r"loss=loss=(\S+)", "--metric", r"acc=acc=(\S+)", "--",
                              "python3", "train.py", check=0)
        wanted = r"loss: no line matched 'loss=(\S+)'"
        self.assertIn(wanted, out.stderr)
        job = self.server.json("ps")["jobs"][0]["name"]
        for verb in ("show", "metrics"):
            said = self.server.ath(verb, job, check=0).stdout
            self.assertIn(wanted, said, verb)
            self.assertNotIn("acc: no line", said)


def planted_test(name, kind, job):
    def test(self):
        cause = self.cause(name)
        self.assertEqual(cause["kind"], kind, cause)
        self.assertRegex(cause["code"], r"^ATH-J\d{4}$")
        self.assertTrue(cause["text"] and cause["hint"], cause)
        for part in job.contains:
            self.assertIn(part, cause["text"], cause)
        for part in job.hint:
            self.assertIn(part, cause["hint"], cause)
        for part in job.no:
            self.assertNotIn(part, cause["text"] + cause["hint"], cause)
    return test


for _name, _kind, _job in PLANTED:
    setattr(Planted, "test_planted_" + _name, planted_test(_name, _kind, _job))


FILES = {"environment.yml", "checkpoints.path"}  # names of files, not keys


class Keys(unittest.TestCase):
    """Hints name keys of the job file that are there."""

    def test_each_key_named_is_one(self):
        from offered import cpp_texts
        schema = json.loads(subprocess.run([ATH, "schema"], capture_output=True, check=True).stdout)
        known = keys_of(schema)
        self.assertIn("limits.hang.after", known)
        groups = {key.partition(".")[0] for key in known if "." in key} - {"metrics", "secrets", "rules", "tune"}
        named = re.compile(r"(?<![\w./${-])(%s)((?:\.[a-z_]+)+)(?![\w(/.=-])" % "|".join(sorted(groups)))
        wrong = []
        for where, _, names in os.walk(os.path.join(harness.TREE, "src")):
            for name in names:
                if not name.endswith((".cc", ".h")) or re.search(r"_(test|fuzz)\.|^job_keys\.", name):
                    continue  # job_keys is the table itself, with keys that are not available yet
                with open(os.path.join(where, name)) as file:
                    source = file.read()
                for text, _ in cpp_texts(source):
                    for found in named.finditer(text):
                        key = found.group(0)
                        if key not in FILES and key not in known and not any(fits(key, one) for one in known):
                            wrong.append((os.path.join(where, name), key))
        self.assertEqual(wrong, [])


def keys_of(schema, path=""):
    """The dotted keys of a JSON schema; `*` stands for a name of the user's."""
    keys = set()
    for part in [schema] + list(schema.get("oneOf", [])) + list(schema.get("anyOf", [])):
        for name, inner in part.get("properties", {}).items():
            key = path + "." + name if path else name
            keys.add(key)
            keys |= keys_of(inner, key)
        inner = part.get("additionalProperties")
        if isinstance(inner, dict):
            keys |= keys_of(inner, path + ".*")
    return keys


def fits(key, pattern):
    return re.fullmatch(re.escape(pattern).replace(r"\*", r"[\w-]+"), key) is not None


if __name__ == "__main__":
    harness.main()
