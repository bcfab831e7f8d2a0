"""A home on a file system without O_TMPFILE, as NFS and FUSE are: uploads go to a file all the same,
never to memory. The file system is a real one, bindfs.

Each docstring names a planted bug that turns the test red.
"""

import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server, until

SIZE = 512 << 20
PIECE = 1 << 20


def resident(pid, field="VmHWM"):
    """In bytes; VmHWM is the most there ever was."""
    with open("/proc/%d/status" % pid) as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(field))


def zeros(size):
    piece = bytes(PIECE)
    for _ in range(size // PIECE):
        yield piece


@unittest.skipUnless(os.getuid() == 0 and shutil.which("bindfs") and os.path.exists("/dev/fuse"),
                     "needs root, bindfs and FUSE")
class WithoutTmpfile(unittest.TestCase):
    def setUp(self):
        self.server = Server(start=False)
        self.addCleanup(self.server.close)
        for name in ("blobs", "artifacts"):
            self.mount(os.path.join(self.server.home, name))
        self.server.start()

    def mount(self, place):
        behind = place + ".behind"
        os.mkdir(place)
        os.mkdir(behind)
        subprocess.run(["bindfs", behind, place], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", place], check=True))
        with self.assertRaises(OSError, msg="this file system has O_TMPFILE after all"):
            os.close(os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600))

    def put(self, target):
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=600)
        self.addCleanup(connection.close)
        connection.putrequest("PUT", target)
        connection.putheader("Content-Length", str(SIZE))
        connection.endheaders()
        for piece in zeros(SIZE):
            connection.send(piece)
        reply = connection.getresponse()
        reply.read()
        return reply.status

    def check_stays_small(self, before):
        grown = resident(self.server.pid) - before
        self.assertLess(grown, SIZE // 8, "the server held what was sent")

    def test_blob(self):
        """Red when a body without a file to go to is kept in memory (SpoolTo that only tries
        O_TMPFILE, and does not refuse)."""
        sha = hashlib.sha256()
        for piece in zeros(SIZE):
            sha.update(piece)
        before = resident(self.server.pid)
        self.assertEqual(self.put("/api/v1/blobs/" + sha.hexdigest()), 201)
        self.check_stays_small(before)
        # FUSE gives a file that is open another name until it is closed, soon after the answer.
        until(lambda: [name for _, _, files in os.walk(self.server.home + "/blobs.behind")
                       for name in files] == [sha.hexdigest()], "nothing is left beside it")

    def test_artifact(self):
        """Red with the same bug, and when an artifact's file is only ever linked into place, which
        cannot be done with one that had a name (NameFile without the copy)."""
        before = resident(self.server.pid)
        self.assertEqual(self.put("/api/2.0/mlflow-artifacts/artifacts/0/a/artifacts/w.bin"), 200)
        self.check_stays_small(before)
        path = self.server.home + "/artifacts.behind/0/a/artifacts/w.bin"
        self.assertEqual(os.path.getsize(path), SIZE)

    def test_run(self):
        """The whole way of a job: source, outputs, and back."""
        job = self.server.python("""
            with open("/opt/ml/model/weights", "w") as file: file.write("kept")
        """)
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.server.ath("cp", job + ":model/weights", "got", check=0)
        with open(os.path.join(self.server.work, "got")) as file:
            self.assertEqual(file.read(), "kept")

    def test_no_place_at_all(self):
        """Red when a body without a file to go to is kept in memory."""
        folder = os.path.join(self.server.home, "blobs.behind", "tmp")
        until(lambda: os.path.isdir(folder), "the store is there")
        shutil.rmtree(folder)
        before = resident(self.server.pid)
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=600)
        self.addCleanup(connection.close)
        connection.putrequest("PUT", "/api/v1/blobs/" + "0" * 64)
        connection.putheader("Content-Length", str(SIZE))
        connection.endheaders()
        reply = connection.getresponse()  # before anything of the body was sent
        self.assertEqual(reply.status, 507)
        self.assertIn(b"ATH-S0206", reply.read())
        self.check_stays_small(before)


if __name__ == "__main__":
    harness.main()
