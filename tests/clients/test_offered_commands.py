"""Every command that hints, errors, help and the page offer is run for real, with what it needs
planted. A new one has to be put into the table below: how it is filled, or that it only names a verb.
Red when one does not parse, fails, or is offered without anybody having tried it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import ATH, Case, Server, until
from offered import OPEN, offered

TRAIN = """
    import athanor, os, sys
    model = {"w": 1.0}
    fresh = not athanor.latest_checkpoint()
    for step in range(3):
        number = athanor.capture(step, batch=step, model=model)
        athanor.log(loss=1.0 / (number + 1), step=step)
        athanor.checkpoint(step, lambda path: open(path, "w").write(str(model["w"])))
    os.makedirs(os.environ["SM_MODEL_DIR"], exist_ok=True)
    open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w").write("w")
    open("model.pt", "w").write("w")
    print("trained")
    if fresh and os.environ.get("FALLS"): raise ValueError("planted")
    """
JOB = """
    run: python3 train.py
    params: {lr: 0.1, layers: 2}
    tune:
      metric: loss
      strategy: grid
      space: {lr: [0.1, 0.2]}
      max_trials: 2
      parallel: 2
    """
# What stands for what; the words on the right are planted by setUpClass.
WORDS = ((r"\{\{job\}\}|\{job\}|%s|%\.200s|\bJOB\b", "done"), (r"\bSTUDY\b", "search"),
         (r"\bCODE\b", "ATH-J0102"), (r"\bBACKUP\b", "kept-backup"))
# Commands of which the text says nothing but the verb: it is there, and explains itself.
MENTIONED = set("""ath cp|ath diff|ath exec|ath export csv|ath export mlflow|ath export tb|ath import tb|ath interrupt|ath logs
    ath logs -f|ath replay|ath resume|ath retry|ath rm|ath run|ath run --|ath run --key|ath run --sagemaker|ath show
    ath stop|ath token|ath tune|ath tune --stdio|ath wait|ath wait --timeout|ath why|ath server backup
    ath run --no-preflight ...|ath service""".replace("\n", "|").split("|"))
MENTIONED = {one.strip() for one in MENTIONED}
# How what is left open is filled, where the words above do not do. {running}, {fresh}: a job for
# this command alone.
FILLED = {
    "ath checkpoints …": "ath checkpoints done",
    "ath cp JOB:model/ .": "ath cp done:model/ .",
    "ath cp @last:": "ath cp done:",
    "ath cp @last:model/ .": "ath cp done:model/ .",
    "ath cp @last:model.pt .": "ath cp done:model.pt .",
    "ath cp …": "ath cp done:model/ copied",
    "ath diff %s %s": "ath diff done other",
    "ath diff A B": "ath diff done other",
    "ath env …": "ath env mlflow",
    "ath events …": "ath events done",
    "ath exec @last -- bash": "ath exec {running} -- bash",
    "ath exec [OPTIONS] JOB -- COMMAND [ARGS...]": "ath exec {running} -- true",
    "ath exec …": "ath exec {running} -- true",
    "ath explain …": "ath explain ATH-J0102",
    "ath export tb …": "ath export tb done -o exported",
    "ath import tb DIR": "ath import tb events",
    "ath interrupt …": "ath interrupt {running}",
    "ath logs -f …": "ath logs -f done",
    "ath logs JOB --grep PATTERN": "ath logs done --grep trained",
    "ath logs …": "ath logs done",
    "ath metrics {} {}": "ath metrics done loss",
    "ath metrics …": "ath metrics done",
    "ath replay JOB --dir A-NEW-FOLDER": "ath replay fell --dir replayed-1",
    "ath replay JOB --dir FOLDER": "ath replay fell --dir replayed-2",
    "ath replay …": "ath replay fell --dir replayed-3",
    "ath resume %s --from %s": "ath resume fell --from 2",
    "ath resume …": "ath resume fell",
    "ath retry {{job}} --max-runtime {}m": "ath retry done --max-runtime 90m",
    "ath retry {{job}} --memory {}GiB": "ath retry done --memory 1GiB",
    "ath retry {{job}} --base system": "ath retry done --base system",
    "ath retry {{job}} --current --requirements {}": "ath retry done --current --requirements requirements.txt",
    "ath retry {{job}} --requirements {}": "ath retry done --requirements requirements.txt",
    "ath retry {{job}} -e {}=VALUE": "ath retry done -e DATA_DIR=value",
    "ath retry {{job}} -e PYTHONPATH={}": "ath retry done -e PYTHONPATH=src",
    "ath retry {job} -p NAME=VALUE": "ath retry done -p lr=0.2",
    "ath retry {{job}} -s {}": "ath retry done -s API_TOKEN",
    # Offered only where there is a GPU.
    "ath retry {job} --gpus 1": "ath retry done --gpus 0",
    "ath replay {job}": "ath replay fell --dir replayed-4",
    "ath retry …": "ath retry done",
    "ath completion fish | source": "ath completion fish",
    "ath export jsonl …": "ath export jsonl done",
    "ath ps …": "ath ps --state failed",
    "ath rm --state failed": "ath rm --state failed --dry-run",  # others are explained by "fell"
    "ath rm …": "ath rm --name 'nobody-*' --yes",
    "ath rm JOB": "ath rm {fresh}",
    "ath rm {}": "ath rm {fresh}",
    "ath run -- CMD": "ath run -- true",
    "ath run [OPTIONS] -- COMMAND [ARGS...]": "ath run -- true",
    "ath run [OPTIONS] JOB.yaml": "ath run job.yaml",
    "ath run -- COMMAND": "ath run -- true",
    "ath run -- python3 …": "ath run -- python3 train.py",
    "ath run --experiment NAME …": "ath run --experiment tries -- true",
    "ath run -P": "ath run -P -p lr=0.1 -- true",
    "ath run -P passes it": "ath run -P -p lr=0.1 -- true",
    "ath run -P passes them": "ath run -P -p lr=0.1 -p wd=0 -- true",
    "ath run -s …": "ath run -s API_TOKEN -- true",
    "ath run FILE": "ath run job.yaml",
    "ath run …": "ath run job.yaml",
    "ath runs --experiment": "ath runs --experiment tries",
    "ath runs --limit …": "ath runs --limit 100",
    "ath secret set {}": "ath secret set API_TOKEN",
    "ath secret set …": "ath secret set API_TOKEN",
    "ath server backup /another/place": "ath server backup backup-1",
    "ath server backup /path/to/FOLDER": "ath server backup backup-2",
    "ath server backup DIR": "ath server backup backup-3",
    "ath show …": "ath show done",
    "ath stop …": "ath stop {running}",
    "ath rm --tag KEY=VALUE": "ath rm --tag team=nobody",
    "ath stop --tag KEY=VALUE": "ath stop --tag team=nobody",
    "ath stop --all": "ath stop --all --yes",
    "ath stop --state queued": "ath stop --state queued --yes",
    "ath token create --aws --scope …": "ath token create --aws --scope submit",
    "ath token revoke …": "ath token revoke {token}",
    "ath tune -P": "ath tune -P job.yaml --name passed",
    "ath tune FILE": "ath tune job.yaml",
    "ath tune export {}": "ath tune export search",
    "ath tune extend STUDY --range lr=1e-5..1e-2": "ath tune extend wide --range lr=1e-5..1e-2",
    "ath tune extend {} --max-trials {}": "ath tune extend wide --max-trials 3",
    "ath tune extend {} --range {}": "ath tune extend wide --range lr=1e-6..1",
    "ath tune extend …": "ath tune extend wide --max-trials 4",
    "ath tune add STUDY lr=0.1 layers=2": "ath tune add slow lr=0.1 layers=2",
    "ath tune extend STUDY --max-trials 100": "ath tune extend wide --max-trials 5",
    "ath tune show …": "ath tune show search",
    "ath tune show %.200s": "ath tune show search",
    "ath tune stop …": "ath tune stop slow",
    "ath wait …": "ath wait done",
    "ath why {}": "ath why done",
    "ath why …": "ath why done",
}
# Those that need no server, or are one; each has a home of its own (a method of this name).
APART = {
    "ath serve": "serves", "ath serve --port 0": "serves", "ath serve --simulate": "serves", "ath serve --address …": "serves",
    "ath serve --mlflow-artifact-root file:///srv/artifacts": "serves",
    "ath server stop": "stops", "ath fsck": "checks", "ath fsck --repair": "checks",
    "ath server restore BACKUP": "restores", "ATHANOR_HOME=/a/new/folder ath server restore BACKUP": "restores",
    "ATHANOR_HOME=/a/new/folder ath server restore …": "restores",
    "ath init": "begins", "ath init --force": "begins",
    "ath service install": "installs", "ath service install --system": "installs",
    "ath uninstall": "leaves", "ath uninstall --dry-run --json": "leaves", "ath uninstall --keep-data": "leaves",
    "ath uninstall --keep-data --yes": "leaves", "ath uninstall --yes": "leaves",
}


class Offered(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.offered = offered()
        server = cls.server
        cls.bin = os.path.join(server.root, "bin")
        os.mkdir(cls.bin)
        os.symlink(ATH, os.path.join(cls.bin, "ath"))
        os.symlink("/usr/bin/python3", os.path.join(cls.bin, "python"))
        server.environment["PATH"] = cls.bin + ":" + server.environment["PATH"]
        server.script("train.py", TRAIN)
        for name in ("job.yaml", "athanor.yaml", "study.yaml"):
            server.script(name, JOB)
        for name, command in (("wide", "python3 train.py"), ("slow", "sleep 600")):
            server.script(name + ".yaml", """
                name: %s
                run: %s
                params: {layers: 2}
                resources: {cpus: 0.1}
                tune:
                  metric: loss
                  space: {lr: {type: float, low: 0.001, high: 0.1, scale: log}, layers: {type: int, low: 1, high: 4}}
                  max_trials: 1
                """ % (name, command))
        server.script("requirements.txt", "")
        server.script("events.py", """
            import athanor
            writer = athanor.SummaryWriter()
            for step in range(3): writer.add_scalar("loss", 1.0 / (step + 1), step)
            writer.close()
            """)
        jobs = [server.submit("python3", "train.py", flags=["--name", name, *flags])
                for name, flags in (("done", ()), ("other", ("-p", "lr=0.2")), ("fell", ("-e", "FALLS=1")))]
        jobs.append(server.submit("python3", "events.py", flags=["--name", "traced"]))
        for job in jobs:
            server.wait(job)
        server.ath("export", "tb", "traced", "-o", "events", check=0)
        for name in ("API_TOKEN", "TOKEN_NAME", "HF_TOKEN", "WANDB_API_KEY", "AWS_ACCESS_KEY_ID",
                     "AWS_SECRET_ACCESS_KEY"):
            server.ath("secret", "set", name, input="long enough a value\n", check=0)
        cls.current = "--current" in server.ath("retry", "--help").stdout
        server.ath("tune", "job.yaml", "--name", "search", check=0)
        server.ath("tune", "wide.yaml", check=0)
        server.ath("tune", "-d", "slow.yaml", check=0)
        server.ath("run", "--experiment", "tries", "--", "true", check=0)
        server.ath("server", "backup", "kept-backup", check=0)

    def sh(self, command, home=None, cwd=None):
        """A line as a person would type it."""
        environment = dict(self.server.environment)
        if home:
            environment["ATHANOR_HOME"] = home
        return subprocess.run(["sh", "-c", command], env=environment, cwd=cwd or self.server.work,
                              input=b"a value that is long enough\n" if "secret set" in command else b"", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=4 * harness.PATIENCE)

    def works(self, command, home=None, cwd=None):
        done = self.sh(command, home, cwd)
        self.assertEqual(done.returncode, 0, "%s:\n%s" % (command, done.stdout.decode()[-2000:]))

    def job_that_runs(self):
        job = self.server.submit("sleep", "600", flags=["--cpus", "0.1"])
        self.server.until_state(job, "Running")
        self.live.append(job)
        return job

    def filled(self, command):
        if command in FILLED:
            line = FILLED[command]
        elif command in MENTIONED:
            return " ".join(re.match(r"(ath [a-z]+)( (?:backup|tb|mlflow)\b)?", command).group(0).split()) + " --help"
        else:
            line = command
            for pattern, word in WORDS:
                line = re.sub(pattern, word, line)
        if "{running}" in line:
            line = line.replace("{running}", self.job_that_runs())
        if "{fresh}" in line:
            job = self.server.submit("true")
            self.server.wait(job)
            line = line.replace("{fresh}", job)
        if "{token}" in line:
            line = line.replace("{token}", self.server.json("token", "create", "--scope", "read")["id"])
        self.assertNotRegex(line, r"[{}…]|\b[A-Z]{4,}\b(?<!ATH)(?<!TOKEN)(?<!NAME)(?<!PYTHONPATH)",
                            "put %r into the table of this test" % command)
        return line

    def test_every_command_works(self):
        self.assertGreater(len(self.offered), 150)
        # Those that stop many jobs end what others need.
        for command in sorted(self.offered, key=lambda one: (one.startswith("ath stop --"), one)):
            if command in APART or ("--current" in command and not self.current):
                continue
            self.live = []
            with self.subTest(command, where=sorted(self.offered[command])[0]):
                self.works(self.filled(command))
            for job in self.live:  # or "@last" would be one that never ends
                self.server.ath("stop", "--now", job, check=0)
                self.server.wait(job)

    def test_the_table_has_nothing_that_is_not_offered(self):
        stale = (set(FILLED) | MENTIONED | set(APART)) - set(self.offered)
        self.assertEqual(stale, set())

    # What has a home of its own.

    def test_those_that_stand_alone(self):
        for command, kind in sorted(APART.items()):
            with self.subTest(command):
                getattr(self, kind)(command)

    def serves(self, command):
        with Server(start=False) as other:
            certificate = [os.path.join(other.root, name) for name in ("cert.pem", "key.pem")]
            if OPEN in command:
                subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                                "-subj", "/CN=localhost", "-out", certificate[0], "-keyout", certificate[1]],
                               check=True, stderr=subprocess.DEVNULL)
            words = command.replace(OPEN, "0.0.0.0 --tls-cert %s --tls-key %s" % tuple(certificate)).replace(
                "/srv/artifacts", os.path.join(other.root, "artifacts")).split()[1:]
            if "--port" not in words:
                words += ["--port", "0"]  # another program may have the usual one
            process = other.popen(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                until(lambda: process.poll() is not None or self.sh("ath server status", other.home).returncode == 0,
                      "it serves")
                self.assertIsNone(process.poll(), command)
                process.send_signal(signal.SIGTERM)
                out, _ = process.communicate(timeout=harness.PATIENCE)
                self.assertEqual(process.returncode, 0, out.decode())
            finally:
                process.kill()
                process.wait()
                process.stdout.close()

    def stops(self, command):
        with Server() as other:
            self.works(command, other.home)

    def installs(self, command):
        """Up to what it would write: tests/clients/test_leaving.py installs one for real."""
        with Server(start=False) as other:
            self.works(command + " --print", other.home)

    def leaves(self, command):
        """At a terminal, where it may ask."""
        with Server() as other:
            ours, theirs = os.openpty()
            try:
                os.write(ours, b"y\n")
                environment = dict(other.environment, PATH=self.server.environment["PATH"])
                done = subprocess.run(["sh", "-c", command], env=environment, cwd=other.work,
                                      stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
                                      timeout=4 * harness.PATIENCE)
            finally:
                os.close(ours)
                os.close(theirs)
            self.assertEqual(done.returncode, 0, done.stdout.decode())
            stays = "--dry-run" in command or "--keep-data" in command
            self.assertEqual(os.path.exists(os.path.join(other.home, "server")), stays)

    def checks(self, command):
        with Server() as other:
            other.ath("run", "--", "true", check=0)
            # As the hints have it: the server is stopped first.
            self.works("ath server stop && " + command, other.home)

    def restores(self, command):
        home = os.path.join(self.server.root, "restored-%d" % len(os.listdir(self.server.root)))
        line = command.replace(OPEN, "BACKUP").replace("BACKUP", "kept-backup").replace("/a/new/folder", home)
        self.addCleanup(shutil.rmtree, home, True)
        self.works(line, home)

    def begins(self, command):
        folder = os.path.join(self.server.root, "new-%d" % len(os.listdir(self.server.root)))
        os.mkdir(folder)
        shutil.copy(os.path.join(self.server.work, "train.py"), folder)
        if "--force" in command:
            self.works("ath init", cwd=folder)
        self.works(command, cwd=folder)


if __name__ == "__main__":
    harness.main()
