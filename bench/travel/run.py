#!/usr/bin/env python3
"""How fast a checkpoint travels to the server from another machine, and back, against a raw copy.

    bench/travel/run.py [--quick] [--json]

The other machine is a mount and a network namespace of this one: it sees nothing of the server's
home, and a pair of virtual links joins both, at a gigabit, at ten, and as fast as it goes. A job
there saves one file of 1 GiB, which the agent sends over TLS; the figure is how long storing took,
as `ath checkpoints` shows it, and for the way back the set-up of the next attempt, which restores
it. While a script runs, an agent sends at most 256 MiB/s, so that training is not slowed: that
limits the figures of links that are faster than that. A raw copy sends the same file over the same
link by sendfile, and writes and syncs it on the disk that the server has. Both in turns. Needs
root.
"""

import contextlib
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import ATH, Broken, Server, check, main, median, until  # noqa: E402

NEAR, FAR = "10.213.255.1", "10.213.255.2"
SCRIPT = """
import athanor, os, shutil, sys, time
size, go = os.path.getsize(sys.argv[1]), sys.argv[2]
last = athanor.latest_checkpoint()
if last:
    print("restored", os.path.getsize(last) == size, flush=True)
else:
    athanor.checkpoint(1, lambda path: shutil.copyfile(sys.argv[1], path))
    while not os.path.exists(go): time.sleep(0.05)
"""
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as to, open(sys.argv[3], "rb") as file:
    to.sendfile(file)
    to.shutdown(socket.SHUT_WR)
    to.recv(1)
"""
TAKE = """
import os, socket, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
buffer = memoryview(bytearray(1 << 20))
while True:
    peer, _ = listener.accept()
    with peer, open(sys.argv[2], "wb") as file:
        while got := peer.recv_into(buffer): file.write(buffer[:got])
        file.flush()
        os.fsync(file.fileno())
        peer.sendall(b"!")
    os.unlink(sys.argv[2])
"""


class Machine:
    """The other machine, with a link of its own; made before its server starts."""

    def __init__(self, server, rate):
        self.folder = os.path.join(server.root, "machine")
        os.mkdir(self.folder)
        self.link = "athb%d" % (os.getpid() % 100000)
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "--net", "sh", "-c",
             'mount -t tmpfs -o mode=700 none "$1" && ip link set lo up && echo ready && read -r _',
             "sh", server.home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.keeper.stdout.readline() != "ready\n":
            raise Broken("no machine of its own can be made here")
        self.reach = ["nsenter", "--target", str(self.keeper.pid), "--mount", "--net", "--"]
        check(["ip", "link", "add", self.link, "type", "veth", "peer", "name", "far", "netns",
               str(self.keeper.pid)])
        for at, device, address in (([], self.link, NEAR), (self.reach, "far", FAR)):
            check([*at, "ip", "addr", "add", address + "/30", "dev", device])
            check([*at, "ip", "link", "set", device, "up"])
            if rate:
                check([*at, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate,
                       "burst", "2mb", "latency", "50ms"])
        server.environment["ATHANOR_TEST_MACHINE"] = json.dumps(
            {"name": "other", "reach": self.reach, "program": os.path.realpath(
                os.path.join(os.path.dirname(ATH), "athanor")), "folder": self.folder})
        with open(os.path.join(server.home, "settings.yaml"), "w") as file:
            file.write("agents: {listen: '%s:0'}\n" % NEAR)

    def close(self):
        subprocess.run(["ip", "link", "del", self.link], stderr=subprocess.DEVNULL)
        self.keeper.kill()
        self.keeper.wait()


class RawCopy:
    def __init__(self, machine, root):
        self.machine = machine
        self.taker = subprocess.Popen(
            [sys.executable, "-c", TAKE, NEAR, os.path.join(root, "copied")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.port = self.taker.stdout.readline().strip()

    def once(self, path):
        os.sync()
        begin = time.monotonic()
        check([*self.machine.reach, sys.executable, "-c", SEND, NEAR, self.port, path])
        return time.monotonic() - begin

    def close(self):
        self.taker.kill()
        self.taker.wait()
        self.taker.stdout.close()


def travelled(server, path, size, turn):
    """Seconds that storing took, and that the next attempt's set-up took."""
    go = os.path.join(server.root, "go-%d" % turn)
    os.sync()
    job = json.loads(server.ath("run", "-d", "--json", "--", "python3", "train.py", path, go))["id"]

    def kept():
        if json.loads(server.ath("show", job, "--json"))["state"] == "Failed":
            raise Broken("the job failed: " + server.ath("why", job))
        return json.loads(server.ath("checkpoints", job, "--json"))["checkpoints"]
    one = until(kept, "the checkpoint is stored", pause=0.2, patience=600)[0]
    if one["bytes"] != size or one["new_bytes"] != size:
        raise Broken("of %d bytes %d were stored" % (size, one["bytes"]))
    server.ath("interrupt", job)
    server.ath("wait", job)
    record = json.loads(server.ath("show", job, "--json"))
    if "restored True" not in server.ath("logs", job):
        raise Broken("the next attempt did not find its checkpoint")
    server.ath("rm", job, "--yes")
    return one["sync_ms"] / 1000, record["attempts"][-1]["setup_ms"] / 1000


def over(report, name, rate, size, repeats):
    with contextlib.ExitStack() as stack:
        server = Server()
        machine = Machine(server, rate)
        stack.callback(machine.close)
        stack.enter_context(server)
        raw = RawCopy(machine, server.root)
        stack.callback(raw.close)
        path = os.path.join(server.root, "weights")  # the job does not see the machine's folder
        with open(path, "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        with open(os.path.join(server.work, "train.py"), "w") as file:
            file.write(SCRIPT)
        copied, sent, restored = [], [], []
        for turn in range(repeats):
            copied.append(raw.once(path))
            there, back = travelled(server, path, size, turn)
            sent.append(there)
            restored.append(back)
    mib = size / (1 << 20)
    bare = median(copied)
    report.row("checkpoint of %d MiB to the server, %s: rate over a raw copy" % (mib, name),
               bare / median(sent), "x", bar=0.7, at_least=True,
               values=[theirs / mine for theirs, mine in zip(copied, sent)],
               against="%.0f MiB/s against %.0f MiB/s, synced" % (mib / median(sent), mib / bare))
    report.row("and restored from it, %s: rate over a raw copy" % name, bare / median(restored), "x",
               values=[theirs / mine for theirs, mine in zip(copied, restored)],
               against="%.0f MiB/s with all of the set-up" % (mib / median(restored)))


def run(report, options):
    if os.geteuid() != 0:
        return report.skip("checkpoint to a server on another machine", "needs root")
    size, repeats = (64 << 20, 1) if options.quick else (1 << 30, 5)
    for name, rate in (("1 Gbit/s", "1gbit"), ("10 Gbit/s", "10gbit"), ("no limit", None)):
        over(report, name, rate, size, repeats)


if __name__ == "__main__":
    main("travel", __doc__, run)
