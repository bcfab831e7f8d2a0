"""Everyday verbs: choosing jobs (ps, stop and rm by state, tag, name and age), watching, what uses the
disk, tables that fit a terminal, search expressions, suggestions, completion and durations."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import ATH, Case, until
from verb_list import all_verbs

LONG = "a-very-long-name-that-somebody-gave-to-a-job-because-it-says-everything-about-it"


class Screen:
    """A terminal of so many columns with `ath` in it. `text` grows as it prints."""

    def __init__(self, server, *arguments, columns=80, rows=24, answer=None):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = dict(server.environment, TERM="xterm", LANG="C.UTF-8")
        self.process = subprocess.Popen([ATH, *arguments], env=environment, cwd=server.work,
                                        stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.master = master
        self.text = ""

    def read(self):
        """What came since; None at the end."""
        if not select.select([self.master], [], [], 0.05)[0]:
            return ""
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return None
        if not data:
            return None
        self.text += data.decode()
        return data

    def until(self, condition, what):
        def there():
            self.read()
            return condition(self.text)
        until(there, what)

    def type(self, text):
        os.write(self.master, text)

    def finish(self):
        while self.read() is not None:
            pass
        status = self.process.wait(harness.PATIENCE)
        os.close(self.master)
        return status


def on_screen(server, *arguments, columns=80):
    screen = Screen(server, *arguments, columns=columns)
    status = screen.finish()
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", screen.text).replace("\r\n", "\n"), status


class Jobs(Case):
    def add(self, name, command=("true",), *flags, state="Completed"):
        job = self.server.submit(*command, flags=["--name", name, *flags])
        self.ended(job, state)
        return job

    def names(self, *arguments):
        return sorted(job["name"] for job in self.server.json("ps", "-a", *arguments)["jobs"])


class Ps(Jobs):
    def test_by_tag(self):
        self.add("t1", ("true",), "--tag", "team=vision", "--tag", "sweep=1")
        self.add("t2", ("true",), "--tag", "team=speech")
        self.add("t3")
        self.assertEqual(self.names("--tag", "team=vision"), ["t1"])
        self.assertEqual(self.names("--tag", "team"), ["t1", "t2"])
        self.assertEqual(self.names("--tag", "team", "--tag", "team=speech"), ["t2"])
        self.assertEqual(self.names("--tag", "nobody"), [])
        out = self.server.ath("ps", "--tag", "nobody", check=0)
        self.assertEqual(out.stdout, "no matching jobs\n")
        self.assertEqual(self.server.ath("ps", "--tag", "=x").returncode, 2)

    def test_pages_of_what_is_chosen(self):
        for i in range(3):
            self.add("p%d" % i, ("true",), "--tag", "paged=1")
        page = self.server.json("ps", "--tag", "paged=1", "-n", "2")
        self.assertEqual((len(page["jobs"]), page["matched"]), (2, 3))
        self.assertEqual(self.names("--tag", "paged=1"), ["p0", "p1", "p2"])

    def test_states_in_any_case_and_the_list_of_them(self):
        self.add("bad", ("false",), state="Failed")
        for word in ("failed", "FAILED", "Failed", "failed, queued"):
            self.assertIn("bad", self.names("--state", word))
        self.assertNotIn("bad", self.names("--state", "completed"))
        wrong = self.server.ath("ps", "--state", "faild")
        self.assertEqual(wrong.returncode, 2)
        for state in ("Queued", "Running", "Completed", "Failed", "Stopped", "Stopping"):
            self.assertIn(state, wrong.stderr)

    def test_by_name_and_age(self):
        self.add("sweep-1")
        self.assertEqual(self.names("--name", "sweep-*"), ["sweep-1"])
        self.assertEqual(self.names("--name", "sweep-*", "--older-than", "1h"), [])
        self.assertEqual(self.names("--name", "sweep-*", "--older-than", "0"), ["sweep-1"])
        self.assertEqual(self.server.ath("ps", "--older-than", "soon").returncode, 2)

    def test_watch_on_a_terminal_until_ctrl_c(self):
        self.add("seen")
        screen = Screen(self.server, "ps", "--watch")
        screen.until(lambda text: "seen" in text and "Ctrl-C" in text, "the list is drawn")
        self.add("later")
        screen.until(lambda text: "later" in text, "the new job appears")
        self.assertGreater(screen.text.count("\x1b[H"), 1, "it was drawn over")
        screen.type(b"\x03")
        self.assertEqual(screen.finish(), -signal.SIGINT)

    def test_watch_without_a_terminal_is_plain(self):
        self.add("seen2")
        watching = self.server.popen("ps", "--watch", stdout=subprocess.PIPE)
        lines = []
        until(lambda: lines.append(watching.stdout.readline().decode()) or "seen2" in lines[-1],
              "it is listed")
        job = self.server.submit("sh", "-c", "exit 3", flags=["--name", "fails-later"])
        until(lambda: lines.append(watching.stdout.readline().decode())
              or ("fails-later" in lines[-1] and "Failed" in lines[-1]), "its end is told")
        watching.send_signal(signal.SIGINT)
        watching.wait(harness.PATIENCE)
        watching.stdout.close()
        self.assertNotIn("\x1b", "".join(lines))
        self.ended(job, "Failed")


class Metrics(Case):
    def test_follow_prints_new_points_until_the_end(self):
        job = self.server.python("""
            import athanor, os, time
            athanor.log(loss=1.0, step=0)
            while not os.path.exists(os.environ["GO"]): time.sleep(0.05)
            for step in range(1, 4): athanor.log(loss=1.0 / (step + 1), step=step)
            """, flags=["-e", "GO=" + os.path.join(self.server.root, "go")])
        following = self.server.popen("metrics", job, "loss", "-f", "--json", stdout=subprocess.PIPE)
        first = json.loads(following.stdout.readline())
        self.assertEqual((first["step"], first["value"]), (0, 1.0))
        open(os.path.join(self.server.root, "go"), "w").close()
        rest = [json.loads(line) for line in following.stdout.read().decode().splitlines()]
        self.assertEqual([point["step"] for point in rest], [1, 2, 3])
        self.assertEqual(following.wait(harness.PATIENCE), 0)
        following.stdout.close()
        text = self.server.ath("metrics", job, "-f", check=0).stdout
        self.assertEqual(text.count("loss"), 4)


class Bulk(Jobs):
    def test_rm_shows_what_it_would_delete_and_asks(self):
        self.add("old-1")
        self.add("old-2")
        screen = Screen(self.server, "rm", "old-*")
        screen.until(lambda text: "[y/N]" in text, "it asks")
        self.assertIn("old-1", screen.text)
        self.assertRegex(screen.text, r"Delete 2 jobs \([0-9.]+ [KM]iB\)\? \[y/N\]")
        screen.type(b"n\n")
        self.assertEqual(screen.finish(), 1)
        self.assertEqual(self.names("--name", "old-*"), ["old-1", "old-2"])
        screen = Screen(self.server, "rm", "old-*")
        screen.until(lambda text: "[y/N]" in text, "it asks")
        screen.type(b"y\n")
        self.assertEqual(screen.finish(), 0)
        self.assertIn("deleted 2 jobs", screen.text)
        self.assertEqual(self.names("--name", "old-*"), [])

    def test_rm_needs_yes_where_no_one_can_be_asked(self):
        self.add("script-1", ("false",), "--tag", "tidy=1", state="Failed")
        refused = self.server.ath("rm", "--state", "failed", "--tag", "tidy=1")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--yes", refused.stderr)
        dry = self.server.json("rm", "--tag", "tidy=1", "--dry-run")
        self.assertEqual((dry["matched"], dry["removed"]), (1, 0))
        self.assertGreater(dry["bytes"], 0)
        self.assertEqual(self.names("--tag", "tidy=1"), ["script-1"])
        done = self.server.json("rm", "--state", "failed", "--tag", "tidy=1", "--yes")
        self.assertEqual((done["removed"], done["refused"]), (1, []))
        self.assertEqual(self.names("--tag", "tidy=1"), [])

    def test_rm_leaves_what_has_not_ended_and_says_when_nothing_matches(self):
        job = self.server.submit("sleep", "600", flags=["--name", "busy", "--tag", "busy=1"])
        self.server.until_state(job, "Running")
        out = self.server.ath("rm", "--tag", "busy=1", "--yes", check=0)
        self.assertEqual(out.stdout, "no matching jobs that have ended\n")
        wrong = self.server.ath("rm", "--state", "running", "--yes")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("Completed, Failed, Stopped", wrong.stderr)
        self.assertEqual(self.names("--tag", "busy=1"), ["busy"])
        self.server.ath("stop", "--tag", "busy=1", "--yes", "--now", check=0)
        self.ended(job, "Stopped")

    def test_by_age(self):
        self.add("aged")
        self.assertEqual(self.server.json("rm", "aged*", "--older-than", "1d", "--yes")["matched"], 0)
        self.assertEqual(self.server.json("rm", "aged*", "--older-than", "0s", "--yes")["removed"], 1)

    def test_stop_by_pattern_tag_and_age(self):
        jobs = [self.server.submit("sleep", "600", flags=["--name", name, "--tag", "kind=sleep"])
                for name in ("nap-1", "nap-2", "rest-1")]
        self.assertEqual(self.server.json("stop", "nap-*", "--older-than", "1h", "--yes")["matched"], 0)
        refused = self.server.ath("stop", "nap-*")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--yes", refused.stderr)
        self.assertEqual(self.server.json("stop", "nap-*", "--yes", "--now")["matched"], 2)
        for job in jobs[:2]:
            self.ended(job, "Stopped")
        screen = Screen(self.server, "stop", "--tag", "kind=sleep", "--now")
        screen.until(lambda text: "[y/N]" in text, "it asks")
        self.assertIn("rest-1", screen.text)
        screen.type(b"y\n")
        self.assertEqual(screen.finish(), 0)
        self.ended(jobs[2], "Stopped")
        out = self.server.ath("stop", "--tag", "kind=sleep", "--yes", check=0)
        self.assertEqual(out.stdout, "no matching jobs\n")


class Du(Jobs):
    def test_adds_up_with_the_disk(self):
        job = self.server.python("""
            import athanor, os
            os.makedirs(os.environ["SM_MODEL_DIR"], exist_ok=True)
            with open(os.path.join(os.environ["SM_MODEL_DIR"], "w"), "wb") as file:
                file.write(os.urandom(3 << 20))
            for step in range(200): athanor.log(loss=step, step=step)
            athanor.checkpoint(1, lambda path: open(path, "wb").write(os.urandom(2 << 20)))
            for i in range(20000): print("line", i, "of the log, which is long enough")
            """, flags=["--name", "large"])
        self.ended(job)
        self.add("small")
        # An attempt's folder goes a moment after the end of its job.
        until(lambda: not os.listdir(os.path.join(self.server.home, "attempts")), "scratch is gone")
        self.server.http("PUT", "/api/v1/nothing")  # the server lives; it writes nothing more
        use = self.server.json("du")
        parts = {part["name"]: part["bytes"] for part in use["shared"]}
        rows = {row["name"]: row for row in use["jobs"]}
        self.assertEqual(use["bytes"], sum(parts.values()) + sum(row["bytes"] for row in rows.values()))
        of_disk = int(subprocess.run(["du", "-s", "--block-size=1", self.server.home], check=True,
                                     capture_output=True, text=True).stdout.split()[0])
        self.assertLess(abs(use["bytes"] - of_disk) / of_disk, 0.03)
        large = rows["large"]
        self.assertEqual(large["bytes"], sum(large[kind] for kind in (
            "logs", "metrics", "checkpoints", "outputs", "scratch")))
        self.assertGreater(large["outputs"], 3 << 20)
        self.assertGreater(large["checkpoints"], 2 << 20)
        self.assertGreater(large["logs"], 500_000)
        self.assertGreater(large["metrics"], 0)
        self.assertEqual(use["jobs"], sorted(use["jobs"], key=lambda row: -row["bytes"]))
        self.assertIn("sources", parts)
        text = self.server.ath("du", check=0).stdout
        self.assertRegex(text, r"large +\w{6} +[5-9]\.\d MiB")
        self.assertIn("total", text)


class Show(Jobs):
    def test_what_it_was_given(self):
        self.server.ath("secret", "set", "TOKEN_OF_MINE", input="hidden-value", check=0)
        self.add("given", ("true",), "--tag", "team=vision", "-e", "MODE=fast-value", "-s",
                 "TOKEN_OF_MINE", "--max-time", "2h", "--cpus", "1", "--memory", "100MB", "--retries", "2")
        text = self.server.ath("show", "given", check=0).stdout
        for line in (r"tags +team=vision", r"env +MODE$", r"secrets +TOKEN_OF_MINE$",
                     r"resources +1 CPUs 95\.4 MiB", r"limits +max_runtime 2 h .*retries 2",
                     r"environment +\S"):
            self.assertRegex(text, "(?m)^  " + line)
        self.assertNotIn("fast-value", text)
        self.assertNotIn("hidden-value", text)


class Width(Jobs):
    """Every table on a terminal of 80 columns, with names that do not fit; nothing is cut in a pipe."""

    def test_tables_fit(self):
        long_metric = "a/very/long/name/of/a/metric/that/nobody/would/type/by/hand"
        self.server.script("w.py", """
            import athanor
            for step in range(5): athanor.log({%r: 1.5 * step, "b" * 40: step}, step=step)
            athanor.checkpoint(1, lambda path: open(path, "w").write("x"))
            """ % long_metric)
        for name in (LONG, LONG + "-2"):
            self.add(name, ("python3", "w.py", "x" * 200), "-p", "p" * 50 + "=" + "v" * 90,
                     "--experiment", LONG, "--tag", "k=" + LONG)
        self.server.ath("secret", "set", "A_SECRET_WITH_A_LONG_NAME_" + "X" * 30, input="long enough", check=0)
        self.server.json("token", "create", "--note", "n" * 100)
        tables = (["ps"], ["ps", "--name", "a-very*"], ["runs"], ["compare", LONG, LONG + "-2"],
                  ["metrics", LONG], ["metrics", LONG, long_metric], ["checkpoints", LONG],
                  ["diff", LONG, LONG + "-2"], ["events", LONG], ["types"], ["types", "--spot"],
                  ["secret", "ls"], ["token", "ls"], ["queue"], ["du"], ["gc", "--dry-run"],
                  ["rm", "a-very*", "--dry-run"], ["tune", "ls"])
        for table in tables:
            with self.subTest(table=table):
                text, status = on_screen(self.server, *table, "-q")
                self.assertEqual(status, 0, text)
                self.assertEqual([line for line in text.split("\n") if len(line) > 80], [])
        text, _ = on_screen(self.server, "ps")
        self.assertIn("…", text)
        for piped in (["ps"], ["runs"], ["metrics", LONG], ["du"], ["compare", LONG, LONG + "-2"]):
            out = self.server.ath(*piped, "-q", check=0).stdout
            self.assertNotIn("…", out)
            self.assertIn(long_metric if piped[0] == "metrics" else LONG, out)


class Search(Jobs):
    def found(self, text):
        return sorted(run["name"] for run in self.server.json("runs", "--filter", text)["runs"])

    def test_forms_that_people_try(self):
        self.add("s1", ("true",), "-p", "lr=0.01", "-p", "opt=adam", "--tag", "team=vision")
        self.add("s2", ("true",), "-p", "lr=5e-1", "-p", "opt=sgd")
        self.add("s3", ("false",), "-p", "lr=1", state="Failed")
        self.assertEqual(self.found("params.lr > 0.1"), ["s2", "s3"])
        self.assertEqual(self.found("param.lr <= 0.5 AND params.lr > 0.01"), ["s2"])
        self.assertEqual(self.found("params.lr = 0.5"), ["s2"])
        self.assertEqual(self.found("params.opt = adam"), ["s1"])
        self.assertEqual(self.found("params.opt = 'adam'"), ["s1"])
        self.assertEqual(self.found("tags.team = vision"), ["s1"])
        self.assertEqual(self.found("tag.team = 'vision'"), ["s1"])
        self.assertEqual(self.found("state = failed"), ["s3"])
        self.assertEqual(self.found("state = Completed AND params.lr < 0.1"), ["s1"])
        self.assertEqual(self.found("name = s1"), ["s1"])

    def test_errors_say_what_is_allowed(self):
        for text in ("lr > 1", "params.lr ~ 1", "state = faild", "metrics.loss < low"):
            wrong = self.server.ath("runs", "--filter", text)
            self.assertEqual(wrong.returncode, 2, text)
            self.assertIn("ATH-R0031", wrong.stderr)
            self.assertIn("params.NAME", wrong.stderr)


class Suggestions(unittest.TestCase):
    def test_a_misspelt_option_of_any_verb(self):
        tried = 0
        for command in all_verbs():
            text = subprocess.run([ATH, *command, "--help"], capture_output=True, text=True).stdout
            if "COMMAND [OPTIONS]" in text:
                continue  # it has commands, and no options of its own
            for option in set(re.findall(r"(?m)^ +(?:-\w, )?(--[a-z][a-z-]{3,})", text)):
                wrong = option[:4] + option[5:]
                if re.search(r"(?<!\S)%s\b" % wrong, text):
                    continue
                out = subprocess.run([ATH, *command, wrong], capture_output=True, text=True,
                                     stdin=subprocess.DEVNULL)
                with self.subTest(command=command, wrong=wrong):
                    self.assertEqual(out.returncode, 2, out.stderr)
                    self.assertIn("does not know '%s'" % wrong, out.stderr)
                    self.assertIn("did you mean --", out.stderr)
                tried += 1
        self.assertGreater(tried, 100)

    def test_the_nearest_is_offered(self):
        out = subprocess.run([ATH, "run", "--memry", "4GB", "--", "true"], capture_output=True, text=True)
        self.assertIn("did you mean --memory?", out.stderr)


class Completion(Jobs):
    def complete(self, *words):
        """What bash offers for these words, by its own machinery."""
        script = """
            source <(ath completion bash)
            COMP_WORDS=("$@")
            COMP_CWORD=$(($# - 1))
            _ath
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        environment = dict(self.server.environment)
        environment["PATH"] = os.path.dirname(ATH) + ":" + environment["PATH"]
        out = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], env=environment,
                             cwd=self.server.work, capture_output=True, text=True, check=True)
        return [line for line in out.stdout.split("\n") if line]

    def test_bash(self):
        self.add("done-one", ("true",), "--experiment", "exp-a")
        self.server.script("plan.yaml", "run: echo")
        self.assertIn("completion", self.complete("ath", "comp"))
        self.assertEqual(self.complete("ath", "server", "st"), ["start", "status", "stop"])
        self.assertIn("--older-than", self.complete("ath", "rm", "--o"))
        self.assertIn("--memory", self.complete("ath", "run", "--mem"))
        self.assertEqual(self.complete("ath", "ps", "--state", "fai"), ["failed"])
        self.assertEqual(self.complete("ath", "ps", "--state", "failed,que"), ["failed,queued"])
        self.assertEqual(self.complete("ath", "logs", "done-one", "--phase", "s"), ["setup"])
        self.assertEqual(self.complete("ath", "show", "done-"), ["done-one"])
        self.assertEqual(self.complete("ath", "show", "@last-"), ["@last-failed"])
        self.assertIn("ml.m5.large", self.complete("ath", "run", "--type", "ml.m5.l"))
        self.assertEqual(self.complete("ath", "ps", "--experiment", "exp"), ["exp-a"])
        self.assertEqual(self.complete("ath", "completion", "z"), ["zsh"])
        self.assertEqual(self.complete("ath", "run", "pl"), ["plan.yaml"])
        self.assertEqual(self.complete("ath", "run", "--", "python", "pl"), ["plan.yaml"])
        self.assertEqual(self.complete("ath", "export", "t"), ["tb"])
        self.assertEqual(self.complete("ath", "nothing", "x"), [])

    def test_no_server_is_started(self):
        with harness.Server(start=False) as other:
            environment = dict(other.environment)
            out = subprocess.run([ATH, "__complete", "show", ""], env=environment,
                                 capture_output=True, text=True, check=True)
            self.assertEqual(out.stdout, "@last\n@last-failed\n")
            self.assertFalse(os.path.exists(other.socket))

    def environment(self):
        found = dict(self.server.environment, HOME=self.server.work, TERM="dumb")
        found["PATH"] = os.path.dirname(ATH) + ":" + found["PATH"]
        return found

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish(self):
        self.add("done-one", ("true",))
        self.server.script("plan.yaml", "run: echo")

        def complete(line):
            """What fish offers at the end of the line."""
            out = subprocess.run(["fish", "-c", "ath completion fish | source; complete -C $argv[1]", line],
                                 env=self.environment(), cwd=self.server.work, stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, check=True)
            self.assertEqual(out.stderr, "")
            return [row.split("\t")[0] for row in out.stdout.splitlines()]
        self.assertLessEqual({"run", "ps", "show"}, set(complete("ath ")))
        self.assertEqual(complete("ath server st"), ["start", "status", "stop"])
        self.assertIn("--memory", complete("ath run --mem"))
        self.assertEqual(complete("ath ps --state failed,que"), ["failed,queued"])
        self.assertEqual(complete("ath show done-"), ["done-one"])
        self.assertEqual(complete("ath run pl"), ["plan.yaml"])
        self.assertEqual(complete("ath nothing x"), [])

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh(self):
        self.add("done-one", ("true",))
        self.server.script("plan.yaml", "run: echo")
        functions = os.path.join(self.server.root, "functions")
        os.makedirs(functions)
        with open(os.path.join(functions, "_ath"), "w") as file:
            file.write(self.server.ath("completion", "zsh", check=0).stdout)
        for loading in ("compinit -D -u; source <(ath completion zsh)", "fpath+=(%s); compinit -D -u" % functions):
            with self.subTest(loading):
                self.assertLessEqual({"run", "ps", "show"}, set(self.zsh(loading, "ath ")[0]))
                self.assertEqual(self.zsh(loading, "ath server st")[0], ["start", "status", "stop"])
                self.assertIn("--memory", self.zsh(loading, "ath run --mem")[0])
                self.assertEqual(self.zsh(loading, "ath ps --state failed,que"),
                                 (["failed,queued"], "ath ps --state failed,queued "))
                self.assertEqual(self.zsh(loading, "ath show done-"), (["done-one"], "ath show done-one "))
                self.assertEqual(self.zsh(loading, "ath run pl")[1], "ath run plan.yaml ")
                self.assertEqual(self.zsh(loading, "ath nothing x"), ([], "ath nothing x"))

    def zsh(self, loading, line):
        """(what `ath` offers at the end of the line, the line after Tab), in an interactive zsh."""
        with tempfile.TemporaryDirectory(dir=self.server.root) as folder:
            hits, after = os.path.join(folder, "hits"), os.path.join(folder, "after")
            script = """
                PS1=; unsetopt beep; autoload -Uz compinit; %s
                compadd() {
                  if [[ ${funcstack[2]} == _ath ]]; then
                    local -a hits; builtin compadd -A hits "$@"; print -rl -- $hits >>%s
                  fi
                  builtin compadd "$@"
                }
                tab() { zle complete-word; print -r -- "$BUFFER" >%s.new; mv %s.new %s; exit }
                zle -N tab; bindkey '^I' tab; print ready >%s/ready
                """ % (loading, hits, after, after, after, folder)
            with open(os.path.join(folder, ".zshrc"), "w") as file:
                file.write(script)
            ours, theirs = pty.openpty()
            shell = subprocess.Popen(["zsh", "-i"], env=dict(self.environment(), ZDOTDIR=folder),
                                     cwd=self.server.work, stdin=theirs, stdout=theirs, stderr=theirs,
                                     start_new_session=True)
            os.close(theirs)
            drain = threading.Thread(target=drained, args=(ours,))
            drain.start()
            try:
                until(lambda: os.path.exists(os.path.join(folder, "ready")), "zsh is ready")
                os.write(ours, line.encode() + b"\t")
                until(lambda: os.path.exists(after), "zsh completed")
            finally:
                shell.kill()
                shell.wait()
                drain.join()
                os.close(ours)
            found = []
            if os.path.exists(hits):
                with open(hits) as file:
                    found = [word for word in file.read().split("\n") if word]
            with open(after) as file:
                return found, file.read().rstrip("\n")


