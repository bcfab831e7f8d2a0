"""MLflow's own tests of its server, against Athanor's: one case here for each of theirs.

Where no sources of MLflow are at hand they are skipped, and say so (mlflow_own/own_tests.py)."""

import os
import sys
import unittest
from unittest import mock

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "mlflow_own")]
import harness
import own_tests
import scope


class Own:
    """The tests of one file of one version: they run together, as they do at MLflow."""

    @classmethod
    def setUpClass(cls):
        with mock.patch.dict(os.environ, CI="true"):  # as it is where a CI runs them
            cls.results = own_tests.run(cls.version, cls.file)

    def check(self, name):
        self.assertIn(name, self.results, "it did not run")
        wrong = {case: one["text"] for case, one in self.results[name].items()
                 if one["outcome"] == "failed"}
        self.assertFalse(wrong, "\n".join("%s\n%s" % pair for pair in wrong.items()))
        if all(one["outcome"] == "skipped" for one in self.results[name].values()):
            self.skipTest(next(iter(self.results[name].values()))["text"][-300:])


def case_of(version, name):
    if why := scope.cannot(version, name):
        return unittest.skip(why)(lambda self: None)
    return lambda self: self.check(name)


class Scope(unittest.TestCase):
    def test_what_is_left_out_is_there(self):
        """Red if a test that is left out has another name by now, and so hides nothing."""
        there = {name for version in scope.VERSIONS for file in scope.FILES
                 for name in own_tests.names(version, file)}
        self.assertEqual({*scope.CANNOT, *scope.OUT_OF_SCOPE} - there, set())
        self.assertGreater(len(there - {*scope.CANNOT, *scope.OUT_OF_SCOPE}), 90)


def add(version, file):
    name = "V%s_%s" % (version.replace(".", "_"), file[len("test_"):])
    try:
        tests = {test: case_of(version, test) for test in own_tests.names(version, file)
                 if test not in scope.OUT_OF_SCOPE}
    except unittest.SkipTest as why:
        tests = {file: unittest.skip(str(why))(lambda self: None)}
    globals()[name] = type(name, (Own, unittest.TestCase), {
        "__module__": __name__, "version": version, "file": file, **tests})


for one_version in scope.VERSIONS:
    for one_file in scope.FILES:
        add(one_version, one_file)


if __name__ == "__main__":
    harness.main()
