#!/usr/bin/env python3
"""How the server's cost grows with what it keeps: runs, waiting jobs, points of one metric.

    bench/scale/run.py [--runs N[,N]] [--jobs N] [--points N] [--home DIR] [--only PARTS] [--quick] [--json]

Figures are processor time of the server, whatever else the machine does; only the longest wait for
/healthz is time on the wall, and its note says how busy the machine was. Filled through the API, by
several connections: runs of 5 params, 5 tags and 5 metrics of 3 points each, finished; jobs that wait
since one holds the machine. Filling takes a minute for 100,000 runs, ten and more for 1,000,000; with
--home a filled folder is kept there and copied the next time. `mlflow server` is asked the same with
10,000 runs. "Before" in a note is what the row was on 2026-11-18, when its bar was set.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import (Broken, Cost, Server, Side, check, load, main, median,  # noqa: E402
                    submit_requests, until)
from mlflow_calls import (clone_runs, fill_run, history, log_many, metric_value,  # noqa: E402
                          new_run)
from mlflow_peer import MLFLOW, mlflow_python, mlflow_server  # noqa: E402

PARTS = ("runs", "backup", "grow", "live", "history", "jobs", "mlflow")
API = "/api/2.0/mlflow/"
RUN = "0" * 32  # load.cc puts the new run's id there
SLICE = 20_000  # runs whose requests are written down at once
PEER_RUNS = 10_000
PEER_POINTS = 100_000
LAYOUT = 1  # of a kept folder: another number when runs are filled in otherwise
BEST = {"experiment_ids": ["0"], "order_by": ["metrics.m0 DESC"], "max_results": 100}
NEWEST = {"experiment_ids": ["0"], "order_by": ["attributes.start_time DESC"], "max_results": 1000}


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def many(count):
    return "{:,}".format(count)


def bar_at(size, bars):
    """The bar of the smallest size that has one and is not smaller than this; none beyond."""
    return next((bar for known, bar in sorted(bars.items()) if size <= known), None)


# --- filling

def create_request(i):
    return API + "runs/create", compact({
        "experiment_id": "0", "start_time": 1_700_000_000_000 + 1000 * i, "run_name": "run-%d" % i,
        "tags": [{"key": "tag%d" % n, "value": "value %d" % (i % 7)} for n in range(5)]})


def batch_request(run, i, points=3):
    return API + "runs/log-batch", compact({
        "run_id": run,
        "params": [{"key": "p%d" % n, "value": str(i % (n + 2))} for n in range(5)],
        "metrics": [{"key": "m%d" % n, "value": metric_value(i + points - step, n),
                     "timestamp": 1_700_000_000_000 + step, "step": step}
                    for n in range(5) for step in range(1, points + 1)]})


def filled_run(i):
    """What makes one run and ends it, in order."""
    return (*create_request(i), *batch_request(RUN, i),
            API + "runs/update", compact({"run_id": RUN, "status": "FINISHED",
                                          "end_time": 1_700_000_060_000 + 1000 * i}))


def fill_runs(server, count):
    for first in range(0, count, SLICE):
        load(server.address, (filled_run(i) for i in range(first, min(first + SLICE, count))))


def fill_live(server, runs, points):
    """Runs that go on, of so many points each, all alike."""
    steps = [*create_request(0)]
    for first in range(1, points + 1, 1000):
        steps += (API + "runs/log-batch", compact({"run_id": RUN, "metrics": [
            {"key": "loss", "value": 1 / i, "timestamp": 1_700_000_000_000 + i, "step": i}
            for i in range(first, min(first + 1000, points + 1))]}))
    load(server.address, [tuple(steps)], clients=8, repeat=runs)


def fill_jobs(server, count):
    """The first one takes the machine, the others wait."""
    load(server.socket, submit_requests(1), clients=1)
    for first in range(1, count + 1, SLICE):
        load(server.socket, submit_requests(min(SLICE, count + 1 - first), first))


@contextlib.contextmanager
def server_with(count, keep):
    """A server with so many runs; `keep` is the folder where the filled one stays."""
    kept = keep and os.path.join(os.path.abspath(keep), "runs-%d-layout-%d" % (count, LAYOUT))
    with contextlib.ExitStack() as stack:
        server = Server()
        if kept and os.path.exists(kept):
            check(["cp", "-a", "--reflink=auto", kept + "/.", server.home])
            stack.enter_context(server)
        else:
            stack.enter_context(server)
            fill_runs(server, count)
            if kept:
                server.end()
                os.makedirs(keep, exist_ok=True)
                shutil.rmtree(kept + ".part", ignore_errors=True)
                check(["cp", "-a", "--reflink=auto", server.home, kept + ".part"])
                os.replace(kept + ".part", kept)
                server.start()
        yield server


# --- looking

def side_of(server):
    return Side("http://" + server.address, server.process.pid)


def rest(side):
    """Waits until the server is at rest; its processor seconds when that began. What it does then
    now and then, a few per cent of a core, does not count as work."""
    seen = [side.cpu()]

    def resting():
        time.sleep(0.25)
        seen.append(side.cpu())
        return len(seen) > 4 and all(b - a < 0.04 for a, b in zip(seen[-5:], seen[-4:]))
    until(resting, "the server is at rest", patience=600)
    return seen[-5]


def forget_peak(server):
    with open("/proc/%d/clear_refs" % server.process.pid, "w") as file:
        file.write("5")


class Peak:
    """MiB of memory that the server gained at most while this was open."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.before = self.server.memory()
        forget_peak(self.server)
        return self

    def __exit__(self, *_):
        self.gained = self.server.memory("VmHWM") - self.before


