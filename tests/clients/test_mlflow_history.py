"""Long histories: by pages that fit together while points come, whole and slowly read, and by many
clients that do not read at all. Also what happens to a name too many.

Each docstring names a planted bug that turns the test red."""

import base64
import contextlib
import http.client
import json
import os
import socket
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import until

POINTS = 120_000


class Case(harness.Case):
    def reply(self, method, path, body=None):
        return self.server.http(method, "/api/2.0/mlflow/" + path,
                                body=json.dumps(body) if body is not None else None,
                                headers={"Content-Type": "application/json"})

    def call(self, method, path, body=None):
        reply = self.reply(method, path, body)
        self.assertEqual(reply.status, 200, reply.body[:500])
        return reply.json()

    def new_run(self):
        return self.call("POST", "runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]

    def log(self, run, steps, key="m", at=lambda step: 1000 + step):
        steps = list(steps)
        for begin in range(0, len(steps), 1000):
            self.call("POST", "runs/log-batch", {"run_id": run, "metrics": [
                {"key": key, "value": step / 2, "timestamp": at(step), "step": step}
                for step in steps[begin:begin + 1000]]})

    def page(self, run, most=None, token=None, key="m"):
        fields = {"run_id": run, "metric_key": key}
        if most:
            fields["max_results"] = most
        if token:
            fields["page_token"] = token
        return self.call("GET", "metrics/get-history?" + urllib.parse.urlencode(fields))

    def pages(self, run, most, between=lambda: None):
        steps, token = [], None
        while True:
            page = self.page(run, most, token)
            steps += [m["step"] for m in page.get("metrics", [])]
            token = page.get("next_page_token")
            if not token:
                return steps
            self.assertEqual(len(page["metrics"]), most)
            between()


class Pages(Case):
    def test_pages_are_the_history_cut_in_pieces(self):
        """Red if a page begins behind the time of the one before (points of that time are lost), or
        if a token comes though nothing is left."""
        run = self.new_run()
        self.log(run, range(3000), at=lambda step: 1000 + step // 7)  # seven share a time
        whole = [m["step"] for m in self.page(run)["metrics"]]
        self.assertEqual(whole, list(range(3000)))
        for most in (1, 250, 999, 1500, 3000, 5000):
            if most == 1:
                first = self.page(run, 1)
                self.assertEqual([m["step"] for m in first["metrics"]], [0])
                continue
            self.assertEqual(self.pages(run, most), whole)

    def test_what_is_logged_between_two_pages_moves_nothing(self):
        """Red if a token is a number: what comes early in the order shifts the pages."""
        run = self.new_run()
        self.log(run, range(1000, 3000))
        early = iter(range(0, 1000, 10))
        steps = self.pages(run, 300, lambda: self.log(run, [next(early)]))
        self.assertEqual(steps, list(range(1000, 3000)))

    def test_pages_go_on_after_a_kill(self):
        """Red if the server must remember the history between two pages."""
        run = self.new_run()
        self.log(run, range(2000))

        def kill():
            self.server.kill()
            self.server.start()
        self.assertEqual(self.pages(run, 900, kill), list(range(2000)))

    def test_a_token_that_is_none_is_refused(self):
        run = self.new_run()
        self.log(run, range(3))
        for token in ("x", "%%%", base64.b64encode(b"after 1.2").decode(),
                      base64.b64encode(b'{"offset": 2}').decode()):
            reply = self.reply("GET", "metrics/get-history?" + urllib.parse.urlencode(
                {"run_id": run, "metric_key": "m", "page_token": token}))
            self.assertEqual((reply.status, reply.json()["error_code"]),
                             (400, "INVALID_PARAMETER_VALUE"), token)

    def test_a_metric_that_is_not_there_has_no_history(self):
        run = self.new_run()
        self.assertEqual(self.page(run), {})
        self.assertEqual(self.page(run, 10), {})


class Long(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("test_read_in_sips")
        cls.run_id = test.new_run()
        test.log(cls.run_id, range(POINTS))

    def paths(self):
        yield ("/api/2.0/mlflow/metrics/get-history?metric_key=m&run_id=" + self.run_id,
               lambda text: [m["step"] for m in json.loads(text)["metrics"]], POINTS)
        yield ("/api/2.0/mlflow/metrics/get-history-bulk?metric_key=m&run_id=" + self.run_id,
               lambda text: [m["step"] for m in json.loads(text)["metrics"]], 25_000)
        for native in ("runs", "jobs"):
            yield ("/api/v1/%s/%s/metrics/m" % (native, self.run_id),
                   lambda text: [json.loads(line)["step"] for line in text.splitlines()], POINTS)

    def test_read_in_sips(self):
        """Red if BodyFeed loses what was queued when it waits, or ends before all is read."""
        for path, steps, count in self.paths():
            host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
            with contextlib.closing(http.client.HTTPConnection(host, int(port), timeout=90)) as connection:
                connection.request("GET", path)
                reply = connection.getresponse()
                self.assertEqual(reply.status, 200)
                pieces = []
                while True:
                    piece = reply.read(20_000)
                    if not piece:
                        break
                    pieces.append(piece)
                self.assertEqual(steps(b"".join(pieces)), list(range(count)), path)
                # The connection is good for more.
                connection.request("GET", "/api/2.0/mlflow/metrics/get-history?metric_key=m"
                                          "&max_results=2&run_id=" + self.run_id)
                self.assertEqual(len(json.loads(connection.getresponse().read())["metrics"]), 2)

    def resident(self):
        with open("/proc/%d/status" % self.server.process.pid) as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS:"))

    def test_clients_that_do_not_read_hold_little_and_stop_nobody(self):
        """Red if an answer is made whole before it is sent, or a waiting client keeps a reader's
        thread."""
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        paths = [path for path, _, _ in self.paths()]
        before = self.resident()
        with contextlib.ExitStack() as stack:
            for number in range(40):
                client = stack.enter_context(socket.socket())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.settimeout(90)
                client.connect((host, int(port)))
                client.sendall(("GET %s HTTP/1.1\r\nHost: %s:%s\r\n\r\n"
                                % (paths[number % len(paths)], host, port)).encode())
                self.assertIn(b"200", client.recv(20))  # it has begun
            # Everybody is served beside them, by readers, too.
            self.assertEqual(len(self.page(self.run_id, 10)["metrics"]), 10)
            self.assertEqual(self.pages(self.run_id, 25_000), list(range(POINTS)))
            self.assertLess(self.resident() - before, 128 << 20)
        until(lambda: self.reply("GET", "experiments/get?experiment_id=0").status == 200, "served")


class TooManyNames(Case):
    def test_only_the_new_name_is_refused(self):
        """Red if Append refuses the batch as a whole, or says "job"."""
        run = self.new_run()
        for begin in range(0, 100_000, 1000):
            self.call("POST", "runs/log-batch", {"run_id": run, "metrics": [
                {"key": "n%d" % i, "value": 1, "timestamp": 1, "step": 1}
                for i in range(begin, begin + 1000)]})
        metric = lambda key: {"key": key, "value": 2, "timestamp": 2, "step": 2}
        reply = self.reply("POST", "runs/log-batch", {
            "run_id": run, "metrics": [metric("one more"), metric("n7")],
            "params": [{"key": "p", "value": "v"}]})
        self.assertEqual((reply.status, reply.json()["error_code"]), (400, "INVALID_PARAMETER_VALUE"))
        message = reply.json()["message"]
        self.assertIn("Run " + run, message)
        self.assertIn("'one more' was not stored", message)
        self.assertNotIn("job", message)
        self.assertEqual([m["step"] for m in self.page(run, key="n7")["metrics"]], [1, 2])
        self.assertEqual(self.page(run, key="one more"), {})
        self.assertEqual(self.call("GET", "runs/get?run_id=" + run)["run"]["data"]["params"],
                         [{"key": "p", "value": "v"}])
        self.call("POST", "runs/log-metric", dict(metric("n8"), run_id=run))


if __name__ == "__main__":
    unittest.main()
