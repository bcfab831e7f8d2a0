"""What the server keeps is whole, can be looked over, backed up and put back, outlives an older
schema, and a full disk. Real processes, real SIGKILL, a real small file system.

Each docstring names a planted bug that turns the test red.
"""

import contextlib
import http.client
import itertools
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import textwrap
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import page_sums
from harness import Server, until

JSON = {"Content-Type": "application/json"}
VERSIONS = os.path.join(harness.TREE, "src", "record", "db", "versions")

# Prints, waits for the test's word, prints on, ends.
PATIENT = """
    import os, sys, time
    for i in range(int(sys.argv[2])):
        print("line %05d" % i)
    print("ready", flush=True)
    while not os.path.exists(sys.argv[1]): time.sleep(0.01)
    for i in range(2000):
        print("after %05d" % i)
    print("the end")
"""


# Prints in three parts, each when the test says so. The middle one is more than a pipe and what
# the server's reserve gives back can hold.
THREE_PARTS = """
    import os, sys, time
    def part(word, lines):
        for i in range(lines):
            print("%s %06d" % (word, i))
        sys.stdout.flush()
    def wait(word):
        while not os.path.exists(sys.argv[1] + word): time.sleep(0.01)
    part("before", 2000)
    wait("-during")
    part("during", 600000)
    open(sys.argv[1] + "-printed", "w").close()
    part("after", 2000)
    print("the end")
"""


def touch(path):
    with open(path, "w"):
        pass


def printed(lines):
    return ("".join("line %05d\n" % i for i in range(lines)) + "ready\n" +
            "".join("after %05d\n" % i for i in range(2000)) + "the end\n").encode()


@contextlib.contextmanager
def sql(server):
    path = os.path.join(server.home, "server", "athanor.db")
    with contextlib.closing(sqlite3.connect(path)) as database:
        yield database
        database.commit()
    page_sums.restamp(path)


def stop(server):
    """As its owner does: what it kept is all in the file then."""
    server.kill(signal.SIGTERM)


def flip(path, at, bit=1):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def find(path, text):
    """Where `text` is in the file; it must be there once at least."""
    with open(path, "rb") as file:
        at = file.read().find(text)
    if at < 0:
        raise AssertionError("%r is not in %s" % (text, path))
    return at


class Restored(Server):
    """A second home, laid out from a backup of the first."""

    def __init__(self, backup):
        super().__init__(start=False)
        shutil.rmtree(self.home)
        self.said = self.json("server", "restore", backup)


def only_known_damage(report):
    return [finding["what"] for finding in report["findings"]]


