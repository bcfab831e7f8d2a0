"""The tiers of ./test: what is built, what is run, and what is counted."""

import argparse
import concurrent.futures
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TREE, "build")
LOGS = os.path.join(BUILD, "test-logs")
TAIL = 60       # lines of a failing step's log that are shown
THREADED = ["base", "net", "record", "link", "run", "steer"]  # rooms with threads of their own
PYTHON = "/usr/bin/python3"


class Tier:
    """What one tier found out. Steps add to it, from several threads."""

    def __init__(self, name, soak):
        self.name = name
        self.soak = soak
        self.passed = 0
        self.failed = []   # (name, log or None)
        self.skipped = []  # (name, reason)
        self.began = time.monotonic()

    def log(self, name):
        return os.path.join(LOGS, "%s-%s.log" % (self.name, name))

    def run(self, name, command, timeout=3600, env=None, cwd=TREE):
        """Runs a command with its output in a log of its own; its status, -1 for a time-out."""
        with open(self.log(name), "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, cwd=cwd,
                                       env=dict(os.environ, **(env or {})),
                                       start_new_session=True)
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                log.write(b"\n*** ended by ./test after %d s\n" % timeout)
                os.killpg(process.pid, 9)
                process.wait()
                return -1

    def step(self, name, command, **more):
        """A command that must end with 0; counts only if it does not."""
        if self.run(name, command, **more) == 0:
            return True
        self.failed.append((name, self.log(name)))
        return False

    def gtest(self, binary, arguments=(), label=None, env=None, timeout=1800):
        """One GoogleTest binary, counted by case."""
        name = label or os.path.basename(binary)
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            status = self.run(name, [binary, "--gtest_output=json:" + report.name, *arguments],
                              env=env, timeout=timeout)
            try:
                suites = json.load(open(report.name)).get("testsuites", [])
            except ValueError:
                suites = None
        if suites is None:
            self.failed.append((name + ": ended with status %d before its report" % status,
                                self.log(name)))
            return
        bad = 0
        for suite in suites:
            for case in suite["testsuite"]:
                full = "%s.%s" % (suite["name"], case["name"])
                if case.get("failures"):
                    bad += 1
                    self.failed.append((full, self.log(name)))
                elif case.get("result") == "SKIPPED":
                    self.skipped.append((full, skip_reason(self.log(name), full)))
                elif case.get("status") == "RUN":
                    self.passed += 1
        if status != 0 and not bad:
            self.failed.append((name + ": status %d" % status, self.log(name)))

    def suite(self, path, env=None, timeout=3600):
        """One file of unittest cases."""
        name = os.path.relpath(path, TREE).replace("/", "-")[:-3]
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            status = self.run(name, [PYTHON, "-B", os.path.join(TREE, "tests", "run_suite.py"),
                                     path, report.name], env=env, timeout=timeout)
            try:
                result = json.load(open(report.name))
            except ValueError:
                self.failed.append((name + ": ended with status %d before its report" % status,
                                    self.log(name)))
                return
        self.passed += result["passed"]
        for i, case in enumerate(result["failed"]):
            self.failed.append((case, self.log(name) if i == 0 else None))
        self.skipped += [tuple(pair) for pair in result["skipped"]]

    def line(self):
        return "tier %s: %d passed, %d failed, %d skipped (%.0f s)" % (
            self.name, self.passed, len(self.failed), len(self.skipped),
            time.monotonic() - self.began)


def skip_reason(log, case):
    """What GTEST_SKIP() said: the lines before "[  SKIPPED ] case"."""
    text = open(log, errors="replace").read()
    found = re.search(r"\[ RUN      \] %s\n(.*?)\[  SKIPPED \]" % re.escape(case), text, re.S)
    lines = found.group(1).strip().splitlines() if found else []
    return lines[-1].strip() if lines else "no reason given"


def of_case(text, case):
    """The lines of a log that a GoogleTest case printed; all lines if it has none of its own."""
    found = re.search(r"^\[ RUN      \] %s\n.*?^\[  FAILED  \]" % re.escape(case), text,
                      re.S | re.M)
    return (found.group(0) if found else text).splitlines()


