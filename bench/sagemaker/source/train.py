"""A job of a given length: prints the seconds it took by its own clock."""

import sys
import time

begun = time.monotonic()
seconds = float(sys.argv[sys.argv.index("--seconds") + 1])
while time.monotonic() - begun < seconds:
    print("epoch after %.1f s" % (time.monotonic() - begun), flush=True)
    time.sleep(min(0.5, max(0.0, begun + seconds - time.monotonic())))
print("took %.3f s" % (time.monotonic() - begun), flush=True)
