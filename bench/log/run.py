#!/usr/bin/env python3
"""What athanor.log costs: native, pure, the import, and against mlflow.log_metric.

    bench/log/run.py [--quick] [--json] [--no-mlflow]

Each repeat is a fresh process with a spool that has room for all of its calls; the figure is
the median over repeats. Calls are counted in processor time, since they never wait and other
work on the machine is not theirs; imports by the wall clock and, beside it, in processor time.
The rate against MLflow is by the wall clock on both sides: mlflow.log_metric to its own server on
this machine, with SQLite, as `mlflow server` comes. MLflow lies in a virtual environment that is
made once.
"""

import os
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import BUILD, Broken, check, main, median  # noqa: E402
from mlflow_peer import MLFLOW, mlflow_python, mlflow_server  # noqa: E402

PACKAGE = os.path.join(BUILD, "python")

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

RATE = """
import sys, time, athanor
calls = int(sys.argv[1])
athanor.log(loss=0.5, step=0)
start = time.perf_counter()
for i in range(calls):
    athanor.log(loss=0.5, step=i)
took = time.perf_counter() - start
assert athanor.stats()["written"] == calls + 1, athanor.stats()
print(calls / took)
"""

MLFLOW_RATE = """
import sys, time, mlflow
calls = int(sys.argv[1])
with mlflow.start_run():
    mlflow.log_metric("loss", 0.5, step=0)
    start = time.perf_counter()
    for i in range(calls):
        mlflow.log_metric("loss", 0.5, step=i)
    took = time.perf_counter() - start
print(calls / took)
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


def measure(script, arguments, pure, calls):
    """The figure of one fresh process."""
    folder = tempfile.mkdtemp(prefix="athanor-bench-")
    try:
        make_spool(folder, calls)
        environment = dict(os.environ, ATHANOR_SPOOL=folder, ATHANOR_JOB_ID="bench",
                           ATHANOR_PURE="1" if pure else "0", PYTHONPATH=PACKAGE)
        return float(check([sys.executable, "-c", script, *map(str, arguments)], env=environment))
    finally:
        shutil.rmtree(folder)


def native_core():
    folder = os.path.join(PACKAGE, "athanor")
    cores = [name for name in os.listdir(folder) if name.startswith("_core.")] \
        if os.path.isdir(folder) else []
    if not cores:
        raise Broken("no native core in %s: build the target athanor_python" % folder)
    return os.path.join(folder, cores[0])


def costs(report, repeats, calls):
    core = native_core()
    kinds = [
        ("athanor.log(loss=x, step=i), native core", "ns", 200, LOOP, [calls, "native"], False),
        ("athanor.log(loss=x, step=i), pure Python", "ns", 1000, LOOP, [calls, "pure"], True),
        ("athanor.should_stop()", "ns", None, STOP, [calls], False),
        ("import of the native core", "ms", 5, IMPORT_CORE, ["perf_counter_ns", core], False),
        ("import of the native core, processor time", "ms", None, IMPORT_CORE,
         ["process_time_ns", core], False),
        ("import athanor", "ms", 20, IMPORT_PACKAGE, ["perf_counter_ns"], False),
        ("import athanor, processor time", "ms", None, IMPORT_PACKAGE, ["process_time_ns"], False),
    ]
    taken = {kind[0]: [] for kind in kinds}
    for _ in range(repeats):
        for what, _, _, script, arguments, pure in kinds:
            taken[what].append(measure(script, arguments, pure, calls))
    for what, unit, bar, *_ in kinds:
        report.row(what, median(taken[what]), unit, values=taken[what], bar=bar)


def against_mlflow(report, repeats, calls):
    what = "athanor.log over mlflow.log_metric, rate"
    try:
        python = mlflow_python()
    except Broken as broken:
        return report.skip(what, "MLflow %s cannot be installed: %s"
                           % (MLFLOW, str(broken).strip().splitlines()[-1][:200]))
    ours, theirs = [], []
    with mlflow_server(python) as (url, _):
        environment = dict(os.environ, MLFLOW_TRACKING_URI=url)
        for _ in range(repeats):
            ours.append(measure(RATE, [calls], False, calls))
            text = check([python, "-c", MLFLOW_RATE, str(max(50, calls // 1000))], env=environment)
            # It prints where to look at the run, too.
            theirs.append(next(float(line) for line in reversed(text.splitlines())
                               if line.replace(".", "").isdigit()))
    report.row("mlflow.log_metric to its own server", median(theirs), "/s", values=theirs,
               note="MLflow %s, SQLite, one client" % MLFLOW)
    report.row(what, median(ours) / median(theirs), "x", bar=10_000, at_least=True,
               values=[mine / other for mine, other in zip(ours, theirs)],
               against="{:,.0f}/s against {:,.0f}/s".format(median(ours), median(theirs)))


def run(report, options):
    repeats, calls = (3, 50_000) if options.quick else (9, 200_000)
    costs(report, repeats, calls)
    if options.no_mlflow:
        return report.skip("athanor.log over mlflow.log_metric, rate", "--no-mlflow")
    against_mlflow(report, max(2, repeats // 2), calls)


if __name__ == "__main__":
    main("log", __doc__, run, lambda parser: parser.add_argument(
        "--no-mlflow", action="store_true", help="leave MLflow out"))
