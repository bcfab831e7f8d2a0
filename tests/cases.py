"""Running test cases and counting them: GoogleTest binaries, files of unittest cases, commands.

A case that fails is a Failure, which knows how to run that one case by itself. A binary or a file
that dies in the middle costs the case that was running: the cases behind it are run all the same.
"""

import dataclasses
import json
import os
import re
import subprocess
import tempfile
import time
import typing

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TREE, "build")
LOGS = os.path.join(BUILD, "test-logs")
PYTHON = "/usr/bin/python3"
MOST_DEATHS = 5  # of one binary or file; what is behind the last one is not run any more


def run(command, log, timeout=3600, env=None, cwd=TREE):
    """Runs a command with its output in its own log; returns its status, -1 for a timeout. A value
    of None in `env` unsets the variable."""
    env = {name: value for name, value in dict(os.environ, **(env or {})).items()
           if value is not None}
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=subprocess.STDOUT, cwd=cwd,
                                   env=env, start_new_session=True)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            file.write(b"\n*** ended by ./test after %d s\n" % timeout)
            os.killpg(process.pid, 9)
            process.wait()
            return -1


@dataclasses.dataclass
class Failure:
    """A case that failed. `again(log)` runs it by itself and tells whether it passed; None for
    what has no second chance, such as a build."""

    name: str
    log: typing.Optional[str]
    again: typing.Optional[typing.Callable] = None
    why: str = ""  # in one line, where the case said it


class Tier:
    """What one tier found out. Steps add to it, from several threads."""

    def __init__(self, name, soak=False, before=()):
        self.name = name
        self.soak = soak
        self.before = list(before)  # the tiers that ran already
        self.passed = 0
        self.failed = []   # Failure
        self.skipped = []  # (name, reason)
        self.notes = []    # lines to print below its own
        self.began = time.monotonic()

    def log(self, name):
        return os.path.join(LOGS, "%s-%s.log" % (self.name, name))

    def run(self, name, command, **more):
        return run(command, self.log(name), **more)

    def fail(self, name, log=None, again=None, why=""):
        self.failed.append(Failure(name, log, again, why))

    def step(self, name, command, **more):
        """A command that must end with 0; counts only if it does not."""
        if self.run(name, command, **more) == 0:
            return True
        self.fail(name, self.log(name))
        return False

    def gtest(self, binary, cases="*", label=None, env=None, timeout=1800):
        """The cases of a GoogleTest binary that fit a pattern without exclusions."""
        name = label or os.path.basename(binary)
        more = {"env": env, "timeout": timeout}
        seen = []
        for part in range(MOST_DEATHS):
            log = self.log(name if part == 0 else "%s-part%d" % (name, part + 1))
            # A flag file, because a list of all cases seen is longer than an argument may be.
            with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
                flags.write("--gtest_filter=%s%s\n" % (cases, "-" + ":".join(seen) if seen else ""))
                flags.flush()
                status = run([binary, "--gtest_flagfile=" + flags.name], log, **more)
            result = gtest_result(log)
            for case in result.failed:
                self.fail(case, log, lambda at, c=case: gtest_alone(binary, c, at, **more))
            self.skipped += result.skipped
            self.passed += len(result.passed)
            if result.whole:
                if status != 0 and not result.failed:
                    self.fail("%s: status %d" % (name, status), log,
                              lambda at: run([binary, "--gtest_filter=" + cases], at, **more) == 0)
                return
            if not result.running:
                self.fail("%s: ended with status %d before its report" % (name, status), log)
                return
            self.fail(result.running, log,
                      lambda at, c=result.running: gtest_alone(binary, c, at, **more))
            seen += result.passed + result.failed + [case for case, _ in result.skipped]
            seen.append(result.running)
        self.fail("%s: died %d times; the cases behind were not run" % (name, MOST_DEATHS))

    def suite(self, path, env=None, timeout=3600, user=None, where=""):
        """One file of unittest cases; as an ordinary user (nonroot.User), in that one's tree.
        `where` tells the cases apart from those of another run of the file: " (apart)"."""
        name = os.path.relpath(path, TREE).replace("/", "-")[:-3] + where.strip().replace(" ", "-")
        more = {"env": env, "timeout": timeout, "user": user}
        left = []
        for part in range(MOST_DEATHS):
            log = self.log(name if part == 0 else "%s-part%d" % (name, part + 1))
            status, result = run_suite(path, left, log, **more)
            if result is None:
                self.fail("%s: ended with status %d before its first case" % (name, status), log,
                          lambda at: run_suite(path, [], at, **more)[0] == 0)
                return
            for i, case in enumerate(result["failed"]):
                self.fail(case + where, log if i == 0 else None,
                          lambda at, c=case: run_suite(path, [in_file(c)], at, **more)[0] == 0,
                          result["why"].get(case, ""))
            self.passed += len(result["passed"])
            self.skipped += [(case + where, reason) for case, reason in result["skipped"]]
            if result["whole"]:
                return
            case = result["running"]
            if not case:
                self.fail("%s: ended with status %d between two cases" % (name, status), log)
                return
            self.fail(case + where, log,
                      lambda at, c=case: run_suite(path, [in_file(c)], at, **more)[0] == 0)
            left = [in_file(left_over) for left_over in result["left"]]
            if not left:
                return
        self.fail("%s: died %d times; the cases behind were not run" % (name, MOST_DEATHS))

    def line(self):
        return "tier %s: %d passed, %d failed, %d skipped (%.0f s)" % (
            self.name, self.passed, len(self.failed), len(self.skipped),
            time.monotonic() - self.began)


