"""./test --stress N CASE…: runs chosen cases N times, several at once, under load, so that what
fails once in a hundred runs on a busy machine fails while somebody looks."""

import concurrent.futures
import glob
import os
import subprocess
import sys
import threading

from cases import BUILD, LOGS, TREE, gtest_alone, run_suite

AT_ONCE = 4       # runs at a time
SHOWN = 40        # lines of the first failing log


class NotFound(Exception):
    """No test is called that; the words say what can be named."""


def listed(binary, pattern):
    """The cases of a GoogleTest binary that fit a pattern."""
    out = subprocess.run([binary, "--gtest_list_tests", "--gtest_filter=" + pattern],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    suite, found = None, []
    for line in out.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith("  "):
            found.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return found


def runs_of(case, preset, options):
    """[(name, run)] of one CASE; run(log) tells whether it passed."""
    path, _, name = case.partition(":")
    if path.endswith(".py"):
        path = os.path.abspath(path)
        if not os.path.exists(path):
            raise NotFound("there is no file " + path)
        env = {"ATHANOR_BUILD": BUILD}
        if path.startswith(os.path.join(TREE, "python") + os.sep):
            env["PYTHONPATH"] = os.path.join(BUILD, "python")
        return [(case, lambda log: run_suite(path, [name] if name else [], log, env=env)[0] == 0)]
    found = []
    binaries = sorted(glob.glob(os.path.join(BUILD, preset, "tests", "*_test")))
    if not binaries:
        raise NotFound("no unit tests in build/%s: run ./test%s first"
                       % (preset, " --quick" if preset == "release" else ""))
    for binary in binaries:
        found += [(full, lambda log, b=binary, c=full: gtest_alone(b, c, log, env=options))
                  for full in listed(binary, case)]
    if not found:
        raise NotFound("no unit test of build/%s is called %s; a Python one is named "
                       "tests/FOLDER/FILE.py:Class.test_name" % (preset, case))
    return found


class Load:
    """Keeps every core busy: two busy loops for each."""

    def __enter__(self):
        self.hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                     for _ in range(2 * (os.cpu_count() or 1))]

    def __exit__(self, *_):
        for hog in self.hogs:
            hog.kill()
            hog.wait()


def stress(times, cases, preset, options):
    chosen = [pair for case in cases for pair in runs_of(case, preset, options)]
    print("%d cases, %d times each, %d at once, beside %d busy loops"
          % (len(chosen), times, AT_ONCE, 2 * (os.cpu_count() or 1)), flush=True)
    failed = {}
    lock = threading.Lock()

    def one(number, name, run):
        log = os.path.join(LOGS, "stress-%s-%d.log" % (
            "".join(c if c.isalnum() or c in "._" else "-" for c in name)[-100:], number))
        if run(log):
            os.unlink(log)
            return
        with lock:
            failed.setdefault(name, []).append(log)
            print("  failed: %s, run %d (%s)" % (name, number, os.path.relpath(log, TREE)),
                  flush=True)

    with Load(), concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(one, i + 1, name, run)
                     for i in range(times) for name, run in chosen]:
            done.result()
    bad = sum(len(logs) for logs in failed.values())
    for name, logs in failed.items():
        print("%s: %d of %d failed; the first:" % (name, len(logs), times))
        with open(logs[0], errors="replace") as file:
            for line in file.read().splitlines()[-SHOWN:]:
                print("    | " + line[:300])
    print("%d passed, %d failed" % (times * len(chosen) - bad, bad))
    return 1 if bad else 0
