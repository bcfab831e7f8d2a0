#!/usr/bin/env python3
"""What building the program costs on a machine that never built it, against the tree before it was made cheap.

    bench/build/run.py [--quick] [--json]

Both are what ./demo calls, in a fresh clone without a compiler cache: CPU time of all processes, and the
clock. The peer is this project at 6e7531e, which built the unit tests too and every file by itself. Then
a build after one file was touched. --quick measures this tree only.
"""

import os
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import TREE, check, main, median, scratch  # noqa: E402

PEER = "6e7531e"
TOUCHED = ["src/door/native/job_routes.cc", "src/run/agent/agent.cc", "src/cli/verbs/verb_cp.cc"]


def measured(command, folder):
    """(CPU seconds, seconds) of a command and all it started."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    check(command, cwd=folder, env=dict(os.environ, CCACHE_DISABLE="1"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began)


def clone(folder, commit):
    check(["git", "clone", "-q", TREE, folder])
    check(["git", "checkout", "-q", commit], cwd=folder)
    check(["tools/build_web"], cwd=folder)  # npm's downloads are not the compiler's


def run(report, options):
    head = check(["git", "rev-parse", "HEAD"], cwd=TREE).strip()
    with scratch() as folder:
        ours, peer = os.path.join(folder, "ours"), os.path.join(folder, "peer")
        clone(ours, head)
        cpu, clock = measured(["tools/build_release", "--program"], ours)
        report.row("the program, from nothing: CPU", cpu / 60, "min", bar=10)
        report.row("the program, from nothing: clock", clock / 60, "min", note="%d cores" % os.cpu_count())
        touched = []
        for path in TOUCHED:
            os.utime(os.path.join(ours, path))
            touched.append(measured(["tools/build_release", "--program"], ours)[1])
        report.row("after touching one file", median(touched), "s", values=touched, bar=15,
                   note=", ".join(TOUCHED))
        if options.quick:
            report.skip("against " + PEER, "--quick")
            return
        clone(peer, PEER)
        theirs, their_clock = measured(["tools/build_release"], peer)
        report.row("CPU against %s" % PEER, theirs / cpu, "x",
                   against="%.1f min of CPU, %.1f min by the clock" % (theirs / 60, their_clock / 60))


if __name__ == "__main__":
    main("build", __doc__, run)
