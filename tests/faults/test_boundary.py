"""What a hostile script can reach: of the server's home only what its job needs, and nothing by
way of its agent. Each docstring names a planted bug that turns the test red.
"""

import ctypes
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import ATH, Case, Server, kill, until

CANARY = "cAnArY-of-the-other-job"
NOBODY = 65534

# Tries everything and tells, as one line of JSON, what it got.
HOSTILE = r'''
import ctypes, json, os, socket, stat, sys
home, other, attempt, source, go = sys.argv[1:]
got = {"seen": [], "read": [], "written": [], "socket": False, "escaped": []}
for folder, folders, files in os.walk(home):
    for name in folders + files:
        got["seen"].append(os.path.relpath(os.path.join(folder, name), home))
tries = ["server.sock", "settings.yaml", "server.log", "server/athanor.db", "server/secret.key",
         "server/ingest.key", "aws/key.json", "objects/index.db", "cache/sources/" + source,
         "attempts/%s/plan.json" % attempt, "attempts/%s/supervisor.plan" % attempt,
         "attempts/%s/supervisor.status" % attempt, "attempts/%s/agent.log" % attempt,
         "attempts/%s/ml/code" % attempt, "jobs/" + other, "blobs"]
for name in tries:
    path = os.path.join(home, name)
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
        got["read"].append(name)
    except OSError: pass
for folder in [home] + [os.path.join(home, name) for name in
                        ("server", "attempts", "attempts/" + attempt, "jobs", "jobs/" + other, "blobs",
                         "objects", "aws", "aws/models", "cache", "cache/envs", "tb", "artifacts")]:
    try:
        os.makedirs(os.path.join(folder, "planted"))
        got["written"].append(folder)
    except OSError: pass
try:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.path.join(home, "server.sock"))
    got["socket"] = True
except OSError: pass
# Ways around the cover.
libc = ctypes.CDLL(None, use_errno=True)
if libc.umount2(home.encode(), 2) == 0: got["escaped"].append("umount")
if libc.mount(b"/", b"/mnt", None, 4096, None) == 0: got["escaped"].append("bind")
for way in ("/proc/1/root", "/proc/1/cwd", "/proc/self/root"):
    try:
        os.stat(way + home + "/server")
        got["escaped"].append(way)
    except OSError: pass
for number in range(64):
    try: got["escaped"].append("fd %d %s" % (number, os.readlink("/proc/1/fd/%d" % number)))
    except OSError: pass
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(16, 1, None, None) == 0: got["escaped"].append("ptrace")
try:
    open("/proc/1/mem", "r+b").close()
    got["escaped"].append("mem")
except OSError: pass
try:
    with open("/proc/sys/kernel/core_pattern") as file: before = file.read()
    with open("/proc/sys/kernel/core_pattern", "w") as file: file.write(before)
    got["escaped"].append("core_pattern")
except OSError: pass
try:
    os.mknod("/opt/ml/model/disk", stat.S_IFBLK | 0o600, os.makedev(8, 0))
    got["escaped"].append("mknod")
except OSError: pass
# A namespace of its own gives a script rights there, not over what it came with.
if os.fork() == 0:
    if libc.unshare(0x10000000 | 0x00020000) == 0:
        libc.umount2(home.encode(), 2)
        if os.path.exists(os.path.join(home, "server")): open("/opt/ml/model/uncovered", "w").close()
    os._exit(0)
os.wait()
if os.path.exists("/opt/ml/model/uncovered"): got["escaped"].append("unshare")
print("GOT " + json.dumps(got), flush=True)
'''

WAITING = """
    import os, sys, time
    print("waits", len(os.environ["CANARY"]), flush=True)
    while not os.path.exists(sys.argv[1]): time.sleep(0.02)
"""


def forbid_namespaces():
    """What a container's filter does: clone() with a namespace is refused, clone3() not known."""
    new = 0x10000000 | 0x20000000 | 0x00020000 | 0x04000000  # user, pid, mount, uts
    load, equal, any_of, ret = 0x20, 0x15, 0x45, 0x06
    program = [(load, 0, 0, 0), (equal, 0, 1, 435), (ret, 0, 0, 0x00050000 | 38),
               (equal, 0, 3, 56 if os.uname().machine == "x86_64" else 220),
               (load, 0, 0, 16), (any_of, 0, 1, new), (ret, 0, 0, 0x00050000 | 1),
               (ret, 0, 0, 0x7fff0000)]
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code)
    filter = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, ctypes.cast(filter, ctypes.c_void_p), 0, 0) != 0:
        os._exit(70)


