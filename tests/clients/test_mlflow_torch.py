"""PyTorch under MLflow inside a job, unmodified: `mlflow.pytorch.autolog` with Lightning, and models
that are logged and loaded again; everything lands in the job's own run. Debian's torch, and the
newest Lightning that it runs with under Python 3.11; MLflow 2.x from PyPI (of 3.x, 3.17 asks for
torch 2.5)."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs

MLFLOW = "2.22.5"

TRAIN = """
    import json
    import mlflow, torch
    import pytorch_lightning as lightning
    from torch.nn.functional import mse_loss

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
        def forward(self, x):
            return self.layer(x)
        def training_step(self, batch, _):
            loss = mse_loss(self(batch[0]), batch[1])
            self.log("train_loss", loss)
            return loss
        def validation_step(self, batch, _):
            self.log("val_loss", mse_loss(self(batch[0]), batch[1]))
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch.manual_seed(1)
    x = torch.rand(64, 1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 3 * x + 1), batch_size=8)
    mlflow.pytorch.autolog(log_every_n_step=4)
    model = Line()
    trainer = lightning.Trainer(max_epochs=3, logger=False, checkpoint_callback=False,
                                progress_bar_refresh_rate=0, weights_summary=None)
    with mlflow.start_run() as run:
        trainer.fit(model, data, data)
        info = mlflow.pytorch.log_model(model, "own", pip_requirements=["torch"])
    model.eval()
    uris = [info.model_uri, "runs:/%s/model" % run.info.run_id]
    client = mlflow.MlflowClient()
    found = client.get_run(run.info.run_id)
    print("OUT " + json.dumps({
        "run": run.info.run_id,
        "same": [bool((mlflow.pytorch.load_model(uri)(x) == model(x)).all()) for uri in uris],
        "params": found.data.params,
        "metrics": sorted(found.data.metrics),
        "losses": [[m.step, m.value]
                   for m in client.get_metric_history(run.info.run_id, "train_loss")],
        "files": [f.path for f in client.list_artifacts(run.info.run_id)],
    }))
"""


class Torch(harness.Case):
    def test_autolog_and_models(self):
        venvs.system("torch")
        python = venvs.venv("mlflow-skinny==" + MLFLOW, "pytorch-lightning==1.4.9",
                            "torchmetrics==0.5.1", "pandas==1.5.3", "setuptools<80", inherit=True)
        self.server.script("train.py", TRAIN)
        job = self.server.submit(python, "train.py")
        record = self.server.wait(job)
        logs = self.server.logs(job).decode()
        self.assertEqual(record["state"], "Completed", logs[-4000:])
        self.assertNotIn("mlflow_refused", json.dumps(self.server.events(job)))
        out = json.loads(logs.rpartition("OUT ")[2].splitlines()[0])
        self.assertEqual(out["same"], [True, True])
        self.assertEqual((out["params"]["lr"], out["params"]["epochs"]), ("0.1", "3"))
        self.assertEqual(out["params"]["optimizer_name"], "SGD")
        self.assertTrue({"train_loss", "val_loss"} <= set(out["metrics"]), out)
        self.assertIn("model_summary.txt", out["files"])
        # 24 batches, every fourth one logged, and all of it in the job's own run.
        self.assertEqual([step for step, _ in out["losses"]], [3, 7, 11, 15, 19, 23])
        self.assertLess(out["losses"][-1][1], out["losses"][0][1])
        points = self.server.points(job, "train_loss")
        self.assertEqual([[p["step"], p["value"]] for p in points], out["losses"])
        self.assertEqual([p["step"] for p in self.server.points(job, "val_loss")], [0, 1, 2])


if __name__ == "__main__":
    harness.main()
