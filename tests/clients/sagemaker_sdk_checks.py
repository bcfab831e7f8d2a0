"""What the SageMaker SDK must make of jobs that launchers ran. Run by test_sagemaker.py with the
interpreter whose SDK is meant; arguments: the launchers' jobs as KIND=NAME; a JSON object a check.
"""

import concurrent.futures
import contextlib
import io
import json
import os
import re
import sys
import tarfile
import tempfile
import time
import traceback

import sagemaker
from botocore.exceptions import ClientError
from sagemaker.estimator import Estimator
from sagemaker.pytorch import PyTorch
from sagemaker.tuner import HyperparameterTuner

IMAGE = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:1.12.0-cpu-py38"
TYPE = "ml.athanor.small"


def source(text):
    folder = tempfile.mkdtemp(dir=os.environ["ATHANOR_TEST_ROOT"])
    with open(os.path.join(folder, "train.py"), "w") as file:
        file.write(text)
    return folder


def pytorch(session, text, **more):
    arguments = dict(entry_point="train.py", source_dir=source(text), role="SageMakerRole",
                     py_version="py38", framework_version="1.12.0", instance_count=1,
                     instance_type=TYPE, sagemaker_session=session)
    arguments.update(more)
    return PyTorch(**arguments)


def check_attach(session, jobs):
    found = PyTorch.attach(jobs["s3"], sagemaker_session=session)
    assert found.latest_training_job.job_name == jobs["s3"]
    assert found.hyperparameters()["num-epochs"] in (3, "3"), found.hyperparameters()
    assert found.model_data.endswith(jobs["s3"] + "/output/model.tar.gz"), found.model_data
    assert found.instance_type == "ml.g4dn.xlarge" and found.max_run == 86400


def check_model_data_can_be_fetched(session, jobs):
    found = PyTorch.attach(jobs["fit"], sagemaker_session=session)
    with tempfile.TemporaryDirectory() as folder:
        sagemaker.s3.S3Downloader.download(found.model_data, folder, sagemaker_session=session)
        with tarfile.open(os.path.join(folder, "model.tar.gz")) as tar:
            assert "cifar_net.pth" in [os.path.basename(name) for name in tar.getnames()]


def check_logs(session, jobs):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        session.logs_for_job(jobs["fit"], wait=False)
    # Printed with colours, character by character the script's lines.
    assert said.getvalue().count("Finished Training") == 1, said.getvalue()[-2000:]
    assert re.search(r"Epoch 2: Train Loss = [\d.]+; Val Loss", said.getvalue())


def check_analytics(session, jobs):
    table = sagemaker.TrainingJobAnalytics(jobs["s3"], sagemaker_session=session).dataframe()
    assert set(table.columns) == {"timestamp", "metric_name", "value"}, table
    assert set(table["metric_name"]) == {"train_loss", "val_loss", "val_accuracy"}, table
    assert all(0 <= value <= 1 for value in table[table.metric_name == "val_accuracy"]["value"])
    one = sagemaker.TrainingJobAnalytics(jobs["s3"], metric_names=["val_loss"],
                                         sagemaker_session=session).dataframe()
    assert set(one["metric_name"]) == {"val_loss"}


def check_rule_job_summary(session, jobs):
    found = PyTorch.attach(jobs["debugger"], sagemaker_session=session)
    rules = found.latest_training_job.rule_job_summary()
    names = {rule["RuleConfigurationName"] for rule in rules}
    assert {"VanishingGradient", "Overfit", "LossNotDecreasing"} <= names, names
    for rule in rules:
        assert rule["RuleEvaluationStatus"] != "NoIssuesFound", rule
        assert "not evaluated" in rule["StatusDetails"] and rule["RuleEvaluationJobArn"], rule


