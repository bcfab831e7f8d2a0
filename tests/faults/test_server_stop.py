"""`ath server stop` returns when the server is gone, and says so when it does not go.

Each docstring names a planted bug that turns the test red.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server, until


def gone(pid):
    """Also one that only waits for its parent to notice."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def waits_for_fuse(pid):
    tasks = "/proc/%d/task" % pid
    for task in os.listdir(tasks):
        with contextlib.suppress(OSError), open(os.path.join(tasks, task, "wchan")) as file:
            if "request_wait_answer" in (where := file.read()) or "fuse" in where:
                return True
    return False


class ServerStop(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def test_returns_when_it_is_gone(self):
        """Red when it returns as soon as the server has answered: the process is there for 50 ms
        at least."""
        for _ in range(5):
            pid = self.server.pid
            said = self.server.json("server", "stop")
            self.assertTrue(gone(pid), "its process is still there")
            self.assertEqual(said, {"stopping": True, "stopped": True})
            self.server.kill()  # only reaps it
            self.server.start()  # nothing is in its way

    def test_two_at_once_both_wait(self):
        """Red when one that finds no answer any more says that no server was running."""
        pid = self.server.pid
        both = [self.server.popen("server", "stop", "--json", stdout=subprocess.PIPE)
                for _ in range(2)]
        for one in both:
            out, _ = one.communicate()
            self.assertEqual(one.returncode, 0, out)
            self.assertTrue(gone(pid), out)

    def test_remote(self):
        """By its URL, as from another machine."""
        self.server.json("server", "stop", env={"ATHANOR_URL": self.server.url})
        self.server.process.wait(60)

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("bindfs") and os.path.exists("/dev/fuse"),
                         "needs root, bindfs and FUSE")
    def test_says_when_it_does_not_go(self):
        """Red when it waits for ever, or says that all is well. The server cannot go while it writes
        a backup to a disk that does not answer."""
        real, disk = (os.path.join(self.server.root, name) for name in ("real", "disk"))
        os.mkdir(real)
        os.mkdir(disk)
        stuck = subprocess.Popen(["bindfs", "-f", real, disk])
        self.addCleanup(stuck.wait)
        self.addCleanup(stuck.kill)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", disk]))
        until(lambda: os.path.ismount(disk), "the disk is there")
        stuck.send_signal(signal.SIGSTOP)

        def backup():
            with contextlib.suppress(Exception):  # the server goes meanwhile
                self.server.http("POST", "/api/v1/server/backup", {"to": disk + "/copy"})

        thread = threading.Thread(target=backup)
        thread.start()
        self.addCleanup(thread.join)
        pid = self.server.pid
        until(lambda: waits_for_fuse(pid), "the backup waits for the disk")
        out = self.server.ath("server", "stop", "--timeout", "1s", "--json", check=7)
        error = json.loads(out.stderr.splitlines()[-1] if out.stderr else out.stdout)["error"]
        self.assertEqual(error["id"], "ATH-V0004")
        self.assertIn("kill -9 %d" % pid, error["hint"])
        self.assertFalse(gone(pid))
        stuck.send_signal(signal.SIGCONT)
        self.server.ath("server", "stop", check=0)
        self.assertTrue(gone(pid))


if __name__ == "__main__":
    harness.main()