def both(calls):
    """Two at a time, longest first if the caller sorted them so."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def newest_first(pattern):
    return sorted(glob.glob(os.path.join(BUILD, pattern)))


def build(tier, preset, targets=()):
    directory = os.path.join(BUILD, preset)
    if not os.path.exists(os.path.join(directory, "build.ninja")):
        if not tier.step("configure-" + preset, ["cmake", "--preset", preset]):
            return False
    command = ["nice", "cmake", "--build", "--preset", preset]
    return tier.step("build-" + preset, command + (["--target", *targets] if targets else []),
                     timeout=4 * 3600)


def unit_tests(preset):
    return newest_first(preset + "/tests/*_test")


def units(tier):
    both([lambda: tier.suite(os.path.join(TREE, "tests", "test_layers.py"))])
    if not tier.step("build-release", ["nice", os.path.join(TREE, "tools", "build_release")],
                     timeout=4 * 3600):
        return
    tier.step("pages", [PYTHON, "-B", os.path.join(TREE, "tests", "pages.py")])
    both([lambda b=b: tier.gtest(b) for b in unit_tests("release")])
    env = {"PYTHONPATH": os.path.join(BUILD, "python"),
           "ATHANOR_SPOOL_DUMP": os.path.join(BUILD, "release", "tests", "spool_dump"),
           "ATHANOR_EVENT_DUMP": os.path.join(BUILD, "release", "tests", "event_dump")}
    both([lambda p=p: tier.suite(p, env) for p in
          sorted(glob.glob(os.path.join(TREE, "python", "tests", "test_*.py")))])


def sanitizers(tier):
    options = {"ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1",
               "UBSAN_OPTIONS": "print_stacktrace=1",
               "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}
    if build(tier, "asan"):
        both([lambda b=b: tier.gtest(b, label="asan-" + os.path.basename(b), env=options)
              for b in unit_tests("asan")])
    wanted = [room + "_test" for room in THREADED
              if os.path.exists(os.path.join(TREE, "src", room, "CMakeLists.txt"))]
    if build(tier, "tsan", wanted):
        both([lambda b=b: tier.gtest(b, label="tsan-" + os.path.basename(b), env=options)
              for b in unit_tests("tsan")])


def fuzz(tier):
    targets = newest_first("asan/fuzz/fuzz_*")
    if not targets:
        tier.skipped.append(("fuzz", "no target was built"))
    seconds = 600 if tier.soak else 6

    def one(target):
        name = os.path.basename(target)
        with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
            corpus = [os.path.join(scratch, "found")]
            os.mkdir(corpus[0])
            seeds = os.path.join(TREE, "tests", "corpus", name[len("fuzz_"):])
            if os.path.isdir(seeds):
                corpus.append(seeds)
            status = tier.run(name, [target, "-max_total_time=%d" % seconds, "-timeout=25",
                                     "-rss_limit_mb=2048", "-print_final_stats=1",
                                     "-artifact_prefix=" + scratch + "/", *corpus],
                              timeout=seconds + 300, cwd=scratch)
            if status == 0:
                tier.passed += 1
                return
            tier.failed.append((name, tier.log(name)))
            for path in glob.glob(os.path.join(scratch, "*-*")):
                shutil.copy(path, LOGS)  # the input that breaks it

    both([lambda t=t: one(t) for t in targets])


def simulation(tier):
    """Random histories, other ones each time."""
    cases = "*History.*:*Histor*Keep*:*Histories*"
    rounds = 100 if tier.soak else 8

    def one(binary):
        listed = subprocess.run([binary, "--gtest_list_tests", "--gtest_filter=" + cases],
                                stdout=subprocess.PIPE, text=True).stdout
        if not re.search(r"^  \w", listed, re.M):
            return
        for i in range(rounds):
            seed = str(random.randrange(1 << 31))
            tier.gtest(binary, ["--gtest_filter=" + cases],
                       label="%s-seed-%s" % (os.path.basename(binary), seed),
                       env={"ATHANOR_SEED": seed, "ATHANOR_TEST_SEED": seed})

    both([lambda b=b: one(b) for b in unit_tests("release")])
    control_logic(tier, os.path.join(BUILD, "release", "tests", "steer_test"))


def control_logic(tier, binary):
    """The simulated cluster, the same seeds each time; --soak has a hundred times as many."""
    seeds, at_once = (20000, 500) if tier.soak else (200, 100)
    both([lambda first=first: tier.gtest(
        binary, ["--gtest_filter=Simulation.EveryPromiseHoldsInEveryHistory"],
        label="simulation-from-%d" % first,
        env={"ATHANOR_SIM_FIRST": str(first), "ATHANOR_SIM_SEEDS": str(at_once)})
        for first in range(1, seeds + 1, at_once)])


def suites(tier, folder):
    env = {"ATHANOR_BUILD": BUILD, "ATHANOR_TEST_SOAK": "1" if tier.soak else "0"}
    both([lambda p=p: tier.suite(p, env) for p in
          sorted(glob.glob(os.path.join(TREE, "tests", folder, "test_*.py")))])


def faults(tier):
    suites(tier, "faults")


def clients(tier):
    suites(tier, "clients")
    suites(tier, "golden")


def browser(tier):
    if not os.path.isdir(os.path.join(TREE, "web")):
        tier.skipped.append(("browser", "there is no page yet"))
        return
    suites(tier, "browser")


TIERS = [("units", units), ("sanitizers", sanitizers), ("fuzz", fuzz),
         ("simulation", simulation), ("faults", faults), ("clients", clients),
         ("browser", browser)]


def show(tier):
    print(tier.line(), flush=True)
    for name, log in tier.failed:
        print("  failed: " + name)
        if log:
            for line in of_case(open(log, errors="replace").read(), name)[-TAIL:]:
                print("    | " + line[:300])
            print("    whole log: " + os.path.relpath(log, TREE), flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./test")
    parser.add_argument("--quick", action="store_true", help="only the first tier")
    parser.add_argument("--soak", action="store_true", help="long runs")
    parser.add_argument("--tier", action="append", choices=[name for name, _ in TIERS],
                        help="only this tier, with what is built already (may repeat)")
    arguments = parser.parse_args()
    chosen = TIERS[:1] if arguments.quick else \
        [tier for tier in TIERS if not arguments.tier or tier[0] in arguments.tier]
    shutil.rmtree(LOGS, ignore_errors=True)
    os.makedirs(LOGS)
    tiers = []
    for name, run in chosen:
        tier = Tier(name, arguments.soak)
        run(tier)
        tiers.append(tier)
        show(tier)
    skipped = [pair for tier in tiers for pair in tier.skipped]
    passed, failed = sum(t.passed for t in tiers), sum(len(t.failed) for t in tiers)
    print("%d skipped%s" % (len(skipped), ": " + "; ".join(
        "%s (%s)" % (name.replace("__main__.", ""), reason) for name, reason in skipped)
        if skipped else ""))
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
