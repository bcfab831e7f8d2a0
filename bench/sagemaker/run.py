#!/usr/bin/env python3
"""Unmodified fit() of a 10 s job from CreateTrainingJob's answer on, over the job's own length.

    bench/sagemaker/run.py [--quick] [--json]

The SDK asks after 5 s, then every 30 s, and once more 10 s later: fit() of a 10 s job takes 45 s
of a server that answers at once. The job's own length is by the script's clock. The last row is
that plain server: ours, not told by the user agent that it is the SDK who asks.
"""

import json
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import Broken, Server, TREE, check, main, median  # noqa: E402

sys.path.insert(0, os.path.join(TREE, "tests"))
import venvs  # noqa: E402

SECONDS = 10
SDKS = {"sagemaker-2": "newest 2.x", "sagemaker-2.122": "2.122 on boto3 1.26"}


def fit(python, environment, *more):
    """What fit.py told, and the script's own seconds."""
    text = check([python, "-B", os.path.join(HERE, "fit.py"), str(SECONDS), *more],
                 env=environment)
    told = json.loads(text.splitlines()[-1])
    own = re.search(r"took ([\d.]+) s", text)
    if told["status"] != "Completed" or not own:
        raise Broken("the job ended as %s\n%s" % (told["status"], text[-1000:]))
    return dict(told, own=float(own.group(1)))


def run(report, options):
    server = Server()
    with open(os.path.join(server.home, "settings.yaml"), "w") as file:
        file.write("instances: simulate\n")
    with server:
        environment = dict(server.environment,
                           **json.loads(server.ath("env", "aws", "--json")))
        for lock, called in SDKS.items():
            what = "fit() of a %d s job, SDK %s" % (SECONDS, called)
            try:
                python = venvs.locked(lock)
            except unittest.SkipTest as skip:
                report.skip(what, str(skip))
                continue
            taken = [fit(python, environment) for _ in range(1 if options.quick else 5)]
            ratios = [one["fit"] / one["own"] for one in taken]
            report.row(what, median(ratios), "x", values=ratios, bar=1.3,
                       against="fit() %.2f s, the script %.2f s; SDK %s" % (
                           median([one["fit"] for one in taken]),
                           median([one["own"] for one in taken]), taken[0]["sdk"]))
            if lock == "sagemaker-2" and not options.quick:
                plain = fit(python, environment, "--unknown")
                report.row("the same, each Describe answered at once", plain["fit"] / plain["own"],
                           "x", against="fit() %.2f s" % plain["fit"])


if __name__ == "__main__":
    main("sagemaker", __doc__, run)
