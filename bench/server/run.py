#!/usr/bin/env python3
"""The server by itself: how soon it listens, and what 10,000 finished jobs cost it.

    bench/server/run.py [--quick] [--json]

Listening: from exec to the line that tells the address, on an empty store, in turns with an exec of
the same program that only prints its version. Jobs: submitted through the API and stopped while
they wait, newest first, since Stopped is an end like any other and running 10,000 scripts would
measure the scripts; each has its record, its key and its events. Memory is looked at in the server
that took them, after it has listed them all, and in one started afresh on the same store.
"""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import ATH, Broken, Server, load, main, median, submit_requests, until  # noqa: E402


def timed(command, **more):
    """Milliseconds until it has ended."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)
    return (time.perf_counter() - begun) * 1000


def listening(report, repeats):
    bare, ours = [], []
    for _ in range(repeats):
        bare.append(timed([ATH, "version"]))
        with Server() as server:
            ours.append(server.started_in * 1000)
    report.row("exec to listening, empty store", median(ours), "ms", values=ours, bar=50,
               against="exec of the same program that prints its version: %.1f ms" % median(bare))


def populate(server, count):
    load(server.socket, submit_requests(count))
    server.http("POST", "/api/v1/stop", {"all": True, "grace_ms": 0})
    until(lambda: not server.http("GET", "/api/v1/jobs?live=true&limit=1")["jobs"],
          "all jobs are over", pause=0.05)


def listing(server, count, repeats):
    """Milliseconds of each `ath ps -a --json`, and how long its answer is."""
    text = server.ath("ps", "-a", "--json")
    listed = sum(len(json.loads(line).get("jobs", [0])) for line in text.splitlines())
    if listed != count:
        raise Broken("%d jobs are listed, not %d" % (listed, count))
    figures = [timed([ATH, "ps", "-a", "--json"], env=server.environment) for _ in range(repeats)]
    return figures, len(text)


def run(report, options):
    count = 500 if options.quick else 10_000
    repeats = 3 if options.quick else 30
    listening(report, repeats)
    many = "{:,}".format(count)
    with Server() as server:
        populate(server, count)
        figures, size = listing(server, count, repeats)
        note = "stopped while they waited; peak %.1f MiB" % server.memory("VmHWM")
        report.row("resident, took and listed %s finished jobs" % many, server.memory(), "MiB",
                   bar=40, note=note)
        server.end()
        server.start()
        fresh = server.memory()
        again, _ = listing(server, count, repeats)
        figures += again
        bare = [timed([ATH, "version"]) for _ in range(repeats)]
        report.row("resident, started on %s, listed them" % many, server.memory(), "MiB", bar=40,
                   note="%.1f MiB before listing; listening %.1f ms after exec"
                   % (fresh, server.started_in * 1000))
    report.row("ath ps -a --json of %s" % many, median(figures), "ms", values=figures, bar=50,
               against="ath version: %.1f ms; the answer has %.1f MB" % (median(bare), size / 1e6))


if __name__ == "__main__":
    main("server", __doc__, run)
