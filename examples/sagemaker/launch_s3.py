"""The data set in S3, hyperparameters, and metrics read from what the script prints."""

import os
import sys

import sagemaker
from sagemaker.pytorch import PyTorch

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
                    instance_type="ml.g4dn.xlarge",
                    input_mode="FastFile",
                    hyperparameters={"batch-size": 100, "num-epochs": 3},
                    metric_definitions=[
                        {"Name": "train_loss", "Regex": "Train Loss = (.*?);"},
                        {"Name": "val_loss", "Regex": "Val Loss = (.*?);"},
                        {"Name": "val_accuracy", "Regex": "Val Accuracy = (.*?);"}],
                    base_job_name="cifar10-s3")
estimator.fit(training_data)

name = estimator.latest_training_job.job_name
print(sagemaker.TrainingJobAnalytics(name).dataframe())
