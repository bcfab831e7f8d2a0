"""On spot machines: the job may be interrupted at any time, and goes on from its checkpoints."""

import sagemaker
from sagemaker.pytorch import PyTorch

session = sagemaker.Session()
checkpoints = f"s3://{session.default_bucket()}/cifar10-checkpoints"

estimator = PyTorch(entry_point="cifar10.py",
                    source_dir="source",
                    role="SageMakerRole",
                    sagemaker_session=session,
                    py_version="py38",
                    framework_version="1.12.0",
                    instance_count=1,
                    instance_type="ml.g4dn.xlarge",
                    hyperparameters={"num-epochs": 6, "pause": 1},
                    use_spot_instances=True,
                    max_run=3600,
                    max_wait=7200,
                    checkpoint_s3_uri=checkpoints,
                    base_job_name="cifar10-spot")
estimator.fit()
print("checkpoints:", sagemaker.s3.S3Downloader.list(checkpoints, session))