def machine_busy():
    """Seconds of processor time that the whole machine has used."""
    with open("/proc/stat") as file:
        fields = list(map(int, file.readline().split()[1:9]))
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class Asker(threading.Thread):
    """Asks for one thing after the other, again and again; how long the slowest answer took."""

    def __init__(self, side, targets):
        super().__init__(daemon=True)
        self.connection, self.targets = side.connect(), targets
        self.over, self.slowest, self.answers, self.problem = False, 0.0, 0, None

    def run(self):
        try:
            while not self.over:
                begun = time.perf_counter()
                target = self.targets[self.answers % len(self.targets)]
                self.connection.request("GET", target)
                reply = self.connection.getresponse()
                reply.read()
                if reply.status != 200:
                    raise Broken("%s: %d" % (target, reply.status))
                self.slowest = max(self.slowest, time.perf_counter() - begun)
                self.answers += 1
                time.sleep(0.001)
        except (OSError, Broken) as problem:
            self.problem = problem
        finally:
            self.connection.close()

    def finish(self):
        self.over = True
        self.join()
        if self.problem or not self.answers:
            raise Broken("asked for %s: %s" % (self.targets[0], self.problem or "no answer"))
        return 1000 * self.slowest


def slowest_health(side, runs, work):
    """Milliseconds of the slowest /healthz while `work` is done, with runs/get of one run after the
    other beside it; and how many cores the machine used meanwhile."""
    health = Asker(side, ["/healthz"])
    other = Asker(side, [API + "runs/get?run_id=" + run for run in runs])
    begun, before = time.monotonic(), machine_busy()
    health.start()
    other.start()
    until(lambda: health.answers and other.answers, "the server answers")
    work()
    slowest = health.finish()
    other.finish()
    return slowest, (machine_busy() - before) / (time.monotonic() - begun)


# --- runs

