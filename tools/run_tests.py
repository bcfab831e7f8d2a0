"""Runs the tiers of ./test and prints a line for each; ends with "N passed, N failed"."""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build", "test-logs")
# Rooms that use threads: these run under ThreadSanitizer too.
THREADED = ["base", "net", "record", "link", "run", "steer", "door"]
FUZZ_SECONDS = 5


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.skipped = []

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def run(command, log, cwd=ROOT, env=None, timeout=1800):
    """The exit status; output goes to `log`. A timeout counts as failure."""
    os.makedirs(LOGS, exist_ok=True)
    with open(os.path.join(LOGS, log), "wb") as out:
        try:
            merged = dict(os.environ, **(env or {}))
            return subprocess.run(command, cwd=cwd, env=merged, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            out.write(b"\ntimed out\n")
            return 124


def tail(log, lines=25):
    with open(os.path.join(LOGS, log), errors="replace") as file:
        print("".join("    " + line for line in file.readlines()[-lines:]), flush=True)


def failed_build(log):
    print(f"  the build failed; the end of build/test-logs/{log}:")
    tail(log)
    tally = Tally()
    tally.failed = 1
    return tally


def build(preset, targets=()):
    log = f"build-{preset}.log"
    if preset == "release":
        status = run(["tools/build_release"], log, timeout=4000)
    else:
        status = 0
        if not os.path.exists(os.path.join(ROOT, "build", preset, "build.ninja")):
            status = run(["cmake", "--preset", preset], log)
        command = ["cmake", "--build", "--preset", preset]
        if targets:
            command += ["--target", *targets]
        status = status or run(command, log, timeout=4000)
    return log if status else None


def gtest(preset, name, extra=(), env=None, tag=""):
    """Runs one unit-test binary; counts its cases."""
    log = f"{preset}-{name}{tag}.log"
    report = os.path.join(LOGS, f"{preset}-{name}{tag}.json")
    if os.path.exists(report):
        os.unlink(report)
    binary = os.path.join(ROOT, "build", preset, "tests", name)
    status = run([binary, f"--gtest_output=json:{report}", *extra], log, env=env, timeout=900)
    tally = Tally()
    try:
        with open(report) as file:
            suites = json.load(file)["testsuites"]
    except (OSError, ValueError):
        suites = []
    for suite in suites:
        for case in suite["testsuite"]:
            title = f"{suite['name']}.{case['name']}"
            if case.get("failures"):
                tally.failed += 1
                print(f"  failed: {preset} {name} {title}: {case['failures'][0]['failure'][:600]}")
            elif case.get("result") == "SKIPPED":
                with open(os.path.join(LOGS, log), errors="replace") as file:
                    reason = re.search(re.escape(title) + r"\n(?:.*\n)?.*Skipped\n(.*)", file.read())
                tally.skipped.append(f"{title}: {reason.group(1).strip() if reason else 'skipped'}")
            elif case.get("status") == "RUN":
                tally.passed += 1
    if status and not tally.failed:
        tally.failed += 1
        print(f"  {preset} {name} ended with status {status}; the end of its log:")
        tail(log)
    return tally


def unit_binaries(preset, rooms=None):
    found = sorted(os.path.basename(p) for p in glob.glob(os.path.join(ROOT, "build", preset, "tests", "*_test")))
    return [name for name in found if rooms is None or name[:-5] in rooms]


def counted(command, log, **options):
    """A program that ends with "N passed, N failed"."""
    status = run(command, log, **options)
    tally = Tally()
    with open(os.path.join(LOGS, log), errors="replace") as file:
        text = file.read()
    match = re.findall(r"^(\d+) passed, (\d+) failed", text, re.M)
    if match:
        tally.passed, tally.failed = int(match[-1][0]), int(match[-1][1])
    if status and not tally.failed:
        tally.failed += 1
    if tally.failed:
        tail(log)
    return tally


def unittest(folder, log, env=None, timeout=1800):
    """Python's unittest over a folder; counts tests, keeps the reasons of skips."""
    status = run(["/usr/bin/python3", "-m", "unittest", "discover", "-v", "-s", folder, "-t", folder], log,
                 env=env, timeout=timeout)
    with open(os.path.join(LOGS, log), errors="replace") as file:
        text = file.read()
    tally = Tally()
    ran = re.search(r"^Ran (\d+) test", text, re.M)
    summary = re.search(r"^(?:OK|FAILED)(?: \((.*)\))?$", text, re.M)
    counts = dict(re.findall(r"(\w+)=(\d+)", summary.group(1) or "")) if summary else {}
    bad = int(counts.get("failures", 0)) + int(counts.get("errors", 0))
    skipped = int(counts.get("skipped", 0))
    tally.failed = bad
    tally.passed = (int(ran.group(1)) if ran else 0) - bad - skipped
    tally.skipped = [f"{name}: {why}" for name, why in re.findall(r"^(\S+) .*\.\.\. skipped ['\"](.*)['\"]$", text, re.M)]
    if status and not tally.failed:
        tally.failed += 1
    if tally.failed:
        tail(log, 60)
    return tally


def tier_unit(_):
    broken = build("release")
    if broken:
        return failed_build(broken)
    tally = counted(["/usr/bin/python3", "tests/layers.py"], "layers.log")
    tally.add(counted(["/usr/bin/python3", "tests/pages.py"], "pages.log"))
    for name in unit_binaries("release"):
        tally.add(gtest("release", name))
    return tally


def tier_sanitizers(_):
    tally = Tally()
    broken = build("asan")
    if broken:
        return failed_build(broken)
    strict = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    for name in unit_binaries("asan"):
        tally.add(gtest("asan", name, env=strict))
    broken = build("tsan", [f"{room}_test" for room in THREADED])
    if broken:
        tally.add(failed_build(broken))
        return tally
    options = {"TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={ROOT}/tests/tsan.supp"}
    for name in unit_binaries("tsan", THREADED):
        tally.add(gtest("tsan", name, env=options))
    return tally


def tier_fuzz(arguments):
    targets = sorted(glob.glob(os.path.join(ROOT, "build", "asan", "fuzz", "fuzz_*")))
    seconds = 120 if arguments.soak else FUZZ_SECONDS

    def one(path):
        name = os.path.basename(path)
        corpus = os.path.join(LOGS, "corpus", name)
        os.makedirs(corpus, exist_ok=True)
        status = run([path, f"-max_total_time={seconds}", "-rss_limit_mb=4096", f"-artifact_prefix={LOGS}/{name}-",
                      corpus], f"{name}.log", timeout=seconds + 120)
        return name, status

    tally = Tally()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, status in pool.map(one, targets):
            if status:
                tally.failed += 1
                print(f"  {name} found something:")
                tail(f"{name}.log", 40)
            else:
                tally.passed += 1
    return tally


def tier_simulation(arguments):
    tally = Tally()
    repeat = 200 if arguments.soak else 10
    for name in unit_binaries("release", ["job", "place", "steer"]):
        tally.add(gtest("release", name, [f"--gtest_repeat={repeat}", "--gtest_filter=*Histor*"], tag="-simulation"))
    return tally


def tests_environment(arguments):
    return {"ATHANOR_BUILD": os.path.join(ROOT, "build"), "ATHANOR_TEST_SOAK": "1" if arguments.soak else "",
            "PYTHONPATH": os.path.join(ROOT, "tests")}


def tier_faults(arguments):
    return unittest("tests/faults", "faults.log", tests_environment(arguments), 7200 if arguments.soak else 1500)


def tier_clients(arguments):
    tally = unittest("tests/clients", "clients.log", tests_environment(arguments))
    log = "python.log"
    environment = {"PYTHONPATH": os.path.join(ROOT, "build", "release", "python"),
                   "ATHANOR_SPOOL_DUMP": os.path.join(ROOT, "build", "release", "tests", "spool_dump")}
    tally.add(unittest("python/tests", log, environment))
    return tally


def tier_browser(_):
    tally = Tally()
    tally.skipped = ["browser: there is no page yet"]
    return tally


TIERS = [("unit", tier_unit), ("sanitizers", tier_sanitizers), ("fuzz", tier_fuzz), ("simulation", tier_simulation),
         ("faults", tier_faults), ("clients", tier_clients), ("browser", tier_browser)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="the first tier only")
    parser.add_argument("--soak", action="store_true", help="long runs")
    parser.add_argument("--tier", action="append", help="only this tier")
    arguments = parser.parse_args()
    total = Tally()
    for name, tier in TIERS:
        if arguments.tier and name not in arguments.tier:
            continue
        start = time.monotonic()
        tally = tier(arguments)
        print(f"tier {name}: {tally.passed} passed, {tally.failed} failed, {len(tally.skipped)} skipped "
              f"({time.monotonic() - start:.0f} s)", flush=True)
        total.add(tally)
        if arguments.quick:
            break
    if total.skipped:
        print("skipped: " + "; ".join(sorted(set(total.skipped))))
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