# --- GoogleTest

@dataclasses.dataclass
class GtestResult:
    passed: list
    failed: list
    skipped: list  # (name, reason)
    running: typing.Optional[str]
    whole: bool    # it came to its own end


def gtest_result(log):
    """What a binary's log says. The log, not its report: that one is written at the end only."""
    with open(log, errors="replace") as file:
        text = file.read()
    result = GtestResult([], [], [], None, False)
    # Printed at the start of a line, but after what a case left there without a line end.
    ends = re.compile(r"\[ (RUN     | {6}OK| FAILED | SKIPPED) \] (\S+?)(?:, where .*)? ?(?:\(\d+ ms\))?$",
                      re.M)
    began = None
    for found in ends.finditer(text):
        kind, case = found.group(1).strip(), found.group(2)
        if kind == "RUN":
            result.running, began = case, found.end()
        elif case == result.running:
            if kind == "OK":
                result.passed.append(case)
            elif kind == "FAILED":
                result.failed.append(case)
            else:
                said = text[began:found.start()].strip().splitlines()
                result.skipped.append((case, said[-1].strip() if said else "no reason given"))
            result.running = None
    result.whole = bool(re.search(r"^\[==========\] .* ran\.", text, re.M)) and not result.running
    return result


def gtest_alone(binary, case, log, **more):
    """Runs one case; whether it ran and passed."""
    status = run([binary, "--gtest_filter=" + case], log, **more)
    return status == 0 and gtest_result(log).passed == [case]


def of_case(text, case):
    """The lines of a log that a GoogleTest case printed; all lines if there are none of it."""
    found = re.search(r"^\[ RUN      \] %s\n.*?^\[  FAILED  \]" % re.escape(case), text,
                      re.S | re.M)
    return (found.group(0) if found else text).splitlines()


# --- unittest

def run_suite(path, names, log, user=None, env=None, **more):
    """Runs the cases of a file, all without names: (status, what run_suite.py wrote or None)."""
    with tempfile.TemporaryDirectory(prefix="ath-suite-", dir=user and user.tmp) as folder:
        report = os.path.join(folder, "report.json")
        command = [PYTHON, "-B", os.path.join(TREE, "tests", "run_suite.py"), path, report, *names]
        if user:
            user.give(folder)
            command = user.command([user.in_tree(part) for part in command])
            env, more["cwd"] = dict(env or {}, **user.environment()), user.tree
        status = run(command, log, env=env, **more)
        try:
            with open(report) as file:
                return status, json.load(file)
        except (OSError, ValueError):
            return status, None


def in_file(case):
    """What a case is called within its file. A class or a file that could not be set up is
    named "setUpClass (test_kill.Kills)": that class, or everything (no name)."""
    found = re.match(r"(?:setUp|tearDown)(Class|Module) \((.*)\)$", case)
    if found:
        return found.group(2).partition(".")[2]
    return case.partition(".")[2]
