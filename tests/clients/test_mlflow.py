"""The MLflow door: real clients from PyPI, old and new, and what they cannot send by hand."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs

OLD, NEW = "2.22.5", "3.17.2"


class Door(unittest.TestCase):
    """A server, and calls by hand."""

    @classmethod
    def setUpClass(cls):
        cls.server = harness.Server()
        cls.addClassCleanup(cls.server.close)

    def call(self, method, path, body=None, status=200):
        reply = self.server.http(method, "/api/2.0/mlflow/" + path,
                                 body=json.dumps(body) if body is not None else None,
                                 headers={"Content-Type": "application/json"})
        self.assertEqual(reply.status, status, reply.body[:500])
        return reply.json()

    def new_run(self, **more):
        return self.call("POST", "runs/create", {"experiment_id": "0", **more})["run"]["info"]["run_id"]

    def refused(self, method, path, body, code="INVALID_PARAMETER_VALUE", status=400):
        answer = self.call(method, path, body, status)
        self.assertEqual(answer["error_code"], code, answer)
        return answer["message"]


class ByHand(Door):
    def test_probes(self):
        self.assertEqual(self.server.http("GET", "/health").body, b"OK")
        self.assertRegex(self.server.http("GET", "/version").body.decode(), r"^3\.\d+\.\d+$")
        info = self.server.http("GET", "/api/3.0/mlflow/server-info").json()
        self.assertFalse(info["multipart_uploads_enabled"])
        default = self.call("GET", "experiments/get?experiment_id=0")["experiment"]
        self.assertEqual(default["name"], "Default")

    def test_a_call_that_is_not_served_says_so(self):
        for method, path in (("POST", "/api/3.0/mlflow/traces"), ("GET", "/api/2.0/mlflow/nothing"),
                             ("PUT", "/api/2.0/mlflow/runs/create")):
            reply = self.server.http(method, path, body="{}" if method != "GET" else None)
            self.assertEqual((reply.status, reply.json()["error_code"]), (404, "ENDPOINT_NOT_FOUND"))

    def test_values_that_json_lacks_come_back_exact(self):
        """Red if infinities become the largest double, as they do in MLflow."""
        run = self.new_run()
        for step, value in enumerate(["NaN", "Infinity", "-Infinity", 0.1, "7"], 1):
            self.call("POST", "runs/log-metric", {"run_id": run, "key": "m", "value": value,
                                                  "timestamp": 5, "step": str(step)})
        history = self.call("GET", "metrics/get-history?run_id=%s&metric_key=m" % run)["metrics"]
        self.assertEqual([m["value"] for m in history], ["NaN", "Infinity", "-Infinity", 0.1, 7.0])
        self.assertEqual([m["step"] for m in history], [1, 2, 3, 4, 5])

    def test_many_points_without_a_step_are_many(self):
        run = self.new_run()
        for i in range(3):
            self.call("POST", "runs/log-metric", {"run_id": run, "key": "m", "value": i,
                                                  "timestamp": 10 + i})
        # Sent again by a client that missed the answer: still the same point.
        self.call("POST", "runs/log-metric", {"run_id": run, "key": "m", "value": 2, "timestamp": 12})
        history = self.call("GET", "metrics/get-history?run_id=%s&metric_key=m" % run)["metrics"]
        self.assertEqual([m["value"] for m in history], [0.0, 1.0, 2.0])
        data = self.call("GET", "runs/get?run_id=" + run)["run"]["data"]
        self.assertEqual(data["metrics"][0]["value"], 2.0)

    def test_limits_echo_the_value(self):
        run = self.new_run()
        log = {"run_id": run, "key": "m", "value": 1, "timestamp": 1}
        self.assertIn("Missing value for required parameter 'key'",
                      self.refused("POST", "runs/log-metric", {**log, "key": ""}))
        for key in ("a//b", "../x", "/x", "a\nb", "x" * 251, "a;b", "."):
            self.refused("POST", "runs/log-metric", {**log, "key": key})
        self.assertIn("Invalid value \"abc\" for parameter 'value' supplied",
                      self.refused("POST", "runs/log-metric", {**log, "value": "abc"}))
        self.refused("POST", "runs/log-metric", {**log, "value": True})
        self.assertIn("Missing value for required parameter 'timestamp'",
                      self.refused("POST", "runs/log-metric", {"run_id": run, "key": "m", "value": 1}))
        metrics = [{"key": "m", "value": 1, "timestamp": 1}] * 1001
        self.assertIn("at most 1000 metrics. Got 1001 metrics.",
                      self.refused("POST", "runs/log-batch", {"run_id": run, "metrics": metrics}))
        self.assertIn("'metrics[0].timestamp'",
                      self.refused("POST", "runs/log-batch",
                                   {"run_id": run, "metrics": [{"key": "m", "value": 1}]}))
        self.call("POST", "runs/log-parameter", {"run_id": run, "key": "a", "value": "1"})
        self.assertIn("Changing param values is not allowed. Param with key='a' was already logged "
                      "with value='1'",
                      self.refused("POST", "runs/log-parameter",
                                   {"run_id": run, "key": "a", "value": "2"}))
        self.assertIn("Invalid clause(s) in filter string: 'or'",
                      self.refused("POST", "runs/search", {"experiment_ids": ["0"],
                                                           "filter": "params.a = '1' or params.a = '2'"}))
        self.refused("GET", "runs/get?run_id=" + "0" * 32, None, "RESOURCE_DOES_NOT_EXIST", 404)
        self.refused("POST", "experiments/search", {})

    def test_bodies_that_are_none(self):
        for body in ("{", "[1]", "nan", "{\"a\": NaN}"):
            reply = self.server.http("POST", "/api/2.0/mlflow/runs/create", body=body,
                                     headers={"Content-Type": "application/json"})
            self.assertEqual(reply.status, 400, body)
            self.assertIn("message", reply.json())
        reply = self.server.http("POST", "/api/2.0/mlflow/runs/create", body="{}",
                                 headers={"Content-Type": "text/plain"})
        self.assertIn("Content-Type must be one of", reply.json()["message"])

    def test_a_deleted_run_takes_nothing(self):
        run = self.new_run()
        self.call("POST", "runs/delete", {"run_id": run})
        self.assertIn("must be in the 'active' state",
                      self.refused("POST", "runs/log-metric",
                                   {"run_id": run, "key": "m", "value": 1, "timestamp": 1}))
        self.call("POST", "runs/restore", {"run_id": run})
        self.call("POST", "runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1})

    def test_all_is_there_after_a_kill(self):
        """Red if an answer goes out before what it says is kept."""
        run = self.new_run(run_name="kept")
        self.call("POST", "runs/log-batch", {
            "run_id": run, "metrics": [{"key": "m", "value": 0.5, "timestamp": 1, "step": 3}],
            "params": [{"key": "p", "value": "v"}], "tags": [{"key": "t", "value": "w"}]})
        self.server.kill()
        self.server.start()
        found = self.call("GET", "runs/get?run_id=" + run)["run"]
        self.assertEqual(found["info"]["run_name"], "kept")
        self.assertEqual(found["data"]["metrics"], [{"key": "m", "value": 0.5, "timestamp": 1, "step": 3}])
        self.assertEqual(found["data"]["params"], [{"key": "p", "value": "v"}])
        self.assertIn({"key": "t", "value": "w"}, found["data"]["tags"])

    def test_artifacts_stay_inside(self):
        """Red if a path is decoded once more after it was checked."""
        base = "/api/2.0/mlflow-artifacts/artifacts/"
        secret = os.path.join(self.server.home, "settings.yaml")
        with open(secret, "w") as file:
            file.write("instances: real\n")
        ups = ["..", "%2e%2e", "%252e%252e", "%25252e%25252e", ".%2e", "%2e.", "..%00", "%c0%ae%c0%ae",
               "..;", "..\\", "%5c..", "..%5c"]
        slashes = ["/", "%2f", "%252f", "%25252f", "//", "/./", "%5c", "\\"]
        tried = 0
        for up in ups:
            for slash in slashes:
                for head in ("", "0/", "/"):
                    path = head + up + slash + "settings.yaml"
                    got = self.server.http("GET", base + path)
                    self.assertNotIn(b"instances", got.body, path)
                    put = self.server.http("PUT", base + path, body="gone")
                    self.assertIn(put.status, (400, 404, 405), path)
                    tried += 1
        self.assertGreater(tried, 200)
        with open(secret) as file:
            self.assertEqual(file.read(), "instances: real\n")

    def test_artifacts_are_attachments(self):
        path = "/api/2.0/mlflow-artifacts/artifacts/0/x/artifacts/page.html"
        self.assertEqual(self.server.http("PUT", path, body="<script>1</script>").status, 200)
        got = self.server.http("GET", path)
        self.assertEqual(got.body, b"<script>1</script>")
        headers = {name.lower(): value for name, value in dict(got.headers).items()}
        self.assertTrue(headers["content-disposition"].startswith("attachment"))
        self.assertEqual(headers["x-content-type-options"], "nosniff")
        self.assertIn("sandbox", headers["content-security-policy"])
        self.assertNotIn("html", headers["content-type"])
        part = self.server.http("GET", path, headers={"Range": "bytes=1-6"})
        self.assertEqual((part.status, part.body), (206, b"script"))
        self.assertEqual(self.server.http("GET", path + "x").status, 404)


CLIENT = """
import json, math, os, sys, tempfile
import mlflow
from mlflow import MlflowClient
out = {"version": mlflow.__version__}
mlflow.set_experiment("digits " + out["version"])
with mlflow.start_run(run_name="first") as run:
    mlflow.log_param("lr", 0.1)
    mlflow.log_params({"opt": "adam", "layers": 3})
    for step in range(5):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"acc": 0.9, "inf": math.inf}, step=4)
    mlflow.set_tag("team", "vision")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "notes.txt")
        with open(path, "w") as file: file.write("hello")
        mlflow.log_artifact(path)
        mlflow.log_artifact(path, "deep/er")
    mlflow.log_text("inline", "inline.txt")
    mlflow.log_dict({"a": [1]}, "conf.json")
    with mlflow.start_run(nested=True, run_name="child") as child:
        mlflow.log_metric("loss", 9)
