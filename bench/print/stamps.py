"""Prints the time now and then, flushed by nobody: python stamps.py COUNT"""

import random
import sys
import time

# Not in step with any timer of what carries the lines.
random.seed(7)
for _ in range(int(sys.argv[1])):
    time.sleep(random.uniform(0.03, 0.17))
    print(repr(time.time()))
