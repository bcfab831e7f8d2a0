"""What a job of a scenario does: works for a while, saves what it has done, fails if it is told to.

    script.py NOTES WORK_MS SAVES_MS FAILS TIMES FAILS_ON DEAF

NOTES is a folder outside of the job, in which every start of a rank leaves a file."""

import os
import signal
import sys
import time

notes, work, saves, fails, times, fails_on, deaf = sys.argv[1], *map(int, sys.argv[2:8])
attempt = int(os.environ["ATHANOR_ATTEMPT"])
host = int(os.environ["SM_CURRENT_HOST_RANK"])
rank = int(os.environ["RANK"])
with open(os.path.join(notes, "start-%d-%d-%d" % (attempt, rank, os.getpid())), "x"):
    pass

asked = []
signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else lambda *_: asked.append(True))
progress = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "progress")


def done_before():
    try:
        with open(progress) as file:
            return int(file.read())
    except OSError:
        return 0


def save(done):
    with open(progress + ".tmp", "w") as file:
        file.write("%d" % done)
    os.rename(progress + ".tmp", progress)


base = done_before() if saves else 0
began, saved_at = time.monotonic(), 0
will_fail = fails and attempt <= times and fails_on in (-1, host)
while True:
    here = int(1000 * (time.monotonic() - began))
    done = base + here
    if asked:
        if saves:
            save(done)
        sys.exit(143)
    # The others are there by then, so that what is counted does not depend on who was quick.
    if will_fail and here > 100 and len([n for n in os.listdir(notes) if n.startswith(
            "start-%d-" % attempt)]) >= int(os.environ["WORLD_SIZE"]):
        sys.exit(fails)
    if done >= work:
        sys.exit(0)
    if saves and here - saved_at >= saves:
        saved_at = here
        save(done)
    time.sleep(0.01)
