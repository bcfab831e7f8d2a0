"""Many runs: pages that hold while runs come and go, names and ids that are found, experiments that
go with all their runs, and metrics that are known after kill -9."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness


class Growth(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server()
        self.addCleanup(self.server.close)

    def call(self, method, path, body=None, status=200):
        reply = self.server.http(method, "/api/2.0/mlflow/" + path,
                                 body=json.dumps(body) if body is not None else None,
                                 headers={"Content-Type": "application/json"})
        self.assertEqual(reply.status, status, reply.body[:500])
        return reply.json()

    def new_run(self, name="r", experiment="0", value=None):
        info = self.call("POST", "runs/create", {"experiment_id": experiment, "run_name": name,
                                                 "start_time": 1000})["run"]["info"]
        if value is not None:
            self.log(info["run_id"], value)
        return info["run_id"]

    def log(self, run, value, step=1):
        self.call("POST", "runs/log-metric", {"run_id": run, "key": "m", "value": value,
                                              "timestamp": step, "step": step})

    def search(self, **body):
        return self.call("POST", "runs/search", {"experiment_ids": ["0"], **body})

    def test_pages_have_each_run_once(self):
        """Red if a page token is a number of runs: new ones push others onto the next page."""
        for order in ([], ["metrics.m DESC"], ["attributes.run_name ASC", "metrics.m ASC"]):
            with self.subTest(order=order):
                there = {self.new_run("n%d" % (i % 5), value=i % 4) for i in range(30)}
                seen, token = [], None
                while True:
                    page = self.search(order_by=order, max_results=7,
                                       filter="attributes.start_time = 1000",
                                       **({"page_token": token} if token else {}))
                    seen += [run["info"]["run_id"] for run in page["runs"]]
                    token = page.get("next_page_token")
                    if not token:
                        break
                    self.new_run("n%d" % (len(seen) % 5), value=len(seen) % 4)
                    self.call("POST", "runs/delete", {"run_id": seen[-3]})
                self.assertEqual(len(seen), len(set(seen)))
                self.assertLessEqual(there, set(seen))
                for run in set(seen) | there:
                    self.call("POST", "runs/delete", {"run_id": run})

    def test_a_token_of_another_order_is_refused(self):
        for i in range(3):
            self.new_run(value=i)
        token = self.search(max_results=1, order_by=["metrics.m"])["next_page_token"]
        for bad, order in ((token, []), ("nonsense", ["metrics.m"]), ("eyJvZmZzZXQiOiAxfQ==", [])):
            answer = self.call("POST", "runs/search", {"experiment_ids": ["0"], "page_token": bad,
                                                       "order_by": order}, 400)
            self.assertEqual(answer["error_code"], "INVALID_PARAMETER_VALUE")
            self.assertIn("Invalid page token", answer["message"])

    def test_pages_of_the_native_list(self):
        there = {self.new_run("n%d" % i) for i in range(9)}
        seen, after = [], ""
        while True:
            page = self.server.http("GET", "/api/v1/runs?limit=4&order=attributes.run_name&after="
                                    + after.replace("+", "%2B").replace("/", "%2F")
                                    .replace("=", "%3D")).json()
            seen += [run["run_id"] for run in page["runs"]]
            self.assertEqual(page["matched"], 9)
            after = page.get("next", "")
            if not after:
                break
        self.assertEqual(len(seen), 9)
        self.assertEqual(set(seen), there)
        self.assertEqual(self.server.http("GET", "/api/v1/runs?after=x").status, 400)

    def test_an_experiment_goes_and_comes_back_with_all_its_runs(self):
        """More runs than one turn of the loop takes. Red if the answer comes before the last one."""
        made = self.call("POST", "experiments/create", {"name": "many"})["experiment_id"]
        for i in range(2100):
            self.new_run("r%d" % i, made)
        body = {"experiment_ids": [made], "max_results": 5000}
        for verb, active in (("delete", 0), ("restore", 2100), ("delete", 0)):
            self.call("POST", "experiments/" + verb, {"experiment_id": made})
            found = self.call("POST", "runs/search", {**body, "run_view_type": "ACTIVE_ONLY"})
            self.assertEqual(len(found.get("runs", [])), active)
        self.server.kill()
        self.server.start()
        found = self.call("POST", "runs/search", {**body, "run_view_type": "DELETED_ONLY"})
        self.assertEqual(len(found["runs"]), 2100)

    def test_metrics_are_those_of_the_points_after_kill_9(self):
        """Red if a run's new points do not take back what was kept of its metrics."""
        runs = [self.new_run("k%d" % i, value=0.5) for i in range(6)]
        for run in runs[:3]:
            self.call("POST", "runs/update", {"run_id": run, "status": "FINISHED", "end_time": 2000})
        kept = os.path.join(self.server.home, "server", "metrics.kept")
        harness.until(lambda: os.path.getsize(kept) > 150, "something is kept of runs that ended")
        self.log(runs[0], 7, 2)
        self.log(runs[5], 8, 2)
        self.server.kill()
        self.server.start()
        values = {run["info"]["run_id"]: run["data"]["metrics"][0]["value"]
                  for run in self.search(filter="metrics.m > 0")["runs"]}
        self.assertEqual([values[run] for run in runs], [7, 0.5, 0.5, 0.5, 0.5, 8])
        os.remove(kept)
        self.server.kill()
        self.server.start()
        self.assertEqual(len(self.search(filter="metrics.m = 0.5")["runs"]), 4)

    def test_a_run_is_found_by_name_and_by_part_of_its_id(self):
        run = self.new_run("needle")
        self.new_run("hay")
        shown = self.server.http("GET", "/api/v1/runs/needle").json()
        self.assertEqual(shown["run_id"], run)
        short = shown["id"][-8:]
        self.assertEqual(self.server.http("GET", "/api/v1/runs/" + short).json()["run_id"], run)
        self.assertEqual(self.server.http("GET", "/api/v1/runs/no-such").status, 404)
        both = self.server.http("GET", "/api/v1/runs/" + shown["id"][:4])
        self.assertEqual(both.status, 409)
        self.assertIn("2 runs have", both.json()["error"]["what"])


if __name__ == "__main__":
    unittest.main()
