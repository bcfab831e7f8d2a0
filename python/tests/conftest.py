"""For plain `pytest python/tests`: the package and the readers that the last build left. ./test
sets the same itself."""

import os
import sys

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
PACKAGE = os.path.join(os.path.realpath(BUILD), "python")

for folder in (os.path.dirname(os.path.abspath(__file__)), PACKAGE):
    if folder not in sys.path:
        sys.path.insert(0, folder)
os.environ.setdefault("PYTHONPATH", PACKAGE)  # for the interpreters that tests start
for variable, reader in (("ATHANOR_SPOOL_DUMP", "spool_dump"), ("ATHANOR_EVENT_DUMP", "event_dump")):
    path = os.path.join(os.path.realpath(BUILD), "release", "tests", reader)
    if os.path.exists(path):
        os.environ.setdefault(variable, path)
