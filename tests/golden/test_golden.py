"""Every screen as people see it, compared with what is kept in screens/. What differs from run
to run (ids, made-up names, times, sizes, paths) is normalised; everything else is exact.

Where an ordinary user sees a different screen than root, it is in NAME.user.txt.

`tests/golden/update` writes the screens again; the difference is then reviewed like code.
"""

import errno
import getpass
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import fcntl
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness
from harness import ATH, Case, has_verb

SCREENS = os.path.join(HERE, "screens")
UPDATE = os.environ.get("ATHANOR_GOLDEN_UPDATE", "")  # "1": all; "user": what differs from root's
ROOT = os.geteuid() == 0

class Normaliser:
    """Replaces what is different each time by a word for it."""

    def __init__(self, server):
        self.server = server
        self.names = {}

    def name(self, job_name, word):
        self.names[job_name] = word

    def __call__(self, text):
        text = text.replace("\r\n", "\n")
        text = re.sub(r"\b01[0-9a-hjkmnp-tv-z]{24}\b", "<id>", text)
        for name, word in sorted(self.names.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(name, word)
        # Paths before the rest, so that their digits are not taken for times.
        text = text.replace(self.server.work, "WORK").replace(self.server.home, "HOME")
        text = text.replace(self.server.root, "ROOT").replace(harness.BUILD, "BUILD")
        rules = (
            (r"(?<=\()[0-9a-hjkmnp-tv-z]{6}(?=\))", "<id>"),
            (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z)?", "<time>"),
            (r"\bhttp://127\.0\.0\.1:\d+", "<url>"),
            (r"\bpid \d+", "pid <n>"),
            (r"\b\d+ [smhd] ago\b", "<ago>"),
            (r"\b\d+(\.\d+)? (ms|s)\b|\b\d+ [mhd]( \d+ [smh])?\b", "<span>"),
            (r"\bpeak \d+(\.\d+)? ([KMG]i)?B\b", "peak <size>"),
            (r"\b\d+(\.\d+)? (CPUs|GiB for jobs|GiB free|TiB free)", r"<n> \2"),
            (r"\b0 of \d+ free", "0 of <n> free"),
            (r"(# of )\d+ here|\d+(\.\d+)? GiB here", "<n> here"),
            (r"(\.tar\.gz +)\d+ B", r"\1<size>"),
            (r"\b[0-9a-f]{40,64}\b", "<hash>"),
            (r"\bby %s\b" % re.escape(getpass.getuser()), "by USER"),
            (r"\d+ files, \d+(\.\d+)? ([KMG]i)?B to ", "<n> files, <size> to "),
            (r"expected cost \d+\.\d+ %", "expected cost <n> %"),
        )
        for pattern, word in rules:
            text = re.sub(pattern, word, text)
        # Columns are as wide as their widest cell, which has just changed.
        lines = []
        for line in text.split("\n"):
            plain = re.sub(r"(\x1b|\\e)\[\d*m", "", line)
            heads = ("JOB ", "RUN ", "STEP ", "SECRET ", "TOKEN ", "CHECKPOINT ", "    HOST ")
            if re.search(r"<(id|time|span|ago|size|n)>|NAME", line) or plain.startswith(heads):
                line = re.sub(r"(?<=\S)  +", "  ", line)
            # Where the last column is cut depends on the width of the others.
            line = re.sub(r"(\$0\.00  ).*…$", r"\1<cut>…", line)
            lines.append(line.rstrip())
        return "\n".join(lines)


def terminal(server, arguments, columns=80, env=None):
    """What a terminal of so many columns gets, and the status."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = dict(server.environment, TERM="xterm-256color", **(env or {}))
    process = subprocess.Popen([ATH, *arguments], stdin=slave, stdout=slave, stderr=slave,
                               env=environment, cwd=server.work, start_new_session=True)
    os.close(slave)
    data = b""
    while True:
        ready, _, _ = select.select([master], [], [], harness.PATIENCE)
        if not ready:
            process.kill()
            raise AssertionError("ath %s did not end on a terminal" % " ".join(arguments))
        try:
            piece = os.read(master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            break
        if not piece:
            break
        data += piece
    os.close(master)
    return process.wait(harness.PATIENCE), data.decode("utf-8", "replace")


class Golden(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        server = cls.server
        cls.normal = Normaliser(server)
        server.script("train.py", """
            import athanor, os, sys
            for step in range(5):
                athanor.log(loss=1.0 / (step + 1), acc=step / 4, step=step)
            print("training")
            print("a warning", file=sys.stderr)
            open(os.environ["SM_MODEL_DIR"] + "/model.txt", "w").write("weights")
        """)
        server.script("fail.py", "def load():\n    raise ValueError('no data')\nload()\n")
        server.script("other/hello.txt", "hello\n")

    def compare(self, name, text):
        path, users = (os.path.join(SCREENS, name + end) for end in (".txt", ".user.txt"))
        text = self.normal(text)
        if UPDATE == "user":
            with open(path) as file:
                if file.read() == text:
                    return
        if UPDATE == "user" or not ROOT and os.path.exists(users) and not self.like_root(path, text):
            path = users
        if UPDATE:
            os.makedirs(SCREENS, exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
            return
        self.assertTrue(os.path.exists(path), "no screen %s; run tests/golden/update" % name)
        with open(path) as file:
            self.assertEqual(text, file.read(), "screens/" + os.path.basename(path))

    def like_root(self, path, text):
        """Whether a user who was given cgroups sees what root sees."""
        with open(path) as file:
            return text == file.read() and any(
                one["check"] == "limits" and "limited by cgroups" in one["text"]
                for one in self.server.json("check")["checks"])

    def screen(self, name, *arguments, status=0, env=None, input=None, cwd=None):
        """A verb with its streams apart, as a script sees it."""
        out = self.server.ath(*arguments, env=env, input=input, cwd=cwd)
        self.assertEqual(out.returncode, status, out.stdout + out.stderr)
        self.compare(name, "$ ath %s\n[status %d]\n--- stdout\n%s--- stderr\n%s" % (
            " ".join(arguments), out.returncode, out.stdout, out.stderr))
        return out

    def tty(self, name, *arguments, status=0, env=None, columns=80):
        code, text = terminal(self.server, arguments, columns, env)
        self.assertEqual(code, status, text)
        self.compare(name, "$ ath %s\n[status %d]\n%s" % (
            " ".join(arguments), code, text.replace("\x1b", "\\e")))
        return text

    def done(self, name, *command, flags=(), state="Completed"):
        """A job by this name that has ended."""
        job = self.server.submit(*command, flags=["--name", name, *flags])
        self.ended(job, state)
        # Lists show its last six digits.
        self.normal.name(job[-6:], "<last6>")
        return job


class Running(Golden):
    def test_run(self):
        self.screen("run", "run", "--name", "first", "-p", "lr=0.1", "--", "python3", "train.py")
        self.screen("run_again", "run", "--name", "again", "-p", "lr=0.1", "--", "python3",
                    "train.py")
        self.screen("run_quiet", "run", "-q", "--name", "quiet", "--", "python3", "train.py")
        self.screen("run_failed", "run", "--name", "fails", "--", "python3", "fail.py", status=1)
        self.screen("run_exit_status", "run", "--name", "three", "--", "sh", "-c", "exit 3",
                    status=3)
        self.screen("run_dry", "run", "--dry-run", "--name", "dry", "--memory", "1GB", "--",
                    "python3", "train.py")

    def test_detached(self):
        self.screen("run_detached", "run", "-d", "--name", "away", "--", "true")
        self.server.wait("away")
        self.screen("wait", "wait", "away")
        self.screen("stop_over", "stop", "away")

    def test_stop(self):
        job = self.server.submit("sleep", "600", flags=["--name", "sleeper"])
        self.server.until_state(job, "Running")
        self.screen("why_running", "why", "sleeper")
        self.screen("stop", "stop", "sleeper")
        self.server.wait(job)
        self.screen("why_stopped", "why", "sleeper")

    def test_stopping(self):
        job = self.server.submit("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done",
                                 flags=["--name", "stubborn"])
        self.normal.name(job[-6:], "<last6>")
        self.server.until_log(job, "up")
        harness.until(lambda: self.server.show(job)["attempts"][0].get("held_ms", 0) > 0,
                      "its agent has reported")
        self.server.ath("stop", job, check=0)
        self.screen("ps_stopping", "ps", "--state", "Stopping")
        self.screen("why_stopping", "why", "stubborn")
        harness.kill(self.server.supervisor_pids(job)[0])
        self.server.wait(job)

    def test_queued(self):
        holder = self.server.submit("sleep", "600", flags=["--name", "holder", "--cpus",
                                                           os.cpu_count()])
        self.server.until_state(holder, "Running")
        job = self.server.submit("true", flags=["--name", "queued", "--cpus", "1"])
        self.screen("why_queued", "why", "queued")
        self.normal.name(job[-6:], "<last6>")
        self.screen("queue", "queue")
        self.screen("stop_dry_run", "stop", "--all", "--dry-run")
        self.screen("stop_which", "stop", status=2)
        self.server.ath("stop", "--now", job, holder, check=0)
        self.server.wait(holder)
        self.screen("queue_none", "queue")
        self.screen("stop_none", "stop", "--name", "nobody-*")
        self.server.wait(job)


class Looking(Golden):
    def setUp(self):
        if not hasattr(type(self), "made"):
            type(self).made = True
            self.done("good", "python3", "train.py", flags=["-p", "lr=0.1", "--experiment", "exp"])
            self.done("bad", "python3", "fail.py", state="Failed")

    def test_ps(self):
        self.screen("ps", "ps")
        self.screen("ps_failed", "ps", "--state", "Failed")
        self.screen("ps_none", "ps", "--experiment", "nothing")

    def test_show(self):
        self.screen("show", "show", "good")
        self.screen("show_failed", "show", "bad")

    def test_why(self):
        self.screen("why_failed", "why", "bad")
        self.screen("why_completed", "why", "good")

    def test_logs(self):
        self.screen("logs", "logs", "good")
        self.screen("logs_setup", "logs", "good", "--phase", "setup")
        self.screen("logs_grep", "logs", "good", "--grep", "train")
        self.screen("logs_bad_grep", "logs", "good", "--grep", "(", status=2)

    def test_metrics(self):
        self.screen("metrics", "metrics", "good")
        self.screen("metrics_points", "metrics", "good", "loss")
        self.screen("metrics_none", "metrics", "bad")
        self.screen("metrics_unknown", "metrics", "good", "nothing", status=3)
        self.screen("metrics_plot", "metrics", "good", "loss", "--plot")

    def test_runs(self):
        self.screen("runs", "runs")
        self.screen("runs_filter", "runs", "--filter", "metrics.loss < 0.5", "-c", "loss")
        self.screen("runs_none", "runs", "--filter", "metrics.loss > 5")
        self.screen("runs_wrong", "runs", "--filter", "metrics.loss <", status=2)
        self.screen("compare", "compare", "good", "bad")

    def test_page_studies_and_imports(self):
        self.screen("ui_print", "ui", "--print")
        self.screen("ui_nobody", "ui", "nobody", "--print", status=3)
        self.screen("tune_none", "tune", "ls")
        self.screen("tune_nobody", "tune", "show", "nobody", status=3)
        self.screen("import_nothing", "import", "tb", "nowhere", status=3)

    def test_events(self):
        self.screen("events", "events", "good")

    @unittest.skipUnless(has_verb("diff"), "no diff")
    def test_diff(self):
        self.screen("diff", "diff", "good", "bad")

    @unittest.skipUnless(has_verb("cp"), "no cp")
    def test_cp(self):
        self.screen("cp", "cp", "good:model/", "copied")
        self.screen("cp_nothing", "cp", "good:model/no", "copied", status=3)
        self.screen("cp_where", "cp", "good", "copied", status=2)

    @unittest.skipUnless(has_verb("export"), "no export")
    def test_export(self):
        self.screen("export", "export", "csv", "good")
        self.screen("export_tb", "export", "tb", "good", "-o", "exported")
        self.screen("export_tb_again", "export", "tb", "good", "-o", "exported", status=4)
        self.screen("export_format", "export", "xml", "good", status=2)

    @unittest.skipUnless(has_verb("exec"), "no exec")
    def test_exec(self):
        self.screen("exec_over", "exec", "good", "--", "true", status=4)
        self.screen("exec_nothing", "exec", "good", status=2)

    def test_terminal(self):
        self.tty("tty_ps", "ps")
        self.tty("tty_ps_no_color", "ps", env={"NO_COLOR": "1"})
        self.tty("tty_ps_narrow", "ps", columns=60)
        self.tty("tty_show", "show", "good")
        self.tty("tty_why", "why", "bad")
        self.tty("tty_why_ascii", "why", "bad", env={"ATH_ASCII": "1", "NO_COLOR": "1"})
        self.tty("tty_metrics", "metrics", "good")
        self.tty("tty_error", "show", "nobody", status=3)
        self.tty("tty_error_ascii", "show", "nobody", status=3,
                 env={"ATH_ASCII": "1", "NO_COLOR": "1"})


class Gangs(Golden):
    """Jobs of several hosts and ranks."""

    def setUp(self):
        if hasattr(type(self), "made"):
            return
        type(self).made = True
        self.server.script("rank.py", """
            import os, sys
            rank = int(os.environ["RANK"])
            print("rank %d of %s" % (rank, os.environ["WORLD_SIZE"]), flush=True)
            if rank == 1 and len(sys.argv) > 1:
                raise SystemExit(7)
            if len(sys.argv) > 1:
                import time
                while True: time.sleep(0.02)
        """)
        self.done("gang", "python3", "rank.py",
                  flags=["--nodes", "2", "--processes", "2", "--cpus", "0.1"])
        self.done("falls", "python3", "rank.py", "now", flags=["--nodes", "2", "--cpus", "0.1"],
                  state="Failed")

    def test_looking(self):
        self.screen("gang_show", "show", "gang")
        self.screen("gang_why", "why", "falls")
        self.screen("gang_ps", "ps")
        self.screen("gang_logs_rank", "logs", "gang", "--rank", "2")
        self.screen("gang_logs_host", "logs", "falls", "--host", "algo-2")
        self.screen("gang_no_host", "logs", "gang", "--host", "algo-3", status=3)
        self.tty("tty_gang_show", "show", "gang")
        self.tty("tty_gang_why", "why", "falls")

    def test_each_line_says_its_rank(self):
        lines = self.server.ath("logs", "gang", check=0).stdout.splitlines()
        self.assertEqual(sorted(lines), ["[%d] rank %d of 4" % (i, i) for i in range(4)])
        lines = self.server.ath("logs", "gang", "--no-prefix", "-f", check=0).stdout.splitlines()
        self.assertEqual(sorted(lines), ["rank %d of 4" % i for i in range(4)])
        lines = self.server.ath("logs", "gang", "--host", "2", check=0).stdout.splitlines()
        self.assertEqual(sorted(lines), ["[2] rank 2 of 4", "[3] rank 3 of 4"])
        out = self.server.ath("logs", "gang", "--grep", "^rank 3", check=0).stdout
        self.assertEqual(out, "[3] rank 3 of 4\n")


class Ending(Golden):
    """`ath run` on a terminal: the footer comes and goes with time, its last lines do not."""

    def last_lines(self, text, mark):
        return text[text.rindex(mark):]

    def test_run_on_a_terminal(self):
        for name, mark, env in (("tty_run_end", "✔", {}),
                                ("tty_run_end_ascii", "ok Completed",
                                 {"ATH_ASCII": "1", "NO_COLOR": "1"})):
            code, text = terminal(self.server, ["run", "--name", name.replace("_", "-"), "--",
                                                "python3", "train.py"], env=env)
            self.assertEqual(code, 0, text)
            self.assertIn("training", text)
            self.compare(name, self.last_lines(text, mark).replace("\x1b", "\\e"))
            if env:
                self.assertNotIn("\x1b[3", text, "no colour")
                self.assertTrue(text.isascii(), "ASCII only")


class Errors(Golden):
    def test_references(self):
        self.screen("error_no_job", "show", "nobody", status=3)
        self.screen("error_no_last", "show", "@last", status=3)

    def test_command_line(self):
        self.screen("error_nothing_to_run", "run", status=2)
        self.screen("error_unknown_flag", "ps", "--colour", status=2)
        self.screen("error_unknown_verb", "frobnicate", status=2)
        self.screen("no_verb")
        self.screen("error_near_verb", "runn", status=2)
        self.screen("error_no_server_verb", "server", status=2)
        self.screen("error_script_alone", "run", "-d", "python3", "absent.py", "--lr", "1", status=2)
        self.screen("error_script_as_file", "run", "train.py", status=2)
        self.screen("error_missing_argument", "show", status=2)

    def test_before_the_start(self):
        self.screen("error_no_script", "run", "--", "python3", "absent.py", status=2)
        self.screen("error_no_program", "run", "--", "no-such-program", status=2)
        self.screen("error_no_file", "run", "absent.yaml", status=3)
        self.screen("error_bad_memory", "run", "--memory", "lots", "--", "true", status=2)
        self.screen("error_no_parameter", "run", "--", "echo", "${lr}", status=2)
        self.screen("error_no_secret", "run", "-s", "ABSENT", "--", "true", status=2)
        self.screen("error_bad_name", "run", "--name", "@x", "--", "true", status=2)
        self.screen("error_bad_regex", "run", "--metric", "a=(", "--", "true", status=2)
        self.screen("error_unknown_type", "run", "--type", "ml.m5.larg", "--", "true", status=2)

    def test_job_files(self):
        for name, text, status in (
                ("unknown_key", "run: 'true'\nresorces: {cpus: 1}\n", 2),
                ("duplicate_key", "run: 'true'\nname: a\nname: b\n", 2),
                ("wrong_kind", "run: 'true'\nresources: {cpus: many}\n", 2),
                ("not_yet", "run: 'true'\nextends: other.yaml\n", 2),
                ("nodes", "run: 'true'\nresources: {nodes: 4..1}\n", 2),
                ("nodes_words", "run: 'true'\nresources:\n  nodes: two\n", 2),
                ("processes", "run: 'true'\nresources:\n  processes: 0\n", 2),
                ("no_run", "name: x\n", 2),
                ("tab", "run: 'true'\n\tname: x\n", 2),
                ("no_folder", "run: 'true'\nsource: {dir: ./absent}\n", 2),
                ("no_channel", "run: 'true'\ndata: {train: ./absent}\n", 2),
                ("no_requirements", "run: 'true'\nenvironment: {requirements: absent.txt}\n", 2),
                ("apt", "run: 'true'\nenvironment: {apt: [libgl1]}\n", 2)):
            with self.subTest(name):
                self.server.script("job.yaml", "")
                with open(os.path.join(self.server.work, "job.yaml"), "w") as file:
                    file.write(text)
                self.screen("error_file_" + name, "run", "job.yaml", status=status)

    def test_as_json(self):
        self.screen("error_json", "show", "nobody", "--json", status=3)
        self.screen("error_json_run", "run", "--json", "--", "python3", "absent.py", status=2)


class Managing(Golden):
    @unittest.skipUnless(has_verb("secret"), "no secret")
    def test_secrets(self):
        self.screen("secret_none", "secret", "ls")
        self.screen("secret_set", "secret", "set", "HF_TOKEN", input="a-long-value")
        self.screen("secret_ls", "secret", "ls")
        self.screen("secret_short", "secret", "set", "SHORT", input="abc", status=2)
        self.screen("secret_rm", "secret", "rm", "HF_TOKEN")
        self.screen("secret_rm_again", "secret", "rm", "HF_TOKEN", status=3)

    @unittest.skipUnless(has_verb("token"), "no token")
    def test_tokens(self):
        self.screen("token_none", "token", "ls")
        made = self.server.json("token", "create", "--note", "laptop", "--scope", "read")
        self.normal.name(made["id"], "<token-id>")
        self.screen("token_ls", "token", "ls")
        self.screen("token_bad_scope", "token", "create", "--scope", "king", status=2)
        self.screen("token_revoke", "token", "revoke", made["id"])

    @unittest.skipUnless(has_verb("types"), "no types")
    def test_types(self):
        self.screen("types_filter", "types", "p4d")
        self.screen("types_nothing", "types", "zzz")

    @unittest.skipUnless(has_verb("rm"), "no rm")
    def test_rm(self):
        self.done("gone", "true")
        self.screen("rm", "rm", "gone")
        self.screen("rm_again", "rm", "gone", status=3)

    @unittest.skipUnless(has_verb("retry"), "no retry")
    def test_retry(self):
        self.done("once", "echo", "hello")
        self.screen("retry", "retry", "once", "-q")

    @unittest.skipUnless(has_verb("init"), "no init")
    def test_init(self):
        folder = os.path.join(self.server.work, "other")
        self.screen("init", "init", cwd=folder)
        with open(os.path.join(folder, "athanor.yaml")) as file:
            self.compare("init_file", file.read())
        self.screen("init_again", "init", cwd=folder, status=4)

    @unittest.skipUnless(has_verb("explain"), "no explain")
    def test_explain(self):
        self.screen("explain", "explain", "ATH-J0137")
        self.screen("explain_unknown", "explain", "ATH-J0138", status=3)

    def test_server(self):
        self.screen("server_status", "server", "status")
        self.screen("version", "version")
        self.screen("serve_twice", "serve", "--port", "0", status=4)
        self.screen("serve_no_tls", "serve", "--address", "0.0.0.0", status=4)


class Surviving(Golden):
    """A job whose machine is taken away: it saves, and its second attempt goes on."""

    SCRIPT = """
        import athanor, os, signal, sys, time
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(1))
        last = athanor.latest_checkpoint()
        start = int(open(last).read()) if last else 0
        print("from", start, flush=True)
        def write(path):
            time.sleep(0.02)  # so that it took some time
            with open(path, "w") as file: file.write("7")
        while not last:
            if told:
                athanor.checkpoint(7, write)
                sys.exit(0)
            time.sleep(0.01)
        athanor.done()
    """

    def setUp(self):
        self.server.script("patient.py", self.SCRIPT)

    def test_interrupted(self):
        job = self.server.submit("python3", "patient.py", flags=["--name", "patient"])
        self.normal.name(job[-6:], "<last6>")
        self.server.until_log(job, "from 0")
        self.screen("checkpoints_none", "checkpoints", "patient")
        self.screen("resume_running", "resume", "patient", status=4)
        self.screen("interrupt", "interrupt", "patient")
        self.ended(job)
        self.screen("interrupt_over", "interrupt", "patient", status=4)
        self.screen("show_interrupted", "show", "patient")
        self.screen("why_interrupted", "why", "patient")
        self.screen("events_interrupted", "events", "patient")
        self.screen("checkpoints", "checkpoints", "patient")
        self.screen("resume", "resume", "patient", "--from", "7")
        self.screen("resume_no_step", "resume", "patient", "--from", "8", status=3)
        self.done("plain", "true")
        self.screen("resume_nothing", "resume", "plain", status=3)
        self.screen("replay_nothing", "replay", "plain", status=3)

    def test_spot_types(self):
        self.screen("types_spot", "types", "--spot", "-a", "g4dn.xlarge")


class Sweeping(Golden):
    def test_gc(self):
        self.done("kept", "python3", "train.py")
        self.screen("gc_nothing", "gc")
        stray = os.path.join(self.server.home, "blobs", "00", "0" * 64)
        os.makedirs(os.path.dirname(stray), exist_ok=True)
        with open(stray, "wb") as file:
            file.write(b"x" * 2500000)
        os.utime(stray, (0, 0))
        self.screen("gc_dry", "gc", "--dry-run")
        self.screen("gc", "gc")
        self.screen("gc_bad_age", "gc", "--older", "soon", status=2)


class Keeping(Golden):
    def test_backup_and_fsck(self):
        self.done("saved", "python3", "train.py")
        backup = os.path.join(self.server.root, "backup")
        self.screen("server_backup", "server", "backup", backup)
        self.screen("server_backup_again", "server", "backup", backup, status=4)
        self.screen("fsck_running", "fsck", status=4)
        self.screen("server_restore_full", "server", "restore", backup, status=4)
        fresh = {"ATHANOR_HOME": os.path.join(self.server.root, "fresh")}
        self.screen("server_restore", "server", "restore", backup, env=fresh)
        self.screen("fsck", "fsck", env=fresh)
        self.screen("fsck_nothing", "fsck", status=3,
                    env={"ATHANOR_HOME": os.path.join(self.server.root, "none")})


class NoServer(Golden):
    def test_without_a_server(self):
        self.server.kill()
        try:
            self.screen("server_status_down", "server", "status", status=5)
            self.screen("server_stop_down", "server", "stop")
            self.screen("serve_no_tls_alone", "serve", "--address", "0.0.0.0", status=2)
            self.screen("no_server_at_url", "ps", status=5,
                        env={"ATHANOR_URL": "http://127.0.0.1:1"})
        finally:
            self.server.start()


class Help(Golden):
    def test_help(self):
        self.screen("help", "--help")
        self.screen("env_of_nobody", "env", "gcp", status=2)
        for verb in sorted(has_verb.known):
            self.screen("help_" + verb, verb, "--help")
        for verb in ("backup", "restore", "status", "stop"):
            self.screen("help_server_" + verb, "server", verb, "--help")


class Complete(unittest.TestCase):
    def test_every_verb_has_a_screen(self):
        if UPDATE:
            self.skipTest("being written")
        text = ""
        for name in os.listdir(SCREENS):
            with open(os.path.join(SCREENS, name)) as file:
                text += file.read()
        has_verb("run")
        # What these print depends on the machine; test_everyday.py and test_leaving.py have the last three.
        for verb in has_verb.known - {"check", "schema", "completion", "du", "service", "uninstall"}:
            self.assertRegex(text, r"\$ ath %s(?! --help)" % verb)


if __name__ == "__main__":
    harness.main()
