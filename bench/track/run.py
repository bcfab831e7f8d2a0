#!/usr/bin/env python3
"""What tracking costs the server: logging, finding and reading runs, against MLflow's own.

    bench/track/run.py [--quick] [--json] [--no-mlflow]

The same requests, over keep-alive connections on loopback, to our server and to `mlflow server` on
SQLite as it comes. Figures are processor time of the server, all its processes, for each operation:
other work on the machine is not theirs. Both sides are asked in turn, in the same run; a bar is a
ratio, theirs over ours. Then what only we are asked: 64 jobs that log a thousand points a second
each, ten thousand runs of a hundred metrics, and a chart of ten series of a million points.
"""

import concurrent.futures
import contextlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import Broken, Server, Side, load, main, median, until  # noqa: E402
from mlflow_calls import clone_runs, fill_run, history, log_many, new_run, run_body  # noqa: E402
from mlflow_peer import MLFLOW, mlflow_python, mlflow_server  # noqa: E402

THREADS = 32


def point(run, i):
    return {"run_id": run, "key": "p", "value": i, "timestamp": i, "step": i + 1}


def log_at_once(side, run, count):
    """`count` calls of log-metric over THREADS connections, each with one on its way at any time."""
    load("%s:%d" % (side.host, side.port),
         (("/api/2.0/mlflow/runs/log-metric", json.dumps(point(run, i))) for i in range(count)),
         THREADS)


def create_at_once(side, count):
    """Over 8 connections: with 32 MLflow runs out of those to its database, and refuses some."""
    load("%s:%d" % (side.host, side.port),
         (("/api/2.0/mlflow/runs/create", json.dumps(run_body(i))) for i in range(count)), 8)


