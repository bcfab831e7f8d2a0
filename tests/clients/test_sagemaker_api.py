"""The SageMaker door with unmodified boto3, old and new: each check of sagemaker_checks.py is a
test. One alone, against a server of yours after `eval "$(ath env aws)"`:
ATHANOR_TEST_ROOT=/tmp ATHANOR_TEST_ATH=build/ath python3 tests/clients/sagemaker_checks.py stop"""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
import venvs
import harness
from sagemaker_checks import CHECKS
from sagemaker_server import SageMakerServer


class Checks:
    """The checks run side by side in one program; each is told as a test of its own."""

    @classmethod
    def setUpClass(cls):
        python = cls.python()
        server = SageMakerServer()
        cls.addClassCleanup(server.close)
        status, text = server.client(python, "-B", os.path.join(HERE, "sagemaker_checks.py"))
        cls.found = {}
        for line in text.splitlines():
            if line.startswith('{"check"'):
                told = json.loads(line)
                cls.found[told["check"]] = told
        if len(cls.found) != len(CHECKS):
            raise AssertionError("status %d\n%s\n%s" % (status, text[-4000:],
                                                        open(server.log).read()[-2000:]))

    def check(self, name):
        told = self.found[name]
        if not told["ok"]:
            self.fail(told["why"])


def tests_of(cls):
    for name in CHECKS:
        setattr(cls, "test_" + name, lambda self, name=name: self.check(name))
    return cls


@tests_of
class Boto3OfDebian(Checks, unittest.TestCase):
    @staticmethod
    def python():
        return venvs.system("boto3")


@tests_of
class Boto3Current(Checks, unittest.TestCase):
    @staticmethod
    def python():
        return venvs.locked("sagemaker-2")


if __name__ == "__main__":
    harness.main()
