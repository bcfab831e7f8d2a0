"""Prints lines and writes to a file how long that took: python lines.py COUNT FILE"""

import json
import sys
import time

count, path = int(sys.argv[1]), sys.argv[2]
start = time.perf_counter()
for i in range(count):
    print(f"step {i} loss 0.25")
sys.stdout.flush()
took = time.perf_counter() - start
with open(path, "w") as file:
    json.dump({"seconds": took, "unbuffered": bool(sys.stdout.write_through)}, file)