def sample_runs(server, count):
    """Runs from all over: what they are called, their long and their short ids."""
    found = []
    for offset in range(0, count, max(1, count // 50)):
        run = server.http("GET", "/api/v1/runs?limit=1&offset=%d&column=params.p0" % offset)["runs"][0]
        found.append({"name": run["name"], "id": run["run_id"], "short": run["id"][-8:]})
    return found


def start_again(server):
    """The side of a server that was just started and is at rest, and what starting took."""
    if server.process:
        server.end()
    server.start()
    side = side_of(server)
    seconds = rest(side)
    return side, seconds, server.memory("VmHWM") / server.memory()


def starts(report, server, what, bar, was, repeats):
    seconds, peaks = [], []
    for _ in range(repeats):
        side, cpu, peak = start_again(server)
        seconds.append(cpu)
        peaks.append(peak)
    before, begun = side.cpu(), time.monotonic()
    time.sleep(4)
    idle = 100 * (side.cpu() - before) / (time.monotonic() - begun)
    report.row("start with " + what, median(seconds), "s", values=seconds, bar=bar,
               note="before: %s; until it is at rest, then %.2f %% of a core" % (was, idle))
    report.row("start with %s: peak over steady memory" % what, median(peaks), "x", values=peaks,
               bar=1.3, note="before: 2.4x; %.0f MiB stay" % server.memory())


def first_searches(report, server, count, repeats):
    costs, gaps, quiet, busy = [], [], [], []
    # Many from all over: one that was looked at already is known, and those that the search has come
    # to are too.
    runs = [run["run_id"] for part in range(20) for run in server.http(
        "GET", "/api/v1/runs?limit=250&offset=%d&column=params.p0" % (part * count // 20))["runs"]]
    random.Random(1).shuffle(runs)
    for _ in range(repeats):
        side, _, _ = start_again(server)
        before = side.cpu()
        side.api("POST", "runs/search", BEST)
        costs.append(side.cpu() - before)
        side, _, _ = start_again(server)
        gap, cores = slowest_health(side, runs, lambda: side.api("POST", "runs/search", BEST))
        gaps.append(gap)
        busy.append(cores)
        quiet.append(slowest_health(side, runs, lambda: time.sleep(1))[0])
    report.row("first metric search after a start, %s runs" % many(count), median(costs), "s",
               values=costs, bar=bar_at(count, {100_000: 0.1}), note="before: 1.8 s, 19 s at 1,000,000")
    report.row("slowest /healthz beside it, with runs/get, %s runs" % many(count), median(gaps), "ms",
               values=gaps, bar=bar_at(count, {100_000: 50}),
               note="before: 1,646 ms; time on the wall, the machine used %.1f of %d cores; %.1f ms "
               "without a search" % (median(busy), os.cpu_count(), median(quiet)))


def walk(side, count):
    """Every run once, in the order of a metric, by pages of 1,000: seconds of all, and the first and the
    last whole page's query."""
    query, seen, before, last = dict(BEST, max_results=1000), set(), side.cpu(), None
    while True:
        answer = side.api("POST", "runs/search", query)
        runs = answer.get("runs", [])
        seen.update(run["info"]["run_id"] for run in runs)
        if len(runs) == 1000:
            last = query
        if not answer.get("next_page_token"):
            break
        query = dict(query, page_token=answer["next_page_token"])
    taken = side.cpu() - before
    if len(seen) != count:
        raise Broken("the pages of %d runs have %d" % (count, len(seen)))
    return taken, last


def pages(report, side, count, repeats):
    walks = [walk(side, count) for _ in range(repeats)]
    taken = [seconds for seconds, _ in walks]
    report.row("all pages of 1,000 by a metric, %s runs" % many(count), median(taken), "s",
               values=taken, bar=bar_at(count, {100_000: 0.6}), note="before: 2.3 s, 310 s at 1,000,000")
    last = walks[-1][1]
    if last is None:
        return report.skip("the last page against the first", "there is no page of 1,000")
    first = side.read_cost(5, lambda i: side.api("POST", "runs/search", dict(BEST, max_results=1000)))
    final = side.read_cost(5, lambda i: side.api("POST", "runs/search", last))
    report.row("the last page against the first, %s runs" % many(count), final / first, "x",
               values=[b / a for a, b in zip(first.parts, final.parts)], bar=1.5,
               note="%.2f ms against %.2f ms" % (final, first))


def finding(report, side, count, sample):
    for what, key in (("name", "name"), ("short id", "short")):
        cost = side.read_cost(50, lambda i: side.call(
            "GET", "/api/v1/runs/" + sample[i % len(sample)][key]))
        report.row("run by %s, %s runs" % (what, many(count)), cost, "ms", values=cost.parts,
                   bar=bar_at(count, {100_000: 0.2}), note="before: 57 to 130 ms, 1 s at 1,000,000")

    def unknown(_):
        reply = side.send(side.connection, "GET", "/api/v1/runs/no-such-run", None)
        reply.read()
        if reply.status != 404:
            raise Broken("a run that is not there: %d" % reply.status)
    cost = side.read_cost(50, unknown)
    report.row("run by a name that is not there, %s runs" % many(count), cost, "ms",
               values=cost.parts, bar=bar_at(count, {100_000: 0.2}), note="before: 75 ms, 1 s at 1,000,000")


def same_as_peer(side, sample, points=None):
    """What both servers are asked: milliseconds by name."""
    side.api("POST", "runs/search", BEST)
    found = {
        "run by id": side.read_cost(20, lambda i: side.api(
            "GET", "runs/get?run_id=" + sample[i % len(sample)])),
        "best 100": side.read_cost(10, lambda i: side.api("POST", "runs/search", BEST)),
        "first 1,000 by start time": side.read_cost(
            5, lambda i: side.api("POST", "runs/search", NEWEST)),
    }
    if points:
        run = new_run(side, 0)
        log_many(side, run, points)
        found["history, of 1,000 points"] = Cost([
            1000 * one / points for one in side.read_cost(2, lambda i: history(side, run, points)).parts])
    return found


def empty_memory():
    with Server() as server:
        side = side_of(server)
        side.api("POST", "runs/search", BEST)
        rest(side)
        return server.memory()


def measure_runs(report, server, count, repeats, ours):
    sample = sample_runs(server, count)
    starts(report, server, many(count) + " runs", bar_at(count, {100_000: 0.5, 1_000_000: 4}),
           "0.94 s, 12 s at 1,000,000", repeats)
    first_searches(report, server, count, repeats)
    side = side_of(server)
    ours.update(same_as_peer(side, [one["id"] for one in sample]))
    rest(side)
    report.row("memory of a run, of %s" % many(count),
               1024 * (server.memory() - empty_memory()) / count, "KiB",
               bar=None if count < 100_000 else 1, note="before: 1.33 to 1.7 KB; after a start and searches")
    finding(report, side, count, sample)
    report.row("run by id, %s runs" % many(count), ours["run by id"], "ms",
               values=ours["run by id"].parts)
    report.row("best 100 of %s" % many(count), ours["best 100"], "ms", values=ours["best 100"].parts,
               bar=bar_at(count, {100_000: 2, 1_000_000: 10}), note="before: 7.3 ms, 65 ms at 1,000,000")
    newest = ours["first 1,000 by start time"]
    report.row("first 1,000 by start time of %s" % many(count), newest, "ms", values=newest.parts,
               bar=bar_at(count, {100_000: 7, 1_000_000: 10}), note="before: 15 ms, 90 ms at 1,000,000")
    pages(report, side, count, repeats if count < 1_000_000 else 1)


def measure_backup(report, server, count, repeats):
    side, taken = side_of(server), []
    while len(taken) < repeats and sum(taken) < 20:
        target = os.path.join(server.root, "backup")
        rest(side)
        before = side.cpu() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        server.ath("server", "backup", target)
        taken.append(side.cpu() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before)
        shutil.rmtree(target)
    report.row("backup of %s runs" % many(count), median(taken), "s", values=taken,
               bar=bar_at(count, {100_000: 5}), note="before: 62 s; server and `ath` together")


# --- as it grows

def turn_cost(side, address, requests):
    """Milliseconds of processor time for each of these requests over 8 connections."""
    before = side.cpu()
    load(address, requests, clients=8)
    return 1000 * (side.cpu() - before) / len(requests)


def against_empty(report, what, full, empty, requests, turns, small):
    """`requests(server, turn)` is what is sent to one of the two in one turn."""
    costs = {server: [] for server in (full, empty)}
    sides = {server: side_of(server) for server in costs}
    for turn in range(turns + 1):
        for server, found in costs.items():
            cost = turn_cost(sides[server], server.socket, requests(server, turn))
            if turn > 0:  # the first one opens files and makes pages
                found.append(cost)
    ours, theirs = median(costs[full]), median(costs[empty])
    report.row(what + ", against an empty server", ours / theirs, "x",
               values=[a / b for a, b in zip(costs[full], costs[empty])],
               bar=None if small else 1.2, note="before: at most 1.5x; %.4f ms against %.4f ms"
               % (ours, theirs))


def submits(turn, count, serial=10_000_000):
    return list(submit_requests(count, serial + turn * count))


def measure_growth(report, server, count, options, ours):
    turns, each = (3, 200) if options.quick else (9, 1000)
    with Server() as empty:
        against_empty(report, "create_run with %s runs" % many(count), server, empty,
                      lambda one, turn: [create_request(2_000_000 + turn * each + i) for i in range(each)],
                      turns, options.quick)
        targets = {one: [new_run(side_of(one), 3_000_000 + i) for i in range(20)]
                   for one in (server, empty)}
        against_empty(report, "log-batch of 15 points with %s runs" % many(count), server, empty,
                      lambda one, turn: [batch_request(run, 7, points=3) for run in targets[one]
                                         for _ in range(each // 20)], turns, options.quick)
        for one in (server, empty):
            load(one.socket, submit_requests(1), clients=1)
        against_empty(report, "submit with %s runs" % many(count), server, empty,
                      lambda one, turn: submits(turn, each), turns, options.quick)
    side = side_of(server)
    ours["create_run"] = side.cost(270, lambda i: new_run(side, 4_000_000 + i), pause=1)
    report.row("create_run by one client, %s runs" % many(count), ours["create_run"], "ms",
               values=ours["create_run"].parts)


def measure_jobs(report, count, options, repeats):
    with Server() as server:
        fill_jobs(server, count)
        starts(report, server, many(count) + " waiting jobs", bar_at(count, {100_000: 1}), "5.4 s", repeats)
        with Server() as empty:
            load(empty.socket, submit_requests(1), clients=1)
            turns, each = (3, 200) if options.quick else (9, 1000)
            against_empty(report, "submit with %s waiting jobs" % many(count), server, empty,
                          lambda one, turn: submits(turn, each), turns, options.quick)


# --- points

def measure_live(report, runs, points):
    with Server() as server:
        fill_live(server, runs, points)
        side = side_of(server)
        ids = [run["run_id"] for run in server.http(
            "GET", "/api/v1/runs?limit=%d&column=params.p0" % runs)["runs"]]
        if len(ids) != runs:
            raise Broken("of %d live runs %d are listed" % (runs, len(ids)))

        def log(run, i):
            side.api("POST", "runs/log-metric", {"run_id": run, "key": "loss", "value": i,
                                                 "timestamp": 1_700_001_000_000 + i, "step": points + 1 + i})
        rest(side)
        one = side.cost(2 * runs, lambda i: log(ids[0], i), parts=5, pause=1)
        cost = side.cost(2 * runs, lambda i: log(ids[i % runs], i), parts=5, pause=1)
        report.row("one point logged, %s live runs of %s points" % (many(runs), many(points)), cost, "ms",
                   values=cost.parts, bar=0.2, note="before: 2.8 ms, with 320 runs; %.4f ms if all are "
                   "of one run" % one)


def deaf(side, target):
    """A connection that asked and does not read."""
    reader = socket.create_connection((side.host, side.port), 60)
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    reader.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target).encode())
    return reader


def measure_history(report, points, repeats, ours):
    with Server() as server:
        side = side_of(server)
        run = new_run(side, 0)
        log_many(side, run, points)
        side, _, _ = start_again(server)
        taken = []
        with Peak(server) as peak:
            for _ in range(repeats):
                before = side.cpu()
                history(side, run, points)
                taken.append(side.cpu() - before)
        report.row("history of %s points by pages" % many(points), median(taken), "s", values=taken,
                   bar=bar_at(points, {1_000_000: 0.3}), note="before: 4.3 s")
        report.row("the same: memory gained", peak.gained, "MiB", bar=64,
                   note="before: 893 MB a page of a series of 10,000,000 points")
        ours["history, of 1,000 points"] = Cost([1e6 * one / points for one in taken])
        side, _, _ = start_again(server)
        with contextlib.ExitStack() as stack, Peak(server) as peak:
            readers = [stack.enter_context(deaf(side, API + "metrics/get-history?run_id=%s&metric_key=long"
                                                % run)) for _ in range(20)]
            rest(side)
            begun = [reader.recv(12, socket.MSG_PEEK) for reader in readers]
            if any(text != b"HTTP/1.1 200" for text in begun):
                raise Broken("not all of 20 readers are answered: %r" % begun)
        report.row("20 readers of %s points that do not read: memory" % many(points), peak.gained, "MiB",
                   bar=64, note="before: 1,433 MB")


# --- MLflow

def measure_peer(report, ours, runs, points):
    try:
        with mlflow_server(mlflow_python()) as (url, pid):
            side = Side(url, pid)
            template = new_run(side, 0)
            fill_run(side, template, 0)
            ids = clone_runs(pid, template, range(1, runs))
            side.settle()
            theirs = {"create_run": side.cost(54, lambda i: new_run(side, i), pause=1)}
            theirs.update(same_as_peer(side, ids[::len(ids) // 50], points))
    except Broken as broken:
        return report.skip("against MLflow", str(broken).strip().splitlines()[-1][:200])
    for what, size in ours.pop("sizes").items():
        for name, mine in ours[what].items():
            if name in theirs:
                report.row("%s with %s, MLflow with %s over ours" % (
                    name, size, many(points if what == "points" else runs)),
                           theirs[name] / mine, "x", note="%.4g ms against %.4g ms (MLflow %s)"
                           % (mine, theirs[name], MLFLOW))


# --- all of it

def arguments(parser):
    parser.add_argument("--runs", help="how many; several with commas (100000)")
    parser.add_argument("--jobs", type=int, help="how many wait (100000)")
    parser.add_argument("--points", type=int, help="of one history (1000000)")
    parser.add_argument("--home", metavar="DIR", help="filled folders are kept here, and used again")
    parser.add_argument("--only", help="some of " + ",".join(PARTS))


def run(report, options):
    quick = options.quick
    sizes = list(map(int, options.runs.split(","))) if options.runs else [2000 if quick else 100_000]
    jobs = options.jobs or (1000 if quick else 100_000)
    points = options.points or (50_000 if quick else 1_000_000)
    parts = options.only.split(",") if options.only else PARTS
    for part in parts:
        if part not in PARTS:
            raise Broken("no part %r; there are %s" % (part, ", ".join(PARTS)))
    ours = {"sizes": {}}
    for count in sizes:
        if not {"runs", "backup", "grow"} & set(parts):
            break
        repeats = 2 if quick else 5 if count < 1_000_000 else 3
        ours["sizes"][count] = many(count) + " runs"
        mine = ours.setdefault(count, {})
        with server_with(count, options.home) as server:
            if "runs" in parts:
                measure_runs(report, server, count, repeats, mine)
            if "backup" in parts:
                measure_backup(report, server, count, min(repeats, 3))
            if "grow" in parts:
                measure_growth(report, server, count, options, mine)
    repeats = 2 if quick else 5
    if "live" in parts:
        measure_live(report, *((300, 2000) if quick else (1000, 60_000)))
    if "history" in parts:
        ours["sizes"]["points"] = many(points) + " points"
        measure_history(report, points, repeats, ours.setdefault("points", {}))
    if "jobs" in parts:
        measure_jobs(report, jobs, options, repeats)
    if "mlflow" in parts:
        measure_peer(report, ours, 1000 if quick else PEER_RUNS, 20_000 if quick else PEER_POINTS)


if __name__ == "__main__":
    main("scale", __doc__, run, arguments)