client = MlflowClient()
found = client.get_run(run.info.run_id)
out["status"] = found.info.status
out["metrics"] = {k: repr(v) for k, v in found.data.metrics.items()}
out["params"] = found.data.params
out["team"] = found.data.tags["team"]
out["history"] = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "loss")]
out["files"] = sorted(f.path for f in client.list_artifacts(run.info.run_id))
out["deep"] = [f.path for f in client.list_artifacts(run.info.run_id, "deep/er")]
local = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="deep/er/notes.txt")
with open(local) as file: out["read"] = file.read()
exp = client.get_experiment_by_name("digits " + out["version"])
hits = client.search_runs([exp.experiment_id], "metrics.loss < 0.5 and params.opt = 'adam'")
out["hits"] = [r.info.run_name for r in hits]
order = client.search_runs([exp.experiment_id], order_by=["metrics.loss DESC"])
out["order"] = [r.info.run_name for r in order]
pages, token = [], None
while True:
    page = client.search_runs([exp.experiment_id], max_results=1, page_token=token)
    pages += [r.info.run_name for r in page]
    token = page.token
    if not token: break
out["pages"] = sorted(pages)
out["experiments"] = [e.name for e in client.search_experiments(filter_string="name LIKE 'digits%'")]
out["none"] = client.get_experiment_by_name("not there") is None
client.delete_run(child.info.run_id)
out["left"] = len(client.search_runs([exp.experiment_id]))
try:
    client.log_param(run.info.run_id, "lr", 0.2)
