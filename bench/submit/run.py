#!/usr/bin/env python3
"""Acknowledged submits a second with 32 clients, against what bounds them.

    bench/submit/run.py [--quick] [--json]

Each repeat, on a server with an empty store: a no-op POST (POST /api/v1/blobs/missing with an
empty list) and then distinct keyed submits, both by the same 32 kept-alive connections over the
server's Unix socket; and beside it a bare SQLite group-commit loop (WAL, synchronous=FULL) of 32
producers whose rows are as long as a record of the server. The jobs ask for the whole machine: one
runs and sleeps, the others wait, so that launches cost nothing here.
"""

import contextlib
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import (Server, check, compiled, load, main, median, scratch,  # noqa: E402
                    submit_requests)

CLIENTS = 32


def record_bytes(server):
    """How long the stored record of a waiting job is."""
    path = os.path.join(server.home, "server", "athanor.db")
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        return int(db.execute("SELECT avg(length(json)) FROM records").fetchone()[0])


def group_commit(rows, size):
    with scratch() as folder:
        return json.loads(check([compiled("submit/group_commit.cc", "sqlite3"),
                                 os.path.join(folder, "store.db"), str(CLIENTS), str(rows),
                                 str(size)]))


def run(report, options):
    repeats, count = (2, 1000) if options.quick else (7, 10_000)
    noop, bare, submit, sizes = [], [], [], []
    for _ in range(repeats):
        with Server() as server:
            noop.append(load(server.socket, [("/api/v1/blobs/missing", '{"sha256":[]}')], CLIENTS, count))
            # The first takes the machine; the measured ones only wait.
            load(server.socket, submit_requests(1, count), 1)
            submit.append(load(server.socket, submit_requests(count), CLIENTS))
            sizes.append(record_bytes(server))
        bare.append(group_commit(count, sizes[-1]))

    def rates(runs):
        return [one["rate"] for one in runs]

    def p99s(runs):
        return [one["p99_ms"] for one in runs]

    note = "%d requests a repeat" % count
    report.row("no-op POST, 32 clients", median(rates(noop)), "/s", values=rates(noop),
               note="p99 %.2f ms; %s" % (median(p99s(noop)), note))
    report.row("bare SQLite group commit, 32 producers", median(rates(bare)), "/s",
               values=rates(bare), note="p99 %.2f ms; rows of %d bytes"
               % (median(p99s(bare)), median(sizes)))
    report.row("acknowledged submits, 32 clients", median(rates(submit)), "/s",
               values=rates(submit),
               note="first quarter %.0f/s, last quarter %.0f/s (the queue grows to %d)" % (
                   median([one["rate_first_quarter"] for one in submit]),
                   median([one["rate_last_quarter"] for one in submit]), count))
    lower, peer = min((median(rates(noop)), "no-op POST"), (median(rates(bare)), "group commit"))
    report.row("submits over the lower of the two", median(rates(submit)) / lower, "x",
               values=[s / min(n, b) for s, n, b in zip(rates(submit), rates(noop), rates(bare))],
               bar=0.5, at_least=True, against="the lower is the %s" % peer)
    report.row("submit, p99 of each repeat, median of repeats", median(p99s(submit)), "ms",
               values=p99s(submit), bar=10,
               note="slowest reply %.1f ms" % max(one["max_ms"] for one in submit))


if __name__ == "__main__":
    main("submit", __doc__, run)
