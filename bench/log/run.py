#!/usr/bin/env python3
"""What athanor.log costs: ns a call, native and pure, and the import.

    PYTHONPATH=<build>/python python3 bench/log/run.py [--json] [--repeats 9] [--calls 200000]

Each repeat is a fresh process with a spool that has room for all of its calls; the figure is
the median over repeats. Calls are counted in processor time, since they never wait and other
work on the machine is not theirs; imports by the wall clock and, beside it, in processor time.
A bar that is missed is printed with its figure.
"""

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

BARS = {"native log, ns": 200, "pure log, ns": 1000, "should_stop, ns": 1000,
        "core import, ms": 5, "core import, cpu ms": 5,
        "package import, ms": 20, "package import, cpu ms": 20}

LOOP = """
import sys, time, athanor
calls = int(sys.argv[1])
log = athanor.log
assert ("athanor._spool" in sys.modules) == (sys.argv[2] == "pure"), "the wrong implementation"
def loop(f):
    start = time.process_time_ns()
    for i in range(calls):
        f(loss=x, step=i)
    return time.process_time_ns() - start
x = 0.5
log(loss=x, step=0)
took = loop(log)
stats = athanor.stats()
assert stats == {"written": calls + 1, "dropped": 0, "bad": 0}, stats
start = time.process_time_ns()
for i in range(calls):
    pass
empty = time.process_time_ns() - start
print((took - empty) / calls)
"""

STOP = """
import sys, time, athanor
calls = int(sys.argv[1])
should_stop = athanor.should_stop
start = time.process_time_ns()
for i in range(calls):
    if should_stop(): break
took = time.process_time_ns() - start
start = time.process_time_ns()
for i in range(calls):
    pass
print((took - (time.process_time_ns() - start)) / calls)
"""

IMPORT_PACKAGE = """
import sys, time
clock = getattr(time, sys.argv[1])
start = clock()
import athanor
print((clock() - start) / 1e6)
"""

# The package's __init__ would import it by itself; by path it stands alone.
IMPORT_CORE = """
import importlib.util, sys, time
clock, path = getattr(time, sys.argv[1]), sys.argv[2]
start = clock()
spec = importlib.util.spec_from_file_location("athanor._core", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print((clock() - start) / 1e6)
"""


SEGMENT_BYTES = 512 * 1024  # as the agent makes them


def make_spool(folder, calls):
    for serial in range(1, 2 + (calls + 8) * 40 // (SEGMENT_BYTES - 4096)):
        with open(os.path.join(folder, "seg-%08d.spool" % serial), "wb") as file:
            file.write(struct.pack("<8sIIQIIQ24x", b"ATHSPL1\0", serial, SEGMENT_BYTES - 64,
                                   0, 0, 0, 0))
            file.write(bytes(SEGMENT_BYTES - 64))
    page = struct.pack("<8sIIqq64s", b"ATHCTL1\0", 2, 0, 0, -(1 << 63), b"")
    with open(os.path.join(folder, "control"), "wb") as file:
        file.write(page.ljust(4096, b"\0"))


def measure(script, arguments, pure, calls, repeats):
    """Figures of `repeats` fresh processes."""
    figures = []
    for _ in range(repeats):
        folder = tempfile.mkdtemp(prefix="athanor-bench-")
        try:
            make_spool(folder, calls)
            environment = dict(os.environ, ATHANOR_SPOOL=folder, ATHANOR_JOB_ID="bench",
                               ATHANOR_PURE="1" if pure else "0")
            reply = subprocess.run([sys.executable, "-c", script, *arguments], env=environment,
                                   stdout=subprocess.PIPE, check=True, encoding="utf-8")
            figures.append(float(reply.stdout))
        finally:
            shutil.rmtree(folder)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200_000)
    options = parser.parse_args()
    import athanor
    folder = os.path.dirname(athanor.__file__)
    cores = [name for name in os.listdir(folder) if name.startswith("_core.")]
    if not cores:
        sys.exit("the native core is not built; build the target athanor_python first")
    calls, repeats = options.calls, options.repeats
    figures = {
        "native log, ns": measure(LOOP, [str(calls), "native"], False, calls, repeats),
        "pure log, ns": measure(LOOP, [str(calls), "pure"], True, calls, repeats),
        "should_stop, ns": measure(STOP, [str(calls)], False, calls, repeats),
    }
    core = os.path.join(folder, cores[0])
    for unit, clock in (("ms", "perf_counter_ns"), ("cpu ms", "process_time_ns")):
        figures["core import, " + unit] = measure(IMPORT_CORE, [clock, core], False, 1, repeats)
        figures["package import, " + unit] = measure(IMPORT_PACKAGE, [clock], False, 1, repeats)
    for name, values in figures.items():
        median = statistics.median(values)
        row = {"name": name, "median": round(median, 2), "min": round(min(values), 2),
               "max": round(max(values), 2), "bar": BARS[name], "met": median <= BARS[name]}
        if options.json:
            print(json.dumps(row))
        else:
            print("%-23s median %9.2f   (%.2f to %.2f)   bar %5d   %s"
                  % (name, row["median"], row["min"], row["max"], row["bar"],
                     "met" if row["met"] else "MISSED"))


if __name__ == "__main__":
    main()
