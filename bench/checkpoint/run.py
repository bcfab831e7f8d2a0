#!/usr/bin/env python3
"""What keeping checkpoints costs training, and how fast one is restored.

    bench/checkpoint/run.py [--quick] [--json]

Restore: a checkpoint of 1 GiB, verified, against `cp -r FILES NEW && sha256sum NEW/*` of the same
files on the same disk, in turns; all are in the page cache, and what was written before is on disk
when each begins. Sync: a CPU-bound script that saves 50 MB every few seconds, with and without a
sync of its folder by a process in a session of its own, in turns: by itself, and with every other
core kept busy as well. All is done by checkpoint_bench, built when it is missing.
"""

import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import BUILD, Broken, check, main, median, scratch  # noqa: E402

FILES = 4


def program():
    folder = BUILD if os.path.exists(os.path.join(BUILD, "build.ninja")) \
        else os.path.join(BUILD, "release")
    path = os.path.join(folder, "checkpoint_bench")
    if os.path.exists(os.path.join(folder, "build.ninja")):
        check(["cmake", "--build", folder, "--target", "checkpoint_bench"])
    if not os.access(path, os.X_OK):
        raise Broken("%s is missing: run ./demo first, or set ATHANOR_BUILD" % path)
    return path


def bench(tool, *arguments):
    return json.loads(check([tool, *arguments]))


def fill(folder, size):
    os.makedirs(folder)
    for number in range(FILES):
        with open(os.path.join(folder, "model-%d.pt" % number), "wb") as file:
            for _ in range(size // FILES >> 20):
                file.write(os.urandom(1 << 20))


def by_hand(files, place):
    os.sync()
    begin = time.monotonic()
    check(["sh", "-c", 'cp -r "$1" "$2" && sha256sum "$2"/*', "sh", files, place])
    return time.monotonic() - begin


def restored(tool, home, place, size):
    os.sync()
    begin = time.monotonic()
    told = bench(tool, "restore", home, place)
    took = time.monotonic() - begin  # the start of the program counts, as that of cp does
    if told["bytes"] != size:
        raise Broken("of %d bytes %d were restored" % (size, told["bytes"]))
    return took


def restoring(report, tool, size, repeats):
    with scratch() as folder:
        files, home = os.path.join(folder, "files"), os.path.join(folder, "home")
        fill(files, size)
        bench(tool, "keep", files, home)
        hand, ours = [], []
        for turn in range(repeats + 1):
            for times in (hand, ours):
                place = os.path.join(folder, "place")
                took = by_hand(files, place) if times is hand \
                    else restored(tool, home, place, size)
                if turn == 0:  # warms the caches
                    check(["diff", "-r", files, place])
                else:
                    times.append(took)
                shutil.rmtree(place)
    report.row("restore of %d MiB, verified: speed" % (size >> 20), median(hand) / median(ours),
               "x", values=[theirs / mine for theirs, mine in zip(hand, ours)], bar=0.8,
               at_least=True, against="%.2f s against %.2f s of cp && sha256sum"
               % (median(ours), median(hand)))


def train(units, every, spinners, tool=None):
    """Seconds the script took, and what the sync told when there was one."""
    with scratch() as folder:
        files = os.path.join(folder, "files")
        os.makedirs(files)
        os.sync()
        script = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "train.py"), files, str(units), str(every),
             str(spinners)], stdout=subprocess.PIPE, text=True, start_new_session=True)
        sync = tool and subprocess.Popen(
            [tool, "sync", files, os.path.join(folder, "home"), str(script.pid)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        took = float(script.communicate()[0])
        if not sync:
            return took, None
        told = json.loads(sync.communicate()[0])
        if told["kept"] == 0:
            raise Broken("the sync kept nothing")
        return took, told


def syncing(report, tool, name, spinners, units, every, repeats):
    train(every, every, 0)
    alone, synced, told = [], [], []
    for _ in range(repeats):
        alone.append(train(units, every, spinners)[0])
        took, says = train(units, every, spinners, tool)
        synced.append(took)
        told.append(says)
    report.row("training with its checkpoints synced, %s" % name,
               median([mine / bare for mine, bare in zip(synced, alone)]), "x",
               values=[mine / bare for mine, bare in zip(synced, alone)], bar=1.02,
               against="%.2f s against %.2f s without" % (median(synced), median(alone)),
               note="%d saves of 50 MB, %d kept, slowest sync %.1f s, %.2f s of processor time"
               % (units // every, median([one["kept"] for one in told]),
                  max(one["slowest_ms"] for one in told) / 1000,
                  median([one["cpu_seconds"] for one in told])))


def run(report, options):
    tool = program()
    size, repeats = (64 << 20, 2) if options.quick else (1 << 30, 7)
    restoring(report, tool, size, repeats)
    units, every, repeats = (300, 150, 1) if options.quick else (1000, 200, 7)
    syncing(report, tool, "by itself", 0, units, every, repeats)
    syncing(report, tool, "every core busy", max(1, os.cpu_count() - 1), units, every, repeats)


if __name__ == "__main__":
    main("checkpoint", __doc__, run)
