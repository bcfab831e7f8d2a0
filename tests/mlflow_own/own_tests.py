"""MLflow's own tests, run with MLflow's own client against a real Athanor server.

PyPI's source archives of MLflow hold no tests, so they come from a git snapshot:
ATHANOR_MLFLOW_GIT names a clone of github.com/mlflow/mlflow (a folder, or a bare one) that has the
tags. What was taken from it stays in the cache beside the environments (tests/venvs.py), so the
clone is needed once. Without either the archive of the tag is fetched from GitHub; where that
cannot be reached, the tests are skipped and say so. None of MLflow's files is kept in this tree.
"""

import contextlib
import fcntl
import functools
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import scope
import venvs

ARCHIVE = "https://codeload.github.com/mlflow/mlflow/tar.gz/refs/tags/v%s"
TIMEOUT = 1200  # seconds, for the tests of one file; they take about one minute


def archive_of(version):
    """A tar of tests/ of that version, beneath any folder; its bytes."""
    clone = os.environ.get("ATHANOR_MLFLOW_GIT")
    if clone:
        done = subprocess.run(["git", "-C", clone, "archive", "v" + version, "tests"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode == 0:
            return done.stdout
        raise unittest.SkipTest("ATHANOR_MLFLOW_GIT=%s has no tests of v%s: %s" % (
            clone, version, done.stderr.decode("utf-8", "replace").strip()[-200:]))
    try:
        with urllib.request.urlopen(ARCHIVE % version, timeout=30) as reply:
            return reply.read()
    except OSError as error:
        raise unittest.SkipTest(
            "no sources of MLflow %s: PyPI's have no tests and GitHub did not answer (%s); set "
            "ATHANOR_MLFLOW_GIT to a clone" % (version, error))


@functools.lru_cache(None)
def fetched(version):
    """The archive, or why there is none: asked for once."""
    try:
        return archive_of(version), None
    except unittest.SkipTest as why:
        return None, str(why)


def sources(version):
    """The folder that holds tests/ of that version; skips where there is none."""
    folder = os.path.join(venvs.cache(), "mlflow-tests-" + version)
    os.makedirs(venvs.cache(), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "complete")):
            return folder
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        packed, why = fetched(version)
        if why:
            raise unittest.SkipTest(why)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive:
                found = re.fullmatch(r"(?:mlflow-[^/]+/)?(tests/.*)", member.name)
                if found and member.isreg() and ".." not in member.name.split("/"):
                    path = os.path.join(folder, found.group(1))
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "wb") as file:
                        shutil.copyfileobj(archive.extractfile(member), file)
        with open(os.path.join(folder, "complete"), "w"):
            pass
    return folder


def names(version, file):
    """The tests of a file, in order."""
    with open(os.path.join(sources(version), "tests", "tracking", file + ".py")) as text:
        return re.findall(r"^(?:async )?def (test_\w+)\(", text.read(), re.M)


def run(version, file, only=()):
    """What came of a file's tests that are in scope: {test: {case: {"outcome", "text"}}}."""
    folder = sources(version)
    python = venvs.locked("mlflow-" + version.rpartition(".")[0])
    wanted = only or [name for name in names(version, file)
                      if not scope.cannot(version, name) and name not in scope.OUT_OF_SCOPE]
    with tempfile.TemporaryDirectory(prefix="mlflow-own-") as scratch:
        result = os.path.join(scratch, "result.json")
        with open(os.path.join(scratch, "pytest.ini"), "w") as ini:
            ini.write("[pytest]\n")
        # Not the caller's environment: where CI is set, MLflow's conftest builds a wheel of MLflow.
        environment = {
            "LANG": "C.UTF-8", "ATHANOR_BUILD": os.environ.get("ATHANOR_BUILD", ""),
            "ATHANOR_OWN_TESTS_RESULT": result, "PYTHONPATH": HERE + os.pathsep + folder,
            "PYTHONDONTWRITEBYTECODE": "1", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_TELEMETRY_OPT_OUT": "true",
            "HOME": scratch, "TMPDIR": scratch,
            "PATH": os.path.dirname(python) + os.pathsep + os.environ.get("PATH", "")}
        done = subprocess.run(
            [python, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider",
             "-c", os.path.join(scratch, "pytest.ini"), "--rootdir", folder, "-W", "ignore",
             "--basetemp", os.path.join(scratch, "cases"),
             *("tests/tracking/%s.py::%s" % (file, name) for name in wanted)],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
        if not os.path.exists(result):
            raise AssertionError("pytest ended with %d before its report:\n%s"
                                 % (done.returncode, done.stdout[-4000:]))
        with open(result) as report:
            found = json.load(report)
    if "collection" in found:
        raise AssertionError("MLflow's tests could not be loaded: %s" % found["collection"])
    return found
