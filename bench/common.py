"""What the benchmarks share: the program under test, a server of its own for each measurement,
statistics, and rows that say by themselves whether a bar is met. Standard library only.

The program lies in $ATHANOR_BUILD (default: build/ of this tree); helpers written in C++ are
compiled into build/bench when they are older than their source.
"""

import argparse
import contextlib
import http.client
import json
import math
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("ATHANOR_BUILD") or os.path.join(TREE, "build"))
ATH = os.path.join(BUILD, "ath")
PATIENCE = 120  # seconds until something that should have happened counts as broken
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                     "athanor-bench")


class Broken(Exception):
    """The measurement itself failed; a slow figure is never this."""


def python_with(package, version):
    """The interpreter of an environment with this package; installed when it is not there yet."""
    folder = os.path.join(CACHE, package + "-" + version)
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(CACHE, exist_ok=True)
        check([sys.executable, "-m", "venv", folder])
        check([python, "-m", "pip", "install", "--quiet", package + "==" + version])
        with open(os.path.join(folder, "complete"), "w"):
            pass
    return python


# --- statistics

def percentile(values, percent):
    """The nearest rank: always a value that was measured."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def median(values):
    return statistics.median(values)


# --- rows

def figure(value, unit):
    """Three digits that matter, with the unit."""
    if unit == "x":
        return "%sx" % number(value)
    return "%s %s" % (number(value), unit)


def number(value):
    if value == 0 or abs(value) >= 100:
        return "{:,.0f}".format(value)
    return "%.*f" % (max(0, 2 - math.floor(math.log10(abs(value)))), value)


class Report:
    """Rows of one benchmark, printed as they come: as text, or with --json one object a line."""

    def __init__(self, name, options):
        self.name = name
        self.json = options.json

    def row(self, what, value, unit, *, values=None, bar=None, at_least=False, against="", note=""):
        """A figure. `values` are the repeats it comes from, for the spread; `bar` is what the
        project promised, and stays as it was promised."""
        row = {"bench": self.name, "what": what, "value": value, "unit": unit}
        if values:
            row["low"], row["high"] = percentile(values, 10), percentile(values, 90)
            row["repeats"] = len(values)
        if bar is not None:
            row["bar"] = bar
            row["sense"] = "at least" if at_least else "at most"
            row["met"] = value >= bar if at_least else value <= bar
        if against:
            row["against"] = against
        if note:
            row["note"] = note
        self.put(row)

    def skip(self, what, reason):
        self.put({"bench": self.name, "what": what, "skipped": reason})

    def put(self, row):
        print(json.dumps(row) if self.json else text_of(row), flush=True)


def spread_of(row):
    if "low" not in row:
        return ""
    return "%s to %s" % (number(row["low"]), number(row["high"]))


def verdict_of(row):
    if "skipped" in row:
        return "skipped"
    if "bar" not in row:
        return ""
    return "met" if row["met"] else "MISSED"


def bar_of(row):
    if "bar" not in row:
        return ""
    return "%s %s%s" % (row["sense"], "{:,g}".format(row["bar"]),
                        "x" if row["unit"] == "x" else " " + row["unit"])


def text_of(row):
    line = "%-6s  %-46s" % (row["bench"], row["what"])
    if "skipped" in row:
        return "%s  skipped: %s" % (line, row["skipped"])
    line += "  %12s" % figure(row["value"], row["unit"])
    if "low" in row:
        line += "  (%s)" % spread_of(row)
    if "bar" in row:
        line += "  bar: %s: %s" % (bar_of(row), verdict_of(row))
    for more in (row.get("against"), row.get("note")):
        if more:
            line += "\n        %s" % more
    return line


def main(name, description, run, arguments=None):
    """Runs one benchmark: status 0 whether bars are met or not, 1 when it could not measure."""
    parser = argparse.ArgumentParser(description=description.strip().splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    parser.add_argument("--quick", action="store_true",
                        help="few repeats: shows that it works, says little about speed")
    if arguments:
        arguments(parser)
    options = parser.parse_args()
    if not os.access(ATH, os.X_OK):
        sys.exit("%s is missing: run ./demo first, or set ATHANOR_BUILD" % ATH)
    try:
        run(Report(name, options), options)
    except Broken as broken:
        sys.exit("bench/%s is broken: %s" % (name, broken))


# --- processes

def until(condition, what, patience=PATIENCE, pause=0.002):
    """What `condition` returns, once that is true."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Broken("waited %g s in vain until %s" % (patience, what))
        time.sleep(pause)


