#!/usr/bin/env python3
"""Loading TensorBoard's event files: our loader, RustBoard and TensorBoard's Python loader.

    bench/events/run.py [--megabytes 1000] [--runs 200] [--quick] [--json]

A folder of scalars is written as torch's SummaryWriter writes them (old style, ten tags). Ours reads
it with all checksums and keeps every point; RustBoard (tensorboard-data-server from PyPI) runs with its
defaults: it skips checksums and keeps 1,000 points a tag. Both read from the page cache, turn by
turn, in processes of their own. RustBoard's time is what it says its load cycle took; ours is from
the first look at the folder until one series of each run was asked for. TensorBoard's Python loader
(EventAccumulator, one process, its defaults) reads a share of the runs; its time is scaled by bytes.
"""

import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import BUILD, Broken, Server, check, main, median, python_with, scratch  # noqa: E402

TENSORBOARD = "2.21.0"
PYTHON_LOADER = """
import os, sys, time
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
begun, points = time.perf_counter(), 0
for folder in sys.argv[1:]:
    run = EventAccumulator(folder)
    run.Reload()
    points += len(run.Scalars(run.Tags()["scalars"][0]))
print(time.perf_counter() - begun)
"""
SERVER = "import tensorboard_data_server; print(tensorboard_data_server.server_binary())"


def tensorboard_python():
    return python_with("tensorboard", TENSORBOARD)


def program():
    """Our loader as a program, built when it is missing."""
    folder = BUILD if os.path.exists(os.path.join(BUILD, "build.ninja")) \
        else os.path.join(BUILD, "release")
    path = os.path.join(folder, "events_bench")
    if os.path.exists(os.path.join(folder, "build.ninja")):
        check(["cmake", "--build", folder, "--target", "events_bench"])
    if not os.access(path, os.X_OK):
        raise Broken("%s is missing: run ./demo first, or set ATHANOR_BUILD" % path)
    return path


def rustboard(binary, folder):
    """Seconds of one load cycle, and the most memory it had, in MB."""
    with subprocess.Popen([binary, "--logdir", folder, "--port", "0", "--reload", "once",
                           "--verbose", "--die-after-stdin"], stdin=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            found = re.search(r"Finished load cycle \(([0-9.]+)(ms|s|µs)\)", line)
            if found:
                break
        else:
            raise Broken("RustBoard ended without a load cycle")
        with open("/proc/%d/status" % process.pid) as status:
            peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024
        process.kill()
    return float(found.group(1)) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[found.group(2)], peak


def import_all(folder, points):
    """Seconds until `ath import tb` has said that all is kept."""
    with Server() as server:
        begun = time.perf_counter()
        answer = json.loads(server.ath("import", "tb", folder, "--json").splitlines()[-1])
        taken = time.perf_counter() - begun
    kept = sum(run["stored"] for run in answer["runs"])
    if kept != points:
        raise Broken("%d of %d points were imported" % (kept, points))
    return taken


def run(report, options):
    megabytes = 40 if options.quick else options.megabytes
    runs = 20 if options.quick else options.runs
    repeats = 2 if options.quick else 5
    loader, python = program(), tensorboard_python()
    binary = check([python, "-c", SERVER]).strip()
    with scratch() as folder:
        made = json.loads(check([loader, "--make", folder, str(runs), str(megabytes)]))
        names = sorted(os.listdir(folder))
        ours, theirs, memory, their_memory = [], [], [], []
        for _ in range(repeats):
            figures = json.loads(check([loader, folder]))
            if figures["points"] != made["points"]:
                raise Broken("%d of %d points were loaded" % (figures["points"], made["points"]))
            ours.append(figures["seconds"])
            memory.append(figures["peak_mb"])
            seconds, peak = rustboard(binary, folder)
            theirs.append(seconds)
            their_memory.append(peak)
        imported = [import_all(folder, made["points"]) for _ in range(max(2, repeats - 2))]
        share = max(1, runs // 100)
        taken = float(check([python, "-c", PYTHON_LOADER,
                             *(os.path.join(folder, name) for name in names[:share])]))
        python_seconds = taken * runs / share
    size = "%d MB of scalars in %d runs, %.1f million points" % (megabytes, runs,
                                                                 made["points"] / 1e6)
    report.row("load, every point kept, checksums verified", median(ours), "s", values=ours,
               note=size)
    report.row("speed", megabytes / median(ours), "MB/s", values=[megabytes / s for s in ours])
    report.row("as fast as RustBoard", median(theirs) / median(ours), "x", bar=1, at_least=True,
               values=[b / a for a, b in zip(ours, theirs)],
               against="RustBoard took %.2f s and kept 1,000 points a tag, without checksums"
               % median(theirs))
    report.row("as fast as TensorBoard's Python loader", python_seconds / median(ours), "x", bar=20,
               at_least=True, against="%.1f s for %d of the %d runs, so %.0f s for all"
               % (taken, share, runs, python_seconds))
    report.row("memory", median(memory), "MB", values=memory,
               note="RustBoard: %.0f MB" % median(their_memory))
    report.row("imported durably, against RustBoard's loading", median(theirs) / median(imported),
               "x", bar=0.5, at_least=True, values=[b / a for a, b in zip(imported, theirs)],
               against="`ath import tb` into an empty server, %.2f s; every point kept"
               % median(imported))


def arguments(parser):
    parser.add_argument("--megabytes", type=int, default=1000, help="of event files")
    parser.add_argument("--runs", type=int, default=200)


if __name__ == "__main__":
    main("events", __doc__, run, arguments)
