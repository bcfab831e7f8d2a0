"""Hostile job files, names and scripts: each gets a clear answer, and the server, the log and the
next job are unharmed.

Each docstring names a planted bug that turns the test red.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import ATH, Case, Server, until


class JobFiles(Case):
    def refused(self, content, limit=60):
        path = os.path.join(self.server.work, "bad.yaml")
        with open(path, "wb") as file:
            file.write(content)
        out = self.server.ath("run", "bad.yaml", "--json", timeout=limit)
        self.assertIn(out.returncode, (2, 3), out.stdout[-500:] + out.stderr[-500:])
        error = json.loads(out.stdout)["error"]
        self.assertIn(error["code"], ("invalid", "not_found"), error)
        self.assertLess(len(out.stdout), 20000, "an error is no copy of the input")
        self.assertTrue(error["id"].startswith("ATH-S"), error)
        return error

    def test_ten_megabytes(self):
        """Red if the size is checked after parsing, or not at all."""
        self.refused(b"run: 'true'\n" + b"# padding\n" * (10 << 20 >> 3))
        self.refused(b"params:\n" + b"".join(b"  p%d: %d\n" % (i, i) for i in range(700000)))
        self.refused(b"name: " + b"a" * (10 << 20))

    def test_binary(self):
        """Red if bytes that are no UTF-8 reach yaml-cpp or the terminal unescaped."""
        self.refused(bytes(range(256)) * 64)
        self.refused(b"\x7fELF\2\1\1" + bytes(1000))
        self.refused(b"run: \xff\xfe\n")
        self.refused(b"run: 'a\0b'\n")
        self.refused(b"")

    def test_deeply_nested(self):
        """Red if the parser recurses without a limit (SIGSEGV of the client)."""
        self.refused(b"[" * 100000)
        self.refused(b"params: " + b"{a: " * 20000 + b"1" + b"}" * 20000)
        self.refused(b"".join(b" " * i + b"a:\n" for i in range(3000)))
        self.refused(b"- " * 50000 + b"x")

    def test_alias_bomb(self):
        """Red if aliases are expanded without counting."""
        bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
            "a%d: &a%d [%s]\n" % (i, i, ",".join(["*a%d" % (i - 1)] * 9)) for i in range(1, 12))
        self.refused(bomb.encode())
        self.refused(b"params: &p {a: *p}\n")

    def test_missing_folder(self):
        """Red if a missing source folder packages an empty source."""
        for text in (b"run: 'true'\nsource: {dir: ./not/here}\n",
                     b"run: 'true'\ndata: {train: /not/here}\n"):
            self.assertIn("not/here", json.dumps(self.refused(text)))

    def test_directory_and_missing_file_as_job_file(self):
        """Red if reading a folder or a device as a job file hangs."""
        os.makedirs(os.path.join(self.server.work, "folder.yaml"), exist_ok=True)
        for name in ("folder.yaml", "absent.yaml", "/dev/zero", "/proc/self/mem"):
            out = self.server.ath("run", name, "--json", timeout=60)
            self.assertNotEqual(out.returncode, 0, name)
            self.assertTrue(json.loads(out.stdout)["error"]["what"], name)

    def test_source_with_links_out_and_odd_files(self):
        """Red if links are followed out of the source, or a FIFO is opened."""
        with tempfile.TemporaryDirectory(dir=self.server.root) as folder:
            with open(os.path.join(folder, "t.py"), "w") as file:
                file.write("import os\nfor n in sorted(os.listdir('.')): print(n)\n"
                           "print(os.path.exists('link') and open('link').read())\n")
            os.symlink("/etc/passwd", os.path.join(folder, "link"))
            os.symlink("..", os.path.join(folder, "up"))
            os.symlink("loop", os.path.join(folder, "loop"))
            os.mkfifo(os.path.join(folder, "fifo"))
            out = self.server.ath("run", "--", "python3", "t.py", cwd=folder, timeout=60)
            self.assertNotIn("root:x:0", out.stdout)
            if out.returncode != 0:
                self.assertIn("link", out.stderr)  # refused, and said what


class Names(Case):
    def run_named(self, name):
        return self.server.ath("run", "-d", "--json", "--name=" + name, "--", "true")

    def test_names_that_are_refused(self):
        """Red if CheckName is left out of CheckSpec: newlines forge log lines, directions marks
        forge names."""
        for name in ("a" * 65536, "two\nlines", "tab\there", "rtl \u202egnp.exe",
                     "\u2066isolate", "esc \x1b[31mred", "", " lead", "@last", "-rf", "\x7f", "..",
                     "../../../tmp/x", "a/../b", "./a"):
            out = self.run_named(name)
            self.assertEqual(out.returncode, 2, repr(name[:40]))
            error = json.loads(out.stdout)["error"]
            self.assertLess(len(out.stdout), 5000)
            for mark in ("\u202e", "\x1b", "\u2066"):
                self.assertNotIn(mark, out.stdout)
            self.assertTrue(error["hint"], error)

    def test_nul_and_other_names_over_the_api(self):
        """Red if the API trusts what only the CLI checks."""
        spec = self.server.spec("true")
        for name in ("a\0b", "a\nb", "\u202e", "x" * 70000, "\udc00"):
            body = json.dumps({"spec": dict(spec, name=name)})
            reply = self.server.http("POST", "/api/v1/jobs", body)
            self.assertEqual(reply.status, 400, repr(name[:20]))

    def test_odd_names_that_are_fine(self):
        """Red if a name becomes part of a path."""
        for name in ("...", "a/b", "a..b", "naïve-ünïcode-模型", "with space", "100%", "a:b",
                     "$(id)", "'; drop table jobs; --", "\U0001f525"):
            out = self.run_named(name)
            self.assertEqual(out.returncode, 0, name + out.stdout)
            job = json.loads(out.stdout)["id"]
            self.assertEqual(self.server.wait(job)["state"], "Completed")
            self.assertEqual(self.server.show(name)["id"], job)
            self.assertEqual(self.server.logs(name), b"")

    def test_ids_that_are_paths(self):
        """Red if a reference is joined to a folder before it is looked up."""
        for reference in ("../../etc/passwd", "/etc/passwd", "..", ".", "%2e%2e", "a\nb", "*",
                          "x" * 65536, "01jzzzzzzzzzzzzzzzzzzzzzzz", "'--", "\u202e"):
            for verb in (["show"], ["logs"], ["why"], ["metrics"], ["events"], ["stop"]):
                if (verb, reference) == (["stop"], "*"):
                    continue  # a pattern
                out = self.server.ath(*verb, reference, "--json")
                self.assertIn(out.returncode, (2, 3), (verb, reference[:30], out.stdout[:300]))
                self.assertLess(len(out.stdout), 5000)
                self.assertNotIn("root:", out.stdout)


class Scripts(Case):
    def test_forks_a_thousand_children(self):
        """Red if stopping kills only the main process, or the PID namespace is not torn down."""
        job = self.server.python("""
            import os, signal, time
            for _ in range(1000):
                if os.fork() == 0:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    os.setsid()
                    time.sleep(3600)
                    os._exit(0)
            print("forked")
            while True: time.sleep(1)
        """, name="forks.py")
        self.server.until_log(job, "forked")
        children = lambda: [pid for pid, command in harness.processes().items()
                            if "forks.py" in command and harness.alive(pid)]
        self.assertGreaterEqual(len(children()), 1000)
        self.server.ath("stop", "--now", job, check=0)
        self.assertEqual(self.server.wait(job)["state"], "Stopped")
        until(lambda: not children(), "every child is gone")

    def test_children_left_behind_do_not_outlive_the_job(self):
        """Red if the supervisor leaves before its namespace is empty."""
        job = self.server.python("""
            import os, time
            if os.fork() == 0:
                os.setsid()
                time.sleep(3600)
            print("main ends")
        """, name="daemon_left.py")
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        until(lambda: not [pid for pid, command in harness.processes().items()
                           if "daemon_left.py" in command and harness.alive(pid)],
              "the daemon is gone")

    def test_ignores_sigterm(self):
        """Red if SIGKILL never follows the grace time."""
        self.server.script("stubborn.py", """
            import signal, time
            signal.signal(signal.SIGTERM, lambda *_: print("no"))
            print("ready")
            while True: time.sleep(0.05)
        """)
        self.server.script("stubborn.yaml",
                           "run: python3 stubborn.py\nlimits: {stop_grace: 1s}\n")
        job = self.server.json("run", "-d", "stubborn.yaml")["id"]
        self.server.until_log(job, "ready")
        self.server.ath("stop", job, check=0)
        record = self.server.wait(job)
        self.assertEqual((record["state"], record["cause"]["kind"]), ("Stopped", "user_stop"))
        self.assertEqual(record["attempts"][-1]["exit"]["signal"], signal.SIGKILL)
        self.assertIn(b"no", self.server.logs(job))

    def test_stop_now_overrides_a_long_grace(self):
        """Red if a second, harder stop is ignored because one is under way."""
        job = self.server.python("""
            import signal, time
            signal.signal(signal.SIGTERM, lambda *_: print("no"))
            print("ready")
            while True: time.sleep(0.05)
        """)
        self.server.until_log(job, "ready")
        self.server.ath("stop", job, check=0)
        self.server.until_log(job, "no")
        self.server.ath("stop", "--now", job, check=0)
        self.assertEqual(self.server.wait(job)["state"], "Stopped")

    def test_closes_stdout(self):
        """Red if end-of-file on the pipe is taken for the end of the script."""
        job = self.server.python("""
            import os, sys, time
            print("before", flush=True)
            os.close(1)
            time.sleep(0.3)
            os.write(2, b"still here\\n")
            sys.stdout = open(os.devnull, "w")
            sys.exit(7)
        """)
        record = self.server.wait(job)
        self.assertEqual(record["attempts"][-1]["exit"]["code"], 7)
        log = self.server.logs(job)
        self.assertIn(b"before", log)
        self.assertIn(b"still here", log)

    def test_closes_everything(self):
        """Red if the supervisor waits for pipes instead of for the process."""
        job = self.server.python("""
            import os, time
            os.closerange(0, 3)
            time.sleep(0.3)
            os._exit(5)
        """)
        self.assertEqual(self.server.wait(job)["attempts"][-1]["exit"]["code"], 5)

    def test_reopens_dev_stdout_with_truncation(self):
        """Red if the script's stdout is the log file itself: O_TRUNC would empty it."""
        job = self.server.python("""
            print("first", flush=True)
            with open("/dev/stdout", "w") as again:
                again.write("second\\n")
            print("third", flush=True)
            with open("/proc/self/fd/1", "w") as again:
                again.write("fourth\\n")
        """)
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertEqual(self.server.logs(job), b"first\nsecond\nthird\nfourth\n")

    def test_prints_binary(self):
        """Red if log bytes pass through a text type, or lines are split on other marks."""
        body = bytes(range(256)) * 512 + b"\r\n\x85\xe2\x80\xa8\0\0\xff" + os.urandom(200000)
        path = os.path.join(self.server.work, "blob.bin")
        with open(path, "wb") as file:
            file.write(body)
        job = self.server.submit("cat", "blob.bin")
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        os.unlink(path)
        process = self.server.popen("logs", job, stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(hashlib.sha256(out).hexdigest(), hashlib.sha256(body).hexdigest())

    def test_long_line_without_an_end(self):
        """Red if a line is held in memory until its end comes."""
        job = self.server.submit("sh", "-c", "head -c 8000000 /dev/zero | tr '\\0' x")
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertEqual(self.server.logs(job), b"x" * 8000000)

    def test_fills_its_disk(self):
        """Red if a full disk under the script takes the agent's own files with it."""
        job = self.server.python("""
            import os, resource, signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            try:
                with open(os.environ["SM_MODEL_DIR"] + "/big", "wb") as file:
                    while True: file.write(bytes(65536))
            except OSError as error:
                print("disk says", error.errno)
            raise OSError(28, "No space left on device")
        """)
        record = self.server.wait(job)
        self.assertEqual((record["state"], record["cause"]["kind"]), ("Failed", "disk_full"))
        self.assertIn(b"disk says", self.server.logs(job))

    @unittest.skipUnless(os.getuid() == 0, "only root can mount a small file system")
    def test_home_on_a_full_file_system(self):
        """Red if a submit is acknowledged that could not be stored, or the server ends."""
        with tempfile.TemporaryDirectory(prefix="ath-full-") as mount:
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", mount],
                              stderr=subprocess.DEVNULL).returncode != 0:
                self.skipTest("this machine does not let root mount a tmpfs")
            try:
                with Server(start=False) as server:
                    server.home = os.path.join(mount, "home")
                    server.environment["ATHANOR_HOME"] = server.home
                    os.mkdir(server.home)
                    server.start()
                    job = server.submit("true")
                    self.assertEqual(server.wait(job)["state"], "Completed")
                    free = os.statvfs(mount)
                    with open(os.path.join(mount, "ballast"), "wb") as file:
                        os.posix_fallocate(file.fileno(), 0,
                                           (free.f_bavail - 200) * free.f_frsize)
                    out = server.ath("run", "-d", "--json", "--", "true")
                    self.assertEqual(out.returncode, 8, out.stdout)
                    error = json.loads(out.stdout)["error"]
                    self.assertIn("full", error["what"])
                    self.assertTrue(error["hint"])
                    self.assertEqual(server.state(job), "Completed")
                    self.assertEqual(server.http("GET", "/healthz").status, 200)
                    os.unlink(os.path.join(mount, "ballast"))
                    self.assertEqual(server.wait(server.submit("true"))["state"], "Completed")
            finally:
                subprocess.run(["umount", "-l", mount])

    def test_runs_under_sh_and_timeout(self):
        """Red if the exit status or the signal of the inner program is lost."""
        for command, code in ((["sh", "-c", "exit 42"], 42),
                              (["sh", "-c", "sh -c 'exit 43'"], 43),
                              (["timeout", "60", "sh", "-c", "exit 44"], 44),
                              (["env", "A=b", "sh", "-c", "exit 45"], 45),
                              (["timeout", "0.2", "sleep", "60"], 124)):
            with self.subTest(command=command):
                self.assertEqual(self.server.ath("run", "-q", "--", *command).returncode, code)

    def test_log_beyond_its_limit_is_cut_and_said(self):
        """Red if the cap stops the script, or cuts in silence."""
        self.server.script("chatty.py", """
            import os
            line = b"y" * 999 + b"\\n"
            for _ in range(8000): os.write(1, line)
            os.write(2, b"alive at the end\\n")
        """)
        self.server.script("chatty.yaml", "run: python3 chatty.py\nlimits: {log_size: 2MB}\n")
        job = self.server.json("run", "-d", "chatty.yaml")["id"]
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        log = self.server.logs(job)
        self.assertLess(len(log), 3 << 20)
        self.assertIn(b"alive at the end", log)
        self.assertGreater(record["attempts"][-1]["exit"]["log_dropped"], 4 << 20)
        said = log[-2000:] + json.dumps(record).encode() + \
            self.server.ath("events", job, check=0).stdout.encode()
        self.assertRegex(said.decode("utf-8", "replace"), r"(?i)(cut|limit|dropped|capped)")

    def test_a_storm_of_metrics_is_told_and_hurts_nobody_else(self):
        """Planted bug: leave TellAboutTooManyPoints out, and points vanish without a word."""
        storm = self.server.python("""
            import athanor
            for i in range(3_000_000): athanor.log(loss=i, step=i)
            print("dropped", athanor.stats()["dropped"])
        """, flags=["--cpus", "0.5"], name="storm.py")
        calm = self.server.python("""
            import athanor, time
            for i in range(100):
                athanor.log(loss=i, step=i)
                time.sleep(0.01)
        """, flags=["--cpus", "0.5"], name="calm.py")
        self.ended(calm)
        self.assertEqual([p["value"] for p in self.server.points(calm, "loss")], list(range(100)))
        self.ended(storm)
        dropped = int(re.search(rb"dropped (\d+)", self.server.logs(storm)).group(1))
        kept = len(self.server.points(storm, "loss"))
        self.assertEqual(kept + dropped, 3_000_000)
        told = [e for e in self.server.events(storm) if e.get("cause", {}).get("kind") == "metrics_quota"]
        self.assertEqual(bool(told), dropped > 0 or kept > 2_000_000)
        self.assertLess(len(told), 30)

    def test_million_lines_are_complete(self):
        """Red if the shipper drops or doubles a piece under load."""
        lines = 1000000
        job = self.server.submit("seq", "1", str(lines))
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        wanted = hashlib.sha256()
        for i in range(1, lines + 1):
            wanted.update(b"%d\n" % i)
        process = self.server.popen("logs", job, stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=120)
        self.assertEqual(out.count(b"\n"), lines)
        self.assertEqual(hashlib.sha256(out).hexdigest(), wanted.hexdigest())

    def test_next_job_is_unharmed(self):
        """Red if any of the above leaves room, locks or folders behind."""
        job = self.server.submit("echo", "fine")
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertEqual(self.server.logs(job), b"fine\n")


if __name__ == "__main__":
    harness.main()
