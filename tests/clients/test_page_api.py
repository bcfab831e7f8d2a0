"""What the page asks of the server: its own files, the session a link gives, the live stream, logs by
line, sources, names, the queue, changes of runs, artifacts and media."""

import base64
import contextlib
import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, until

JSON = {"Content-Type": "application/json"}


class Live:
    """The live stream: its events in order, with names and data."""

    def __init__(self, server, last=None):
        host, _, port = server.url.rpartition("//")[2].rpartition(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=harness.PATIENCE)
        self.connection.request("GET", "/api/v1/live",
                                headers={"Last-Event-ID": last} if last else {})
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, self.reply.read()
        self.last = last

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, AttributeError):
            self.reply.fp.raw._sock.shutdown(socket.SHUT_RDWR)
        self.reply.close()
        self.connection.close()

    def next(self):
        fields = {}
        while line := self.reply.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        if not fields:
            raise AssertionError("the stream ended")
        if "event" not in fields:
            return self.next()
        self.last = fields.get("id", self.last)
        return fields["event"], json.loads(fields["data"])

    def until(self, wanted):
        """The data of the first event that `wanted(name, data)` takes."""
        while True:
            name, data = self.next()
            if wanted(name, data):
                return data


def get(case, target, status=200, **more):
    reply = case.server.http("GET", target, **more)
    case.assertEqual(reply.status, status, reply.body[:500])
    return reply


class TheLiveStream(Case):
    def test_a_job_is_told_from_its_beginning_to_its_end_with_its_numbers(self):
        with Live(self.server) as live:
            name, hello = live.next()
            self.assertEqual((name, "gap" in hello), ("hello", False))
            self.assertIn("at_ms", hello)
            job = self.server.python("""
                import athanor, os, time
                for step in range(5): athanor.log(loss=1 / (step + 1), step=step)
                print("said")
                while not os.path.exists("%s/go"): time.sleep(0.01)
                """ % self.server.root)
            told = {}  # in whatever order

            def enough(name, data):
                if name == "job" and data["job"]["id"] == job and data["job"]["state"] == "Running":
                    told["running"] = True
                if name == "run" and data["run"] == job and data["metrics"]:
                    told["run"] = data
                if name == "log" and data["job"] == job:
                    told["log"] = True
                return len(told) == 3
            live.until(enough)
            self.assertEqual(told["run"]["metrics"][0]["name"], "loss")
            self.assertEqual(told["run"]["status"], "RUNNING")
            self.server.go("go")
            done = live.until(lambda n, d: n == "job" and d["job"]["id"] == job
                              and d["job"]["state"] == "Completed")
        listed = [row for row in get(self, "/api/v1/jobs").json()["jobs"] if row["id"] == job]
        self.assertEqual(done["job"], listed[0])

    def test_who_was_away_is_told_what_he_missed(self):
        with Live(self.server) as live:
            first = self.server.submit("true")
            live.until(lambda n, d: n == "job" and d["job"]["id"] == first
                       and d["job"]["state"] == "Completed")
            last = live.last
        second = self.server.submit("true")
        self.ended(second)
        with Live(self.server, last) as live:
            name, hello = live.next()
            self.assertEqual((name, "gap" in hello), ("hello", False))
            live.until(lambda n, d: n == "job" and d["job"]["id"] == second
                       and d["job"]["state"] == "Completed")

    def test_a_position_of_another_life_is_a_gap(self):
        for last in ("nonsense", "abcdef.7", "1"):
            with Live(self.server, last) as live:
                self.assertEqual(live.next()[1].get("gap"), True)

    def test_a_run_that_is_no_job_is_told_too(self):
        made = self.server.http("POST", "/api/2.0/mlflow/runs/create", {"run_name": "r"}, JSON)
        run = made.json()["run"]["info"]["run_id"]
        with Live(self.server) as live:
            self.server.http("POST", "/api/2.0/mlflow/runs/log-metric",
                             {"run_id": run, "key": "acc", "value": 0.5, "timestamp": 1}, JSON)
            told = live.until(lambda n, d: n == "run" and d["metrics"])
            self.assertEqual((told["metrics"][0]["name"], told["metrics"][0]["last"]), ("acc", 0.5))
            self.server.http("POST", "/api/2.0/mlflow/runs/update",
                             {"run_id": run, "status": "FINISHED"}, JSON)
            live.until(lambda n, d: n == "run" and d["status"] == "FINISHED")

    def test_two_hundred_streams_cost_little(self):
        def resident():
            with open("/proc/%d/smaps_rollup" % self.server.pid) as file:
                return int(re.search(r"Rss: +(\d+) kB", file.read()).group(1))
        with contextlib.ExitStack() as stack:
            before = resident()
            streams = [stack.enter_context(Live(self.server)) for _ in range(200)]
            job = self.server.submit("true")
            for live in streams:
                live.until(lambda n, d: n == "job" and d["job"]["id"] == job
                           and d["job"]["state"] == "Completed")
            self.assertLess(resident() - before, 20 * 1024, "kB for 200 streams")


