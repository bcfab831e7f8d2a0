"""Start and follow jobs from Python, by way of the `ath` program."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import namedtuple

from ._errors import AthanorError, fields_in

Point = namedtuple("Point", "name step value time")


class LaunchError(AthanorError):
    """`ath` could not be found, or refused: `what` happened, `why`, and what to do `next`."""


class JobFailed(AthanorError):
    """The job ended other than Completed. `why` is what `ath why` says."""

    def __init__(self, job, state, why):
        super().__init__("job %s: %s" % (job, state), why, "ath logs %s" % job)
        self.id = job
        self.state = state

    def __reduce__(self):
        return type(self), (self.id, self.state, self.why)


def find_ath():
    """ATHANOR_BIN, then the PATH, then the build that contains this package."""
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
    raise LaunchError("the `ath` program was not found", "it is neither on the PATH nor beside this package",
                      "put it on the PATH, or set ATHANOR_BIN to its path")


def _refused(arguments, reply):
    """What `ath` printed as an exception; what it did not explain is passed on as it is."""
    said = fields_in(reply.stdout) if "--json" in arguments else None
    said = said or fields_in(reply.stderr)
    if said:
        return LaunchError(*said)
    text = (reply.stderr or reply.stdout).strip()
    return LaunchError("`ath %s` failed (exit %d)" % (arguments[0], reply.returncode), text,
                       "ath %s --help" % arguments[0])


def _call(arguments, check=True):
    program = find_ath()
    try:
        reply = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               encoding="utf-8", errors="replace")
    except OSError as error:
        raise LaunchError("%s cannot be run" % program, error.strerror or str(error),
                          "set ATHANOR_BIN to the path of the `ath` program") from None
    if check and reply.returncode != 0:
        raise _refused(arguments, reply)
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
    raise LaunchError("`ath` did not answer with JSON", (reply.stderr or text).strip(),
                      "ath version   should match this package")


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


class Outputs:
    """What a job stored: its model, its output, and the files it left."""

    def __init__(self, run):
        self._run = run

    def list(self):
        """Their names and sizes, as dicts with "name" and "bytes"."""
        return self._run.show().get("outputs", [])

    def download(self, folder=".", path=""):
        """Copy them into `folder`, which is made if missing; returns it.

        Without `path` everything: model/, output/ and the files that the script left. A path is
        what `ath cp JOB:PATH` takes: "model/weights.pt", "output/".
        """
        os.makedirs(folder, exist_ok=True)
        _call(["cp", "%s:%s" % (self._run.id, path), folder, "--json"])
        return folder


class Run:
    """A submitted job."""

    def __init__(self, job, name=None):
        self.id = job
        self.name = name

    def __repr__(self):
        return "<athanor.Run %s>" % self.id

    def _repr_html_(self):
        return self._look()._repr_html_()

    def _look(self):
        """How the job looks now."""
        from ._show import Html, page
        try:
            job = self.show()
        except AthanorError as error:
            return Html(page(self.name or self.id, "Unknown", [], error.what), repr(self))
        state = job.get("shown_state") or job.get("state", "")
        note = "" if state == "Completed" else (job.get("cause") or {}).get("text", "")
        progress = job.get("progress")
        if progress and progress.get("total"):
            note = note or "%s of %s" % (progress.get("done"), progress["total"])
        rows = [(m.get("name"), m.get("last"), m.get("last_step")) for m in job.get("metrics", [])]
        name = job.get("name") or self.id
        return Html(page(name, state, rows, note), "%s %s" % (name, state))

    def show(self):
        """Everything known about the job, as a dict."""
        return _object(_call(["show", self.id, "--json"]))

    @property
    def state(self):
        return self.show().get("state")

    @property
    def outputs(self):
        """What the job stored: .list() and .download(folder)."""
        return Outputs(self)

    def display(self):
        """Show the job in a notebook as it is now. The Live it returns has update()."""
        from ._show import Live
        return Live(self._look)

    def _stream(self):
        """Print the log until the job ends."""
        process = subprocess.Popen([find_ath(), "logs", "-f", self.id], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            while True:
                piece = process.stdout.read1(1 << 16)
                if not piece:
                    break
                # A notebook has its own stdout, which child processes do not write to.
                sys.stdout.write(piece.decode("utf-8", "replace"))
                sys.stdout.flush()
        finally:
            process.kill()
            process.stdout.close()
            process.wait()

    def _watch(self):
        """Keep a display of the notebook up to date until the job ends."""
        live = self.display()
        while self.state not in ("Completed", "Failed", "Stopped"):
            live.update()
            time.sleep(0.5)
        live.update()

    def wait(self, stream=False):
        """Wait for the end. Returns self; raises JobFailed unless the job completed.

        stream  print the job's log while waiting
        In a notebook, without `stream`, a display shows the state and the last metrics meanwhile.
        """
        from ._show import in_notebook
        if stream:
            self._stream()
        elif in_notebook():
            self._watch()
        reply = _call(["wait", self.id, "--json"], check=False)
        try:
            end = _object(reply)
        except LaunchError:
            if reply.returncode == 0:
                raise
            # `wait` failed before it had anything to say: not a verdict on the job.
            raise _refused(["wait"], reply) from None
        state = end.get("state")
        if state is None:
            raise _refused(["wait", "--json"], reply)
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
        raise LaunchError("`ath run` gave no id", json.dumps(started), "ath ps")
    job = Run(started["id"], started.get("name"))
    return job if detach else job.wait()
