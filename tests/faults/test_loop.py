"""No request keeps the others waiting: with large inputs no GET route of the API takes more than
50 ms of the thread that serves everybody, nor reads a large file there. The server says itself how
long that thread was busy (/metrics), by the thread's own processor time, so that the machine's load
does not matter.

Each docstring names a planted bug that turns the test red.
"""

import glob
import hashlib
import http.client
import json
import os
import re
import shutil
import sys
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server

LONGEST = 0.050
MODEL = 512 << 20
LINES = 200_000
POINTS = 300_000
FILES = 50_000


class Loop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.job = cls.server.python("""
            with open("/opt/ml/model/weights", "wb") as file: file.truncate(%d)
            for number in range(%d): print("line", number, "of a long log")
        """ % (MODEL, LINES))
        cls.run_id = cls.a_run()
        cls.wide = cls.a_job_of_many_files()
        cls.server.wait(cls.job)
        cls.server.wait(cls.wide)

    @classmethod
    def post(cls, target, body):
        reply = cls.server.http("POST", target, body, {"Content-Type": "application/json"})
        assert reply.status < 300, reply.body
        return reply.json()

    @classmethod
    def a_run(cls):
        """With one metric of many points, and thousands of others."""
        now = int(time.time() * 1000)
        made = cls.post("/api/2.0/mlflow/runs/create", {"experiment_id": "0", "start_time": now})
        run = made["run"]["info"]["run_id"]
        for first in range(0, POINTS, 1000):
            cls.post("/api/2.0/mlflow/runs/log-batch", {"run_id": run, "metrics": [
                {"key": "loss", "value": step / 7, "timestamp": now + step, "step": step}
                for step in range(first, first + 1000)]})
        for first in range(0, 5000, 1000):
            cls.post("/api/2.0/mlflow/runs/log-batch", {"run_id": run, "metrics": [
                {"key": "metric %d" % number, "value": 1, "timestamp": now, "step": 1}
                for number in range(first, first + 1000)]})
        return run

    @classmethod
    def a_job_of_many_files(cls):
        """By its listing alone; that it cannot run does not matter here."""
        spec = cls.server.spec("true", name="wide")
        cls.server.submit("true")
        first = cls.server.http("GET", "/api/v1/blobs/" + spec["source"]["bundle"]).body
        header, row = first.splitlines(keepends=True)[:2]
        kind, size, sha, _ = row.split(b"\t")
        listing = header + b"".join(
            b"\t".join((kind, size, sha, b"file_%06d.py\n" % number)) for number in range(FILES))
        bundle = hashlib.sha256(listing).hexdigest()
        reply = cls.server.http("PUT", "/api/v1/blobs/" + bundle, listing)
        assert reply.status == 201, reply.body
        spec["source"]["bundle"] = bundle
        return cls.post("/api/v1/jobs", {"spec": spec})["id"]

    def figures(self):
        text = self.server.http("GET", "/metrics").body.decode()
        return {name: float(re.search(r"^athanor_loop_%s (\S+)$" % name, text, re.M).group(1))
                for name in ("longest_task_seconds", "long_reads_total")}

    def get(self, target):
        """The whole answer, or of a stream without end its beginning."""
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=300)
        try:
            connection.request("GET", target)
            reply = connection.getresponse()
            if target.startswith("/api/v1/live"):
                return reply.status
            while reply.read(1 << 20):
                pass
            return reply.status
        finally:
            connection.close()

    def targets(self):
        """Every GET route of the document, of each of the large ones."""
        document = json.loads(self.server.http("GET", "/api/v1/openapi.json").body)
        sha = self.server.show(self.job)["outputs"][0]["blob"]
        values = {"name": "loss", "sha256": sha, "file": "x/y", "path": "train.py",
                  "kind": "histogram", "key": "x", "study": "x"}
        queries = {"/api/v1/jobs/{job}/logs": ["", "?tail=100000", "?since_ms=1"],
                   "/api/v1/jobs/{job}/stream": ["?follow=false", "?follow=false&tail=100000"],
                   "/api/v1/jobs/{job}/log/lines": ["", "?from=0&count=5000"],
                   "/api/v1/jobs/{job}/log/search": ["?q=1", "?q=.*9$&regex=1&limit=10000"],
                   "/api/v1/jobs/{job}/metrics": ["", "?trend=100"],
                   "/api/v1/runs/{run}/metrics/{name}": ["", "?width=1000"],
                   "/api/v1/diff": ["?jobs=%s&jobs=%s" % (self.job, self.wide)],
                   "/api/v1/events": ["?follow=false&after=0"],
                   "/api/v1/runs": ["", "?limit=1000"],
                   "/api/v1/jobs": ["", "?limit=100000"],
                   "/api/v1/objects": ["?uri=s3://none/"], "/api/v1/object": ["?uri=s3://none/x"],
                   "/api/v1/importance": ["?metric=loss"]}
        for path, methods in document["paths"].items():
            if "get" not in methods:
                continue
            subjects = ([{"job": self.job}, {"job": self.wide}, {"job": self.run_id}]
                        if "{job}" in path else
                        [{"run": self.job}, {"run": self.run_id}] if "{run}" in path else [{}])
            for subject in subjects:
                known = dict(values, **subject)
                if path.endswith("outputs/{name}"):
                    known["name"] = "model.tar.gz"
                target = re.sub(r"{(\w+)}", lambda m: urllib.parse.quote(known[m.group(1)]), path)
                for query in queries.get(path, [""]):
                    yield target + query

    def check(self, target):
        status = self.get(target)
        self.assertLess(status, 500, target)
        figures = self.figures()
        self.assertLess(figures["longest_task_seconds"], LONGEST, target)
        self.assertEqual(figures["long_reads_total"], 0, target)

    def test_no_get_blocks_the_others(self):
        """Red when a route reads on the loop's thread: Points without its reader, or Outputs with
        ListTar in place of MembersOf and without OnDisk."""
        self.check("/healthz")
        count = 0
        for target in self.targets():
            self.check(target)
            count += 1
        self.assertGreater(count, 60)

    def members(self):
        outputs = self.server.http("GET", "/api/v1/jobs/%s/outputs" % self.job).json()["outputs"]
        return [(one["name"], one["members"]) for one in outputs]

    def test_outputs_are_listed_by_what_was_kept_when_they_were_packed(self):
        """Red when the archive is read for it: it is gone here."""
        (path,) = glob.glob(self.server.home + "/blobs/**/" +
                            self.server.show(self.job)["outputs"][0]["blob"], recursive=True)
        os.rename(path, path + ".away")
        try:
            self.assertEqual(self.members(),
                             [("model.tar.gz", [{"name": "weights", "bytes": MODEL}])])
        finally:
            os.rename(path + ".away", path)

    def test_outputs_of_older_versions_are_listed_once(self):
        """Red when an output without a list has no members, or when its list is not kept."""
        (folder,) = glob.glob(self.server.home + "/jobs/%s/members" % self.job)
        kept = self.members()
        shutil.rmtree(folder)
        self.check("/api/v1/jobs/%s/outputs" % self.job)
        self.assertTrue(os.listdir(folder))
        self.assertEqual(self.members(), kept)


if __name__ == "__main__":
    harness.main()
