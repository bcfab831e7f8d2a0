"""One fit() as a launcher has it; prints when CreateTrainingJob was answered and when it returned.

    fit.py SECONDS [--unknown]

With --unknown the requests do not say that they are the SDK's: the server then answers each at
once, as a plain implementation would.
"""

import json
import os
import sys
import time

import sagemaker
from sagemaker.pytorch import PyTorch

session = sagemaker.Session()
events = session.sagemaker_client.meta.events
answered = []


def hide(request, **_):
    del request.headers["User-Agent"]
    request.headers["User-Agent"] = "unknown"


events.register("after-call.sagemaker.CreateTrainingJob",
                lambda **_: answered.append(time.time()))
if "--unknown" in sys.argv:
    events.register("before-sign.sagemaker", hide)
estimator = PyTorch(entry_point="train.py", role="SageMakerRole", py_version="py38",
                    source_dir=os.path.join(os.path.dirname(os.path.abspath(__file__)), "source"),
                    framework_version="1.12.0", instance_count=1, instance_type="ml.g4dn.xlarge",
                    hyperparameters={"seconds": float(sys.argv[1])}, sagemaker_session=session)
estimator.fit()
returned = time.time()
told = estimator.latest_training_job.describe()
print("\n" + json.dumps({"fit": returned - answered[0], "status": told["TrainingJobStatus"],
                         "sdk": sagemaker.__version__}), flush=True)
