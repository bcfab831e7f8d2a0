"""What scripts do with MLflow inside a job, with the package as it comes from PyPI, old and new:
autologging, artifacts, models, data sets. All of it passes through the agent's proxy."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs

OLD, NEW = "2.22.5", "3.17.2"

TRAIN = """
    import json, os, tempfile
    import mlflow, numpy, pandas
    from sklearn.linear_model import LogisticRegression
    out = {"uri": os.environ["MLFLOW_TRACKING_URI"]}
    frame = pandas.DataFrame({"x": numpy.arange(40) / 40.0, "y": [0] * 20 + [1] * 20})

    mlflow.sklearn.autolog(log_input_examples=False, log_datasets=True)
    with mlflow.start_run() as run:
        model = LogisticRegression(C=0.7).fit(frame[["x"]], frame["y"])
        mlflow.sklearn.autolog(disable=True)

        dataset = mlflow.data.from_pandas(frame, name="line", targets="y")
        mlflow.log_input(dataset, context="training")

        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.txt", "b/c.txt"):
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file: file.write(name)
            with open(os.path.join(folder, "big.bin"), "wb") as file: file.write(os.urandom(1 << 20) * 5)
            size = os.path.getsize(os.path.join(folder, "big.bin"))
            mlflow.log_artifacts(folder, "files")

        named = "name" if hasattr(mlflow, "create_external_model") else "artifact_path"
        info = mlflow.sklearn.log_model(model, **{named: "own"}, pip_requirements=["scikit-learn"],
                                        serialization_format="cloudpickle")
        again = mlflow.sklearn.load_model(info.model_uri)
        out["same"] = bool((again.predict(frame[["x"]]) == model.predict(frame[["x"]])).all())
        if hasattr(mlflow, "create_external_model"):
            # Two models of one script, found by what was measured of them.
            for number in (1, 2):
                made = mlflow.create_external_model(name="m%d" % number)
                for step in range(3):
                    mlflow.log_metric("score", number * 10 + step, step=step, model_id=made.model_id)
                mlflow.log_metrics({"on": number}, model_id=made.model_id, dataset=dataset)
            experiment = [run.info.experiment_id]
            best = mlflow.search_logged_models(experiment, output_format="list", order_by=[
                {"field_name": "metrics.score", "ascending": False}])
            out["best"] = [m.name for m in best]
            hits = mlflow.search_logged_models(experiment, output_format="list",
                                               filter_string="metrics.score > 15")
            out["hits"] = [m.name for m in hits]
            out["last"] = sorted((m.key, m.value, m.step, m.dataset_name) for m in hits[0].metrics)
            sets = mlflow.search_logged_models(experiment, output_format="list",
                                               filter_string="metrics.on < 1.5",
                                               datasets=[{"dataset_name": "line"}])
            out["sets"] = [m.name for m in sets]
        mlflow.log_metric("plain", 5)
        mlflow.log_metric("zero", 7, step=0)
        for value in range(3): mlflow.log_metric("stepless", value)

    client = mlflow.MlflowClient()
    found = client.get_run(run.info.run_id)
    out["metrics"] = sorted(found.data.metrics)
    out["params"] = {k: found.data.params.get(k) for k in ("C", "max_iter")}
    out["datasets"] = sorted({i.dataset.name for i in found.inputs.dataset_inputs})
    out["files"] = sorted(f.path for f in client.list_artifacts(run.info.run_id, "files"))
    local = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="files")
    out["big"] = os.path.getsize(os.path.join(local, "big.bin")) == size
    out["zero"] = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "zero")]
    out["stepless"] = [(m.step, m.value)
                       for m in client.get_metric_history(run.info.run_id, "stepless")]
    try:
        client.log_param(run.info.run_id, "C", 0.8)
    except mlflow.exceptions.MlflowException as error:
        out["immutable"] = error.error_code
    name = "kept " + mlflow.__version__
    version = mlflow.register_model(info.model_uri, name)
    out["version"] = int(version.version)
    loaded = mlflow.pyfunc.load_model("models:/%s/1" % name)
    out["pyfunc"] = [int(v) for v in loaded.predict(frame[["x"]])[:2]]
    print("OUT " + json.dumps(out))
"""


class Jobs(harness.Case):
    """One server for both; they register different models."""

    def out_of(self, version, script):
        python = venvs.venv("mlflow-skinny==" + version, "scikit-learn==1.5.2", "pandas==2.2.3")
        self.server.script("train.py", script)
        job = self.server.submit(python, "train.py")
        record = self.server.wait(job)
        logs = self.server.logs(job).decode()
        self.assertEqual(record["state"], "Completed", logs[-4000:])
        self.assertNotIn("mlflow_refused", json.dumps(self.server.events(job)))
        return job, json.loads(logs.rpartition("OUT ")[2].splitlines()[0])

    def check(self, version):
        job, out = self.out_of(version, TRAIN)
        self.assertNotEqual(out["uri"], self.server.url)
        self.assertTrue(out["uri"].startswith("http://127.0.0.1:"))
        self.assertTrue(out["same"])
        self.assertEqual(out["params"], {"C": "0.7", "max_iter": "100"})
        self.assertTrue({"training_accuracy_score", "plain", "zero"} <= set(out["metrics"]), out)
        self.assertIn("line", out["datasets"])
        self.assertEqual(out["files"], ["files/a.txt", "files/b", "files/big.bin"])
        self.assertTrue(out["big"])
        self.assertEqual(out["zero"], [[0, 7.0]])
        self.assertEqual(out["stepless"], [[0, 0.0], [0, 1.0], [0, 2.0]])
        self.assertEqual(out["immutable"], "INVALID_PARAMETER_VALUE")
        self.assertEqual((out["version"], out["pyfunc"]), (1, [0, 0]))
        # Step 0 is a step, and points that have none are all there.
        self.assertEqual([(p["step"], p["value"]) for p in self.server.points(job, "zero")], [(0, 7)])
        self.assertEqual(sorted(p["value"] for p in self.server.points(job, "stepless")), [0, 1, 2])
        return out

    def test_old_client(self):
        self.check(OLD)

    def test_new_client(self):
        out = self.check(NEW)
        self.assertEqual(out["best"][:2], ["m2", "m1"])
        self.assertEqual(out["hits"], ["m2"])
        self.assertEqual(out["last"], [["on", 2.0, 0, "line"], ["score", 22.0, 2, None]])
        self.assertEqual(out["sets"], ["m1"])


if __name__ == "__main__":
    harness.main()
