"""A submit whose replies are lost, with a source that the server does not have yet.

Each docstring names a planted bug that turns the test red.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server
from network import Network


class LosesReplies(Network):
    """Each request is acted on, and its reply is lost: at its first try whatever comes first, which
    may be a 100 Continue, at its second whatever comes second."""

    def __init__(self, server):
        super().__init__(server)
        self.asked = {}   # by connection: the request that is under way, and parts of its reply
        self.tries = {}   # by request
        self.sent = False  # something of the source

    def passes(self, data, server):
        line = data.split(b"\r\n", 1)[0]
        if line.endswith(b"HTTP/1.1"):
            self.sent |= line.startswith(b"PUT")
            line = (line, self.sent)  # the submit after the upload is another one
            self.tries[line] = self.tries.get(line, 0) + 1
            self.asked[server] = [line, 0]
        return True

    def loses(self, server):
        asked = self.asked.get(server)
        if asked is None:
            return False
        asked[1] += 1
        return asked[1] == self.tries[asked[0]] and asked[1] <= 2


class NewSource(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        for number in range(5):
            self.server.script("part_%d.py" % number, "value = %d\n" % number)
        self.server.script("train.py", """
            import part_4
            print("value", part_4.value)
        """)

    def test_one_job_whatever_reply_is_lost(self):
        """Red when only the submit itself is made again, and a lost reply to the upload ends it
        (client.Do in place of DoSurely in PutBlob, PutText or Upload)."""
        with LosesReplies(self.server) as network:
            job = self.server.submit("python3", "train.py")
        lost = [line for line, _ in network.tries]
        self.assertGreaterEqual(network.swallowed, 10, lost)
        self.assertEqual(lost.count(b"POST /api/v1/jobs HTTP/1.1"), 2, lost)
        for wanted in (b"POST /api/v1/blobs/missing", b"PUT /api/v1/blobs/"):
            self.assertTrue(any(line.startswith(wanted) for line in lost), (wanted, lost))
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.assertEqual(self.server.logs(job), b"value 4\n")
        self.assertEqual(len(self.server.json("ps", "-a")["jobs"]), 1)


if __name__ == "__main__":
    harness.main()
