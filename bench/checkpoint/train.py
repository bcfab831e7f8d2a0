"""A script as bench/checkpoint needs it: a fixed amount of arithmetic in pure Python, a save of
50 MB every few seconds, the last two kept. Prints the seconds it took.

    train.py FOLDER UNITS SAVE_EVERY SPINNERS       spinners: processes that keep other cores busy
"""

import os
import sys
import time

MEGABYTES = 50


def unit():
    total = 0.0
    for i in range(200_000):
        total += (i % 7) * 0.5 - total * 1e-3
    return total


def save(folder, step, block):
    path = os.path.join(folder, "step_%d.pt" % step)
    with open(path, "wb") as file:
        for i in range(MEGABYTES):
            # Other bytes in each megabyte and each save: nothing to be stored only once.
            file.write(b"%08d%08d" % (step, i) + block[16:])
    return path


def main():
    folder = sys.argv[1]
    units, every, spinners = map(int, sys.argv[2:])
    children = []
    for _ in range(spinners):
        child = os.fork()
        if child == 0:
            while True:
                unit()
        children.append(child)
    block = os.urandom(1 << 20)
    saved = []
    try:
        begin = time.monotonic()
        for step in range(1, units + 1):
            unit()
            if step % every == 0:
                saved.append(save(folder, step, block))
                if len(saved) > 2:
                    os.unlink(saved.pop(0))
        took = time.monotonic() - begin
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)
    print("%.6f" % took)


if __name__ == "__main__":
    main()