def drained(terminal):
    """Reads until nobody has the other end: a shell waits when its terminal is full."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        pass


class Durations(Jobs):
    """One parser wherever a person types a duration; a number alone is seconds."""

    def test_the_same_forms_everywhere(self):
        self.add("over")
        places = (["run", "--dry-run", "--max-time", "{}", "--", "true"],
                  ["run", "--dry-run", "--spot", "--max-wait", "{}", "--", "true"],
                  ["wait", "over", "--timeout", "{}"], ["logs", "over", "--since", "{}"],
                  ["ps", "--older-than", "{}"], ["rm", "--older-than", "{}", "--dry-run"],
                  ["stop", "--older-than", "{}", "--dry-run"], ["gc", "--dry-run", "--older", "{}"],
                  ["token", "create", "--expires", "{}"])
        for place in places:
            for form in ("90", "90s", "1h30m", "2d", "90000ms", "1.5h"):
                with self.subTest(place=place, form=form):
                    self.server.ath(*[word.format(form) for word in place], check=0)
            for form in ("banana", "1h30", "m"):
                with self.subTest(place=place, form=form):
                    out = self.server.ath(*[word.format(form) for word in place])
                    self.assertEqual(out.returncode, 2, out.stdout)
                    self.assertIn("duration", out.stderr)

    def test_a_number_alone_is_seconds(self):
        for form in ("90", "90s", "1m30s"):
            flags = self.server.json("run", "-d", "--max-time", form, "--", "true")["id"]
            filed = self.server.file("run: 'true'\nlimits: {max_runtime: %s}\n" % form)
            for job in (flags, filed):
                self.assertEqual(self.ended(job)["spec"]["limits"]["max_runtime_ms"], 90_000)


if __name__ == "__main__":
    harness.main()