def check(command, **more):
    """Runs a command that must succeed; what it printed."""
    more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", **more)
    if done.returncode != 0:
        raise Broken("%s: status %d\n%s%s" % (" ".join(map(str, command))[:200], done.returncode,
                                              done.stdout[-1000:], done.stderr[-2000:]))
    return done.stdout


def compiled(source, *libraries):
    """The program made from a source file under bench/."""
    path = os.path.join(TREE, "bench", source)
    folder = os.path.join(TREE, "build", "bench")
    program = os.path.join(folder, os.path.splitext(os.path.basename(source))[0])
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(path):
        os.makedirs(folder, exist_ok=True)
        fresh = "%s.%d" % (program, os.getpid())
        check(["g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-pthread", "-o", fresh, path,
               *("-l" + name for name in libraries)])
        os.replace(fresh, program)
    return program


@contextlib.contextmanager
def scratch():
    """A folder on the disk where the server's own would be."""
    folder = tempfile.mkdtemp(prefix="athanor-bench-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def busy_cores():
    """Every core held by work of the lowest priority, as on a machine that trains."""
    spinners = [subprocess.Popen(["nice", "-n", "19", "sh", "-c", "while :; do :; done"])
                for _ in range(os.cpu_count())]
    try:
        time.sleep(0.5)
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class Server:
    """A server on an empty store in its own folder; a context manager."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="athanor-bench-")
        self.home = os.path.join(self.root, "home")
        self.work = os.path.join(self.root, "work")
        self.socket = os.path.join(self.home, "server.sock")
        os.mkdir(self.home)
        os.mkdir(self.work)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("ATHANOR_")}
        self.environment["ATHANOR_HOME"] = self.home
        self.process = None
        self.started_in = None  # seconds from exec to the line that says where it listens

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        try:
            if self.process:
                self.end()
        finally:
            self.kill_attempts()
            shutil.rmtree(self.root, ignore_errors=True)

    def start(self):
        with open(os.path.join(self.root, "serve.log"), "ab") as log:
            begun = time.perf_counter()
            self.process = subprocess.Popen([ATH, "serve", "--port", "0", "--json"],
                                            env=self.environment, cwd=self.work,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=log)
        line = self.process.stdout.readline()
        self.started_in = time.perf_counter() - begun
        if not line:
            with open(os.path.join(self.root, "serve.log"), errors="replace") as log:
                raise Broken("the server did not start: " + log.read()[-2000:])
        self.address = json.loads(line)["url"].rpartition("/")[2]
        return self

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Broken("the server did not end on SIGTERM")
        finally:
            self.process.stdout.close()
            self.process = None

    def kill_attempts(self):
        """Jobs outlive their server, not their benchmark: agents and supervisors name the
        attempt's folder, and with its supervisor a script ends too."""
        def attempts():
            found = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    with open("/proc/%s/cmdline" % pid, "rb") as file:
                        if (self.home + "/attempts/").encode() in file.read():
                            found.append(int(pid))
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return found
        until(lambda: not attempts(), "the agents are gone", pause=0.02)

    def http(self, method, target, body=None):
        with contextlib.closing(UnixConnection(self.socket)) as connection:
            connection.request(method, target, body=None if body is None else json.dumps(body))
            reply = connection.getresponse()
            text = reply.read()
        if reply.status >= 300:
            raise Broken("%s %s: %d %s" % (method, target, reply.status, text[:500]))
        return json.loads(text)

    def ath(self, *arguments, **more):
        """Runs a verb that must succeed; what it printed."""
        return check([ATH, *map(str, arguments)], env=self.environment, cwd=self.work, **more)

    def popen(self, *arguments, **more):
        return subprocess.Popen([ATH, *map(str, arguments)], env=self.environment, cwd=self.work,
                                stdin=subprocess.DEVNULL, **more)

    def memory(self, field="VmRSS"):
        """MiB."""
        with open("/proc/%d/status" % self.process.pid) as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) / 1024
        raise Broken("no %s of the server" % field)


# --- what a server costs

def stat_of(pid):
    """The fields of /proc/PID/stat after the name."""
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rpartition(")")[2].split()


