#!/usr/bin/env python3
"""Submit to the first line of the script, by the CLI, over a bare fork+exec of the same command.

    bench/start/run.py [--quick] [--json] [--no-slurm]

The command prints the time; what is measured is that time minus the time just before the command
line was started. Submits are 300 ms apart, since a queue that is always warm is not what a person
meets, and alternate with bare runs. Then the same while every core spins at the lowest priority; how
far the four ranks of one job start apart; and the same by sbatch on a Slurm of this machine
(start/slurm.sh sets a private one up).
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import (ATH, Broken, CACHE, Server, busy_cores, check, main, median,  # noqa: E402
                    percentile, scratch, until)

PROBE = ["date", "+%s.%N"]
APART = 0.3


def stamp_in(text, begun):
    """The time the command printed, as milliseconds after `begun`."""
    for word in text.split():
        try:
            value = float(word)
        except ValueError:
            continue
        if 0 <= value - begun < 600:
            return (value - begun) * 1000
    raise Broken("no time stamp in %r" % text[:500])


def once(command, **more):
    time.sleep(APART)
    begun = time.time()
    return stamp_in(check(command, **more), begun)


def alternate(repeats, **kinds):
    """Milliseconds of each kind of start, taken in turns."""
    taken = {name: [] for name in kinds}
    for _ in range(repeats):
        for name, start in kinds.items():
            taken[name].append(start())
    return taken


class Slurm:
    """A private Slurm: munge, a controller and one node, all from start/slurm.sh."""

    def __init__(self, folder):
        self.folder = folder
        self.script = os.path.join(HERE, "slurm.sh")

    def __enter__(self):
        try:
            text = check([self.script, "up", self.folder, os.path.join(CACHE, "slurm")])
        except Broken:
            self.__exit__()
            raise
        self.about = json.loads(text.splitlines()[-1])
        self.environment = dict(os.environ, SLURM_CONF=self.about["conf"],
                                LD_LIBRARY_PATH=self.about["libraries"])
        return self

    def __exit__(self, *_):
        subprocess.run([self.script, "down", self.folder], stdin=subprocess.DEVNULL)

    def start(self):
        """One sbatch. The file is looked at afterwards: the stamp in it is the script's own."""
        time.sleep(APART)
        out = os.path.join(self.folder, "out")
        begun = time.time()
        check([self.about["sbatch"], "--parsable", "--output", out, "--wrap", " ".join(PROBE)],
              env=self.environment, cwd=self.folder)

        def written():
            with open(out) as file:
                return file.read().strip()
        text = until(lambda: os.path.exists(out) and written(), "the sbatch script has run",
                     pause=0.02)
        os.unlink(out)
        return stamp_in(text, begun)


def against_slurm(report, repeats, job, bare):
    what = "submit to first line, over sbatch of Slurm"
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        try:
            slurm = stack.enter_context(Slurm(folder))
        except Broken as broken:
            return report.skip(what, "no Slurm: " + str(broken).strip().splitlines()[-1][:200])
        slurm.start()
        taken = alternate(repeats, sbatch=slurm.start, job=job, bare=bare)
    sbatch, ours = median(taken["sbatch"]), median(taken["job"])
    report.row("sbatch to first line", sbatch, "ms", values=taken["sbatch"],
               note="Slurm %s, controller and node on this machine, %s"
               % (slurm.about["version"], slurm.about["settings"]))
    report.row(what, ours / sbatch, "x", bar=1, values=[
        mine / theirs for mine, theirs in zip(taken["job"], taken["sbatch"])],
        against="%.1f ms against %.1f ms; bare %.1f ms" % (ours, sbatch, median(taken["bare"])))


def ranks(report, server, repeats, processes=4):
    """How far the ranks of one job start apart."""
    apart = []
    for _ in range(repeats):
        time.sleep(APART)
        said = check([ATH, "run", "-q", "--processes", str(processes), "--cpus", "0.1", "--", *PROBE],
                     env=server.environment, cwd=server.work)
        stamps = [float(word) for word in re.findall(r"\b\d{10}\.\d{9}\b", said)]
        if len(stamps) != processes:
            raise Broken("%d ranks spoke: %r" % (len(stamps), said[:500]))
        apart.append((max(stamps) - min(stamps)) * 1000)
    report.row("job of %d ranks: last rank's first line after the first's" % processes,
               median(apart), "ms", values=apart, bar=15,
               against="p95 %.1f ms; %d cores" % (percentile(apart, 95), os.cpu_count()))


def run(report, options):
    repeats = 4 if options.quick else 40
    with Server() as server:
        def bare():
            return once(PROBE)

        def job():
            return once([ATH, "run", "--", *PROBE], env=server.environment, cwd=server.work)
        job()  # the first uploads the source and starts what is started once
        taken = alternate(repeats, bare=bare, job=job)
        with busy_cores():
            busy = alternate(repeats, bare=bare, job=job)
        floor = median(taken["bare"])
        report.row("submit to first line, over bare fork+exec", median(taken["job"]) - floor, "ms",
                   values=[value - floor for value in taken["job"]], bar=30,
                   against="bare %.1f ms, by ath run %.1f ms; p95 %.1f ms"
                   % (floor, median(taken["job"]), percentile(taken["job"], 95)))
        report.row("submit to first line, every core busy, p95", percentile(busy["job"], 95), "ms",
                   values=busy["job"], bar=60,
                   against="median %.1f ms; bare: median %.1f, p95 %.1f ms"
                   % (median(busy["job"]), median(busy["bare"]), percentile(busy["bare"], 95)))
        ranks(report, server, repeats)
        if options.no_slurm:
            return report.skip("submit to first line, over sbatch of Slurm", "--no-slurm")
        against_slurm(report, max(3, repeats // 2), job, bare)


if __name__ == "__main__":
    main("start", __doc__, run, lambda parser: parser.add_argument(
        "--no-slurm", action="store_true", help="leave sbatch out"))