class Logs(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = cls.server.python("""
            import sys
            # One stream: how two of them meet depends on when each is read.
            for i in range(3000): print("line %d <b>bold</b>" % i)
            print("Traceback (most recent call last):")
            print("ValueError: Needle")
            for i in range(3000, 5000): print("line", i)
            sys.stdout.write("open")
            """)
        cls.server.wait(cls.job)

    def lines(self, **query):
        text = "&".join("%s=%s" % pair for pair in query.items())
        return get(self, "/api/v1/jobs/%s/log/lines?%s" % (self.job, text)).json()

    def test_any_page_is_what_ath_logs_prints(self):
        printed = self.server.logs(self.job).decode().split("\n")
        for start in (0, 255, 256, 2999, 4000, 4990):
            page = self.lines(**{"from": start, "count": 7})
            self.assertEqual(page["total"], 5003)
            self.assertEqual(page["from"], start)
            self.assertEqual(page["lines"], printed[start:start + 7])
        self.assertEqual(self.lines(count=1)["lines"], ["open"])
        self.assertEqual(self.lines(**{"from": 10 ** 9})["lines"], [])

    def test_the_first_error_is_known(self):
        page = self.lines(count=1)
        line = self.lines(**{"from": page["first_error"], "count": 1})["lines"][0]
        self.assertEqual(line, "Traceback (most recent call last):")

    def search(self, query, status=200):
        return get(self, "/api/v1/jobs/%s/log/search?%s" % (self.job, query), status).json()

    def test_a_search_finds_lines_by_text_and_by_pattern(self):
        found = self.search("q=needle")
        self.assertEqual([m["text"] for m in found["matches"]], ["ValueError: Needle"])
        self.assertEqual(self.search("q=NEEDLE")["total"], 0)
        some = self.search("q=%5Eline+%5Cd%2B%24&regex=1&limit=3")
        self.assertEqual((some["total"], len(some["matches"])), (2000, 3))
        self.assertEqual(self.search("q=%5Eline+%5Cd%2B%24")["total"], 0)
        at = some["matches"][0]["line"]
        self.assertEqual(self.lines(**{"from": at, "count": 1})["lines"], ["line 3000"])

    def test_what_cannot_be_read_is_refused(self):
        self.assertEqual(self.search("q=%28&regex=1", 400)["error"]["id"], "ATH-R0014")
        self.search("q=", 400)
        for query in ("from=x", "from=-1", "count=1e3", "rank=a", "phase=none"):
            get(self, "/api/v1/jobs/%s/log/lines?%s" % (self.job, query), 400)
        get(self, "/api/v1/jobs/nobody/log/lines", 404)

    def test_parts_are_numbered_apart(self):
        self.assertEqual(self.lines(phase="run", rank=0)["total"], 5003)
        self.assertEqual(self.lines(phase="run", rank=1)["total"], 0)
        self.assertGreaterEqual(self.lines(phase="all")["total"], 5003)


class Sources(Case):
    def test_files_and_what_git_knew(self):
        def git(*arguments):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
                           cwd=self.server.work, check=True, stdout=subprocess.DEVNULL)
        self.server.script("train.py", "print('one')\n")
        self.server.script("sub/page.html", "<script>alert(1)</script>\n")
        git("init", "-q")
        git("add", ".")
        git("commit", "-q", "-m", "x")
        self.server.script("train.py", "print('two')\n")
        job = self.server.submit("python3", "train.py")
        self.ended(job)
        listed = get(self, "/api/v1/jobs/%s/source" % job).json()
        files = {row["path"]: row for row in listed["files"]}
        self.assertEqual(set(files), {"train.py", "sub/page.html"})
        self.assertEqual(files["train.py"]["size"], len("print('two')\n"))
        self.assertTrue(listed["git"]["dirty"])
        self.assertIn("+print('two')", listed["git"]["diff"])
        page = get(self, "/api/v1/jobs/%s/source/sub/page.html" % job)
        self.assertEqual(page.body, b"<script>alert(1)</script>\n")
        self.assertTrue(page.headers["Content-Type"].startswith("text/plain"))
        self.assertIn("sandbox", page.headers["Content-Security-Policy"])
        self.assertEqual(page.headers["X-Content-Type-Options"], "nosniff")
        get(self, "/api/v1/jobs/%s/source/none.py" % job, 404)
        get(self, "/api/v1/jobs/%s/source/%%2e%%2e/train.py" % job, 400)

    def test_what_it_ran_in(self):
        job = self.server.submit("true", flags=["--env", "COLOUR=red"])
        self.ended(job)
        told = get(self, "/api/v1/jobs/%s/environment" % job).json()
        self.assertEqual(told["variables"]["COLOUR"], "red")
        self.assertIsInstance(told["packages"], list)


