"""What people are told about a job that is being stopped, is interrupted or is silent; that what
they are offered to type can be typed; and that nothing outlives its folder."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, Server, alive, processes, until

STUBBORN = """
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    while True: time.sleep(0.05)
"""


class Views(Case):
    """Red if one of the places shows the stored state: ps by "state" in place of "shown_state",
    or AppendRow by NameOf(job.state)."""

    def shown_everywhere(self, job, state):
        server = self.server
        row = lambda *more: [j for j in server.json("ps", *more)["jobs"] if j["id"] == job]
        self.assertEqual(row()[0]["shown_state"], state)
        self.assertEqual(row()[0]["state"], "Running", "what is stored is what it was")
        (line,) = [line for line in server.ath("ps", check=0).stdout.splitlines()
                   if job[-6:] in line]
        self.assertIn(" %s " % state, line)
        self.assertEqual(len(row("--state", state)), 1, "it can be asked for as it is shown")
        record = server.show(job)
        self.assertEqual((record["shown_state"], record["state"]), (state, "Running"))
        self.assertIn(state, server.ath("show", job, check=0).stdout.splitlines()[0])
        self.assertIn(state, server.ath("why", job, check=0).stdout.splitlines()[0])
        self.assertEqual(server.json("why", job)["shown_state"], state)
        return server.ath("why", job, check=0).stdout

    def running(self):
        # Some stay to the end: they share one processor.
        job = self.server.python(STUBBORN, flags=["--cpus", "0.2"])
        self.server.until_log(job, "ready")
        return job

    def test_a_job_that_is_being_stopped(self):
        job = self.running()
        self.assertEqual(self.server.json("stop", job)["shown_state"], "Stopping")
        why = self.shown_everywhere(job, "Stopping")
        self.assertIn("is being stopped", why)
        harness.kill(self.server.supervisor_pids(job)[0])
        self.assertEqual(self.server.wait(job)["shown_state"], "Stopped")

    def test_a_job_whose_machine_is_taken_away(self):
        job = self.running()
        self.server.ath("interrupt", job, "--grace", "600s", check=0)
        self.assertIn("is being interrupted", self.shown_everywhere(job, "Interrupting"))

    def test_a_silent_agent(self):
        """Also red if `ath why` of a silent agent says that nothing has gone wrong (ShownCause
        without agent_silent), or if what it offers to type does not help."""
        job = self.running()
        (agent,) = self.server.agent_pids(job)
        (supervisor,) = self.server.supervisor_pids(job)
        os.kill(agent, signal.SIGSTOP)
        until(lambda: self.server.show(job)["shown_state"] == "Unknown", "it is silent", 150)
        why = self.shown_everywhere(job, "Unknown")
        (pkill,) = [line.partition("    ")[0] for line in why.replace("next", "").splitlines()
                    for line in [line.strip()] if line.startswith("pkill")]
        subprocess.run(["sh", "-c", pkill], check=True)
        until(lambda: not alive(agent), "the one that hung is gone")
        self.assertIn("no word from its agent for", why)
        self.assertIn("Silence is not death", why)
        self.assertRegex(why, r"since +\d{4}-\d\d-\d\d")
        self.assertIn("ath logs -f", why)
        self.assertIn("ATH-J0403", why)
        self.assertNotIn("nothing has gone wrong", why)
        until(lambda: self.server.show(job)["shown_state"] == "Running", "it is heard of again")
        self.assertEqual(self.server.supervisor_pids(job), [supervisor], "the script went on")


class Hints(Case):
    """Red if a name appears in a hint unquoted (any ShellQuote removed)."""

    NAME = "it's my $HOME job"

    def commands(self, text):
        """The lines that can be typed, as a shell would read them."""
        found = []
        for line in text.splitlines():
            for part in re.split(r" [·|] ", line):
                at = re.search(r"\bath [a-z].*", part)
                if at and "'" in at.group():
                    found.append(shlex.split(at.group().split("    ")[0]))
        return found

    def check(self, text, least=1):
        commands = self.commands(text)
        self.assertGreaterEqual(len(commands), least, text)
        for command in commands:
            self.assertTrue([word for word in command if word.split(":")[0] == self.NAME],
                            "%r\n%s" % (command, text))

    def test_names_are_quoted(self):
        server = self.server
        job = server.submit("sh", "-c", "exit 3", flags=["--name", self.NAME])
        self.assertEqual(server.wait(job)["state"], "Failed")
        self.check(server.ath("why", job).stdout)
        out = server.ath("show", job)
        self.check(out.stdout + out.stderr, 2)
        self.check(server.ath("interrupt", self.NAME).stderr)
        self.check(server.ath("resume", self.NAME).stderr)
        self.check(server.ath("cp", self.NAME + ":nothing", ".").stderr)
        self.check(server.ath("exec", self.NAME, "--").stderr)
        out = server.ath("run", "-d", "--name", self.NAME, "--", "sleep", "600")
        self.check(out.stdout + out.stderr, 2)
        self.check(server.ath("retry", self.NAME).stderr)
        self.check(server.ath("wait", self.NAME, "--timeout", "10ms").stderr)
        server.ath("stop", "--now", self.NAME, check=0)
        running = server.json("ps")["jobs"][0]["id"]
        self.assertEqual(server.wait(running)["state"], "Stopped")
        self.check(server.ath("why", self.NAME).stdout)


class FolderGone(unittest.TestCase):
    """Red without FolderWatch in Agent::Run (then the agent waits for its server for ever, and the
    script runs on), and for the agent that waits, without its look at the folder of attempts."""

    def remove(self, folder):
        """Files may appear while it is removed."""
        def gone():
            shutil.rmtree(folder, ignore_errors=True)
            return not os.path.exists(folder)
        until(gone, folder + " is removed")

    def running(self, server):
        job = server.python(STUBBORN)
        server.until_log(job, "ready")
        return job, server.agent_pids(job) + server.supervisor_pids(job)

    def test_agent_and_script_end_when_the_attempt_is_gone_and_the_server_too(self):
        with Server() as server:
            job, mine = self.running(server)
            self.assertEqual(len(mine), 2)
            folder = server.attempt_dir(job)
            scripts = [pid for pid, command in processes().items() if "train.py" in command and
                       os.readlink("/proc/%d/cwd" % pid).startswith((folder, "/opt/ml"))]
            server.kill()
            self.remove(folder)
            until(lambda: not any(alive(pid) for pid in mine), "agent and supervisor ended")
            until(lambda: not any(alive(pid) for pid in scripts), "so did the script")

    def test_a_lost_attempt_is_told(self):
        with Server() as server:
            job, mine = self.running(server)
            self.remove(server.attempt_dir(job))
            until(lambda: not any(alive(pid) for pid in mine), "agent and supervisor ended")
            until(lambda: "lost" in server.json("why", job)["cause"].get("kind", "") or
                  len(server.show(job)["attempts"]) > 1, "the server says so")

    def test_everything_ends_when_the_home_is_gone(self):
        with Server() as server:
            _, mine = self.running(server)
            waiting = until(lambda: [pid for pid, command in processes().items()
                                     if " agent " in command and server.home in command and
                                     "/---" in command], "one waits for the next job")
            self.remove(server.home)
            until(lambda: not any(alive(pid) for pid in mine), "agent and supervisor ended")
            until(lambda: not any(alive(pid) for pid in waiting), "so did the one that waits")


class Restless(Case):
    def test_a_file_that_is_replaced_all_the_time_gives_checkpoints(self):
        """Red without WholeByRename: model.pt never rests."""
        job = self.server.python("""
            import itertools, os, time
            folder = os.environ["ATHANOR_CHECKPOINT_DIR"]
            for i in itertools.count():
                with open(folder + "/model.tmp", "w") as file:
                    file.write("save %d, whole" % i)
                os.rename(folder + "/model.tmp", folder + "/model.pt")
                time.sleep(0.1)
        """)
        until(lambda: self.server.checkpoints(job), "there is a checkpoint")
        self.assertEqual(self.server.show(job)["state"], "Running")
        self.server.ath("stop", "--now", job, check=0)
        self.assertEqual(self.server.wait(job)["state"], "Stopped")


if __name__ == "__main__":
    harness.main()
