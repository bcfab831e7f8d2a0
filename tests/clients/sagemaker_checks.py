"""What boto3 must see of the SageMaker door. Run by test_sagemaker_api.py with the interpreter
whose boto3 is meant and the variables of `ath env aws`; prints a JSON object a check."""

import concurrent.futures
import json
import os
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sagemaker_jobs
import sagemaker_lists
import sagemaker_logs
import sagemaker_refusals
from sagemaker_kit import World

CHECKS = {name[len("check_"):]: value
          for module in (sagemaker_jobs, sagemaker_lists, sagemaker_logs, sagemaker_refusals)
          for name, value in vars(module).items() if name.startswith("check_")}


def main(names):
    world = World()

    def run(name):
        try:
            CHECKS[name](world)
            return {"check": name, "ok": True}
        except Exception:
            return {"check": name, "ok": False, "why": traceback.format_exc()}

    # Most of a check is waiting for a small job.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for done in concurrent.futures.as_completed(
                [pool.submit(run, name) for name in names or CHECKS]):
            print(json.dumps(done.result()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
