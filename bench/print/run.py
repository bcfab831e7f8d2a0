#!/usr/bin/env python3
"""What printing costs a script that runs as a job, and how soon its lines are seen.

    bench/print/run.py [--quick] [--json]

10^6 lines by Python's print, timed inside the script from before the first to after the last flush,
as a job and into a file on the same disk, in turns; buffered, and with PYTHONUNBUFFERED=1. Then a
script that prints the time at irregular intervals, read through `ath logs -f`: what is measured is
the time a line arrives minus the time it carries; the peer is the same script on a plain pipe.
"""

import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import Broken, Server, main, median, percentile  # noqa: E402


def result(path, unbuffered):
    with open(path) as file:
        told = json.load(file)
    os.unlink(path)
    if told["unbuffered"] != unbuffered:
        raise Broken("the script ran %s" % ("unbuffered" if told["unbuffered"] else "buffered"))
    return told["seconds"]


def into_file(server, lines, unbuffered):
    path = os.path.join(server.root, "took")
    environment = dict(server.environment, PYTHONUNBUFFERED="1" if unbuffered else "")
    out = os.path.join(server.root, "lines.out")
    with open(out, "wb") as file:
        subprocess.run([sys.executable, "lines.py", str(lines), path], stdout=file, check=True,
                       env=environment, cwd=server.work)
    os.unlink(out)
    return result(path, unbuffered)


def as_job(server, lines, unbuffered):
    path = os.path.join(server.root, "took")
    job = json.loads(server.ath("run", "-d", "--json", "-e", "PYTHONUNBUFFERED=%s"
                                % ("1" if unbuffered else ""), "--", sys.executable, "lines.py",
                                lines, path))["id"]
    server.ath("wait", "--timeout", "10m", job)
    text = server.ath("logs", job)
    if text.count("\n") != lines:
        raise Broken("of %d lines %d are in the log" % (lines, text.count("\n")))
    server.ath("rm", job)
    return result(path, unbuffered)


def printing(report, server, unbuffered, repeats, lines):
    file, job = [], []
    into_file(server, lines // 10, unbuffered)
    for _ in range(repeats):
        file.append(into_file(server, lines, unbuffered))
        job.append(as_job(server, lines, unbuffered))
    word = "unbuffered" if unbuffered else "buffered"
    report.row("%s lines as a job, over a file, %s" % ("{:,}".format(lines), word),
               median(job) / median(file), "x", bar=1.05,
               values=[mine / theirs for mine, theirs in zip(job, file)],
               against="%.3f s against %.3f s" % (median(job), median(file)))


def delays(process):
    """Milliseconds from print to arrival, for each line."""
    found = []
    for line in process.stdout:
        now = time.time()
        found.append((now - float(line)) * 1000)
    if process.wait() != 0:
        raise Broken("the reader ended with status %d" % process.returncode)
    return found


def visible(report, server, count):
    job = json.loads(server.ath("run", "-d", "--json", "--", sys.executable, "stamps.py",
                                count))["id"]
    with server.popen("logs", "-f", "--quiet", job, stdout=subprocess.PIPE) as reader:
        seen = delays(reader)
    with subprocess.Popen([sys.executable, "-u", "stamps.py", str(max(3, count // 5))],
                          stdout=subprocess.PIPE, cwd=server.work) as reader:
        piped = delays(reader)
    if len(seen) != count:
        raise Broken("of %d lines %d were seen" % (count, len(seen)))
    # Lines printed before the reader was there have waited for it, not for us.
    seen = seen[10:]
    report.row("print to visible in ath logs -f, p99", percentile(seen, 99), "ms", values=seen,
               bar=100, against="median %.1f ms, slowest %.1f ms; by a plain pipe %.2f ms"
               % (median(seen), max(seen), median(piped)))


def run(report, options):
    repeats, lines, stamps = (1, 100_000, 30) if options.quick else (5, 1_000_000, 210)
    with Server() as server:
        for name in ("lines.py", "stamps.py"):
            shutil.copy(os.path.join(HERE, name), server.work)
        printing(report, server, False, repeats, lines)
        printing(report, server, True, repeats, lines)
        visible(report, server, stamps)


if __name__ == "__main__":
    main("print", __doc__, run)
