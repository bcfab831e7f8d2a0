"""Runs the unittest cases of one file and writes their results as JSON, again after each case,
so that a file that is killed in the middle still says what passed and which case was running.

    run_suite.py FILE RESULT [NAME...]
"""

import importlib.util
import json
import os
import sys
import unittest


class Recorder(unittest.TextTestResult):
    """Counts tests as people do: a test with several failing subtests is one failed test."""

    path = None
    names = ()

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.ran = set()
        self.running = None
        self.write()

    def startTest(self, test):
        super().startTest(test)
        self.running = test.id()
        self.write()

    def stopTest(self, test):
        super().stopTest(test)
        self.ran.add(test.id())
        self.running = None
        self.write()

    def bad(self):
        found = {getattr(test, "test_case", test).id()
                 for test, _ in self.failures + self.errors}
        return found | {test.id() for test in self.unexpectedSuccesses}

    def why(self):
        """The last line of what each failed test says."""
        return {getattr(test, "test_case", test).id(): text.strip().splitlines()[-1]
                for test, text in self.failures + self.errors if text.strip()}

    def write(self, whole=False):
        bad = self.bad()
        skipped = {getattr(test, "test_case", test).id(): reason for test, reason in self.skipped}
        skipped = {name: reason for name, reason in skipped.items() if name not in bad}
        done = self.ran | bad | set(skipped)
        with open(self.path + ".new", "w") as file:
            json.dump({"passed": sorted(self.ran - bad - set(skipped)), "failed": sorted(bad),
                       "why": self.why(),
                       "skipped": sorted(skipped.items()), "running": self.running,
                       "left": [] if whole else
                       [name for name in self.names if name not in done and name != self.running],
                       "whole": whole}, file)
        os.replace(self.path + ".new", self.path)


def ids(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from ids(test)
        else:
            yield test.id()


def main():
    path, Recorder.path, *names = sys.argv[1:]
    names = [name for name in names if name]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(
        os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    tests = (loader.loadTestsFromNames(names, module) if names
             else loader.loadTestsFromModule(module))
    Recorder.names = list(ids(tests))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2,
                                     resultclass=Recorder).run(tests)
    result.write(whole=True)
    sys.exit(1 if result.bad() else 0)


if __name__ == "__main__":
    main()
