"""A managed CIFAR-10 training job with PyTorch: as little as it takes."""

from sagemaker.pytorch import PyTorch

estimator = PyTorch(entry_point="cifar10.py",
                    source_dir="source",
                    role="SageMakerRole",
                    py_version="py38",
                    framework_version="1.12.0",
                    instance_count=1,
                    instance_type="ml.g4dn.xlarge")
estimator.fit()
print("model:", estimator.model_data)