class OtherServer(Server):
    """A server whose processes are started in another way: as another user, or with fewer rights."""

    def __init__(self, **how):
        self.how = how
        super().__init__(start=False)
        if how.get("user"):
            for path in (self.root, self.home, self.work):
                os.chown(path, how["user"], how["user"])
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [ATH, "serve", "--port", "0", "--json"], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, **self.how)
        line = self.process.stdout.readline()
        if not line:
            with open(self.log) as log:
                raise AssertionError("the server did not start:\n" + log.read()[-2000:])
        self.url = json.loads(line)["url"]
        return self

    def popen(self, *arguments, **more):
        return super().popen(*arguments, **self.how, **more)


class Hostile:
    """Two jobs side by side, one with a secret; the other is out for it. A mix-in."""

    def attack(self):
        server = self.server
        server.ath("secret", "set", "CANARY", input=CANARY + "\n", check=0)
        server.ath("env", "aws", check=0)  # leaves aws/key.json
        go = os.path.join(server.root, "go")
        other = server.python(WAITING, go, flags=["-s", "CANARY"], name="waiting.py")
        server.until_log(other, "waits %d" % len(CANARY))
        attempt = os.path.basename(server.attempt_dir(other))
        source = server.show(other)["spec"].get("source", {}).get("bundle", "none")
        job = server.python(HOSTILE, server.home, other, attempt, source, go, name="hostile.py")
        record = server.wait(job)
        self.assertEqual(record["state"], "Completed", record.get("cause"))
        got = json.loads(re.search(rb"^GOT (.*)$", server.logs(job), re.M).group(1))
        self.assertTrue(os.path.exists(os.path.join(server.home, "aws", "key.json")))
        with open(go, "w"):
            pass
        self.assertEqual(server.wait(other)["state"], "Completed")
        return got

    def test_the_home_is_out_of_reach(self):
        """Red if only server/ is hidden (plan.hide_dir), if the aws folder is shown with its key,
        if a rank of root's keeps CAP_SYS_PTRACE, CAP_MKNOD or CAP_SYS_ADMIN, or if /proc/sys stays
        writable for it."""
        got = self.attack()
        seen = [name for name in got["seen"] if not name.startswith("aws/models/")]
        self.assertEqual(sorted(seen), ["aws", "aws/models", "aws/sagemaker.yaml"])
        self.assertEqual(got["read"], [])
        self.assertEqual(got["written"], [])
        self.assertFalse(got["socket"])
        self.assertEqual(got["escaped"], [])


class AsTheServersUser(Hostile, Case):
    def test_an_environment_can_be_used_and_not_changed(self):
        """Red if the environment is not shown again, or not read-only."""
        self.server.script("job.yaml", """
            run: python train.py
            environment: {base: system}
        """)
        self.server.script("train.py", """
            import errno, os, sys
            print("prefix", sys.prefix)
            try: open(os.path.join(sys.prefix, "planted"), "w")
            except OSError as error: print("refused", errno.errorcode[error.errno])
        """)
        job = self.server.json("run", "-d", "job.yaml")["id"]
        self.ended(job)
        log = self.server.logs(job).decode()
        self.assertIn("prefix " + os.path.join(self.server.home, "cache/envs/"), log)
        self.assertIn("refused EROFS", log)

    def test_data_in_the_home_comes_by_channel_only(self):
        """Red if sources of mounts are opened after the home is covered."""
        data = os.path.join(self.server.home, "mine")
        os.makedirs(data, exist_ok=True)
        with open(os.path.join(data, "numbers"), "w") as file:
            file.write("1 2 3")
        self.server.script("job.yaml", """
            run: python3 train.py %s
            data: {train: %s}
        """ % (data, data))
        self.server.script("train.py", """
            import os, sys
            print("channel", open(os.environ["SM_CHANNEL_TRAIN"] + "/numbers").read())
            print("place", os.path.exists(sys.argv[1]))
        """)
        job = self.server.json("run", "-d", "job.yaml")["id"]
        self.ended(job)
        self.assertEqual(self.server.logs(job), b"channel 1 2 3\nplace False\n")

    def test_exec_has_the_same_view(self):
        go = os.path.join(self.server.root, "go-exec")
        self.server.ath("secret", "set", "CANARY", input=CANARY + "\n", check=0)
        job = self.server.python(WAITING, go, flags=["-s", "CANARY"], name="waiting.py")
        self.server.until_log(job, "waits")
        out = self.server.ath("exec", job, "--", "sh", "-c",
                              "ls %s; ls /opt/ml/code; echo $CANARY" % self.server.home, check=0)
        self.assertNotIn("attempts", out.stdout)
        self.assertIn("waiting.py", out.stdout)
        self.assertIn(CANARY, out.stdout)
        with open(go, "w"):
            pass
        self.ended(job)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become nobody")
