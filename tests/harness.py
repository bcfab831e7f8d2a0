"""What the tests outside C++ share: a real server in its own folder, the real `ath`, and
waiting by asking again until a deadline. Standard library only.

The program under test lies in $ATHANOR_BUILD (default: build/ of this tree).
"""

import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import apart

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("ATHANOR_BUILD") or os.path.join(TREE, "build"))
ATH = os.path.join(BUILD, "ath")
PATIENCE = float(os.environ.get("ATHANOR_TEST_PATIENCE", "90"))  # seconds until a wait gives up
PLACE = os.environ.get("ATHANOR_TEST_PLACE", "")  # "apart": jobs run on a machine apart
SOAK = os.environ.get("ATHANOR_TEST_SOAK", "") not in ("", "0")
TERMINAL = ("Completed", "Failed", "Stopped")


def until(condition, what, patience=None, longest_nap=0.1):
    """What `condition` returns, once that is true; fails the test after `patience`."""
    deadline = time.monotonic() + (patience or PATIENCE)
    pause = min(0.002, longest_nap)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("waited %g s in vain until %s" % (patience or PATIENCE, what))
        time.sleep(pause)
        pause = min(pause * 1.5, longest_nap)


def has_verb(verb):
    """Whether `ath --help` lists the verb: none is listed before it works."""
    if not has_verb.known:
        text = subprocess.run([ATH, "--help"], stdout=subprocess.PIPE, text=True).stdout
        for line in text.partition("Everyday commands:")[2].partition("Options:")[0].splitlines():
            if re.match(r"  [a-z]", line):
                has_verb.known.add(line.split()[0])
    return verb in has_verb.known


has_verb.known = set()


def needs_verb(verb):
    return unittest.skipUnless(has_verb(verb), "ath --help does not list `%s`" % verb)


NEEDS_ROOT = "needs root: "  # how the reason of a skipped case begins; the tier `nonroot` lists them


def needs_root(why, unless=False):
    """For a case that an ordinary user cannot run, `unless` this machine lets everybody."""
    return unittest.skipUnless(unless or os.geteuid() == 0, NEEDS_ROOT + why)


def skip_without_root(case, why):
    """The same for a case that is running and was refused something; does nothing for root."""
    if os.geteuid() != 0:
        case.skipTest(NEEDS_ROOT + why)


