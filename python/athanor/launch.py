"""Start and follow jobs from Python, by way of the `ath` program."""

import json
import os
import shutil
import subprocess
from collections import namedtuple

Point = namedtuple("Point", "name step value time")


class LaunchError(RuntimeError):
    """`ath` could not be found, or refused."""


class JobFailed(RuntimeError):
    """The job ended other than Completed. `why` is what `ath why` says."""

    def __init__(self, job, state, why):
        super().__init__("job %s: %s\n%s" % (job, state, why) if why
                         else "job %s: %s" % (job, state))
        self.id = job
        self.state = state
        self.why = why


def find_ath():
    """ATHANOR_BIN, then the PATH, then the build this package lies in."""
    named = os.environ.get("ATHANOR_BIN")
    if named:
        return named
    for name in ("ath", "athanor"):
        found = shutil.which(name)
        if found:
            return found
    folder = os.path.dirname(os.path.abspath(__file__))
    for _ in range(4):
        folder = os.path.dirname(folder)
        for name in ("ath", "athanor", "bin/ath"):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    raise LaunchError("the `ath` program was not found; put it on the PATH or set ATHANOR_BIN")


def _call(arguments, check=True):
    program = find_ath()
    try:
        reply = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               encoding="utf-8", errors="replace")
    except OSError as error:
        raise LaunchError("%s cannot be run: %s" % (program, error)) from None
    if check and reply.returncode != 0:
        raise LaunchError("`ath %s` failed (exit %d)\n%s"
                          % (" ".join(arguments), reply.returncode,
                             (reply.stderr or reply.stdout).strip()))
    return reply


def _object(reply):
    """The last JSON object printed; verbs that stream print one a line."""
    text = reply.stdout.strip()
    for candidate in (text, text.rpartition("\n")[2]):
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    raise LaunchError("`ath` did not answer with JSON\n%s" % (reply.stderr or text).strip())


def _flag_arguments(flags):
    arguments = []
    for name, value in flags.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(flag)
            elif one is not None and one is not False:
                arguments.append("%s=%s" % (flag, one))
    return arguments


def _parameter(value):
    return value if isinstance(value, str) else json.dumps(value)


def _number(value):
    return float(value) if isinstance(value, (int, float, str)) else float("nan")


class Run:
    """A submitted job."""

    def __init__(self, job, name=None):
        self.id = job
        self.name = name

    def __repr__(self):
        return "<athanor.Run %s>" % self.id

    def show(self):
        """Everything known about the job, as a dict."""
        return _object(_call(["show", self.id, "--json"]))

    @property
    def state(self):
        return self.show().get("state")

    def wait(self):
        """Wait for the end. Returns self; raises JobFailed unless the job completed."""
        reply = _call(["wait", self.id, "--json"], check=False)
        try:
            end = _object(reply)
        except LaunchError:
            if reply.returncode == 0:
                raise
            # `wait` failed before it had anything to say: not a verdict on the job.
            raise LaunchError("waiting for job %s failed (exit %d)\n%s"
                              % (self.id, reply.returncode, reply.stderr.strip())) from None
        state = end.get("state")
        if state is None:
            raise LaunchError("waiting for job %s failed: %s" % (self.id, json.dumps(end)))
        if state != "Completed":
            raise JobFailed(self.id, state, self.why())
        return self

    def why(self):
        """Why the job waits, or how it ended, in words."""
        reply = _call(["why", self.id], check=False)
        return reply.stdout.strip()

    def logs(self):
        """What the script printed so far."""
        return _call(["logs", self.id]).stdout

    def metrics(self, name):
        """The points of one metric, oldest first."""
        points = []
        for line in _call(["metrics", self.id, name, "--json"]).stdout.splitlines():
            if line.strip():
                point = json.loads(line)
                points.append(Point(point.get("name", name), point.get("step"),
                                    _number(point.get("value")), point.get("time")))
        return points

    def stop(self):
        """Ask the job to stop; it gets its grace period to save."""
        _call(["stop", self.id])


def run(target, *, type=None, params=None, name=None, detach=True, **flags):
    """Submit a job and return its Run.

    target  "train.py", a command as a list, or a job file (.yaml, .yml, .json)
    type    an instance type, such as "ml.c5.xlarge"
    detach  False: wait for the end before returning
    Other keywords become flags of `ath run`: max_time="2h" is --max-time=2h, a list repeats
    the flag.
    """
    arguments = ["run", "-d", "--json"]
    if type is not None:
        arguments.append("--type=%s" % type)
    if name is not None:
        arguments.append("--name=%s" % name)
    for key, value in (params or {}).items():
        arguments += ["-p", "%s=%s" % (key, _parameter(value))]
    arguments += _flag_arguments(flags)
    if isinstance(target, (list, tuple)):
        arguments += ["--", *map(os.fspath, target)]
    elif os.fspath(target).endswith((".yaml", ".yml", ".json")):
        arguments.append(os.fspath(target))
    elif os.fspath(target).endswith(".py"):
        arguments += ["--", "python3", os.fspath(target)]
    else:
        arguments += ["--", os.fspath(target)]
    started = _object(_call(arguments))
    if "id" not in started:
        raise LaunchError("`ath run` gave no id: %s" % json.dumps(started))
    job = Run(started["id"], started.get("name"))
    return job if detach else job.wait()
