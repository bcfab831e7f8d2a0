"""Real packages from PyPI for tests, each set in a virtual environment that is made once and kept
in $XDG_CACHE_HOME/athanor-tests."""

import fcntl
import os
import shutil
import subprocess
import unittest

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                     "athanor-tests")


def python_with(*packages):
    """The interpreter of an environment with these packages ("name==version"); skips the test
    when they cannot be had."""
    name = "+".join(package.replace("==", "-") for package in packages)
    folder = os.path.join(CACHE, name)
    python = os.path.join(folder, "bin", "python")
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, ".ready")):
            shutil.rmtree(folder, ignore_errors=True)
            made = subprocess.run(["/usr/bin/python3", "-m", "venv", folder],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if made.returncode == 0:
                made = subprocess.run([python, "-m", "pip", "install", "-q",
                                       "--disable-pip-version-check", *packages],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if made.returncode != 0:
                raise unittest.SkipTest("cannot install %s: %s" % (
                    name, made.stdout.decode("utf-8", "replace")[-300:]))
            open(os.path.join(folder, ".ready"), "w").close()
    return python