class AsAnOrdinaryUser(Hostile, unittest.TestCase):
    """With user namespaces, which an ordinary user may make on most machines."""

    def setUp(self):
        self.server = OtherServer(user=NOBODY, group=NOBODY, extra_groups=[])
        self.addCleanup(self.server.close)
        checks = json.loads(self.server.ath("check", "--json").stdout)
        found = [one for one in checks["checks"] if one["check"] == "isolation"][0]
        if not found["ok"]:
            self.skipTest(found["text"])


class WithoutNamespaces(unittest.TestCase):
    def test_it_is_said(self):
        """Red if the server does not tell with the reply to a submit, or the CLI not with it."""
        with OtherServer(preexec_fn=forbid_namespaces) as server:
            words = "a script can read and change this server's files"
            out = server.ath("run", "--", "python3", "-c", "print('ran')", check=0)
            self.assertIn("ran", out.stdout)
            self.assertIn(words, out.stderr.splitlines()[0])
            out = server.ath("run", "-d", "--json", "--", "true", check=0)
            self.assertIn(words, json.loads(out.stdout)["warning"])
            job = json.loads(out.stdout)["id"]
            server.wait(job)
            self.assertIn("mount namespace", " ".join(server.show(job)["attempts"][0]["off"]))
            out = server.ath("check")
            self.assertIn("read and change this server's files", out.stdout + out.stderr)

    def test_nothing_is_said_where_it_holds(self):
        with Server() as server:
            out = server.ath("run", "--", "true", check=0)
            self.assertNotIn("warning", out.stderr)


