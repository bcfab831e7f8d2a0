"""`ath why` names the right class for planted failures, and what to type next."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, Server


class Why(Case):
    def cause(self, job, kind, state="Failed"):
        """The cause of an ended job, of the class wanted; it has a code and a next step."""
        self.ended(job, state)
        answer = self.server.json("why", job)
        cause = answer["cause"]
        self.assertEqual(cause["kind"], kind, cause)
        self.assertEqual(answer["state"], state)
        self.assertTrue(cause["text"], cause)
        self.assertRegex(cause["code"], r"^ATH-J\d{4}$")
        self.assertTrue(cause["hint"], "says what to type next")
        text = self.server.ath("why", job, check=0).stdout
        for part in ("what", "next", cause["code"]):
            self.assertIn(part, text)
        return cause

    def test_out_of_memory_with_peak_and_limit(self):
        job = self.server.python("""
            hold = []
            while True:
                hold.append(bytearray(8 << 20))
        """, flags=["--memory", "100MiB"])
        self.server.wait(job)
        cause = self.cause(job, "out_of_memory")
        self.assertIn("100", cause["text"] + cause.get("detail", ""))
        exit = self.server.show(job)["attempts"][-1]["exit"]
        self.assertTrue(exit["oom_killed"])
        self.assertGreater(exit["memory_peak"], 50 << 20)
        self.assertEqual(exit["memory_limit"] // 4096, (100 << 20) // 4096)

    def test_memory_error_of_python_is_out_of_memory(self):
        job = self.server.python("""
            import resource
            resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
            x = bytearray(1 << 30)
        """)
        self.cause(job, "out_of_memory")

    def test_segfault_with_the_python_stack(self):
        job = self.server.python("""
            import ctypes
            def deep_inside():
                ctypes.string_at(0)
            deep_inside()
        """)
        cause = self.cause(job, "segfault")
        self.assertIn("train.py", cause["text"] + cause.get("detail", ""))

    def test_missing_file_is_named(self):
        job = self.server.python("open('data/train/images.npy')")
        self.assertIn("data/train/images.npy", self.cause(job, "missing_file")["text"])

    def test_missing_program_is_named(self):
        job = self.server.submit("sh", "-c", "exec ./no-such-program")
        self.assertIn("no-such-program", str(self.cause(job, "missing_file")))

    def test_bad_import_is_named(self):
        job = self.server.python("import surely_not_installed")
        self.assertIn("surely_not_installed", self.cause(job, "bad_import")["text"])

    def test_python_exception_with_user_frames_only(self):
        job = self.server.python("""
            import json
            def load():
                return json.loads("{bad")
            def main():
                load()
            main()
        """)
        cause = self.cause(job, "unreadable_data")
        self.assertIn("JSONDecodeError", cause["text"])
        where = cause["detail"]
        self.assertIn("train.py:4", where)
        self.assertIn("load", where)
        self.assertNotIn("json/decoder.py", where)

    def test_chained_exception_names_the_last(self):
        job = self.server.python("""
            try:
                1 / 0
            except ZeroDivisionError as first:
                raise RuntimeError("could not divide the estate") from first
        """)
        self.assertIn("could not divide the estate", self.cause(job, "python_exception")["text"])

    def test_nonzero_exit(self):
        job = self.server.submit("sh", "-c", "echo nearly there >&2; exit 3")
        cause = self.cause(job, "nonzero_exit")
        self.assertIn("3", cause["text"])

    def test_other_signal(self):
        job = self.server.python("import os, signal; os.kill(os.getpid(), signal.SIGUSR1)")
        self.assertIn("SIGUSR1", self.cause(job, "signal")["text"])

    def test_user_stop(self):
        job = self.server.submit("sleep", "600")
        self.server.until_state(job, "Running")
        self.server.ath("stop", job, check=0)
        self.cause(job, "user_stop", "Stopped")

    def test_time_limit(self):
        job = self.server.submit("sleep", "600", flags=["--max-time", "1s"])
        record = self.server.wait(job)
        self.assertEqual(self.cause(job, "time_limit", record["state"])["kind"], "time_limit")
        self.assertIn("1", record["cause"]["text"])

    def test_install_failed_names_the_requirement(self):
        self.server.script("requirements.txt", "./no-such-wheel-1.0-py3-none-any.whl\n")
        self.server.script("train.py", "print('never')")
        job = self.server.submit("python3", "train.py",
                                 flags=["--requirements", "requirements.txt"])
        record = self.server.wait(job)
        os.unlink(os.path.join(self.server.work, "requirements.txt"))
        if "comes with the next commit" in str(record["cause"]):
            self.skipTest("the environment builder is not there yet")
        cause = self.cause(job, "install_failed")
        self.assertIn("no-such-wheel", cause["text"] + cause.get("detail", ""))
        self.assertNotIn(b"never", self.server.logs(job, "--phase", "all"))

    def test_agent_lost_when_agent_and_supervisor_die_together(self):
        job = self.server.python("""
            import time
            print("up")
            while True: time.sleep(0.05)
        """)
        self.server.until_log(job, "up")
        agents, supervisors = self.server.agent_pids(job), self.server.supervisor_pids(job)
        self.assertEqual((len(agents), len(supervisors)), (1, 1))
        # Neither may see the other die: both are stopped before either is killed.
        for pid in agents + supervisors:
            os.kill(pid, signal.SIGSTOP)
        for pid in agents + supervisors:
            os.kill(pid, signal.SIGKILL)
        self.cause(job, "agent_lost")

    def test_disk_full_by_the_scripts_own_words(self):
        job = self.server.python("""
            import errno, os
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "checkpoint.pt")
        """)
        self.cause(job, "disk_full")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_disk_full_by_a_real_write(self):
        job = self.server.python("""
            with open("/dev/full", "wb", buffering=0) as file:
                file.write(b"x")
        """)
        self.cause(job, "disk_full")

    def test_hung_names_the_line(self):
        self.server.script("train.py", """
            import time
            def waits_for_nobody():
                time.sleep(3600)
            waits_for_nobody()
        """)
        job = self.server.file("run: python3 train.py\n"
                               "limits: {hang: {after: 2s, action: fail}}\n")
        cause = self.cause(job, "hung")
        self.assertRegex(cause["detail"], r'train\.py", line 4 in waits_for_nobody')

    def test_completed_is_no_failure(self):
        job = self.server.submit("true")
        self.ended(job)
        self.assertEqual(self.server.json("why", job)["cause"]["kind"], "completed")

    def test_running_job_says_so(self):
        job = self.server.submit("sleep", "600")
        self.server.until_state(job, "Running")
        self.assertIn("running", self.server.ath("why", job, check=0).stdout.lower())
        self.server.ath("stop", "--now", job, check=0)
        self.server.wait(job)


class CgroupV2(Case):
    def test_limit_and_verdict_by_cgroup_v2(self):
        """The same out-of-memory end where the unified hierarchy has the memory controller."""
        try:
            with open("/sys/fs/cgroup/cgroup.controllers") as file:
                unified = "memory" in file.read().split()
        except OSError:
            unified = False
        if not unified:
            self.skipTest("this machine has cgroup v1 only; tests/faults/test_cgroup2.py boots one with v2")
        job = self.server.python("x = bytearray(1 << 30)\nfor i in range(0, 1 << 30, 4096): x[i] = 1",
                                 flags=["--memory", "100MiB"])
        self.ended(job, "Failed")
        self.assertEqual(self.server.json("why", job)["cause"]["kind"], "out_of_memory")


class Waiting(unittest.TestCase):
    """Every wait has a reason with an amount."""

    def test_each_kind_of_wait(self):
        with Server() as server:
            machine = server.json("server", "status")["machine"]
            cpus = machine["cpu_millis"] // 1000
            memory = machine["memory_bytes"]
            holder = server.submit("sleep", "600", flags=["--cpus", cpus, "--memory",
                                                          int(memory * 0.6)])
            server.until_state(holder, "Running")
            for flags, kind in ((["--cpus", "1", "--memory", "50MB"], "waiting_cpus"),):
                job = server.submit("true", flags=flags)
                cause = server.json("why", job)["cause"]
                self.assertEqual(cause["kind"], kind, cause)
                self.assertRegex(cause["text"], r"\d")
                server.ath("stop", job, check=0)
            server.ath("stop", "--now", holder, check=0)
            server.wait(holder)
            holder = server.submit("sleep", "600", flags=["--cpus", "0.1", "--memory",
                                                          int(memory * 0.6)])
            server.until_state(holder, "Running")
            job = server.submit("true", flags=["--cpus", "0.1", "--memory", int(memory * 0.6)])
            cause = server.json("why", job)["cause"]
            self.assertEqual(cause["kind"], "waiting_memory", cause)
            self.assertRegex(cause["text"], r"\d")
            server.ath("stop", "--now", holder, check=0)
            self.assertEqual(server.wait(job)["state"], "Completed")

    def test_more_than_the_machine_is_refused_at_once(self):
        with Server() as server:
            for flags in (["--cpus", "4096"], ["--memory", "900TB"], ["--gpus", "64"]):
                out = server.ath("run", "-d", *flags, "--", "true")
                self.assertNotEqual(out.returncode, 0, flags)
                self.assertIn("next:", out.stderr)
            self.assertEqual(server.json("ps", "-a")["jobs"], [])


if __name__ == "__main__":
    harness.main()