class Fsck(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def test_refuses_beside_a_server_and_is_clean_after_any_kill(self):
        """Red if fsck does not take the server's lock, or if a state that kill -9 leaves behind
        (bytes without an index entry, effects not performed) is called damage."""
        out = self.server.ath("fsck")
        self.assertEqual(out.returncode, 4, out.stderr)
        self.assertIn("ath server stop", out.stderr)
        go = os.path.join(self.server.root, "go")
        jobs = [self.server.python(PATIENT, go, 100) for _ in range(2)]
        self.server.until_log(jobs[0], "ready")
        self.server.submit("sleep", "600", flags=["--cpus", os.cpu_count()])
        self.server.kill()
        report = self.server.json("fsck")
        self.assertEqual(only_known_damage(report), [])
        self.assertEqual(report["jobs"], 3)
        self.server.start()
        touch(go)
        for job in jobs:
            self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.server.kill()
        report = self.server.json("fsck", "--deep")
        self.assertTrue(report["clean"], report)

    def test_the_lock_that_a_dying_child_still_holds_is_waited_for(self):
        """Red if the server or fsck takes a held lock for a server although none answers: a child
        that a killed server had just forked holds it until it is another program."""
        self.server.kill()
        holder = """
            import fcntl, sys, time
            lock = open(sys.argv[1], "r+")
            fcntl.flock(lock, fcntl.LOCK_EX)
            print("held", flush=True)
            time.sleep(0.5)
        """
        path = os.path.join(self.server.home, "server.lock")
        for act in (lambda: self.server.json("fsck"), self.server.start):
            with subprocess.Popen([sys.executable, "-c", textwrap.dedent(holder), path],
                                  stdout=subprocess.PIPE) as child:
                self.assertEqual(child.stdout.readline(), b"held\n")
                act()
        self.assertEqual(self.server.ath("serve").returncode, 4)  # of a real one it is told at once

    def test_finds_and_repairs_without_losing_anything(self):
        """Red if a torn tail is not cut, a stranger's folder is deleted instead of put aside, or
        the status is 0 although something was found."""
        job = self.server.python("""
            import athanor
            for i in range(20): athanor.log(loss=1.0 / (i + 1), step=i)
            print("done")
        """)
        self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.server.kill()
        home = self.server.home
        series = os.path.join(home, "server", "series", job[-2:], job + ".series")
        with open(series, "ab") as file:
            file.write(b"\x20\0\0\0torn")
        stranger = os.path.join(home, "jobs", "0" * 26)
        os.makedirs(stranger)
        with open(os.path.join(stranger, "weights"), "w") as file:
            file.write("precious")
        with sql(self.server) as database:
            database.execute("UPDATE jobs SET state = 'Running', live = 1")
        out = self.server.ath("fsck")
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertEqual(len(out.stdout.splitlines()), 4, out.stdout)  # a line each, and a sum
        for line in out.stdout.splitlines()[:-1]:
            self.assertIn("ath fsck --repair", line)
        self.server.ath("fsck", "--repair", check=0)
        self.server.ath("fsck", check=0)
        with open(os.path.join(home, "lost+found", "jobs", "0" * 26, "weights")) as file:
            self.assertEqual(file.read(), "precious")
        self.server.start()
        self.assertEqual(self.server.state(job), "Completed")
        self.assertEqual(len(self.server.points(job, "loss")), 20)

    def test_there_must_be_a_store(self):
        """Red if fsck makes a new home where there is none."""
        out = self.server.ath("fsck", env={"ATHANOR_HOME": self.server.root + "/none"})
        self.assertEqual(out.returncode, 3, out.stderr)
        self.assertFalse(os.path.exists(self.server.root + "/none"))


class Damage(unittest.TestCase):
    """Bits that flip on the disk unnoticed."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.database = os.path.join(self.server.home, "server", "athanor.db")

    def test_a_flipped_digit_of_a_parameter_is_said_and_never_shown(self):
        """Red if the sums of pages are not looked at when they are read: `ath show` then says
        lr 0.32468 for 0.12468, and `ath fsck` that all is clean."""
        job = self.server.submit("true", "--lr", "0.12468")
        others = [self.server.submit("true", "--lr", "0.5") for _ in range(8)]
        for each in [job] + others:
            self.assertEqual(self.server.wait(each)["state"], "Completed")
        stop(self.server)
        self.server.ath("fsck", check=0)
        at = find(self.database, b'"--lr","0.12468"')
        flip(self.database, at + len(b'"--lr","0.'), bit=1)  # 1 -> 3
        page = at // 4096 + 1
        self.server.start()
        out = self.server.ath("show", job)
        self.assertNotEqual(out.returncode, 0, out.stdout)
        self.assertIn("page %d of" % page, out.stderr)
        self.assertIn("ath fsck", out.stderr)
        self.assertNotIn("0.32468", out.stdout + out.stderr)
        # What is on other pages is served as before.
        self.assertEqual(len(self.server.json("ps", "-a")["jobs"]), 9)
        self.assertEqual(self.server.show(others[-1])["state"], "Completed")
        self.assertEqual(self.server.wait(self.server.submit("true"))["state"], "Completed")
        backup = self.server.ath("server", "backup", os.path.join(self.server.root, "copy"))
        self.assertNotEqual(backup.returncode, 0, backup.stdout)
        self.assertIn("not as it was written", backup.stderr)
        stop(self.server)
        out = self.server.ath("fsck")
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertIn("page %d of athanor.db is not as it was written" % page, out.stdout)
        self.assertIn("table records", out.stdout)

    def test_a_run_that_cannot_be_read_keeps_the_server_from_showing_it(self):
        """Red if a damaged parameter of a run is loaded as it comes."""
        made = self.server.http("POST", "/api/2.0/mlflow/runs/create",
                                {"experiment_id": "0", "start_time": 1}, JSON, unix=True).json()
        run = made["run"]["info"]["run_id"]
        for key in ("lr", "seed"):
            self.server.http("POST", "/api/2.0/mlflow/runs/log-parameter",
                             {"run_id": run, "key": key, "value": "0.13579"}, JSON, unix=True)
        stop(self.server)
        flip(self.database, find(self.database, b"0.13579") + 2, bit=1)
        out = self.server.ath("serve", "--port", "0")
        self.assertNotEqual(out.returncode, 0, out.stdout)
        self.assertIn("not as it was written", out.stderr)
        self.assertIn("ath server restore", out.stderr)
        self.assertEqual(self.server.ath("fsck").returncode, 1)

    def killed_with_a_log(self):
        jobs = [self.server.submit("true", "--lr", "0.%d" % i) for i in range(1, 8)]
        for job in jobs:
            self.assertEqual(self.server.wait(job)["state"], "Completed")
        self.server.kill()
        self.assertGreater(os.path.getsize(self.database + "-wal"), 20 * 4120)
        return jobs

    def test_a_flipped_bit_beside_the_pages_of_the_log_is_put_right_and_said(self):
        """Red if SQLite takes the log over by itself: all jobs but the first are gone then."""
        jobs = self.killed_with_a_log()
        flip(self.database + "-wal", 32 + 5 * 4120 + 17, bit=4)
        out = self.server.ath("fsck")
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertIn("nothing is lost", out.stdout)
        self.server.start()
        self.assertEqual({job["id"] for job in self.server.json("ps", "-a")["jobs"]}, set(jobs))
        self.assertIn("nothing is lost", self.server.ath("server", "status", check=0).stdout)
        stop(self.server)
        self.server.ath("fsck", check=0)

    def test_a_broken_log_is_set_aside_and_what_is_lost_is_said(self):
        """Red if what lies behind the damage is dropped without a word, or the log as it was is
        not kept."""
        self.killed_with_a_log()
        log = self.database + "-wal"
        with open(log, "r+b") as file:
            file.seek(32 + 8 * 4120 + 24 + 512)
            file.write(os.urandom(512))
        with open(log, "rb") as file:
            broken = file.read()
        out = self.server.ath("server", "backup", os.path.join(self.server.root, "copy"))
        self.assertNotEqual(out.returncode, 0, out.stdout)
        self.assertIn("log of the store is damaged", out.stderr)
        out = self.server.ath("fsck")
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertIn("LOST", out.stdout)
        self.server.start()
        (kept,) = [name for name in os.listdir(os.path.dirname(log))
                   if ".broken." in name and not name.endswith(".txt")]
        with open(os.path.join(os.path.dirname(log), kept), "rb") as file:
            self.assertEqual(file.read(), broken)
        for again in (False, True):  # it is said until someone has seen to it
            if again:
                stop(self.server)
                self.server.start()
            said = self.server.ath("server", "status", check=0).stdout
            self.assertIn("LOST", said)
            self.assertIn(kept, said)
            with open(self.server.log) as file:
                self.assertIn("LOST", file.read())
        stop(self.server)
        out = self.server.ath("fsck")
        self.assertEqual(out.returncode, 1)
        self.assertIn(kept, out.stdout)

    def test_an_artifact_that_changed_on_the_disk_is_found(self):
        """Red if nothing is kept about the bytes of artifacts."""
        made = self.server.http("POST", "/api/2.0/mlflow/runs/create",
                                {"experiment_id": "0", "start_time": 1}, JSON, unix=True).json()
        uri = made["run"]["info"]["artifact_uri"].split(":/", 1)[1]
        put = self.server.http("PUT", "/api/2.0/mlflow-artifacts/artifacts/%s/m/weights.bin" % uri,
                               b"w" * 5000, headers={"Content-Type": "application/octet-stream"},
                               unix=True)
        self.assertEqual(put.status, 200, put.body)
        listed = self.server.http("GET", "/api/2.0/mlflow-artifacts/artifacts?path=" +
                                  os.path.dirname(uri), unix=True).json()
        self.assertEqual([file["path"] for file in listed["files"]], [os.path.basename(uri)])
        stop(self.server)
        self.server.ath("fsck", "--deep", check=0)
        path = os.path.join(self.server.home, "artifacts", uri, "m", "weights.bin")
        flip(path, 2500)
        out = self.server.ath("fsck", "--deep")
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertIn("m/weights.bin", out.stdout)


class Backup(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def restore(self, backup):
        restored = Restored(backup)
        self.addCleanup(restored.close)
        return restored

    def backed_up_while_busy(self, name):
        """Jobs that are over, one that runs, one that waits, and submits going on meanwhile."""
        server = self.server
        server.ath("secret", "set", "TOKEN_A", input="a value to keep", check=0)
        done = [server.python("import athanor\nathanor.log(loss=0.5, step=1)\nprint('over')")
                for _ in range(3)]
        for job in done:
            self.assertEqual(server.wait(job)["state"], "Completed")
        self.go = os.path.join(server.root, "go")
        runs = server.python(PATIENT, self.go, 5000)
        server.until_log(runs, "ready")
        (supervisor,) = server.supervisor_pids(runs)
        waits = server.submit("echo", "waited", flags=["--cpus", os.cpu_count()])
        stop = threading.Event()
        late = []

        def submit():
            while not stop.is_set():
                late.append(server.submit("true", flags=["--cpus", os.cpu_count()]))

        thread = threading.Thread(target=submit)
        thread.start()
        try:
            until(lambda: late, "a submit during the backup")
            before = list(late)
            out = server.ath("server", "backup", os.path.join(server.root, name), check=0)
        finally:
            stop.set()
            thread.join()
        self.assertIn("secret.key", out.stdout)
        return done, runs, supervisor, waits, before

    def check_restored(self, name):
        done, runs, supervisor, waits, before = self.backed_up_while_busy(name)
        restored = self.restore(os.path.join(self.server.root, name))
        self.assertTrue(restored.said["fsck"]["clean"], restored.said["fsck"])
        self.assertEqual(restored.said["lost_attempts"], 1)
        self.assertFalse(os.path.exists(os.path.join(restored.home, "attempts")))
        restored.start()
        jobs = {job["id"] for job in restored.json("ps", "-a")["jobs"]}
        self.assertLessEqual(set(done + [runs, waits] + before), jobs)
        for job in done:
            self.assertEqual(restored.show(job), self.server.show(job))
            self.assertEqual(restored.logs(job), self.server.logs(job))
            self.assertEqual(restored.points(job, "loss"), self.server.points(job, "loss"))
        record = restored.show(runs)
        self.assertEqual((record["state"], record["cause"]["kind"]), ("Failed", "agent_lost"))
        self.assertIn(b"ready\n", restored.logs(runs))
        self.assertEqual(restored.wait(waits)["state"], "Completed")
        self.assertEqual(restored.json("secret", "ls")["secrets"][0]["name"], "TOKEN_A")
        # The original's attempt was neither taken over nor ended.
        self.assertTrue(harness.alive(supervisor))
        self.assertEqual(self.server.state(runs), "Running")
        restored.kill()
        touch(self.go)
        self.assertEqual(self.server.wait(runs)["state"], "Completed")
        self.assertEqual(self.server.logs(runs), printed(5000))
        return restored

    def test_folder_made_while_jobs_run(self):
        """Red if logs are copied before the database, if jobs submitted later leave their folders
        in the backup, if attempts' folders are part of it (the restored server would adopt and
        end the original's script), or if a Running job stays Running in the restored home."""
        self.check_restored("backup")
        key = os.path.join(self.server.root, "backup", "server", "secret.key")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(key)).st_mode) & 0o077, 0)

    def test_archive_made_while_jobs_run(self):
        """Red if what was staged for the archive stays in the home, or modes are lost in it."""
        self.check_restored("backup.tar")
        archive = os.path.join(self.server.root, "backup.tar")
        self.assertEqual(stat.S_IMODE(os.stat(archive).st_mode), 0o600)
        with tarfile.open(archive) as tar:
            self.assertEqual(tar.getmember("server/secret.key").mode, 0o600)
            self.assertFalse([name for name in tar.getnames() if name.startswith("attempts")])
        self.assertFalse(os.path.exists(os.path.join(self.server.home, "server",
                                                     "backup.partial")))

    def test_of_a_stopped_server(self):
        """Red if a backup starts a server, or needs one."""
        job = self.server.submit("echo", "hello")
        self.server.wait(job)
        self.server.kill()
        made = self.server.json("server", "backup", self.server.root + "/b.tar.zst")
        self.assertEqual(made["jobs"], 1)
        self.assertFalse(os.path.exists(self.server.socket) and self.server.leftovers())
        restored = self.restore(self.server.root + "/b.tar.zst")
        restored.start()
        self.assertEqual(restored.logs(job), b"hello\n")

    def test_what_is_there_is_never_written_over(self):
        """Red if a backup replaces an earlier one, or a restore mixes two homes."""
        self.server.wait(self.server.submit("true"))
        target = self.server.root + "/b"
        self.server.ath("server", "backup", target, check=0)
        out = self.server.ath("server", "backup", target)
        self.assertEqual(out.returncode, 4, out.stderr)
        out = self.server.ath("server", "backup", self.server.home + "/inside")
        self.assertEqual(out.returncode, 4, out.stderr)
        self.server.kill()
        out = self.server.ath("server", "restore", target)
        self.assertEqual(out.returncode, 4, out.stderr)
        self.assertIn("ATHANOR_HOME", out.stderr)
        fresh = self.server.root + "/fresh"
        out = self.server.ath("server", "restore", self.server.work, env={"ATHANOR_HOME": fresh})
        self.assertEqual(out.returncode, 2, out.stderr)
        with open(target + ".cut.tar", "wb") as file:
            file.write(b"\0" * 700)
        out = self.server.ath("server", "restore", target + ".cut.tar",
                              env={"ATHANOR_HOME": fresh})
        self.assertNotEqual(out.returncode, 0)
        # A refused one leaves nothing in the way of a good one.
        self.server.ath("server", "restore", target, check=0, env={"ATHANOR_HOME": fresh})

    def test_killed_backups_and_restores_leave_nothing_in_the_way(self):
        """Red if a backup has its name before it is whole, or a half-done restore counts as a
        home."""
        for i in range(8):
            self.server.wait(self.server.submit("echo", str(i)))
        self.server.kill()
        for i in range(6):
            target = self.server.root + "/k%d" % i
            process = self.server.popen("server", "backup", target, stdout=subprocess.DEVNULL)
            until(lambda: process.poll() is not None or os.path.exists(target + ".partial"),
                  "it began")
            harness.kill(process.pid)
            process.wait()
            if os.path.exists(target):
                self.assertTrue(os.path.exists(target + "/backup.json"))
            else:
                self.server.ath("server", "backup", target, check=0)
            home = self.server.root + "/h%d" % i
            process = self.server.popen("server", "restore", target, stdout=subprocess.DEVNULL,
                                        env={"ATHANOR_HOME": home})
            until(lambda: process.poll() is not None or
                  os.path.exists(home + "/.athanor-restoring"), "it began")
            harness.kill(process.pid)
            process.wait()
            if not os.path.exists(home + "/server/athanor.db"):
                self.server.ath("server", "restore", target, check=0, env={"ATHANOR_HOME": home})
            report = self.server.json("fsck", "--deep", env={"ATHANOR_HOME": home})
            self.assertEqual((report["clean"], report["jobs"]), (True, 8), report)