class Links(Case):
    """The script replaces its folders by links into the home; the agent, which sees the home, must
    not follow them."""

    def setUp(self):
        self.private = os.path.join(self.server.home, "private-" + self._testMethodName)
        os.mkdir(self.private)
        with open(os.path.join(self.private, "canary"), "w") as file:
            file.write(CANARY)

    def assert_not_kept(self, job):
        """Nowhere but where it was, and nothing was added there."""
        self.assertEqual(os.listdir(self.private), ["canary"])
        record = self.server.show(job)
        self.assertEqual(record.get("outputs", []), [])
        self.assertEqual(self.server.checkpoints(job), [])

    def test_outputs(self):
        """Red if the agent opens the folders of outputs by path."""
        for folder in ("model", "output/data"):
            job = self.server.submit(
                "sh", "-c", "rm -rf /opt/ml/%s && ln -s %s /opt/ml/%s"
                % (folder, self.private, folder))
            record = self.ended(job, "Failed")
            self.assertEqual(record["cause"]["kind"], "upload_failed", record["cause"])
            self.assertIn("link", json.dumps(record["cause"]))
            self.assert_not_kept(job)

    def test_links_inside_outputs_are_kept_as_links_or_left_out(self):
        """Red if PackTree follows links."""
        job = self.server.submit(
            "sh", "-c", "cd /opt/ml/model && echo weights > w && ln -s w latest && "
            "ln -s %s out && ln -s %s/canary key && mkfifo pipe && ln w again"
            % (self.private, self.private))
        self.ended(job)
        (output,) = self.server.show(job)["outputs"]
        (blob,) = glob.glob(os.path.join(self.server.home, "blobs", "**", output["blob"]),
                            recursive=True)
        with tarfile.open(blob) as archive:
            kept = {member.name: member.linkname for member in archive.getmembers()}
        self.assertEqual(kept, {"again": "", "latest": "w", "w": ""})

    def test_checkpoints(self):
        """Red if the sync opens its folder by path: what lies there becomes a checkpoint."""
        job = self.server.submit(
            "sh", "-c", "rmdir /opt/ml/checkpoints && ln -s %s /opt/ml/checkpoints" % self.private)
        self.ended(job)
        self.assert_not_kept(job)
        self.assertIn("not kept", json.dumps(self.server.events(job)))

    def test_captures(self):
        """Red if the agent takes over whatever has the name of the captures, or if the server
        follows it: then it hands out its own files."""
        job = self.server.submit(
            "sh", "-c", "ln -s %s /opt/ml/.athanor/capture" % self.private)
        self.ended(job)
        kept = os.path.join(self.server.home, "jobs", job, "capture")
        self.assertFalse(os.path.lexists(kept))
        # An older agent may have left one.
        os.symlink(self.private, kept)
        reply = self.server.http("GET", "/api/v1/jobs/%s/capture/canary" % job)
        self.assertEqual(reply.status, 404)
        self.assertNotIn(CANARY.encode(), reply.body)

    def test_an_agent_that_comes_later(self):
        """Red if a new agent opens spool, notice and outputs of the script it adopts by path."""
        job = self.server.submit(
            "sh", "-c", "trap 'exit 0' TERM; echo ready; while ! test -e %s/linked; do sleep 0.05; "
            "done; cd /opt/ml && mv .athanor away && ln -s %s .athanor && rm -rf model checkpoints "
            "&& ln -s %s model && ln -s %s checkpoints; echo linked; while :; do sleep 0.05; done"
            % (self.server.root, self.private, self.private, self.private))
        self.server.until_log(job, "ready")
        self.replace_agent(job)
        self.server.go("linked")
        self.server.until_log(job, "linked")
        self.replace_agent(job)  # by one that finds the links in place
        self.server.ath("stop", job, check=0)
        self.server.wait(job)
        self.assert_not_kept(job)

    def replace_agent(self, job):
        old = until(lambda: self.server.agent_pids(job), "%s has an agent" % job)
        for pid in old:
            kill(pid)
        until(lambda: set(self.server.agent_pids(job)) - set(old), "a new agent is there")

    def test_nothing_hangs_on_a_pipe(self):
        """Red if a file of the script's is opened without O_NONBLOCK."""
        job = self.server.submit(
            "sh", "-c", "cd /opt/ml; rm -rf checkpoints; for name in checkpoints output/failure "
            "model/pipe output/data/pipe output/events.out.tfevents.1.host .athanor/capture "
            ".athanor/stacks-0; do rm -rf $name; mkfifo $name; done; "
            "rm -f .athanor/spool/rank-0/control; mkfifo .athanor/spool/rank-0/control; echo ready; "
            "while ! test -e %s/pipes; do sleep 0.05; done" % self.server.root)
        self.server.until_log(job, "ready")
        self.replace_agent(job)
        self.server.go("pipes")
        self.ended(job)

    def test_records_of_the_attempt_cannot_be_forged(self):
        """Red if the attempt's folder is in view: by its status file an agent finds the process
        that it stops, by its exit record whether the job succeeded."""
        job = self.server.submit(
            "sh", "-c", "for d in %s/attempts/*; do for n in plan.json supervisor.status started "
            "exit exit.tmp; do echo forged > $d/$n; done; done 2>/dev/null; echo tried; "
            "while ! test -e %s/forged; do sleep 0.05; done; exit 3"
            % (self.server.home, self.server.root))
        self.server.until_log(job, "tried")
        folder = self.server.attempt_dir(job)
        for name in ("plan.json", "supervisor.status", "started", "exit.tmp"):
            with open(os.path.join(folder, name), "rb") as file:
                self.assertNotEqual(file.read(), b"forged\n", name)
        self.assertFalse(os.path.exists(os.path.join(folder, "exit")))
        self.server.go("forged")
        record = self.ended(job, "Failed")
        self.assertEqual(record["attempts"][0]["exit"]["code"], 3)


if __name__ == "__main__":
    harness.main()
