"""The tiers of ./test: what is built, what is run, and what is counted.

What fails is run once more at the end, alone. What then passes is flaky: it is named, both logs
are kept, and ./test is green with at most MOST_FLAKY of them."""

import argparse
import atexit
import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import nonroot
import stress
from cases import BUILD, LOGS, PYTHON, TREE, Tier, of_case, run
from harness import NEEDS_ROOT

TAIL = 60          # lines of a failing step's log that are shown
MOST_FLAKY = 3
MOST_AGAIN = 20    # more failures than that are no bad luck: nothing is run again
THREADED = ["base", "net", "record", "link", "run", "steer", "track"]  # rooms with threads of their own


def sanitizer_options(preset):
    """As `ctest --preset` sets them."""
    with open(os.path.join(TREE, "CMakePresets.json")) as file:
        presets = json.load(file)["testPresets"]
    return next((found.get("environment") for found in presets if found["name"] == preset), None)


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
    unity = os.path.join(directory, "unity")
    if os.path.isdir(unity) and not tier.step(
            "batches-" + preset, [os.path.join(TREE, "tools", "unity_batches"), "--refresh", unity]):
        return False
    command = ["nice", "cmake", "--build", "--preset", preset]
    return tier.step("build-" + preset, command + (["--target", *targets] if targets else []),
                     timeout=4 * 3600)


def unit_tests(preset):
    return newest_first(preset + "/tests/*_test")


def units(tier):
    both([lambda n=n: tier.suite(os.path.join(TREE, "tests", n))
          for n in ("test_layers.py", "test_tiers.py", "test_unity.py")])
    tier.step("format", [os.path.join(TREE, "tools", "format"), "--check"])
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


def tidy(tier):
    """clang-tidy has nothing to say about src/."""
    if tier.step("tidy", [os.path.join(TREE, "tools", "tidy")], timeout=3600):
        tier.passed += 1


