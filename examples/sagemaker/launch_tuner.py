"""A search over hyperparameters. With --wait: until it is done, then its table."""

import os
import sys

import sagemaker
from sagemaker.pytorch import PyTorch
from sagemaker.tuner import (CategoricalParameter, ContinuousParameter, HyperparameterTuner,
                             IntegerParameter)

sys.path.insert(0, "source")
import pictures  # noqa: E402

if not os.path.exists("data"):
    pictures.write("data")
session = sagemaker.Session()
training_data = session.upload_data("data", key_prefix="cifar-training-data")

estimator = PyTorch(entry_point="cifar10.py",
                    source_dir="source",
                    role="SageMakerRole",
                    sagemaker_session=session,
                    py_version="py38",
                    framework_version="1.12.0",
                    instance_count=1,
                    instance_type="ml.g4dn.xlarge")
tuner = HyperparameterTuner(
    estimator,
    "val_accuracy",
    {"learning-rate": ContinuousParameter(0.0001, 0.1, scaling_type="Logarithmic"),
     "batch-size": CategoricalParameter([50, 100, 200]),
     "num-epochs": IntegerParameter(1, 3, scaling_type="Linear")},
    [{"Name": "train_loss", "Regex": "Train Loss = (.*?);"},
     {"Name": "val_accuracy", "Regex": "Val Accuracy = (.*?);"}],
    objective_type="Maximize",
    max_jobs=6,
    max_parallel_jobs=2)
wait = "--wait" in sys.argv
tuner.fit({"training": training_data}, wait=wait)
print("tuning job:", tuner.latest_tuning_job.name)
if wait:
    print("best:", tuner.best_training_job())
    print(tuner.analytics().dataframe())
