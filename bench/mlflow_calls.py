"""Runs by MLflow's REST API, the same on both servers: made, filled, read."""

import contextlib
import math
import sqlite3
import uuid

from common import Broken


def run_body(i):
    return {"experiment_id": "0", "start_time": 1000 + i, "run_name": "run-%d" % i,
            "tags": [{"key": "tag%d" % n, "value": "value %d" % (i % 7)} for n in range(5)]}


def new_run(side, i):
    return side.api("POST", "runs/create", run_body(i))["run"]["info"]["run_id"]


def metric_value(i, n):
    return (i * 7919 + n) % 10007 / 10007


def fill_run(side, run, i, metrics=5, names=None):
    """With `names`, half of the metrics have names that few runs share, so many in all."""
    def key(n):
        own = names is not None and n >= metrics // 2
        return "own%d" % ((i * (metrics // 2) + n) % names) if own else "m%d" % n
    side.api("POST", "runs/log-batch", {
        "run_id": run,
        "metrics": [{"key": key(n), "value": metric_value(i, n), "timestamp": 1, "step": 1}
                    for n in range(metrics)],
        "params": [{"key": "p%d" % n, "value": str(i % (n + 2))} for n in range(5)]})


def clone_runs(pid, template, numbers):
    """Runs like `template`, written into the tables of MLflow's store past its server: through its
    API ten thousand take it the better part of an hour. What is measured afterwards is the same."""
    changes = {
        "runs": lambda i, row: {"name": "run-%d" % i, "start_time": 1000 + i},
        "tags": lambda i, row: {"value": "value %d" % (i % 7) if row["key"].startswith("tag")
                                else "run-%d" % i},
        "params": lambda i, row: {"value": str(i % (int(row["key"][1:]) + 2))},
        "metrics": lambda i, row: {"value": metric_value(i, int(row["key"][1:]))},
        "latest_metrics": lambda i, row: {"value": metric_value(i, int(row["key"][1:]))},
    }
    with contextlib.closing(sqlite3.connect("/proc/%d/cwd/mlflow.db" % pid, timeout=120)) as base:
        base.row_factory = sqlite3.Row
        ids = [uuid.uuid4().hex for _ in numbers]
        for table, change in changes.items():
            found = base.execute("SELECT * FROM %s WHERE run_uuid = ?" % table, (template,))
            for row in map(dict, found.fetchall()):
                base.executemany(
                    "INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(row),
                                                         ", ".join(":" + name for name in row)),
                    [dict(row, run_uuid=run, **change(i, row)) for i, run in zip(numbers, ids)])
        base.commit()
    return ids


def log_many(side, run, points, key="long"):
    """One series, in batches of 1,000."""
    for first in range(0, points, 1000):
        side.api("POST", "runs/log-batch", {"run_id": run, "metrics": [
            {"key": key, "value": math.sin(i / 1000), "timestamp": 1_700_000_000_000 + i, "step": i}
            for i in range(first + 1, first + 1001)]})


def history(side, run, points, key="long"):
    """Every point of a series, by pages of 25,000."""
    token, seen = "", 0
    while True:
        answer = side.api("GET", "metrics/get-history?run_id=%s&metric_key=%s&max_results=25000%s"
                          % (run, key, "&page_token=" + token if token else ""))
        seen += len(answer.get("metrics", []))
        token = answer.get("next_page_token", "").replace("=", "%3D")
        if not token:
            break
    if seen != points:
        raise Broken("a history of %d points has %d" % (points, seen))