class Migrations(unittest.TestCase):
    def test_a_store_of_every_version_is_served_and_kept(self):
        """Red if a server does not keep a copy before it migrates, or does not say so."""
        for version in sorted(int(name[1:-4]) for name in os.listdir(VERSIONS)):
            with self.subTest(version=version), Server(start=False) as server:
                folder = os.path.join(server.home, "server")
                os.makedirs(folder)
                with sql(server) as database, \
                        open(os.path.join(VERSIONS, "v%d.sql" % version)) as file:
                    database.executescript(file.read())
                    # Sealed under a key that is not kept with it.
                    database.execute("DELETE FROM secrets")
                    if version >= 3:
                        database.execute("DELETE FROM access_keys")
                server.start()
                jobs = {job["name"]: job["state"] for job in server.json("ps", "-a")["jobs"]}
                self.assertEqual(jobs["quiet-lamp"], "Completed")
                self.assertEqual(jobs["broken"], "Failed")
                self.assertIn("waits", jobs)
                server.wait("runs")  # its attempt is not on this machine
                newest = max(int(name[1:-4]) for name in os.listdir(VERSIONS))
                kept = os.path.join(folder, "athanor.db.v%d" % version)
                self.assertEqual(os.path.exists(kept), version < newest)
                with open(server.log) as log:
                    self.assertEqual(kept in log.read(), version < newest)

    def test_a_newer_store_is_refused(self):
        """Red if a newer store is opened, or migrated backwards."""
        with Server() as server:
            server.wait(server.submit("true"))
            server.kill()
            with sql(server) as database:
                database.execute("PRAGMA user_version = 999")
            for verb in (["serve", "--port", "0"], ["fsck"]):
                out = server.ath(*verb)
                self.assertEqual(out.returncode, 4, out.stderr)
                self.assertIn("newer athanor", out.stderr)
                self.assertIn("999", out.stderr)