def family(pid):
    """The processes of the session that `pid` leads, or `pid` alone."""
    mine = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            if int(stat_of(int(name))[3]) == pid or int(name) == pid:
                mine.append(int(name))
    return mine


def cpu_of(pid):
    """Seconds of processor time of one process, all its threads: clock_getcpuclockid(3). The ticks in
    /proc are too coarse for what takes a millisecond."""
    return time.clock_gettime(~pid << 3 | 2)


class Cost(float):
    """The median of parts, which remembers them."""

    def __new__(cls, parts):
        made = super().__new__(cls, median(parts))
        made.parts = parts
        return made


class Side:
    """One of two servers that are asked the same, by its address and its process."""

    def __init__(self, address, pid):
        host, _, port = address.rpartition("//")[2].partition(":")
        self.host, self.port, self.pid = host, int(port), pid
        self.connection = self.connect()

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=600)

    def cpu(self):
        """Seconds of processor time so far."""
        total = 0
        for pid in family(self.pid):
            with contextlib.suppress(OSError):
                total += cpu_of(pid)
        return total

    def memory(self):
        """MiB resident."""
        total = 0
        for pid in family(self.pid):
            with contextlib.suppress(OSError):
                with open("/proc/%d/statm" % pid) as file:
                    total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return total / 2**20

    def call(self, method, path, body=None, connection=None):
        connection = connection or self.connection
        text = None if body is None else json.dumps(body)
        try:
            reply = self.send(connection, method, path, text)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # MLflow closes a connection that is idle for five seconds: the next one is new.
            connection.close()
            reply = self.send(connection, method, path, text)
        text = reply.read()
        if reply.status != 200:
            raise Broken("%s %s: %d %s" % (method, path, reply.status, text[:300]))
        return json.loads(text)

    @staticmethod
    def send(connection, method, path, text):
        connection.request(method, path, text, {"Content-Type": "application/json"})
        return connection.getresponse()

    def api(self, method, path, body=None, connection=None):
        return self.call(method, "/api/2.0/mlflow/" + path, body, connection)

    def settle(self):
        """Until its processes are at rest: MLflow's workers go on importing when the first of them
        answers already, which is not the price of a call."""
        at_rest = 0

        def resting():
            nonlocal at_rest
            before = self.cpu()
            time.sleep(0.5)
            at_rest = at_rest + 1 if self.cpu() - before < 0.05 else 0
            return at_rest >= 4
        until(resting, "the server is at rest", patience=600)

    def cost(self, count, operation, seconds=0.0, parts=9, pause=2):
        """Milliseconds of processor time for each of `count` calls of `operation`; of more, for so
        many seconds. The median of some parts, with pauses: on a virtual machine the price of waking a
        process triples from one moment to the next, and may stay so for a while."""
        costs, calls = [], 0
        for part in range(1, parts + 1):
            time.sleep(pause)
            begun, before, first = time.monotonic(), self.cpu(), calls
            while calls < count * part / parts or time.monotonic() - begun < seconds / parts:
                operation(calls)
                calls += 1
            if calls > first:
                costs.append((self.cpu() - before) * 1000 / (calls - first))
        return Cost(costs)

    def read_cost(self, count, operation):
        """Of a call that changes nothing: a few that take a fraction of a millisecond would measure
        what happens beside them."""
        return self.cost(count, operation, seconds=0.5, parts=5, pause=1)


# --- load

# A job that asks for the whole machine: one runs and sleeps, the rest wait and are never launched.
def waiting_spec(serial):
    return {"command": ["sleep", "600"], "resources": {"cpu_millis": 1000 * os.cpu_count()},
            "params": [{"name": "serial", "value": str(serial)}], "inherited": {
                "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/user", "LANG": "C.UTF-8"}}


def load(address, requests, clients=32, repeat=1):
    """Sends requests, pairs of target and body, to a socket or host:port by bench/load; its figures.
    A tuple of more is sent in order by one client: see load.cc."""
    with scratch() as folder:
        path = os.path.join(folder, "requests")
        with open(path, "w") as file:
            file.writelines("\t".join(steps) + "\n" for steps in requests)
        return json.loads(check([compiled("load/load.cc"), address, str(clients), path,
                                 str(repeat)]))


def submit_requests(count, serial=0):
    for i in range(serial, serial + count):
        yield "/api/v1/jobs", json.dumps({"key": "bench-%d" % i, "spec": waiting_spec(i)},
                                         separators=(",", ":"))