class TheQueue(Case):
    def test_who_waits_and_for_what(self):
        machine = get(self, "/api/v1/queue").json()["machine"]
        self.assertEqual((machine["cpus_used"], machine["memory_used"]), (0, 0))
        cpus = "%g" % machine["cpus"]
        held = self.server.submit("sleep", "1000", flags=["--cpus", cpus])
        self.server.until_state(held, "Running")
        waiting = [self.server.submit("true", flags=["--cpus", cpus]) for _ in range(2)]
        told = until(lambda: [r for r in get(self, "/api/v1/queue").json()["waiting"]
                              if r["reason"]], "the queue gave reasons")
        told = get(self, "/api/v1/queue").json()
        self.assertEqual([row["job"]["id"] for row in told["waiting"]], waiting)
        self.assertEqual([row["position"] for row in told["waiting"]], [1, 2])
        self.assertIn("CPU", told["waiting"][0]["reason"])
        self.assertGreater(told["waiting"][0]["since_ms"], 1.7e12)
        self.assertEqual(told["machine"]["cpus_used"], machine["cpus"])
        for job in (held, *waiting):
            self.server.ath("stop", job, "--now", check=0)


class Runs(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = []
        for i in range(12):
            made = cls.server.http("POST", "/api/2.0/mlflow/runs/create",
                                   {"run_name": "r%d" % i, "tags": [{"key": "team", "value": "a"}]},
                                   JSON)
            run = made.json()["run"]["info"]["run_id"]
            cls.runs.append(run)
            cls.server.http("POST", "/api/2.0/mlflow/runs/log-batch", {
                "run_id": run, "params": [{"key": "lr", "value": str(i / 10)},
                                          {"key": "seed", "value": str(i * 7 % 12)}],
                "metrics": [{"key": "loss", "value": abs(i - 3), "timestamp": 1, "step": 1},
                            {"key": "val/loss" if i % 2 else "acc", "value": i, "timestamp": 1,
                             "step": 1}]}, JSON)

    def change(self, run, body, status=200):
        reply = self.server.http("PATCH", "/api/v1/runs/" + run, body, JSON)
        self.assertEqual(reply.status, status, reply.body)
        return reply.json()

    def test_names_with_how_many_runs_have_them(self):
        told = get(self, "/api/v1/names?kind=metric&contains=LOSS").json()
        self.assertEqual(told, {"total": 2, "names": [{"name": "loss", "runs": 12},
                                                      {"name": "val/loss", "runs": 6}]})
        self.assertEqual(get(self, "/api/v1/names?kind=param&limit=1").json()["total"], 2)
        tags = get(self, "/api/v1/names?kind=tag&contains=team").json()["names"]
        self.assertEqual(tags, [{"name": "team", "runs": 12}])
        get(self, "/api/v1/names?kind=colour", 400)
        get(self, "/api/v1/names?experiment=nobody", 404)

    def test_which_param_decides(self):
        told = get(self, "/api/v1/importance?metric=loss&goal=minimize").json()
        self.assertEqual(told["runs"], 12)
        self.assertEqual({p["name"] for p in told["params"]}, {"lr", "seed"})
        self.assertAlmostEqual(sum(p["importance"] for p in told["params"]), 1)
        get(self, "/api/v1/importance", 400)
        get(self, "/api/v1/importance?metric=loss&filter=x+y+z", 400)

    def test_tags_name_and_note_are_changed_and_kept(self):
        run = self.runs[0]
        self.change(run, {"tags": {"colour": "<b>red</b>", "team": None}, "name": "renamed",
                          "note": "# why"})
        self.server.kill()
        self.server.start()
        seen = get(self, "/api/v1/runs/" + run).json()
        self.assertEqual(seen["name"], "renamed")
        self.assertEqual(seen["tags"]["colour"], "<b>red</b>")
        self.assertEqual(seen["tags"]["mlflow.note.content"], "# why")
        self.assertNotIn("team", seen["tags"])
        self.change(run, {"tags": {"team": "a"}})
        for body in ({"tags": []}, {"tags": {"a": 1}}, {"name": 1}, {"speed": "x"}, [],
                     {"tags": {"../x": "y"}}):
            self.assertIn("error", self.change(run, body, 400))
        self.change("nobody", {"name": "x"}, 404)

    def test_a_deleted_run_can_be_restored(self):
        run = self.runs[1]
        def listed(**more):
            query = "?deleted=true" if more.get("deleted") else "?limit=100"
            rows = get(self, "/api/v1/runs" + query).json()["runs"]
            return run in [row["run_id"] for row in rows]
        self.assertEqual(self.server.http("POST", "/api/v1/runs/%s/delete" % run).status, 200)
        self.assertEqual((listed(), listed(deleted=True)), (False, True))
        self.change(run, {"name": "x"}, 400)
        self.assertEqual(self.server.http("POST", "/api/v1/runs/%s/restore" % run).status, 200)
        self.assertEqual((listed(), listed(deleted=True)), (True, False))

    def test_the_trash_is_emptied_when_its_time_has_come(self):
        made = self.server.http("POST", "/api/2.0/mlflow/runs/create", {"run_name": "old"}, JSON)
        info = made.json()["run"]["info"]
        kept = info["artifact_uri"].partition(":/")[2].lstrip("/")
        self.server.http("PUT", "/api/2.0/mlflow-artifacts/artifacts/%s/f" % kept, b"x" * 10000)
        job = self.server.submit("echo", "said")
        self.ended(job)
        for run in (info["run_id"], job):
            self.server.http("POST", "/api/v1/runs/%s/delete" % run)
        self.assertEqual(self.server.json("gc", "--dry-run")["trash"],
                         {"removed": 0, "bytes": 0, "kept": 2})
        due = self.server.json("gc", "--dry-run", "--older", "0s")["trash"]
        self.assertEqual((due["removed"], due["kept"]), (2, 0))
        self.assertGreaterEqual(due["bytes"], 10000)
        get(self, "/api/v1/runs?deleted=true")
        self.assertEqual(self.server.json("gc", "--older", "0s")["trash"], due)
        self.assertEqual(get(self, "/api/v1/runs?deleted=true").json()["matched"], 0)
        self.assertFalse(os.path.exists(os.path.join(self.server.home, "artifacts", kept)))
        get(self, "/api/v1/jobs/" + job, 404)

    def test_experiments_and_models(self):
        told = {e["name"]: e for e in get(self, "/api/v1/experiments").json()["experiments"]}
        self.assertGreaterEqual(told["Default"]["runs"], 11)
        self.assertGreater(told["Default"]["last_ms"], 1.7e12)
        self.server.http("POST", "/api/2.0/mlflow/registered-models/create", {"name": "net"}, JSON)
        for _ in range(2):
            self.server.http("POST", "/api/2.0/mlflow/model-versions/create",
                             {"name": "net", "source": "s3://models/net", "run_id": self.runs[2]}, JSON)
        (model,) = get(self, "/api/v1/models").json()["models"]
        self.assertEqual((model["name"], [v["version"] for v in model["versions"]]), ("net", [2, 1]))
        self.assertEqual(model["versions"][0]["run_id"], self.runs[2])


class Artifacts(Case):
    HOSTILE = {"page.html": b"<script>alert(1)</script>", "x.svg": b"<svg onload='alert(1)'/>",
               "a b.md": b"# hi", "deep/er/x.txt": b"text"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made = cls.server.http("POST", "/api/2.0/mlflow/runs/create", {"run_name": "r"}, JSON)
        info = made.json()["run"]["info"]
        cls.run_id = info["run_id"]
        root = info["artifact_uri"].partition(":/")[2]
        cls.png = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg"
                                   "YGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==")
        for name, data in {**cls.HOSTILE, "dot.png": cls.png}.items():
            reply = cls.server.http("PUT", "/api/2.0/mlflow-artifacts/artifacts%s/%s" % (
                root if root.startswith("/") else "/" + root, name.replace(" ", "%20")), data)
            assert reply.status == 200, reply.body

    def test_a_tree_one_folder_at_a_time(self):
        base = "/api/v1/runs/%s/artifacts" % self.run_id
        top = {e["path"]: e for e in get(self, base).json()["entries"]}
        self.assertEqual(set(top), {"page.html", "x.svg", "a b.md", "deep", "dot.png"})
        self.assertEqual((top["deep"]["dir"], top["x.svg"]["dir"]), (True, False))
        self.assertEqual(top["x.svg"]["size"], len(self.HOSTILE["x.svg"]))
        inner = get(self, base + "?path=deep/er").json()["entries"]
        self.assertEqual([e["path"] for e in inner], ["deep/er/x.txt"])
        get(self, base + "?path=none", 404)

    def test_only_pixels_are_shown_in_place(self):
        base = "/api/v1/runs/%s/artifacts/" % self.run_id
        for name, data in self.HOSTILE.items():
            reply = get(self, base + name.replace(" ", "%20"))
            self.assertEqual(reply.body, data)
            self.assertEqual(reply.headers["Content-Type"], "application/octet-stream")
            self.assertTrue(reply.headers["Content-Disposition"].startswith("attachment"))
        image = get(self, base + "dot.png")
        self.assertEqual(image.headers["Content-Type"], "image/png")
        self.assertTrue(image.headers["Content-Disposition"].startswith("inline"))
        for reply in (image, get(self, base + "page.html")):
            self.assertIn("sandbox", reply.headers["Content-Security-Policy"])
            self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")
        part = self.server.http("GET", base + "deep/er/x.txt", headers={"Range": "bytes=1-2"})
        self.assertEqual((part.status, part.body), (206, b"ex"))

    def test_nothing_outside_is_reached(self):
        for path in ("../../../server/athanor.db", "..%2f..%2fserver%2fathanor.db",
                     "deep/%2e%2e/%2e%2e/x", "%252e%252e/x", "/etc/passwd", "deep%5c..%5cx"):
            reply = self.server.http("GET", "/api/v1/runs/%s/artifacts/%s" % (self.run_id, path))
            self.assertIn(reply.status, (400, 404), path)
            listed = self.server.http("GET", "/api/v1/runs/%s/artifacts?path=%s"
                                      % (self.run_id, path))
            self.assertIn(listed.status, (400, 404), path)


class Media(Case):
    def test_what_a_script_wrote_beside_scalars(self):
        job = self.server.python("""
            import athanor
            with athanor.SummaryWriter("logs") as w:
                for step in range(20):
                    w.add_scalar("loss", 1.0 / (step + 1), step)
                    w.add_histogram("weights", [0.1 * step, 1.0, 2.0], step)
                    w.add_text("note", "step %d <script>x</script>" % step, step)
            """)
        self.ended(job)
        media = {(m["kind"], m["name"]): m for m in
                 get(self, "/api/v1/runs/%s/media" % job).json()["media"]}
        self.assertEqual(media["text", "note"]["count"], 20)
        self.assertEqual(media["histogram", "weights"]["last_step"], 19)
        self.assertNotIn("loss", [name for _, name in media])
        items = get(self, "/api/v1/runs/%s/media/histogram/weights?max=3" % job).json()["items"]
        self.assertEqual([i["step"] for i in items], [0, 9, 19])
        for item in items:
            self.assertEqual(len(item["edges"]), len(item["counts"]) + 1)
            self.assertEqual(sum(item["counts"]), 3)
        texts = get(self, "/api/v1/runs/%s/media/text/note" % job).json()["items"]
        self.assertEqual(texts[-1]["text"], "step 19 <script>x</script>")
        get(self, "/api/v1/runs/%s/media/image/none" % job, 404)
        get(self, "/api/v1/runs/%s/mediabytes/x-0-0" % job, 404)

    def test_a_run_without_event_files_has_none(self):
        job = self.server.submit("true")
        self.ended(job)
        self.assertEqual(get(self, "/api/v1/runs/%s/media" % job).json(), {"media": []})


ASK = """
import http.client, json, sys
host, port, method, target, headers = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], json.loads(sys.argv[5])
c = http.client.HTTPConnection(host, port, timeout=30)
c.request(method, target, headers=headers)
r = c.getresponse()
print(json.dumps([r.status, dict(r.headers), r.read().decode("utf-8", "replace")]))
"""


class ThePage(Case):
    def test_index_is_asked_for_again_and_forbids_foreign_scripts(self):
        reply = get(self, "/")
        self.assertTrue(reply.headers["Content-Type"].startswith("text/html"))
        policy = reply.headers["Content-Security-Policy"]
        self.assertIn("script-src 'self'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertIn("frame-ancestors", policy)
        self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")
        if reply.headers["Cache-Control"] == "no-store":
            self.assertIn(b"tools/build_web", reply.body)
            self.skipTest("this program was built without its page")
        self.assertEqual(reply.headers["Cache-Control"], "no-cache")
        again = self.server.http("GET", "/", headers={"If-None-Match": reply.headers["ETag"]})
        self.assertEqual((again.status, again.body), (304, b""))
        assets = re.findall(r'(?:src|href)="\./(ui/assets/[^"]+)"', reply.body.decode())
        self.assertTrue(assets)
        self.assertNotRegex(reply.body.decode(), r'(src|href)="(/|https?:)')
        for asset in assets:
            plain = get(self, "/" + asset)
            self.assertIn("immutable", plain.headers["Cache-Control"])
            packed = get(self, "/" + asset, headers={"Accept-Encoding": "gzip"})
            if packed.headers["Content-Encoding"] == "gzip":
                self.assertEqual(gzip.decompress(packed.body), plain.body)

    def test_files_that_are_none(self):
        for path in ("/ui/assets/none.js", "/ui/none", "/ui/assets/..%2findex.html"):
            self.assertIn(self.server.http("GET", path).status, (400, 404), path)

    def link(self):
        reply = self.server.http("POST", "/api/v1/session/link", unix=True)
        self.assertEqual(reply.status, 201, reply.body)
        return "/" + reply.json()["path"]

    def as_nobody(self, method, target, **headers):
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        out = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                              "/usr/bin/python3", "-c", ASK, host, port, method, target,
                              json.dumps(headers)], stdout=subprocess.PIPE, text=True, cwd="/",
                             check=True, timeout=120)
        return json.loads(out.stdout)

    @harness.needs_root("to ask as another user")
    def test_a_link_makes_another_user_its_maker_once(self):
        self.assertEqual(self.as_nobody("GET", "/api/v1/jobs")[0], 401)
        link = self.link()
        status, headers, _ = self.as_nobody("GET", link)
        self.assertEqual((status, headers["Location"]), (303, "../../"))
        cookie = headers["Set-Cookie"]
        for word in ("HttpOnly", "SameSite=Strict"):
            self.assertIn(word, cookie)
        session = cookie.partition(";")[0]
        self.assertEqual(self.as_nobody("GET", "/api/v1/jobs", Cookie=session)[0], 200)
        status, headers, body = self.as_nobody("GET", link)
        self.assertEqual((status, json.loads(body)["error"]["id"]), (403, "ATH-A0008"))
        self.assertNotIn("Set-Cookie", headers)
        # It outlives the server, and a cookie that was changed is none.
        self.server.kill()
        self.server.start()
        self.assertEqual(self.as_nobody("GET", "/api/v1/jobs", Cookie=session)[0], 200)
        self.assertEqual(self.as_nobody("GET", "/api/v1/jobs", Cookie=session + "0")[0], 401)
        # To change anything it must have read the token, which another origin cannot.
        csrf = json.loads(self.as_nobody("GET", "/api/v1/session", Cookie=session)[2])["csrf"]
        stop = "/api/v1/jobs/none/stop"
        self.assertEqual(self.as_nobody("POST", stop, Cookie=session)[0], 403)
        self.assertEqual(self.as_nobody("POST", stop, Cookie=session, **{"X-Athanor-Csrf": csrf})[0],
                         404)
        self.assertEqual(self.as_nobody("POST", stop, Cookie=session, Origin="http://evil.example",
                                        **{"X-Athanor-Csrf": csrf})[0], 403)

    @harness.needs_root("to ask as another user")
    def test_a_session_is_no_more_than_the_token_and_ends_with_it(self):
        token = self.server.http("POST", "/api/v1/tokens", {"scope": "read"}, JSON).json()
        made = self.server.http("POST", "/api/v1/session/link",
                                headers={"Authorization": "Bearer " + token["token"]})
        session = self.as_nobody("GET", "/" + made.json()["path"])[1]["Set-Cookie"].partition(";")[0]
        csrf = json.loads(self.as_nobody("GET", "/api/v1/session", Cookie=session)[2])["csrf"]
        status, _, body = self.as_nobody("POST", "/api/v1/jobs/none/stop", Cookie=session,
                                         **{"X-Athanor-Csrf": csrf})
        self.assertEqual((status, json.loads(body)["error"]["id"]), (403, "ATH-A0006"))
        self.server.ath("token", "revoke", token["id"], check=0)
        self.assertEqual(self.as_nobody("GET", "/api/v1/jobs", Cookie=session)[0], 401)

    def test_links_that_were_never_made(self):
        for key in ("0" * 48, "x", "%00"):
            self.assertIn(self.server.http("GET", "/ui/enter/" + key).status, (400, 403))

    def test_ath_ui_says_where(self):
        job = self.server.submit("true")
        self.ended(job)
        self.assertEqual(self.server.ath("ui", "--print", check=0).stdout.strip(),
                         self.server.url + "/")
        self.assertEqual(self.server.json("ui", job)["url"], self.server.url + "/#/job/" + job)
        link = self.server.json("ui", "--link")
        self.assertRegex(link["url"], re.escape(self.server.url) + r"/ui/enter/[0-9a-f]{48}$")
        self.assertIn("expires", link)
        path = link["url"][len(self.server.url):]
        self.assertEqual(self.server.http("GET", path).status, 303)
        self.assertEqual(self.server.http("GET", path).status, 403)
        self.assertEqual(self.server.ath("ui", "nobody").returncode, 3)



