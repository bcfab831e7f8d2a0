"""Nobody can take the server away from its owner by holding connections open. Another user of the
machine opens thousands with half a request each.

Each docstring names a planted bug that turns the test red.
"""

import os
import pwd
import resource
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server, until

MANY = 6000
# Says a line when all are open, then opens another for each that the server closes.
FLOOD = textwrap.dedent("""
    import os, selectors, socket, sys
    os.setgroups([]); os.setgid(%(gid)d); os.setuid(%(uid)d)
    port, many, text = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
    watch = selectors.DefaultSelector()
    def more():
        one = socket.create_connection(("127.0.0.1", port))
        try: one.sendall(text)
        except OSError: pass
        one.setblocking(False)
        watch.register(one, selectors.EVENT_READ)
    for _ in range(many): more()
    print("open", flush=True)
    while True:
        for key, _ in watch.select():
            try: over = not key.fileobj.recv(65536)
            except OSError: over = True
            if over:
                watch.unregister(key.fileobj)
                key.fileobj.close()
                more()
""")


def descriptors():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@unittest.skipUnless(os.getuid() == 0, "only root can be another user as well")
@unittest.skipUnless(descriptors() > MANY + 500, "too few descriptors are allowed here")
class Flood(unittest.TestCase):
    def setUp(self):
        nobody = pwd.getpwnam("nobody")
        self.code = FLOOD % {"uid": nobody.pw_uid, "gid": nobody.pw_gid}
        self.server = Server()
        self.addCleanup(self.server.close)

    def flood(self, text):
        port = self.server.url.rpartition(":")[2]
        limit = descriptors()
        process = subprocess.Popen(
            [sys.executable, "-c", self.code, port, str(MANY), text], stdout=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"open\n")
        return process

    def check_owner_is_served(self, flood):
        for _ in range(20):
            self.assertEqual(self.server.http("GET", "/api/v1/jobs").status, 200)
            self.assertEqual(self.server.http("GET", "/api/v1/jobs", unix=True).status, 200)
        self.server.ath("ps", check=0)
        job = self.server.submit("true")
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertIsNone(flood.poll(), "the flood went on meanwhile")

    def test_half_a_head(self):
        """Red without a limit for each peer (max_per_peer = max_connections) when headless
        connections do not make room either (`headless` always false)."""
        self.check_owner_is_served(self.flood("GET /healthz HTTP/1.1\r\nHost: x\r\nX-More: "))

    def test_nothing_at_all(self):
        """Red when connections on which nothing has come count as busy (`headless` and `idle` false
        before the first request) and there is no limit for each peer."""
        self.check_owner_is_served(self.flood(""))

    def test_half_a_body(self):
        """Red without a limit for each peer: a connection whose head has come is not closed to
        make room."""
        self.check_owner_is_served(self.flood(
            "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhalf"))


if __name__ == "__main__":
    harness.main()