def log_in_parallel(side, run, count):
    """The same by threads of one Python program, which runs one of them at a time: mostly one call
    is on its way, and the server sleeps between two."""
    def work(_):
        with contextlib.closing(side.connect()) as connection:
            for i in range(count // THREADS):
                side.api("POST", "runs/log-metric", point(run, i), connection)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def figures(side, runs, scale, points, clone=False):
    """Everything both sides are asked; milliseconds by name."""
    found = {}
    ids = []
    # So that every worker has done everything once.
    log_in_parallel(side, new_run(side, 0), 4 * THREADS)
    side.settle()
    found["create_run"] = side.cost(60 * scale, lambda i: ids.append(new_run(side, i)))
    run = ids[0]
    found["log_metric, one connection"] = side.cost(60 * scale, lambda i: side.api(
        "POST", "runs/log-metric", {"run_id": run, "key": "m", "value": i, "timestamp": i,
                                    "step": i + 1}))
    count = THREADS * 4 * scale
    found["log_metric, 32 connections"] = side.cost(
        5, lambda i: log_at_once(side, run, 4 * count)) / count / 4
    found["log_metric by 32 threads of one Python client"] = side.cost(
        5, lambda i: log_in_parallel(side, run, count)) / count
    if not clone:  # MLflow answers it from a thread pool; it is the floor of our figures alone
        found[FLOOR] = side.read_cost(1000, lambda i: side.send(side.connection, "GET", "/version",
                                                                None).read())
    batch = [{"key": "b%d" % (n % 10), "value": n, "timestamp": n, "step": n} for n in range(1, 1001)]
    found["log_batch of 1,000"] = side.cost(3 * scale, lambda i: side.api(
        "POST", "runs/log-batch", {"run_id": ids[i % len(ids)], "metrics": batch}))
    more = range(len(ids) + 1, runs)
    template = new_run(side, len(ids))
    ids.append(template)
    for i, one in enumerate(ids):
        fill_run(side, one, i)
    if clone:
        clone_runs(side.pid, template, more)
    else:
        for i in more:
            fill_run(side, new_run(side, i), i)
    repeats = max(2, min(scale, 10))
    best = {"experiment_ids": ["0"], "order_by": ["metrics.m0 DESC"], "max_results": 100}
    side.api("POST", "runs/search", best)
    found["best 100 of {:,} runs".format(runs)] = side.read_cost(
        repeats * (5 if scale > 5 else 1), lambda i: side.api("POST", "runs/search", best))
    page = {"experiment_ids": ["0"], "max_results": min(1000, runs)}
    found["first page of {:,} runs".format(min(1000, runs))] = side.read_cost(
        repeats, lambda i: side.api("POST", "runs/search", page))
    log_many(side, run, points)
    found["history of {:,} points".format(points)] = side.read_cost(
        2, lambda i: history(side, run, points))
    sampled = "metrics/get-history-bulk-interval?run_ids=%s&metric_key=long&max_results=320" % run
    found["the same sampled to 320"] = side.read_cost(repeats, lambda i: side.api("GET", sampled))
    found["resident memory"] = side.memory()
    # Last: these runs are not counted above.
    found["create_run, 8 connections"] = side.cost(
        5, lambda i: create_at_once(side, count)) / count
    return found


BARS = {"create_run": 100, "create_run, 8": None, "log_metric, one connection": 120,
        "log_metric, 32 connections": 400, "log_batch of 1,000": 80, "best 100": 4000, "first page": 50, "history": 100,
        "the same sampled": 2000, "resident memory": 10}


FLOOR = "GET /version, the least that a call costs"


def synced_write(folder):
    """Milliseconds of processor time that two pages and their fdatasync take, which is the least that
    a commit of one run gives to the disk: over pages that are there, as in a log that is used again."""
    path, page, parts = os.path.join(folder, "synced"), bytes(4096), []
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for part in range(6):
            before = time.process_time()
            for i in range(100):
                os.pwrite(file, page + page, i * 8192)
                os.fdatasync(file)
            if part > 0:  # the first one makes the pages
                parts.append(10 * (time.process_time() - before))
    finally:
        os.close(file)
        os.unlink(path)
    return median(parts)


def compare(report, ours, theirs):
    report.row(FLOOR, ours.pop(FLOOR), "ms",
               note="one request, one reply of ten bytes: what the kernel and this virtual machine take")
    for what, mine in ours.items():
        unit = "MiB" if what == "resident memory" else "ms"
        report.row(what, mine, unit, values=getattr(mine, "parts", None))
        if theirs is None:
            continue
        bar = next((value for name, value in sorted(BARS.items(), reverse=True)
                    if what.startswith(name)), None)
        report.row(what + ", MLflow over ours", theirs[what] / mine, "x", bar=bar, at_least=True,
                   against="%.3g %s against %.3g %s (MLflow %s)" % (mine, unit, theirs[what], unit,
                                                                    MLFLOW))


def at_scale(report, runs, points):
    """What the issue asks of us alone."""
    with Server() as server:
        side = Side("http://" + server.address, server.process.pid)
        for i in range(runs):
            fill_run(side, new_run(side, i), i, metrics=100, names=12_000)
        queries = {
            "list": "limit=100",
            "sort": "limit=100&order=metrics.m17%20DESC",
            "filter": "limit=100&filter=metrics.m3%20%3C%200.1%20AND%20params.p2%20%3D%20%271%27",
            "filter by a rare name": "limit=100&filter=metrics.own77%20%3E%200",
        }
        side.call("GET", "/api/v1/runs?" + queries["sort"])
        for name, query in queries.items():
            taken = [side.read_cost(3, lambda i: side.call("GET", "/api/v1/runs?" + query))
                     for _ in range(3)]
            report.row("{} {:,} runs of 100 metrics, 12,050 names".format(name, runs), median(taken), "ms", bar=200,
                       values=taken)
        ids = [new_run(side, i) for i in range(10)]
        for run in ids:
            log_many(side, run, points)

        def chart(_):
            for run in ids:
                side.connection.request("GET", "/api/v1/runs/%s/metrics/long?width=2000" % run)
                side.connection.getresponse().read()
        taken = [side.read_cost(2, chart) for _ in range(3)]
        report.row("10 series of {:,} points to 2,000 pixels".format(points), median(taken), "ms",
                   bar=50, values=taken)
        report.row("resident memory after that", side.memory(), "MiB")


LOGGER = """
import athanor, os, sys, time
open(sys.argv[1] + "." + athanor.job_id(), "w").close()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
begun = time.time()
for part in range(10 * int(sys.argv[2])):
    for i in range(100):
        athanor.log(sent=time.time(), step=100 * part + i)
    time.sleep(max(0, begun + (part + 1) / 10 - time.time()))
"""


def ingest(report, jobs, seconds):
    """Jobs that log a thousand points a second each, through their agents: how far behind the server
    is while they do. Each point is the time at which it was logged."""
    with Server() as server:
        with open(os.path.join(server.work, "logger.py"), "w") as file:
            file.write(LOGGER)
        go = os.path.join(server.root, "go")
        ids = [json.loads(server.ath("run", "-d", "--json", "--cpus", "0.01", "--", sys.executable,
                                     "logger.py", go, seconds))["id"] for _ in range(jobs)]
        until(lambda: sum(name.startswith("go.") for name in os.listdir(server.root)) == jobs,
              "all scripts wait", patience=300)

        def behind():
            last = []
            for job in ids:
                metrics = server.http("GET", "/api/v1/runs/" + job)["metrics"]
                last.append(time.time() - (metrics["sent"]["last"] if metrics else begun))
            return 1000 * max(last)
        with open(go, "w"):
            begun = time.time()
        before = Side("http://" + server.address, server.process.pid).cpu()
        looks = []
        for part in range(1, seconds - 1):
            time.sleep(max(0, begun + part - time.time()))
            looks.append(behind())
        half = len(looks) // 2
        taken = Side("http://" + server.address, server.process.pid).cpu() - before
        until(lambda: all(server.http("GET", "/api/v1/jobs/" + job)["state"] == "Completed" for job in ids),
              "all jobs end", patience=300)
        for job in ids:
            metrics = server.http("GET", "/api/v1/runs/" + job)["metrics"]
            kept = metrics["sent"]["count"]
            if kept != 1000 * seconds:
                raise Broken("of %d points %d were kept" % (1000 * seconds, kept))
        report.row("%d jobs at 1,000 points/s each: the last one seen is old, first half" % jobs,
                   median(looks[:half]), "ms", values=looks[:half])
        report.row("the same, second half", median(looks[half:]), "ms", values=looks[half:], bar=1000,
                   note="no backlog grows; all %d points kept; %.0f %% of a core in the server"
                   % (1000 * seconds * jobs, 100 * taken / seconds))


def run(report, options):
    runs, points = (300, 20_000) if options.quick else (10_000, 100_000)
    with Server() as server:
        report.row("two pages written and synced, what create_run has to do besides",
                   synced_write(server.root), "ms", note="processor time of a bare loop")
        ours = figures(Side("http://" + server.address, server.process.pid), runs, 30, points)
    theirs = None
    if options.no_mlflow:
        report.skip("against MLflow", "--no-mlflow")
    else:
        try:
            with mlflow_server(mlflow_python()) as (url, pid):
                theirs = figures(Side(url, pid), runs, 1, points, clone=True)
        except Broken as broken:
            report.skip("against MLflow", str(broken).strip().splitlines()[-1][:200])
    compare(report, ours, theirs)
    ingest(report, 8 if options.quick else 64, 5 if options.quick else 20)
    at_scale(report, 500 if options.quick else 10_000, 50_000 if options.quick else 1_000_000)


if __name__ == "__main__":
    main("track", __doc__, run, lambda parser: parser.add_argument(
        "--no-mlflow", action="store_true", help="leave MLflow out"))