except mlflow.exceptions.MlflowException as error:
    out["immutable"] = error.error_code
print(json.dumps(out))
"""


REGISTRY = """
import json
import mlflow
from mlflow import MlflowClient
out = {}
client = MlflowClient()
name = "net " + mlflow.__version__
with mlflow.start_run() as run:
    mlflow.log_text("weights", "model/weights.txt")
source = run.info.artifact_uri + "/model"
client.create_registered_model(name, tags={"a": "1"}, description="d")
try:
    client.create_registered_model(name)
except mlflow.exceptions.MlflowException as error:
    out["twice"] = error.error_code
first = client.create_model_version(name, source, run.info.run_id)
second = client.create_model_version(name, source, run.info.run_id, tags={"v": "2"})
out["versions"] = [first.version, second.version]
client.set_registered_model_alias(name, "best", second.version)
out["alias"] = client.get_model_version_by_alias(name, "best").version
client.update_model_version(name, first.version, "old one")
client.set_model_version_tag(name, first.version, "k", "v")
found = client.get_model_version(name, first.version)
out["first"] = [found.description, found.tags, found.run_id == run.info.run_id]
out["search"] = [v.version for v in client.search_model_versions("name='%s'" % name)]
out["models"] = [m.name for m in client.search_registered_models("name LIKE 'net %'")]
client.delete_model_version(name, second.version)
out["left"] = [v.version for v in client.search_model_versions("name='%s'" % name)]
client.rename_registered_model(name, name + " b")
out["renamed"] = client.get_registered_model(name + " b").tags
local = mlflow.artifacts.download_artifacts(client.get_model_version_download_uri(name + " b", "1"))
out["file"] = open(local + "/weights.txt").read()
client.delete_registered_model(name + " b")
out["gone"] = len(client.search_registered_models("name LIKE 'net %'"))
if hasattr(client, "create_logged_model"):
    model = client.create_logged_model("0", name="net", source_run_id=run.info.run_id,
                                       params={"p": "1"}, tags={"t": "2"})
    model = client.finalize_logged_model(model.model_id, "READY")
    hits = client.search_logged_models(["0"], filter_string="params.p = '1'")
    out["logged"] = [str(model.status), model.tags["t"], [h.model_id for h in hits] == [model.model_id]]