def check_the_tuner_can_be_attached(session, jobs):
    tuner = HyperparameterTuner.attach(jobs["tuner"], sagemaker_session=session)
    assert tuner.objective_metric_name == "val_accuracy" and tuner.max_jobs == 6
    assert tuner.describe()["HyperParameterTuningJobName"] == jobs["tuner"]
    assert "learning-rate" in tuner.analytics().tuning_ranges
    tuner.wait()
    table = tuner.analytics().dataframe()
    assert len(table) == 6 and set(table["TrainingJobStatus"]) == {"Completed"}, table
    values = dict(zip(table["TrainingJobName"], table["FinalObjectiveValue"]))
    best = tuner.best_training_job()  # one of them: several may be as accurate
    assert values[best] == max(values.values()), (best, values)
    assert tuner.best_estimator().model_data.endswith("/output/model.tar.gz")
    tuner.stop_tuning_job()


def check_a_failure_is_told_by_fit(session, jobs):
    estimator = pytorch(session, "raise ValueError('boom at ' + 'step 7')")
    try:
        estimator.fit()
    except Exception as error:
        assert type(error).__name__ == "UnexpectedStatusException", repr(error)
        assert "AlgorithmError" in str(error) and "boom at step 7" in str(error), error
        return
    raise AssertionError("fit() of a failing script returned")


def check_mpi_is_refused_by_name(session, jobs):
    estimator = pytorch(session, "print(1)", distribution={"mpi": {
        "enabled": True, "processes_per_host": 4, "custom_mpi_options": "--NCCL_DEBUG INFO"}})
    try:
        estimator.fit()
    except ClientError as error:
        assert error.response["Error"]["Code"] == "ValidationException", error
        assert "mpi" in str(error).lower(), error
        return
    raise AssertionError("an MPI job was taken")


def check_hyperparameters_arrive_as_they_left(session, jobs):
    estimator = pytorch(session, "import json, sys; print('ARGV', json.dumps(sys.argv[1:]))",
                        hyperparameters={"epochs": 3, "name": "x y", "on": True, "none": None,
                                         "lst": [1, 2], "d": {"a": 1}, "lr": 1e-4},
                        environment={"GREETING": "hello"}, tags=[{"Key": "t", "Value": "v"}])
    estimator.fit(wait=False)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        estimator.latest_training_job.wait(logs="All")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue())
    argv = json.loads(re.search(r"ARGV (\[.*\])", plain).group(1))
    assert argv == ["-d", "a=1", "--epochs", "3", "--lr", "0.0001", "--lst", "[1, 2]",
                    "--name", "x y", "--none", "", "--on", "True"], argv
    told = estimator.latest_training_job.describe()
    assert told["Environment"] == {"GREETING": "hello"}
    assert session.list_tags(told["TrainingJobArn"]) == [{"Key": "t", "Value": "v"}]


def check_a_generic_estimator_can_be_stopped(session, jobs):
    estimator = Estimator(image_uri=IMAGE, role="SageMakerRole", instance_count=1,
                          instance_type=TYPE, sagemaker_session=session, entry_point="train.py",
                          source_dir=source("import time\nwhile True: time.sleep(1)"))
    estimator.fit(wait=False)
    name = estimator.latest_training_job.job_name
    session.stop_training_job(name)
    # The older SDK takes Stopping for an end, and an unexpected one.
    while session.describe_training_job(name)["TrainingJobStatus"] == "Stopping":
        time.sleep(0.2)
    session.wait_for_job(name, poll=1)
    assert session.describe_training_job(name)["TrainingJobStatus"] == "Stopped"


CHECKS = {name[len("check_"):]: value for name, value in list(globals().items())
          if name.startswith("check_")}


def main(pairs):
    jobs = dict(pair.split("=") for pair in pairs)
    session = sagemaker.Session()
    session.default_bucket()

    def run(name):
        try:
            CHECKS[name](session, jobs)
            return {"check": name, "ok": True}
        except Exception:
            return {"check": name, "ok": False, "why": traceback.format_exc()}

    # redirect_stdout is the whole program's: one after the other those that look at it.
    alone = ["logs", "hyperparameters_arrive_as_they_left"]
    found = [run(name) for name in alone]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found += pool.map(run, [name for name in CHECKS if name not in alone])
    for told in found:
        print("\n" + json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