def sanitizers(tier):
    if build(tier, "asan"):
        both([lambda b=b: tier.gtest(b, label="asan-" + os.path.basename(b),
                                      env=sanitizer_options("asan"))
              for b in unit_tests("asan")])
    wanted = [room + "_test" for room in THREADED
              if os.path.exists(os.path.join(TREE, "src", room, "CMakeLists.txt"))]
    if build(tier, "tsan", wanted):
        both([lambda b=b: tier.gtest(b, label="tsan-" + os.path.basename(b),
                                      env=sanitizer_options("tsan"))
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
            inputs = [shutil.copy(path, LOGS)  # what breaks it
                      for path in glob.glob(os.path.join(scratch, "*-*"))]
            tier.fail(name, tier.log(name), (lambda log: run(
                [target, "-timeout=25", "-rss_limit_mb=2048", *inputs], log, timeout=300) == 0)
                if inputs else None)

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
            tier.gtest(binary, cases,
                       label="%s-seed-%s" % (os.path.basename(binary), seed),
                       env={"ATHANOR_SEED": seed, "ATHANOR_TEST_SEED": seed})

    both([lambda b=b: one(b) for b in unit_tests("release")])
    control_logic(tier, os.path.join(BUILD, "release", "tests", "steer_test"))


def control_logic(tier, binary):
    """The simulated cluster, the same seeds each time; --soak has a hundred times as many."""
    seeds, at_once = (20000, 500) if tier.soak else (200, 100)
    both([lambda first=first: tier.gtest(
        binary, "Simulation.EveryPromiseHoldsInEveryHistory",
        label="simulation-from-%d" % first,
        env={"ATHANOR_SIM_FIRST": str(first), "ATHANOR_SIM_SEEDS": str(at_once)})
        for first in range(1, seeds + 1, at_once)])


def suites(tier, folder, user=None, without=()):
    env = {"ATHANOR_BUILD": BUILD, "ATHANOR_TEST_SOAK": "1" if tier.soak else "0"}
    both([lambda p=p: tier.suite(p, env, user=user) for p in
          sorted(glob.glob(os.path.join(TREE, "tests", folder, "test_*.py")))
          if os.path.basename(p) not in without])


# Suites that also play on a machine apart (tests/apart.py), in this order: the longest first.
APART = ("life/test_scenarios.py", "faults/test_survive.py", "faults/test_partition.py",
         "faults/test_kill.py", "faults/test_checkpoint_keep.py")


def faults(tier):
    suites(tier, "faults")
    suites(tier, "life")
    if os.geteuid() != 0:
        tier.skipped.append(("apart", NEEDS_ROOT + "to make a machine apart"))
        return
    env = {"ATHANOR_BUILD": BUILD, "ATHANOR_TEST_PLACE": "apart",
           "ATHANOR_TEST_SOAK": "1" if tier.soak else "0"}
    both([lambda p=p: tier.suite(os.path.join(TREE, "tests", p), env, where=" (apart)")
          for p in APART])


def clients(tier, **more):
    suites(tier, "clients", **more)
    suites(tier, "golden", **more)


def ordinary(tier):
    """The clients tier as an ordinary user. A case that only root's run does not skip must say
    that it needs root: else it is lost here without anybody's knowledge, and counts as failed."""
    if os.geteuid() != 0:
        why = "the tier clients is run by an ordinary user already"
        tier.skipped.append(("nonroot", why))
        tier.notes = ["skipped: " + why]
        return
    try:
        user = nonroot.User()
    except Exception as error:
        tier.fail("no ordinary user to run the tests as", why=str(error))
        return
    atexit.register(user.close)  # not before what failed has run again
    clients(tier, user=user, without=nonroot.LEFT_OUT)
    for as_root in (before for before in tier.before if before.name == "clients"):
        known = {name for name, _ in as_root.skipped}
        for name, reason in tier.skipped:
            if name not in known and not reason.startswith(NEEDS_ROOT):
                tier.fail(name, why="skipped as an ordinary user, without needing root: " + reason)
    tier.notes = user.says() + needing_root(tier.skipped) + [
        "left out: %s: %s" % pair for pair in sorted(nonroot.LEFT_OUT.items())]


def needing_root(skipped):
    """One line a reason, with how many cases give it and which."""
    reasons = collections.defaultdict(list)
    for name, reason in skipped:
        if reason.startswith(NEEDS_ROOT):
            reasons[reason].append(name)
    return ["%d skipped: %s (%s)" % (len(names), reason, ", ".join(sorted(names)))
            for reason, names in sorted(reasons.items())]


def browser(tier):
    if not os.path.isdir(os.path.join(TREE, "web")):
        tier.skipped.append(("browser", "there is no page yet"))
        return
    suites(tier, "browser")


def packages(tier):
    suites(tier, "packages")


TIERS = [("units", units), ("tidy", tidy), ("sanitizers", sanitizers), ("fuzz", fuzz),
         ("simulation", simulation), ("faults", faults), ("clients", clients), ("nonroot", ordinary),
         ("browser", browser), ("packages", packages)]


def show(tier):
    print(tier.line(), flush=True)
    for note in tier.notes:
        print("  " + note, flush=True)
    with open(os.path.join(LOGS, "summary.txt"), "a") as file:
        file.write("\n  ".join([tier.line(), *tier.notes]) + "\n")
    for failure in tier.failed:
        print("  failed: %s%s" % (failure.name, ": " + failure.why[:200] if failure.why else ""))
        if failure.log:
            with open(failure.log, errors="replace") as file:
                text = file.read()
            for line in of_case(text, failure.name)[-TAIL:]:
                print("    | " + line[:300])
            print("    whole log: " + os.path.relpath(failure.log, TREE), flush=True)


def run_again(tiers):
    """Runs what failed again, one at a time, now that nothing else runs here. Moves what
    passes to the flaky ones, which it returns: (name, the first log, the second log)."""
    failures = [(tier, failure) for tier in tiers for failure in tier.failed if failure.again]
    if not failures or len(failures) > MOST_AGAIN:
        return []
    print("running %d failed again, one at a time" % len(failures), flush=True)
    flaky = []
    for i, (tier, failure) in enumerate(failures):
        log = os.path.join(LOGS, "again-%d-%s.log" % (
            i + 1, re.sub(r"[^A-Za-z0-9_.-]+", "-", failure.name)[:100]))
        if failure.again(log):
            tier.failed.remove(failure)
            tier.passed += 1
            flaky.append((failure.name, failure.log, log))
        else:
            print("  failed again: %s (%s)" % (failure.name, os.path.relpath(log, TREE)), flush=True)
    return flaky


def ended(tiers, flaky):
    """Prints how all of it ended; the status of ./test."""
    for name, first, second in flaky:
        print("flaky: %s: failed, then passed by itself (%s)" % (name, ", ".join(
            os.path.relpath(log, TREE) for log in (first, second) if log)))
    if flaky:
        print("%d flaky, at most %d may be. Find the cause: ./test --stress 50 CASE; "
              "then list it in tests/flaky.md" % (len(flaky), MOST_FLAKY))
    skipped = [pair for tier in tiers for pair in tier.skipped]
    passed, failed = sum(t.passed for t in tiers), sum(len(t.failed) for t in tiers)
    if len(flaky) > MOST_FLAKY:
        passed, failed = passed - len(flaky), failed + len(flaky)
    print("%d skipped%s" % (len(skipped), ": " + "; ".join(
        "%s (%s)" % (name.replace("__main__.", ""), reason.splitlines()[0][:150] if reason else "")
        for name, reason in skipped)
        if skipped else ""))
    print("%d passed, %d failed" % (passed, failed), flush=True)
    return 1 if failed or not passed else 0


def main():
    # A shell that starts ./test in the background makes all its children ignore these; tests send them.
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    parser = argparse.ArgumentParser(prog="./test")
    parser.add_argument("--quick", action="store_true", help="only the first tier")
    parser.add_argument("--soak", action="store_true", help="long runs")
    parser.add_argument("--tier", action="append", choices=[name for name, _ in TIERS],
                        help="only this tier, with what is built already (may repeat)")
    parser.add_argument("--stress", type=int, metavar="N",
                        help="run the named cases N times each, several at once, beside a load")
    parser.add_argument("--preset", default="release", choices=["release", "dev", "asan", "tsan"],
                        help="whose unit tests --stress runs (default: release)")
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help="for --stress: Suite.Case of GoogleTest (* fits anything), a file of "
                             "tests/, or FILE:Class.test_name")
    arguments = parser.parse_args()
    if bool(arguments.stress) != bool(arguments.cases):
        parser.error("--stress N and CASE go together, as in: ./test --stress 50 Queue.*")
    shutil.rmtree(LOGS, ignore_errors=True)
    os.makedirs(LOGS)
    if arguments.stress:
        try:
            sys.exit(stress.stress(arguments.stress, arguments.cases, arguments.preset,
                                   sanitizer_options(arguments.preset)))
        except stress.NotFound as error:
            parser.error(str(error))
    chosen = TIERS[:1] if arguments.quick else \
        [tier for tier in TIERS if not arguments.tier or tier[0] in arguments.tier]
    tiers = []
    for name, run_tier in chosen:
        tier = Tier(name, arguments.soak, tiers)
        run_tier(tier)
        tiers.append(tier)
        show(tier)
    sys.exit(ended(tiers, run_again(tiers)))


if __name__ == "__main__":
    main()
