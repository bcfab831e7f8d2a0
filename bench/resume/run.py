#!/usr/bin/env python3
"""From SIGKILL of the script to the first line of the next attempt.

    bench/resume/run.py [--quick] [--json]

The script appends its own time to a file outside of the job, then sleeps; the benchmark kills it
(SIGKILL to the script itself, as a failing machine would) and reads the time the next attempt
wrote. Once with an empty checkpoint folder, and once with a checkpoint of 256 MiB, where the time
that restoring takes, as the set-up log states it, is taken off. Against it: a bare fork+exec of
the same command, killed and started again by a loop.
"""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import Server, main, median, scratch, until  # noqa: E402

BAR_MS = 1500
SCRIPT = """import os, sys, time
stamps, size = sys.argv[1], int(sys.argv[2])
with open(stamps, "a") as file:
    file.write("%.6f %d\\n" % (time.time(), os.getpid()))
folder = os.environ.get("SM_CHECKPOINT_DIR")
if folder and size and not os.path.exists(folder + "/state"):
    with open(folder + "/state.tmp", "wb") as file:
        file.write(os.urandom(1 << 20) * size)
    os.rename(folder + "/state.tmp", folder + "/state")
time.sleep(600)
"""


def stamps(path):
    try:
        with open(path) as file:
            return [(float(line.split()[0]), int(line.split()[1])) for line in file
                    if line.endswith("\n")]
    except OSError:
        return []


def script_pid(folder):
    """The script's process as this side sees it: the one that has the stamp file's folder in its
    command line and is Python."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[:1] == [b"python3"] and (folder + "/stamps").encode() in words:
            return int(pid)
    return None


def kills(server, repeats, mebibytes):
    """Milliseconds from each kill to the next first line, and what restoring took of them."""
    with scratch() as folder:
        with open(os.path.join(server.work, "train.py"), "w") as file:
            file.write(SCRIPT)
        path = os.path.join(folder, "stamps")
        with open(os.path.join(server.work, "job.yaml"), "w") as file:
            file.write("run: [python3, train.py, %s, '%d']\nretry: {max: 1000, on: [signal]}\n"
                       % (path, mebibytes))
        job = server.ath("run", "-d", "job.yaml").strip()
        taken, restored = [], []
        for number in range(1, repeats + 1):
            until(lambda: len(stamps(path)) == number, "attempt %d prints" % number)
            if mebibytes:
                until(lambda: server.http("GET", "/api/v1/jobs/%s/checkpoints" % job)
                      ["checkpoints"], "the checkpoint is kept")
            time.sleep(5.5)  # a life shorter than this counts as a quick death, which waits
            pid = until(lambda: script_pid(folder), "the script runs")
            killed = time.time()
            os.kill(pid, signal.SIGKILL)
            until(lambda: len(stamps(path)) == number + 1, "the next attempt prints")
            taken.append((stamps(path)[-1][0] - killed) * 1000)
            restored.append(restore_ms(server, job))
        server.ath("stop", "--now", job)
        return taken, restored


def restore_ms(server, job):
    """What the last attempt's set-up log says that restoring took."""
    log = server.ath("logs", job, "--phase", "setup")
    for line in reversed(log.splitlines()):
        if line.startswith("restored checkpoint") and " in " in line:
            text = line.rpartition(" in ")[2]
            if text.endswith(" ms"):
                return float(text[:-3])
            minutes, _, seconds = text.partition(":")
            return (int(minutes) * 60 + int(seconds)) * 1000
    return 0.0


def bare(repeats):
    taken = []
    with scratch() as folder:
        script = os.path.join(folder, "train.py")
        with open(script, "w") as file:
            file.write(SCRIPT)
        path = os.path.join(folder, "stamps")
        running = subprocess.Popen(["python3", script, path, "0"])
        for number in range(1, repeats + 1):
            until(lambda: len(stamps(path)) == number, "the script prints")
            time.sleep(0.5)
            killed = time.time()
            running.kill()
            running.wait()
            running = subprocess.Popen(["python3", script, path, "0"])
            until(lambda: len(stamps(path)) == number + 1, "it prints again")
            taken.append((stamps(path)[-1][0] - killed) * 1000)
        running.kill()
        running.wait()
    return taken


def run(report, options):
    repeats = 2 if options.quick else 9
    loop = bare(repeats)
    report.row("bare loop: kill, start again", median(loop), "ms", values=loop)
    with Server() as server:
        taken, _ = kills(server, repeats, 0)
    report.row("SIGKILL to the next attempt's first line", median(taken), "ms", values=taken,
               bar=BAR_MS, against="a bare loop takes %.0f ms" % median(loop))
    with Server() as server:
        taken, restored = kills(server, 2 if options.quick else 5, 256)
    rest = [all_of - part for all_of, part in zip(taken, restored)]
    report.row("the same with 256 MiB to restore, without it", median(rest), "ms", values=rest,
               bar=BAR_MS, note="restoring and checking took %.0f ms" % median(restored))


if __name__ == "__main__":
    main("resume", __doc__, run)