class Sparing(Case):
    """What travels: compressed where a client asks for it, and nothing that it has. Red when an answer
    is sent plain, twice, or compressed to who did not ask."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("points.py", """
            import athanor
            for step in range(2000): athanor.log(loss=1.0 / (step + 1), step=step)
            """)
        cls.job = cls.server.submit("python3", "points.py", flags=["--name", "points"])
        cls.server.wait(cls.job)
        cls.points = "/api/v1/runs/%s/metrics/loss" % cls.job

    def curl(self, path, *flags):
        """(headers of the answer, its bytes as they travelled or as curl decoded them)"""
        done = subprocess.run(["curl", "--silent", "--show-error", "--include", *flags, self.server.url + path],
                              stdout=subprocess.PIPE, check=True)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
        return headers, body

    def test_curl_gets_it_compressed_and_reads_it(self):
        plain_head, plain = self.curl(self.points)
        self.assertNotIn("content-encoding", plain_head)
        self.assertGreater(len(plain), 100_000)
        head, body = self.curl(self.points, "--compressed")
        self.assertIn(head["content-encoding"], ("gzip", "zstd"))
        self.assertIn("accept-encoding", head["vary"])
        self.assertEqual(body, plain)
        for coding in ("gzip", "zstd"):
            head, packed = self.curl(self.points, "--header", "Accept-Encoding: " + coding)
            self.assertEqual(head["content-encoding"], coding)
            self.assertLess(len(packed), len(plain) / 3)
            self.assertEqual(int(head["content-length"]), len(packed))
        self.assertEqual(gzip.decompress(self.curl(self.points, "--header", "Accept-Encoding: gzip")[1]), plain)

    def test_requests_gets_it_compressed_and_reads_it(self):
        try:
            import requests
        except ImportError:
            raise unittest.SkipTest("Debian's python3-requests is not installed")
        with requests.Session() as session:
            session.trust_env = False
            reply = session.get(self.server.url + self.points)
            self.assertEqual(reply.headers["Content-Encoding"], "gzip")
            self.assertEqual(len(reply.text.splitlines()), 2000)
            # MLflow's own calls, too, which are POSTs.
            many = session.post(self.server.url + "/api/2.0/mlflow/runs/search", json={"experiment_ids": ["0"]})
            self.assertEqual(many.status_code, 200)
            names = [run["info"]["run_name"] for run in many.json()["runs"]]
            self.assertIn("points", names)

    def test_what_a_client_has_is_not_sent_again(self):
        first = self.server.http("GET", self.points, headers={"Accept-Encoding": "gzip"})
        tag = first.headers["ETag"]
        self.assertTrue(tag)
        again = self.server.http("GET", self.points, headers={"Accept-Encoding": "gzip", "If-None-Match": tag})
        self.assertEqual((again.status, again.body), (304, b""))
        other = self.server.http("GET", self.points + "?width=100",
                                 headers={"Accept-Encoding": "gzip", "If-None-Match": tag})
        self.assertEqual(other.status, 200)

    def test_small_answers_files_and_streams_stay_as_they_are(self):
        asks = {"Accept-Encoding": "gzip"}
        self.assertNotIn("Content-Encoding", self.server.http("GET", "/api/v1/session", headers=asks).headers)
        path = self.server.http("GET", "/api/v1/jobs/%s/source/points.py" % self.job, headers=asks)
        self.assertEqual(path.status, 200)
        self.assertNotIn("Content-Encoding", path.headers)
        index = self.server.http("GET", "/", headers=asks)
        body = index.body
        for _ in range(index.headers.get_all("Content-Encoding", []).count("gzip")):
            body = gzip.decompress(body)
        self.assertIn(b"<html", body.lower())  # compressed once, beforehand


if __name__ == "__main__":
    harness.main()
