"""A machine apart: hosts of jobs that see nothing of the server's home, and reach one TCP port.

A mount and a network namespace of this machine. The home is covered by an empty folder there, the
only interface is its own loopback, and the only port is the one on which `inside` listens: it
passes bytes through a Unix socket to a Line, which leads to the server's address for agents and
can be cut. The server reaches the machine by `nsenter` (src/launch/command), as it would reach
another one by ssh.

    with Server(place="apart") as server:     # or ATHANOR_TEST_PLACE=apart for whole suites
        server.machine.line.cut()
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

PORT = 7071  # on the machine's loopback, where nothing else is
INSIDE = """
import fcntl, os, socket, struct, sys, threading
def pump(a, b):
    try:
        while data := a.recv(1 << 20): b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (a, b):
            try: end.shutdown(socket.SHUT_RDWR)
            except OSError: pass
def serve(client, path):
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try: line.connect(path)
        except OSError: return
        back = threading.Thread(target=pump, args=(line, client), daemon=True)
        back.start()
        pump(client, line)
        back.join()
up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(up, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])), backlog=128)
print("ready", flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client, sys.argv[1]), daemon=True).start()
"""


class Line:
    """Passes bytes from a Unix socket on to where `connect` leads, until it is cut.

        line.cut()             # nothing gets through, and open connections break
        line.cut(up=False)     # requests arrive and are acted on; replies do not
        line.heal()
        line.hold()            # nothing gets through, and nobody is told: connections stay open
        line.let_go()          # what was sent meanwhile arrives, late
    """

    direct = {}  # for the environment of a verb that must not be cut off

    def __init__(self, path, connect):
        self.connect = connect
        self.up = self.down = True
        self.flows = threading.Event()
        self.flows.set()
        self.swallowed = 0  # replies
        self.passed = 0     # bytes to the server
        self.lock = threading.Lock()
        self.ends = set()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        os.chmod(path, 0o600)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.flows.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.break_open()

    def cut(self, up=True, down=True):
        """`up`: what goes to the server; `down`: what comes from it."""
        self.up, self.down = not up, not down
        self.break_open()

    def heal(self):
        self.up = self.down = True
        self.break_open()

    def hold(self):
        self.flows.clear()

    def let_go(self):
        self.flows.set()

    def passes(self, data, server):
        """Whether these bytes of a client go on to the server; for those who look closer."""
        return True

    def loses(self, server):
        """Whether what came back on this connection is lost, and the connection with it."""
        return not self.down

    def break_open(self):
        with self.lock:
            ends, self.ends = self.ends, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            self.flows.wait()
            if not self.up:
                return
            try:
                server = self.connect()
            except OSError:
                return
            with server:
                self.pass_on(client, server)

    def pass_on(self, client, server):
        with self.lock:
            self.ends |= {client, server}
        back = threading.Thread(target=self.replies, args=(server, client), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                self.flows.wait()
                if not self.up or not self.passes(data, server):
                    break
                server.sendall(data)
                self.passed += len(data)
            server.shutdown(socket.SHUT_WR)
        back.join()
        with self.lock:
            self.ends -= {client, server}

    def replies(self, server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                self.flows.wait()
                if self.loses(server):
                    with self.lock:
                        self.swallowed += 1
                    break
                client.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Records:
    """Counts the sealed records in a stream of TLS."""

    def __init__(self):
        self.sealed = 0
        self.header = b""
        self.body = 0  # bytes of the current record that are still to come

    def feed(self, data):
        while data:
            if self.body:
                taken = min(self.body, len(data))
                self.body -= taken
            else:
                taken = min(5 - len(self.header), len(data))
                self.header += data[:taken]
                if len(self.header) == 5:
                    self.sealed += self.header[0] == 23
                    self.body = int.from_bytes(self.header[3:], "big")
                    self.header = b""
            data = data[taken:]


class TlsLine(Line):
    """One below TLS: without the server's half of a handshake no request would ever arrive, so
    what is lost are answers to requests."""

    def __init__(self, path, connect):
        self.records = {}  # by connection
        super().__init__(path, connect)

    def passes(self, data, server):
        self.records.setdefault(server, Records()).feed(data)
        return True

    def loses(self, server):
        # The client's part of the handshake ends with a sealed record.
        return not self.down and server in self.records and self.records[server].sealed > 1


class Machine:
    """One machine apart for one server; made before the server starts, as root."""

    settings = "agents: {listen: '127.0.0.1:0', address: '127.0.0.1:%d'}\n" % PORT

    def __init__(self, root, home, program, disk=None):
        """`disk`: the size of its own disk, as tmpfs has it; None: it shares this machine's."""
        self.folder = os.path.join(root, "machine")
        os.mkdir(self.folder)
        self.where = None  # the server's address for agents
        path = os.path.join(root, "line")
        self.line = TlsLine(path, self.to_server)
        cover = "mount -t tmpfs -o mode=700 none \"$1\" && "
        if disk:
            cover += "mount -t tmpfs -o mode=700,size=%s none \"$2\" && " % disk
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "--net", "sh", "-c",
             cover + 'exec "$3" -c "$4" "$5" "$6"', "sh", home, self.folder, sys.executable,
             INSIDE, path, str(PORT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.keeper.stdout.readline() != "ready\n":
            raise AssertionError("no machine apart can be made here")
        self.reach = ["nsenter", "--target", str(self.keeper.pid), "--mount", "--net", "--"]
        self.environment = {"ATHANOR_TEST_MACHINE": json.dumps(
            {"name": "apart", "reach": self.reach, "program": program, "folder": self.folder})}

    def to_server(self):
        if not self.where:
            raise OSError("no server")
        return socket.create_connection(self.where)

    def run(self, *command, **more):
        """A command there; the completed process."""
        return subprocess.run([*self.reach, *command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **more)

    def inside(self, path):
        """The same file as it can be opened from here: the machine has mounts of its own."""
        return "/proc/%d/root%s" % (self.keeper.pid, path)

    def close(self):
        self.line.close()
        with contextlib.suppress(OSError):
            self.keeper.stdin.close()
        self.keeper.send_signal(signal.SIGKILL)
        self.keeper.wait()
        self.keeper.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
