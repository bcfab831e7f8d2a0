"""Python environments with real packages from PyPI, made once per machine and set of requirements:
they lie in the user's cache, named by a hash of what is in them, so that clones share them."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import unittest

SYSTEM = "/usr/bin/python3"
LOCKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "locks")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "athanor-tests")


def venv(*requirements, inherit=False):
    """The interpreter of an environment with these, and with Debian's modules if it inherits;
    skips the test where it cannot be made."""
    options = ["--system-site-packages"] if inherit else []
    return made("\n".join([*options, *requirements]), ", ".join(requirements), requirements,
                options)


def locked(name):
    """The interpreter of the environment that clients/locks/NAME.txt fixes, hashes and all."""
    path = os.path.join(LOCKS, name + ".txt")
    with open(path) as file:
        return made(file.read(), name, ["--no-deps", "--require-hashes", "-r", path])


def made(text, what, arguments, options=()):
    folder = os.path.join(cache(), hashlib.sha256(text.encode()).hexdigest()[:16])
    python = os.path.join(folder, "bin", "python")
    os.makedirs(cache(), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "complete")):
            return python
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        subprocess.run([SYSTEM, "-m", "venv", *options, folder], check=True,
                       stdout=subprocess.DEVNULL)
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                               *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if done.returncode != 0:
            raise unittest.SkipTest("no environment with %s: %s" % (what, done.stdout[-300:]))
        with open(os.path.join(folder, "complete"), "w"):
            pass
    return python


def system(module):
    """Debian's interpreter, if it has the module."""
    found = subprocess.run([SYSTEM, "-c", "import " + module], stderr=subprocess.DEVNULL)
    if found.returncode != 0:
        raise unittest.SkipTest("Debian's python3-%s is not installed" % module)
    return SYSTEM
