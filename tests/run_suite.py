"""Runs the unittest cases of one file and writes what came of them as JSON.

    run_suite.py FILE RESULT [NAME...]
"""

import importlib.util
import json
import os
import sys
import unittest


class Recorder(unittest.TextTestResult):
    """Counts tests as people do: a test with several failing subtests is one failed test."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.names = []

    def startTest(self, test):
        super().startTest(test)
        self.names.append(test.id())


def main():
    path, result_path, *names = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(
        os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    tests = (loader.loadTestsFromNames(names, module) if names
             else loader.loadTestsFromModule(module))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2,
                                     resultclass=Recorder).run(tests)
    bad = {getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors}
    bad |= {test.id() for test in result.unexpectedSuccesses}
    skipped = {getattr(test, "test_case", test).id(): reason for test, reason in result.skipped}
    skipped = {name: reason for name, reason in skipped.items() if name not in bad}
    ran = set(result.names) | bad
    with open(result_path, "w") as file:
        json.dump({"passed": len(ran - bad - set(skipped)), "failed": sorted(bad),
                   "skipped": sorted(skipped.items())}, file)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
