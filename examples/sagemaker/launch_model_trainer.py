"""The same job with version 3 of the SDK, where ModelTrainer stands for the estimators."""

from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, SourceCode

trainer = ModelTrainer(
    training_image="763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:1.12.0-gpu-py38",
    source_code=SourceCode(source_dir="source", entry_script="cifar10.py"),
    compute=Compute(instance_type="ml.g4dn.xlarge", instance_count=1),
    role="arn:aws:iam::111122223333:role/SageMakerRole",
    hyperparameters={"num-epochs": 2},
    base_job_name="cifar10-trainer")
trainer.train()