def processes():
    """Every process that can be looked at: {pid: its command line}."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    found[int(name)] = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                pass
    return found


def alive(pid):
    """Running, not merely waiting to be reaped."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def name_of(pid):
    """As `ps` shows it; None when it is gone."""
    try:
        with open("/proc/%d/comm" % pid) as file:
            return file.read().strip()
    except OSError:
        return None


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Reply:
    """The answer to one HTTP request."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """One ATHANOR_HOME with its server; a context manager. kill() and start() may come any
    number of times in between; what is left at the end is stopped. `place`: "apart" runs the jobs
    on a machine of their own (tests/apart.py), which is `machine`; else that is None. `disk`: the
    size of that machine's disk."""

    def __init__(self, *, settings=None, arguments=(), start=True, place=PLACE, disk=None):
        self.root = tempfile.mkdtemp(prefix="ath-")
        self.home = os.path.join(self.root, "home")
        self.work = os.path.join(self.root, "work")
        os.mkdir(self.home)
        os.mkdir(self.work)
        self.arguments = list(arguments)
        self.process = None
        self.url = None
        self.agents = None
        self.log = os.path.join(self.root, "serve.log")
        self.machine = None
        if place == "apart":
            settings = (settings or "") + apart.Machine.settings
        if settings:
            with open(os.path.join(self.home, "settings.yaml"), "w") as file:
                file.write(settings)
        self.environment = {
            "ATHANOR_HOME": self.home, "HOME": self.root, "LANG": "C.UTF-8", "TERM": "dumb",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        if place == "apart":
            self.machine = apart.Machine(self.root, self.home, os.path.join(BUILD, "athanor"), disk)
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- the server itself

    @property
    def socket(self):
        return os.path.join(self.home, "server.sock")

    @property
    def attempts(self):
        """Where the folders of hosts are."""
        folder = os.path.join(self.machine.folder if self.machine else self.home, "attempts")
        return self.machine.inside(folder) if self.machine else folder

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [ATH, "serve", "--port", "0", "--json", *self.arguments],
                env=dict(self.environment, **(self.machine.environment if self.machine else {})),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline()
        if not line:
            with open(self.log) as log:
                raise AssertionError("the server did not start:\n" + log.read()[-2000:])
        said = json.loads(line)
        self.url = said["url"]
        self.agents = said.get("agents")  # of other machines: url, pin, and where it listens
        if self.machine:
            host, _, port = self.agents["listens"].rpartition(":")
            self.machine.where = (host, int(port))
        return self

    def kill(self, number=signal.SIGKILL):
        """Ends the server the hard way, and waits until it is gone."""
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process = None
        return status

    def close(self):
        if self.process:
            self.kill()
        # Agents and a server that a verb started carry the home in argv or environment;
        # a supervisor and its script are children in its attempt's folder.
        for _ in range(3):
            mine = self.leftovers()
            for pid in mine:
                kill(pid)
            if not mine:
                break
            with contextlib.suppress(AssertionError):
                until(lambda: not any(alive(pid) for pid in mine), "leftovers are gone", 10)
        if self.machine:
            self.machine.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def leftovers(self):
        mine = []
        for pid in processes():
            if pid == os.getpid():
                continue
            try:
                with open("/proc/%d/environ" % pid, "rb") as file:
                    environment = file.read()
                cwd = os.readlink("/proc/%d/cwd" % pid)
            except OSError:
                continue
            if self.machine and pid == self.machine.keeper.pid:
                continue
            if self.home.encode() in environment or cwd.startswith(self.root):
                mine.append(pid)
        for pid, command in processes().items():
            if self.machine and pid == self.machine.keeper.pid:
                continue
            if pid != os.getpid() and (
                    self.home in command or (self.machine and self.machine.folder in command)):
                mine.append(pid)
        for folder in glob.glob(os.path.join(self.attempts, "*")):
            mine += self.supervisor_in(folder)
        return [pid for pid in sorted(set(mine)) if alive(pid)]

    # --- the CLI

    def popen(self, *arguments, env=None, cwd=None, **more):
        environment = dict(self.environment, **(env or {}))
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([ATH, *map(str, arguments)], env=environment,
                                cwd=cwd or self.work, **more)

    def ath(self, *arguments, env=None, cwd=None, input=None, check=None, timeout=None):
        """Runs a verb: its returncode, stdout and stderr (bytes that are not UTF-8 survive as
        surrogates). `check` is the status it must end with."""
        process = self.popen(*arguments, env=env, cwd=cwd, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE,
                             stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL)
        try:
            out, err = process.communicate(
                input.encode() if isinstance(input, str) else input, timeout or 2 * PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError("ath %s did not end:\n%s\n%s"
                                 % (" ".join(map(str, arguments))[:500], out[-2000:], err[-2000:]))
        result = subprocess.CompletedProcess(
            arguments, process.returncode, out.decode("utf-8", "surrogateescape"),
            err.decode("utf-8", "surrogateescape"))
        if check is not None and result.returncode != check:
            raise AssertionError("ath %s: status %d, not %d\n%s\n%s" % (
                " ".join(map(str, arguments))[:500], result.returncode, check,
                result.stdout[-4000:], result.stderr[-4000:]))
        return result

    def json(self, *arguments, check=0, **more):
        """The last line a verb printed with --json."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        return json.loads(self.ath(*arguments[:end], "--json", *arguments[end:], check=check,
                                   **more).stdout.splitlines()[-1])

    def script(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return name

    def submit(self, *command, flags=(), **more):
        """Submits a command with -d; its id."""
        out = self.ath("run", "-d", "--json", *flags, "--", *command, check=0, **more).stdout
        return json.loads(out)["id"]

    def python(self, text, *arguments, flags=(), name="train.py"):
        """Submits a Python script; its id."""
        return self.submit("python3", self.script(name, text), *arguments, flags=flags)

    def file(self, text, *flags):
        """Submits a job file; its id."""
        path = self.script("job.yaml", text)
        return self.json("run", "-d", *flags, path)["id"]

    def go(self, name):
        """Lets a script go on that waits for this file."""
        with open(os.path.join(self.root, name), "w"):
            pass

    def wait(self, job):
        """The record of a job that has ended."""
        said = self.ath("wait", job, "--timeout", "%ds" % (2 * PATIENCE), "--json").stdout
        record = self.show(job)
        if record["state"] not in TERMINAL:
            raise AssertionError("%s is %s, and `ath wait` said %s"
                                 % (job, record["state"], said))
        return record

    def show(self, job):
        return self.json("show", job)

    def state(self, job):
        return self.show(job)["state"]

    def logs(self, job, *more):
        """What the script printed, as bytes."""
        return self.ath("logs", job, *more, check=0).stdout.encode("utf-8", "surrogateescape")

    def until_state(self, job, *states):
        return until(lambda: self.state(job) in states, "%s is %s" % (job, " or ".join(states)))

    def until_log(self, job, text):
        """Until the job has printed `text`."""
        until(lambda: text.encode() in self.logs(job, "--quiet"), "%s printed %r" % (job, text))

    def points(self, job, name):
        out = self.ath("metrics", job, name, "--json", check=0).stdout
        return [json.loads(line) for line in out.splitlines()]

    def events(self, job):
        out = self.ath("events", job, "--json", check=0).stdout
        return [json.loads(line) for line in out.splitlines()]

    # --- its checkpoints

    def checkpoints(self, job):
        """The whole ones, newest first."""
        return self.json("checkpoints", job)["checkpoints"]

    def until_checkpoint(self, job, step):
        return until(lambda: [c for c in self.checkpoints(job) if c.get("step") == step],
                     "%s has a checkpoint of step %d" % (job, step))[0]

    def manifest(self, job, checkpoint):
        """What the store has of a checkpoint, read past the program."""
        path = os.path.join(self.home, "jobs", job, "manifests", checkpoint + ".manifest")
        with open(path) as file:
            return json.loads(file.read().partition("\n")[2])

    # --- its processes

    def attempt_dir(self, job):
        attempt = until(lambda: self.show(job).get("attempts"), "%s has an attempt" % job)[-1]
        return os.path.join(self.attempts, attempt["id"])

    def agent_pids(self, job):
        name = os.path.basename(self.attempt_dir(job))
        return [pid for pid, command in processes().items()
                if " agent " in command and name in command]

    def supervisor_pids(self, job):
        return self.supervisor_in(self.attempt_dir(job))

    @staticmethod
    def supervisor_in(folder):
        """By the status it leaves in its attempt's folder; a list of one or none."""
        try:
            with open(os.path.join(folder, "supervisor.status")) as file:
                pid = int(re.search(r"\0pid\0(\d+)\0", file.read()).group(1))
        except (OSError, AttributeError):
            return []
        return [pid] if alive(pid) and "athanor-supervisor" in processes().get(pid, "") else []

    # --- HTTP

    def http(self, method, target, body=None, headers=None, unix=False, timeout=None):
        timeout = timeout or PATIENCE
        host, _, port = self.url.rpartition("//")[2].rpartition(":")
        connection = (UnixConnection(self.socket, timeout) if unix
                      else http.client.HTTPConnection(host, int(port), timeout=timeout))
        with contextlib.closing(connection):
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, target, body=body, headers=headers or {})
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())

    def spec(self, *command, **more):
        """A spec as `ath run` would send it, its source uploaded."""
        text = self.ath("run", "--dry-run", "--", *command, check=0).stdout
        spec = json.loads(text)
        spec.update(more)
        return spec


class Case(unittest.TestCase):
    """A test case with one server for the whole class."""

    settings = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(settings=cls.settings)
        cls.addClassCleanup(cls.server.close)

    def ended(self, job, state="Completed"):
        record = self.server.wait(job)
        self.assertEqual(record["state"], state, json.dumps(record.get("cause")))
        return record


def main():
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
