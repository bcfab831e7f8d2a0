"""MLflow's registry and artifacts, with real clients from PyPI: versions that know their run and
their files, names as file systems have them, roots on a disk."""

import json
import os
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs

CLIENTS = ("2.22.5", "3.5.1", "3.15.1", "3.17.2")


def python_of(version):
    return venvs.venv("mlflow-skinny==" + version, "scikit-learn==1.5.2", "pandas==2.2.3")


def run(case, server, version, text, **environment):
    """What a script of a user prints as its last line, in JSON."""
    done = subprocess.run([python_of(version), "-c", text], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=server.work, timeout=2 * harness.PATIENCE,
                          env={"HOME": server.root, "PATH": "/usr/bin:/bin",
                               "MLFLOW_TRACKING_URI": server.url,
                               "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", **environment})
    case.assertEqual(done.returncode, 0, done.stderr.decode()[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


REGISTER = """
import json, mlflow, numpy
from sklearn.linear_model import LogisticRegression
client = mlflow.MlflowClient()
name, out = "net " + mlflow.__version__, {}
new = hasattr(mlflow, "create_external_model")
model = LogisticRegression().fit(numpy.arange(8).reshape(8, 1), [0] * 4 + [1] * 4)
with mlflow.start_run() as run:
    info = mlflow.sklearn.log_model(model, **{"name" if new else "artifact_path": "model"},
                                    pip_requirements=["scikit-learn"], registered_model_name=name,
                                    serialization_format="cloudpickle")
first = client.get_model_version(name, "1")
out["run"] = first.run_id == run.info.run_id
out["source"] = first.source
out["of_run"] = [v.version for v in client.search_model_versions("run_id = '%s'" % run.info.run_id)]
if new:
    tag = client.get_logged_model(info.model_id).tags["mlflow.modelVersions"]
    out["tag"] = sorted({(one["name"], int(one["version"])) for one in json.loads(tag)})
    out["model_id"] = info.model_id
mlflow.register_model(info.model_uri, name)
client.delete_model_version(name, "2")
out["third"] = int(mlflow.register_model(info.model_uri, name).version)
copy = client.copy_model_version("models:/%s/1" % name, name + " copy")
uri = client.get_model_version_download_uri
out["copy"] = uri(name + " copy", copy.version) == uri(name, "1")
client.delete_model_version(name, "1")
loaded = mlflow.sklearn.load_model("models:/%s copy/%s" % (name, copy.version))
out["predicts"] = [int(v) for v in loaded.predict([[0], [7]])]
client.create_model_version(name + " copy", run.info.artifact_uri + "/other", run.info.run_id)
client.update_model_version(name, "3", "touched last")
out["order"] = [[v.name[len(name):], int(v.version)] for v in client.search_model_versions()
                if v.name.startswith(name)]
print(json.dumps(out))
"""


class Models(harness.Case):
    def check(self, version):
        out = run(self, self.server, version, REGISTER)
        name = "net " + version
        self.assertTrue(out["run"], "the version has lost its run")
        self.assertEqual([int(v) for v in out["of_run"]], [1])
        if "model_id" in out:
            self.assertEqual(out["source"], "models:/" + out["model_id"])
            self.assertEqual(out["tag"], [[name, 1]])
        self.assertEqual(out["third"], 3, "the number of a deleted version was given again")
        self.assertTrue(out["copy"], "a copy leads elsewhere than the original")
        self.assertEqual(out["predicts"], [0, 1])
        self.assertEqual(out["order"], [["", 3], [" copy", 2], [" copy", 1]])
        return out

    def test_client_2_22(self):
        self.check("2.22.5")

    def test_client_3_5(self):
        self.check("3.5.1")

    def test_client_3_15(self):
        self.check("3.15.1")

    def test_client_3_17(self):
        """Red if a version keeps only what a client sends, or counts from what is left."""
        out = self.check("3.17.2")
        # What MLflow's page asks for: the files of a logged model, and of a version.
        base = "/ajax-api/2.0/mlflow/logged-models/%s/artifacts/" % out["model_id"]
        files = self.server.http("GET", base + "directories").json()["files"]
        self.assertIn("MLmodel", [one["path"] for one in files])
        text = self.server.http("GET", base + "files?artifact_file_path=MLmodel")
        self.assertEqual(text.headers["Content-Type"], "text/plain")
        self.assertIn(out["model_id"], text.body.decode())
        asked = urllib.parse.urlencode({"name": "net 3.17.2 copy", "version": 1, "path": "MLmodel"})
        self.assertEqual(self.server.http("GET", "/model-versions/get-artifact?" + asked).body,
                         text.body)


NAMES = r"""
import json, os, tempfile, mlflow
out, client = {}, mlflow.MlflowClient()
with tempfile.TemporaryDirectory() as folder, mlflow.start_run() as run:
    big = os.path.join(folder, "big.bin")
    with open(big, "wb") as file:
        file.write(os.urandom(1 << 20)); file.truncate(SIZE)
    mlflow.log_artifact(big)
    odd = os.path.join(folder, "a;b\\c &=+.txt")
    with open(odd, "w") as file: file.write("odd")
    mlflow.log_artifact(odd, "d;e/f\\g")
    local = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=".")
    out["same"] = open(os.path.join(local, "big.bin"), "rb").read() == open(big, "rb").read()
    out["folder"] = [f.path for f in client.list_artifacts(run.info.run_id, "d;e")]
    out["files"] = [f.path for f in client.list_artifacts(run.info.run_id, "d;e/f\\g")]
    with open(os.path.join(local, out["files"][0])) as file: out["text"] = file.read()
print("OUT " + json.dumps(out) if "ATHANOR_JOB_ID" in os.environ else json.dumps(out))
""".replace("SIZE", str(1 << 30 if harness.SOAK else 12 << 20))
MULTIPART = {"MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD": "true",
             "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE": "5242880",
             "MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE": "5242880"}


class Artifacts(harness.Case):
    def check_names(self, out):
        self.assertTrue(out["same"], "a file came back as another")
        self.assertEqual(out["folder"], ["d;e/f\\g"])
        self.assertEqual(out["files"], ["d;e/f\\g/a;b\\c &=+.txt"])
        self.assertEqual(out["text"], "odd")

    def test_multipart_clients_fall_back_and_names_are_any(self):
        """Red if the refusal of multipart uploads is in other words than clients wait for."""
        for version in CLIENTS:
            with self.subTest(version):
                self.check_names(run(self, self.server, version, NAMES, **MULTIPART))

    def test_the_same_in_a_job(self):
        self.server.script("train.py", "import os\nos.environ.update(%r)\n%s" % (MULTIPART, NAMES))
        job = self.server.submit(python_of("3.17.2"), "train.py")
        record = self.server.wait(job)
        logs = self.server.logs(job).decode()
        self.assertEqual(record["state"], "Completed", logs[-3000:])
        self.check_names(json.loads(logs.rpartition("OUT ")[2].splitlines()[0]))

    def test_by_hand(self):
        base = "/api/2.0/mlflow-artifacts/"
        refused = self.server.http("POST", base + "mpu/create/0/a;b", body="{}",
                                   headers={"Content-Type": "application/json"})
        self.assertEqual(refused.status, 501)
        self.assertTrue(refused.json()["message"].startswith("Multipart upload is not supported"))
        for name, kind, said in (
                ("a.png", "image/png", "filename=a.png"),
                ("MLproject", "text/plain", "filename=MLproject"),
                ("a.json", "text/plain", "filename=a.json"),
                ("a.pkl", "application/octet-stream", "filename=a.pkl"),
                ('q"b.yaml', "text/plain", 'filename="q\\"b.yaml"'),
                ("été.txt", "text/plain", 'filename="t.txt"; filename*=UTF-8\'\'%C3%A9t%C3%A9.txt')):
            path = base + "artifacts/hand/" + urllib.parse.quote(name)
            self.assertEqual(self.server.http("PUT", path, body="x").status, 200, name)
            got = self.server.http("GET", path)
            self.assertEqual(got.headers["Content-Type"], kind, name)
            self.assertIn("attachment; " + said, got.headers["Content-Disposition"])
        for bad in ("a%00b", "a%2500b", "%2e%2e/x", "C:%5cx"):
            self.assertEqual(self.server.http("PUT", base + "artifacts/" + bad, body="x").status, 400)
            answer = self.server.http("GET", base + "artifacts?path=" + bad)
            self.assertEqual((answer.status, answer.json()["message"]), (400, "Invalid path"), bad)
        upload = "/ajax-api/2.0/mlflow/upload-artifact?run_uuid=%s&path=n.txt" % ("0" * 32)
        self.assertEqual(self.server.http("POST", upload, body="x").status, 404)


ROOT = """
import json, mlflow
mlflow.set_experiment("on disk " + mlflow.__version__)
with mlflow.start_run() as run:
    mlflow.log_text("kept", "deep/note.txt")
print(json.dumps([run.info.run_id, run.info.artifact_uri]))
"""


class ArtifactRoot(unittest.TestCase):
    def test_experiments_keep_their_artifacts_on_a_disk(self):
        """Red if a place that a client named is shown, or the root's are not."""
        with harness.Server(start=False) as server:
            root = os.path.join(server.root, "a root")
            server.arguments = ["--mlflow-artifact-root",
                                "file://" + urllib.parse.quote(root)]
            server.start()
            ident, uri = run(self, server, "3.17.2", ROOT)
            self.assertTrue(uri.startswith("file://" + urllib.parse.quote(root) + "/"), uri)
            kept = os.path.join(urllib.parse.unquote(uri[len("file://"):]), "deep", "note.txt")
            with open(kept) as file:
                self.assertEqual(file.read(), "kept")
            listed = server.http("GET", "/api/2.0/mlflow/artifacts/list?path=deep&run_id=" + ident)
            self.assertEqual(listed.json()["files"],
                             [{"path": "deep/note.txt", "is_dir": False, "file_size": 4}])
            self.assertEqual(listed.json()["root_uri"], uri)
            asked = "/get-artifact?path=deep/note.txt&run_id=" + ident
            self.assertEqual(server.http("GET", asked).body, b"kept")
            own = server.http("GET", "/api/v1/runs/%s/artifacts/deep/note.txt" % ident)
            self.assertEqual(own.body, b"kept")
            # The run keeps its place when the server is started without the root, and then it is
            # not shown.
            server.kill()
            server.arguments = []
            server.start()
            self.assertEqual(server.http("GET", asked).status, 501)

    def test_no_place_that_a_client_names_is_shown(self):
        with harness.Server() as server:
            call = lambda path, body: server.http(
                "POST", "/api/2.0/mlflow/" + path, body=json.dumps(body),
                headers={"Content-Type": "application/json"}).json()
            for place in ("file:///etc", "/etc", "file:///etc/", "file://localhost/etc"):
                made = call("experiments/create", {"name": place, "artifact_location": place})
                ident = call("runs/create", {"experiment_id": made["experiment_id"]})["run"]["info"]["run_id"]
                for asked in ("/get-artifact?path=passwd&run_id=",
                              "/api/2.0/mlflow/artifacts/list?run_id="):
                    answer = server.http("GET", asked + ident)
                    self.assertEqual(answer.status, 501, answer.body)
            named = call("experiments/create", {"name": "rel", "artifact_location": "my/place"})
            found = server.http("GET", "/api/2.0/mlflow/experiments/get?experiment_id="
                                + named["experiment_id"]).json()["experiment"]
            self.assertEqual(found["artifact_location"], os.path.join(os.getcwd(), "my/place"))

    def test_a_root_that_is_none(self):
        with harness.Server(start=False) as server:
            done = server.ath("serve", "--port", "0", "--mlflow-artifact-root", "art")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("ATH-V0011", done.stderr)


if __name__ == "__main__":
    harness.main()
