"""athanor.init(): a script outside a job tracks its metrics at the local server.

    run = athanor.init(experiment="cifar10", params={"lr": 0.1})
    athanor.log(loss=loss, step=step)
    run.finish()                              # or the end of the script

The script never waits: init and log put what they are given into memory, and one thread brings it
to the server, which it starts if none runs. Points that the server does not take are kept (up to
100,000) and sent again; each is stored once. At the end of the script it waits up to ten seconds
for what is left, and says on stderr what did not arrive. ATHANOR_MODE=off switches it off.
Inside a job init() is the job's own run, and log() what it always is there.
"""

import atexit
import collections
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
from urllib.parse import urlsplit

_MOST_POINTS = 100_000
_BATCH = 5_000       # points of a request
_BLOCK = 512         # of a frame; src/record/series/series_file.h has the bytes
_EXIT_WAIT = 10.0    # seconds
_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


class _Refused(Exception):
    """The server refused: sending it again would not help."""


class _Socket(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _home():
    named = os.environ.get("ATHANOR_HOME")
    if named:
        return os.path.abspath(named)
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        return os.path.join(os.path.abspath(data), "athanor")
    return os.path.join(os.environ.get("HOME") or "/root", ".local/share/athanor")


class _Server:
    """The server that `ath` would talk to."""

    def __init__(self):
        self.url = os.environ.get("ATHANOR_URL") or None
        self.token = os.environ.get("ATHANOR_TOKEN") or None
        self.socket = os.path.join(_home(), "server.sock")
        self._started = False

    def _connection(self):
        if self.url is None:
            return _Socket(self.socket, 30)
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname, parts.port, timeout=30)

    def post(self, target, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/octet-stream" if body is data else "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        connection = self._connection()
        try:
            connection.request("POST", target, data, headers)
            reply = connection.getresponse()
            text = reply.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            connection.close()
        try:
            answer = json.loads(text) if text else {}
        except ValueError:
            answer = {}
        if reply.status in (408, 429) or reply.status >= 500:
            raise OSError("the server answered %d" % reply.status)
        if reply.status >= 400:
            from ._errors import fields_of
            what, why, advice, _ = fields_of(answer) or ("the server answered %d" % reply.status, "", "", "")
            raise _Refused("; ".join(filter(None, (what, why, advice))))
        return answer

    def start(self):
        """Once, as any command of `ath` does. In the sending thread: it may take seconds."""
        if self._started or self.url is not None:
            return
        self._started = True
        from .launch import find_ath
        subprocess.run([find_ath(), "ps", "-n", "1", "--json"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def _varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zigzag(difference):
    return (difference << 1 ^ difference >> 63) & 0xFFFFFFFFFFFFFFFF


def frames(points):
    """(seq, name, step or None, wall_ns, value), by seq, as POST /runs/{run}/points takes them."""
    from ._events import crc32c
    numbers, out = {}, []

    def frame(payload):
        out.append(struct.pack("<II", len(payload), crc32c(payload)) + payload)

    for name in dict.fromkeys(point[1] for point in points):
        numbers[name] = len(numbers)
        frame(b"\x02" + _varint(numbers[name]) + name.encode())
    for start in range(0, len(points), _BLOCK):
        block = points[start:start + _BLOCK]
        payload = [b"\x03" + _varint(1) + _varint(0) + _varint(0) + _varint(len(block))]
        seq = step = wall = 0
        for number, name, at, wall_ns, value in block:
            payload.append(_varint(number - seq) + _varint(numbers[name] << 1 | (at is not None)))
            seq = number
            if at is not None:
                payload.append(_varint(_zigzag(at - step)))
                step = at
            payload.append(_varint(_zigzag(wall_ns - wall)) + struct.pack("<d", value))
            wall = wall_ns
        frame(b"".join(payload))
    return b"".join(out)


class TrackedRun:
    """A run of a script outside a job. `id` is known once the server has it."""

    def __init__(self, name, experiment, params, tags):
        self.id = None
        self.name = name
        self.experiment = experiment
        self.state = "Running"
        self.last = {}  # metric: (value, step)
        self._source = "athanor.init " + str(uuid.uuid4())
        self._started_ms = int(time.time() * 1000)
        self._labels = {"params": dict(params or {}), "tags": dict(tags or {})}
        self._labels_sent = not any(self._labels.values())
        self._points = collections.deque()
        self._seq = self._written = self._dropped = self._bad = 0
        self._pid = os.getpid()
        self._server = _Server()
        self._wake = threading.Condition()
        self._ending = None  # the status, once it is asked for
        self._over = threading.Event()
        self._problem = ""
        self._hopeless = False  # no server, and none can be started
        self._live = []
        self._thread = threading.Thread(target=self._deliver, name="athanor", daemon=True)
        self._thread.start()

    def __repr__(self):
        return "<athanor.TrackedRun %s %s>" % (self.name or self.id or "(not sent yet)", self.state)

    def _repr_html_(self):
        rows = [(name, value, step) for name, (value, step) in sorted(self.last.items())]
        return self._page(rows)

    def _page(self, rows):
        from ._show import page
        return page(self.name or self.id or "run", self.state, rows, self._problem)

    def display(self):
        """Show the run in a notebook; the display is updated until the run ends."""
        from ._show import Html, Live
        self._live.append(Live(lambda: Html(self._repr_html_(), repr(self))))

    def log(self, *args, step=None, **metrics):
        """As athanor.log: record numbers at a step. Never raises, never waits."""
        try:
            if os.getpid() != self._pid:
                return  # a forked worker: the run is its parent's
            values = dict(args[0]) if args else {}
            values.update(metrics)
            at = None if step is None else int(step)
            if at is not None and not -(1 << 63) <= at < 1 << 63:
                raise ValueError(at)
        except Exception:
            self._bad += 1
            return
        now = time.time_ns()
        with self._wake:
            if self._ending is not None:
                return
            for name, value in values.items():
                try:
                    number = float(value)
                except Exception:
                    self._bad += 1
                    continue
                if len(self._points) >= _MOST_POINTS:
                    self._dropped += 1
                    continue
                self._seq += 1
                self._points.append((self._seq, str(name), at, now, number))
                self.last[str(name)] = (number, at)
            self._wake.notify()

    def stats(self):
        return self._written, self._dropped, self._bad

    def finish(self, status="finished", wait=None):
        """End the run: "finished", "failed" or "killed". Waits up to `wait` seconds (ten) for
        what is not sent yet; true: everything arrived."""
        if os.getpid() != self._pid:
            return False
        with self._wake:
            self._ending = self._ending or status
            self._wake.notify()
        deadline = time.monotonic() + (_EXIT_WAIT if wait is None else wait)
        while not self._over.wait(0.05) and time.monotonic() < deadline and not self._hopeless:
            pass
        arrived = self._over.is_set()
        atexit.unregister(self._at_exit)
        return arrived and not self._problem

    def _at_exit(self):
        from ._show import in_notebook
        # An exception that ended the script; where people type, it ended nothing.
        failed = getattr(sys, "last_value", None) is not None and not (hasattr(sys, "ps1") or in_notebook())
        if not self.finish("failed" if failed else "finished") and os.getpid() == self._pid:
            left = len(self._points) + self._dropped
            print("athanor: %d %s of this run did not reach the server%s"
                  % (left, "point" if left == 1 else "points",
                     ": " + self._problem if self._problem else ""), file=sys.stderr)

    # --- the sending thread

    def _deliver(self):
        tries = 0
        while not self._over.is_set():
            with self._wake:
                if not self._points and self._labels_sent and self.id and self._ending is None:
                    self._wake.wait()
                batch = [self._points[i] for i in range(min(len(self._points), _BATCH))]
                ending = self._ending
            try:
                self._send(batch, ending)
                tries = 0
                self._problem = ""
            except _Refused as refused:
                self._problem = str(refused)
                print("athanor: this run is not tracked any more: %s" % refused, file=sys.stderr)
                self._ending = "failed"
                self._over.set()
            except Exception as error:  # no server yet, a full disk, anything: the script continues
                self._problem = str(error) or type(error).__name__
                if tries == 0:
                    self._start_server()
                pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
                tries += 1
                time.sleep(pause)
            for live in self._live:
                live.update()

    def _start_server(self):
        try:
            self._server.start()
        except Exception as error:
            self._problem = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._hopeless = self.id is None

    def _send(self, batch, ending):
        if self.id is None:
            made = self._server.post("/api/v1/runs", {
                "name": self.name or "", "experiment": self.experiment or "", "source": self._source,
                "started_ms": self._started_ms})
            self._run_id = made["run_id"]
            self.id = made["id"]
        if not self._labels_sent:
            self._server.post("/api/2.0/mlflow/runs/log-batch", {
                "run_id": self._run_id,
                **{kind: [{"key": str(key), "value": value if isinstance(value, str) else json.dumps(value, default=str)}
                          for key, value in labels.items()]
                   for kind, labels in self._labels.items()}})
            self._labels_sent = True
        if batch:
            self._server.post("/api/v1/runs/%s/points" % self.id, frames(batch))
            with self._wake:
                for _ in batch:
                    self._points.popleft()
                self._written += len(batch)
        if ending is not None and not self._points:
            self._server.post("/api/v1/runs/%s/finish" % self.id,
                              {"status": ending, "ended_ms": int(time.time() * 1000)})
            self.state = ending.capitalize()
            self._over.set()


class QuietRun:
    """What init() gives where nothing is tracked: the same methods, which do nothing."""

    id = name = experiment = None
    last = {}

    def __init__(self, state):
        self.state = state

    def __repr__(self):
        return "<athanor run: %s>" % self.state

    def log(self, *args, step=None, **metrics):
        """Does nothing."""

    def display(self):
        """Does nothing."""

    def stats(self):
        return 0, 0, 0

    def finish(self, status="finished", wait=None):
        """Does nothing."""
        return True


class JobRun(QuietRun):
    """What init() gives inside a job: the job's own run, which the server has already."""

    def __init__(self, job, log):
        super().__init__("Running")
        self.id = job
        self.name = os.environ.get("ATHANOR_JOB_NAME")
        self.log = log


_current = None


def current():
    """The run that athanor.log() writes to outside a job, or None."""
    return _current


def init(name=None, experiment=None, params=None, tags=None):
    """Track this script as a run. Returns at once, also when no server runs; never raises."""
    global _current
    import athanor
    if athanor.in_job():
        return JobRun(athanor.job_id(), athanor.log)
    if athanor._disabled or os.environ.get("ATHANOR_MODE", "").lower() in ("off", "disabled"):
        return QuietRun("off")
    try:
        if _current is not None:
            _current.finish(wait=0)
        run = TrackedRun(name, experiment, params, tags)
        atexit.register(run._at_exit)
    except Exception as error:
        print("athanor: this run is not tracked: %s" % error, file=sys.stderr)
        return QuietRun("off")
    _current = run
    return run