print(json.dumps(out))
"""


class Real(Door):
    """What a user's script does, with the package as it comes."""

    def python(self, version, text, **environment):
        python = venvs.venv("mlflow-skinny==" + version)
        done = subprocess.run([python, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={"HOME": self.server.root, "PATH": "/usr/bin:/bin",
                                   "MLFLOW_TRACKING_URI": self.server.url,
                                   "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", **environment},
                              cwd=self.server.work, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr.decode()[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def check_client(self, version):
        out = self.python(version, CLIENT)
        self.assertEqual(out["version"], version)
        self.assertEqual(out["status"], "FINISHED")
        self.assertEqual(out["metrics"], {"loss": "0.2", "acc": "0.9", "inf": "inf"})
        self.assertEqual(out["params"], {"lr": "0.1", "opt": "adam", "layers": "3"})
        self.assertEqual(out["team"], "vision")
        self.assertEqual(out["history"], [[step, 1 / (step + 1)] for step in range(5)])
        self.assertEqual(out["files"], ["conf.json", "deep", "inline.txt", "notes.txt"])
        self.assertEqual(out["deep"], ["deep/er/notes.txt"])
        self.assertEqual(out["read"], "hello")
        self.assertEqual(out["hits"], ["first"])
        self.assertEqual(out["order"], ["child", "first"])
        self.assertEqual(out["pages"], ["child", "first"])
        self.assertIn("digits " + version, out["experiments"])
        self.assertTrue(out["none"])
        self.assertEqual(out["left"], 1)
        self.assertEqual(out["immutable"], "INVALID_PARAMETER_VALUE")

    def test_old_client(self):
        self.check_client(OLD)

    def test_new_client(self):
        self.check_client(NEW)

    def check_registry(self, version):
        out = self.python(version, REGISTRY)
        logged = out.pop("logged", None)
        self.assertEqual(out, {
            "twice": "RESOURCE_ALREADY_EXISTS", "versions": out["versions"], "alias": out["alias"],
            "first": ["old one", {"k": "v"}, True], "search": out["search"],
            "models": ["net " + version], "left": out["left"], "renamed": {"a": "1"},
            "file": "weights", "gone": 0})
        self.assertEqual([str(v) for v in out["versions"]], ["1", "2"])
        self.assertEqual(str(out["alias"]), "2")
        # The one that was changed last comes first, as with MLflow.
        self.assertEqual([str(v) for v in out["search"]], ["1", "2"])
        self.assertEqual([str(v) for v in out["left"]], ["1"])
        return logged

    def test_registry_of_the_old_client(self):
        self.check_registry(OLD)

    def test_registry_and_logged_models_of_the_new_client(self):
        logged = self.check_registry(NEW)
        self.assertEqual(logged[1:], ["2", True])
        self.assertIn("READY", logged[0])

    def test_exported_runs_are_read_by_mlflow_itself(self):
        job = self.server.python("""
            import athanor
            for step in range(3): athanor.log({"deep/loss": step / 2, "inf": float("inf")}, step=step)
            athanor.log({"../up": 1}, step=0)
        """, flags=["-p", "lr=0.1", "--name", "exported", "--experiment", 'say: "it"'])
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        folder = os.path.join(self.server.root, "mlruns-out")
        done = self.server.ath("export", "mlflow", job, "-o", folder, check=0)
        self.assertIn("left out", done.stderr)
        self.assertEqual(self.server.ath("export", "mlflow", job, "-o", folder).returncode, 4)
        out = self.python(OLD, """
import json, mlflow
client = mlflow.MlflowClient()
found = [(e.name, r) for e in client.search_experiments() for r in client.search_runs([e.experiment_id])]
name, run = found[0]
print(json.dumps({"experiment": name, "runs": len(found), "name": run.info.run_name,
                  "status": run.info.status, "params": run.data.params,
                  "metrics": {k: str(v) for k, v in run.data.metrics.items()},
                  "history": [[m.step, m.value] for m in client.get_metric_history(run.info.run_id, "deep/loss")]}))
""", MLFLOW_TRACKING_URI=folder)
        self.assertEqual(out, {
            "experiment": 'say: "it"', "runs": 1, "name": "exported", "status": "FINISHED",
            "params": {"lr": "0.1"}, "metrics": {"deep/loss": "1.0", "inf": "inf"},
            "history": [[0, 0.0], [1, 0.5], [2, 1.0]]})

    def check_job(self, version):
        """A script in a job logs to the job's own run, whatever experiment it names."""
        python = venvs.venv("mlflow-skinny==" + version)
        self.server.script("train.py", """
            import athanor, mlflow
            mlflow.set_experiment("from the script")
            with mlflow.start_run() as run:
                mlflow.log_param("lr", 0.5)
                for step in range(1, 4):
                    mlflow.log_metric("loss", 1 / step, step=step)
                    athanor.log(own=step, step=step)
                mlflow.log_text("kept", "note.txt")
                print("run", run.info.run_id)
            """)
        job = self.server.submit(python, "train.py")
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", self.server.ath("logs", job).stdout[-2000:])
        values = [(p["step"], p["value"]) for p in self.server.points(job, "loss")]
        self.assertEqual(values, [(1, 1.0), (2, 0.5), (3, 1 / 3)])
        experiment = self.call(
            "GET", "experiments/get-by-name?experiment_name=from%20the%20script")["experiment"]
        runs = self.call("POST", "runs/search", {"experiment_ids": [experiment["experiment_id"]]})["runs"]
        (run,) = [r for r in runs if {"key": "athanor.job", "value": record["name"]} in r["data"]["tags"]]
        self.assertIn("run " + run["info"]["run_id"], self.server.ath("logs", job).stdout)
        self.assertEqual(run["info"]["status"], "FINISHED")
        self.assertEqual({m["key"] for m in run["data"]["metrics"]}, {"loss", "own"})
        self.assertIn({"key": "lr", "value": "0.5"}, run["data"]["params"])

    def test_job_with_the_old_client(self):
        self.check_job(OLD)

    def test_job_with_the_new_client(self):
        self.check_job(NEW)


if __name__ == "__main__":
    harness.main()