class SmallDisk:
    """A tmpfs over a server's home."""

    def __init__(self, server, size):
        self.home = server.home
        self.ballast = os.path.join(self.home, "ballast")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", self.home],
                       check=True)

    def fill(self):
        """Until not a byte more can be written."""
        with open(self.ballast, "ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"b" * size)

    def free(self):
        os.unlink(self.ballast)

    def close(self):
        subprocess.run(["umount", "-l", self.home], check=False)


@unittest.skipUnless(os.geteuid() == 0, "a small file system needs root")
class DiskFull(unittest.TestCase):
    def setUp(self):
        self.server = Server(start=False)
        self.disk = SmallDisk(self.server, "160m")
        # Last in, first out: processes first, then the disk under them.
        self.addCleanup(shutil.rmtree, self.server.root, True)
        self.addCleanup(self.disk.close)
        self.addCleanup(self.stop)
        self.server.start()

    def stop(self):
        if self.server.process:
            self.server.kill()
        for _ in range(3):
            for pid in self.server.leftovers():
                harness.kill(pid)

    def test_submits_are_refused_jobs_go_on_and_nothing_needs_a_restart(self):
        """Red if a submit is taken without room for its job's states; if a commit that finds the
        disk full ends the server; if OutputStream::Drain drops what does not fit instead of
        leaving it in the pipe; if nobody says that the script waits; or if the agent ships on
        from the wrong offset afterwards."""
        server = self.server
        go = os.path.join(server.root, "go")
        job = server.python(THREE_PARTS, go)
        server.until_log(job, "before 001999\n")
        other = server.submit("sh", "-c", "while [ ! -e %s-during ]; do sleep 0.05; done" % go)
        server.until_state(other, "Running")
        spec = server.spec("true")
        pid = server.pid

        self.fill_store("A")
        reply = server.http("POST", "/api/v1/jobs", {"key": "full", "spec": spec}, unix=True)
        self.assertEqual(reply.status, 507, reply.body)
        error = reply.json()["error"]
        self.assertEqual(error["id"], "ATH-S0202")
        for part in ("what", "why", "hint"):
            self.assertTrue(error[part], error)
        out = server.ath("run", "-d", "--", "true")
        self.assertEqual(out.returncode, 8, out.stderr)
        self.assertIn("disk", out.stderr)
        # Reads work and the scripts are unharmed: one waits where it prints, one ends.
        self.assertEqual(server.state(job), "Running")
        touch(go + "-during")
        (supervisor,) = server.supervisor_pids(job)
        until(lambda: harness.name_of(supervisor) == "ath-disk-full", "the script waits")
        self.fill_store("B")  # what the reserve gave
        until(lambda: server.show(job).get("cause", {}).get("kind") == "waiting_disk",
              "the wait has a reason")
        until(lambda: {"waits for disk space", "df -h"} <= {
            words for words in ("waits for disk space", "df -h")
            if words in server.ath("why", job, check=0).stdout}, "`ath why` says so")
        self.assertFalse(os.path.exists(go + "-printed"))
        self.assertEqual(server.http("GET", "/healthz").status, 200)

        self.disk.free()
        record = server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(len(record["attempts"]), 1)
        self.assertEqual(server.logs(job), "".join(
            "%s %06d\n" % (word, i) for word, lines in
            (("before", 2000), ("during", 600000), ("after", 2000)) for i in range(lines)
        ).encode() + b"the end\n")
        self.assertEqual(record["attempts"][0]["exit"]["log_dropped"], 0)
        notes = [event["cause"]["kind"] for event in server.events(job)
                 if event["name"] == "noted"]
        self.assertEqual((notes[0], notes[-1]), ("waiting_disk", "disk_room"))
        self.assertIn(server.wait(other)["state"], ("Completed", "Failed"))
        self.assertEqual(server.wait(server.submit("true"))["state"], "Completed")
        self.assertEqual((server.process.poll(), server.pid), (None, pid))
        server.kill()
        report = server.json("fsck", "--deep")
        self.assertTrue(report["clean"], report)

    def fill_store(self, prefix):
        """Also what room SQLite's own files still have."""
        for size in (60000, 3000, 8):
            for i in itertools.count():
                self.disk.fill()
                name = "%s_%d_%d" % (prefix, size, i)
                if self.server.http("PUT", "/api/v1/secrets/" + name, "s" * size,
                                    unix=True).status == 507:
                    break

    def test_a_script_that_waits_for_room_can_be_stopped(self):
        """Red if the supervisor waits for room for what is in the pipe although a stop was asked
        for (kRoomAtEndMs taken out), or if its signals are not read while a stream waits."""
        server = self.server
        job = server.python(THREE_PARTS, os.path.join(server.root, "go"))
        server.until_log(job, "before 001999\n")
        (supervisor,) = server.supervisor_pids(job)
        self.fill_store("A")
        touch(os.path.join(server.root, "go-during"))
        until(lambda: harness.name_of(supervisor) == "ath-disk-full", "the script waits")
        self.assertEqual(server.http("POST", "/api/v1/jobs/%s/stop" % job, unix=True).status, 200)
        until(lambda: not harness.alive(supervisor), "it ended on the full disk")
        self.disk.free()
        record = server.wait(job)
        self.assertEqual((record["state"], record["cause"]["kind"]), ("Stopped", "user_stop"))
        # What found no room is missing at the end; what is there is what was printed.
        printed = "".join("%s %06d\n" % (word, i) for word, lines in
                          (("before", 2000), ("during", 600000)) for i in range(lines)).encode()
        kept = server.logs(job)
        self.assertGreater(len(kept), len("before 000000\n") * 2000)
        self.assertTrue(printed.startswith(kept), kept[-200:])

    def test_a_server_on_a_full_disk_can_be_stopped(self):
        """Red if a commit that waits for room cannot be given up (no GiveUpWaiting before the
        engine is stopped), or if the reserve is not given up for the first stop."""
        server = self.server
        loop = "while [ ! -e %s/go ]; do sleep 0.05; done" % server.root
        jobs = [server.submit("sh", "-c", loop) for _ in range(2)]
        for job in jobs:
            server.until_state(job, "Running")
        self.fill_store("A")
        # The reserve is there for this one ...
        reply = server.http("POST", "/api/v1/jobs/%s/stop?grace_ms=60000" % jobs[0], unix=True)
        self.assertEqual(reply.status, 200, reply.body)
        self.fill_store("B")

        # ... and nothing for this one: its answer waits.
        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException):
                server.http("POST", "/api/v1/jobs/%s/stop" % jobs[1], unix=True)

        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: server.http("GET", "/api/v1/jobs/" + jobs[1],
                                  unix=True).json().get("stop"), "the stop was taken")
        self.assertEqual(server.kill(harness.signal.SIGTERM), 0)
        thread.join()
        # What was not stored was not acknowledged: the job is as it was.
        self.disk.free()
        server.start()
        self.assertNotIn("stop", server.show(jobs[1]))

    def test_a_stop_that_waits_for_the_disk_says_so(self):
        """Red if `ath stop` waits without a word (Client::Send without SayWhileWaiting), or the
        server does not tell what it waits for."""
        server = self.server
        loop = "while [ ! -e %s/go ]; do sleep 0.05; done" % server.root
        # The first one stays, so that its end gives no room back.
        jobs = [server.submit("sh", "-c", before + loop) for before in ("trap '' TERM; ", "")]
        for job in jobs:
            server.until_state(job, "Running")
        self.fill_store("A")
        reply = server.http("POST", "/api/v1/jobs/%s/stop?grace_ms=60000" % jobs[0], unix=True)
        self.assertEqual(reply.status, 200, reply.body)
        self.fill_store("B")

        stop = server.popen("stop", jobs[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
        said = ""
        while "ath gc" not in said:
            line = stop.stderr.readline()
            self.assertTrue(line, "it ended, having said: " + said)
            said += line
        for words in ("the server's disk is full", "df -h " + server.home, "needed"):
            self.assertIn(words, said)
        self.assertIsNone(stop.poll(), "it still waits")
        self.assertEqual(server.json("server", "status")["waits_for_disk"]["path"], server.home)
        self.assertIn("disk     full", server.ath("server", "status", check=0).stdout)
        self.disk.free()
        out, rest = stop.communicate(timeout=harness.PATIENCE)
        self.assertEqual(stop.returncode, 0, said + rest)
        self.assertIn("is stopping", out)
        self.assertEqual(server.wait(jobs[1])["state"], "Stopped")


if __name__ == "__main__":
    harness.main()
