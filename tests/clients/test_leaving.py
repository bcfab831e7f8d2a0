"""The server's address, its service, and how to leave: `ath env`, `ath service`, `ath uninstall`."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server

SYSTEMD = "/lib/systemd/systemd"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def keep_port(server, port):
    with open(os.path.join(server.home, "port"), "w") as file:
        file.write("%d\n" % port)


def url(server):
    return server.json("server", "status")["url"]


def settings(unit):
    """The settings of a unit file as {key: value}."""
    return dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))


class Port(unittest.TestCase):
    def setUp(self):
        self.server = Server(start=False)
        self.addCleanup(self.server.close)

    def restart(self):
        self.server.ath("server", "stop", check=0)
        return self.server.ath("server", "start", check=0)

    def test_a_home_keeps_its_port(self):
        """Red if a new port is chosen at each start."""
        keep_port(self.server, free_port())
        self.server.ath("ps", check=0)
        before = url(self.server)
        self.restart()
        self.assertEqual(url(self.server), before)

    def test_a_port_that_somebody_else_took_is_left_to_them_for_good(self):
        """Red if nothing is said, if the new port is not kept, or if the old one is taken back: by
        then shells have the new one."""
        port = free_port()
        keep_port(self.server, port)
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))
            other.listen()
            said = self.server.ath("ps", check=0).stderr
            self.assertIn("another program uses port %d" % port, said)
            self.assertIn('eval "$(ath env)"', said)
            moved = url(self.server)
            self.assertNotEqual(moved, "http://127.0.0.1:%d" % port)
            self.assertIn("another program uses port %d" % port,
                          self.server.ath("server", "status", check=0).stdout)
        self.restart()
        self.assertEqual(url(self.server), moved)

    def test_a_port_that_is_asked_for_is_that_one_or_none_and_is_kept(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = other.getsockname()[1]
            refused = self.server.ath("serve", "--port", str(taken))
            self.assertIn("ATH-V0003", refused.stderr)
        port = free_port()
        by_hand = self.server.popen("serve", "--port", str(port), "--json", stdout=subprocess.PIPE)
        self.addCleanup(by_hand.stdout.close)
        self.addCleanup(by_hand.wait)
        self.assertEqual(json.loads(by_hand.stdout.readline())["url"], "http://127.0.0.1:%d" % port)
        status = self.server.json("server", "status")
        self.assertEqual((status["started_by"], status["url"]), ("hand", "http://127.0.0.1:%d" % port))
        self.restart()
        self.assertEqual(url(self.server), "http://127.0.0.1:%d" % port)
        status = self.server.json("server", "status")
        self.assertEqual((status["started_by"], status["log"]),
                         ("command", os.path.join(self.server.home, "server.log")))


class Env(unittest.TestCase):
    def shell(self, server, text, **env):
        return subprocess.run(["bash", "-c", text.replace("ath ", harness.ATH + " ")], text=True,
                              env=dict(server.environment, **env), stdout=subprocess.PIPE,
                              check=True).stdout

    def test_mlflow_alone(self):
        """Red if a credential of another server stays, or AWS is touched."""
        with Server(start=False) as server:
            keep_port(server, free_port())
            said = self.shell(server, """
                eval "$(ath env mlflow --quiet)"
                eval "$(ath env mlflow --quiet)"
                echo "$MLFLOW_TRACKING_URI|$MLFLOW_REGISTRY_URI|$MLFLOW_TRACKING_TOKEN|$AWS_ENDPOINT_URL"
                eval "$(ath env mlflow --unset)"
                echo "$MLFLOW_TRACKING_URI|$MLFLOW_TRACKING_TOKEN|$(env | grep -c ATHANOR_OLD_)"
            """, MLFLOW_TRACKING_URI="http://elsewhere", MLFLOW_TRACKING_TOKEN="theirs")
            where = url(server)
            self.assertEqual(said.splitlines(), ["%s|%s||" % (where, where), "http://elsewhere|theirs|0"])

    def test_all_and_back_one_by_one(self):
        """Red if undoing one undoes the other, or if the second saves what the first has set."""
        with Server(start=False) as server:
            said = self.shell(server, """
                eval "$(ath env --quiet)"
                eval "$(ath env aws --quiet)"
                echo "$MLFLOW_TRACKING_URI|$AWS_ENDPOINT_URL"
                eval "$(ath env mlflow --unset)"
                echo "$MLFLOW_TRACKING_URI|$AWS_ENDPOINT_URL|$AWS_PROFILE"
                eval "$(ath env --unset)"
                echo "$MLFLOW_TRACKING_URI|$AWS_ENDPOINT_URL|$AWS_PROFILE|$(env | grep -c ATHANOR_)"
            """, AWS_PROFILE="mine")
            where = url(server)
            self.assertEqual(said.splitlines(),
                             ["%s|%s" % (where, where), "|%s|" % where, "||mine|1"])  # ATHANOR_HOME
            both = server.json("env")
            self.assertEqual(both["MLFLOW_TRACKING_URI"], both["AWS_ENDPOINT_URL"])
            self.assertNotIn("AWS_ENDPOINT_URL", server.json("env", "mlflow"))
            self.assertNotIn("MLFLOW_TRACKING_URI", server.json("env", "aws"))


class Service(unittest.TestCase):
    def setUp(self):
        self.server = Server(start=False)
        self.addCleanup(self.server.close)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_systemd_accepts_the_units(self):
        for flags in ((), ("--system",)):
            unit = self.server.json("service", "install", "--print", *flags)
            path = os.path.join(self.server.root, unit["unit"])
            with open(path, "w") as file:
                file.write(unit["text"])
            checked = subprocess.run(["systemd-analyze", "verify", path], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertNotIn(unit["unit"], checked.stdout)
            self.assertEqual(unit["text"],
                             self.server.ath("service", "install", "--print", *flags, check=0).stdout)
        self.assertFalse(os.path.exists(self.server.socket), "only printing starts nothing")

    def test_the_packaged_units_say_the_same(self):
        """Red if one of the two forms of a unit gets a setting that the other one lacks. Only the packaged
        service of the machine has a user of its own; its home is where systemd makes it."""
        for flags, name, own in (((), "athanor.user.service", set()),
                                 (("--system",), "athanor.service", {"User", "StateDirectory", "Documentation"})):
            with self.subTest(name):
                ours = settings(self.server.json("service", "install", "--print", *flags)["text"])
                with open(os.path.join(harness.TREE, "package", name)) as file:
                    packaged = settings(file.read())
                for key in ("Environment", "ExecStart"):  # of this home and this program
                    ours.pop(key)
                self.assertIn("ath serve --service %s/athanor.service" % ("system" if flags else "user"),
                              packaged.pop("ExecStart"))
                packaged.pop("Environment", None)
                self.assertEqual(own, {key for key in packaged if key not in ours})
                self.assertEqual(ours, {key: value for key, value in packaged.items() if key not in own})

    def test_without_systemd_it_says_what_to_do(self):
        empty = tempfile.mkdtemp(dir=self.server.root)
        out = self.server.ath("service", "install", env={"PATH": empty})
        self.assertIn("ATH-V0040", out.stderr)
        self.assertIn("@reboot ATHANOR_HOME=", out.stderr)
        self.assertIn("server start", out.stderr)
        self.assertEqual(self.server.json("service", "status"), {"installed": False})
        self.assertEqual(self.server.json("service", "remove"), {"removed": False})

    @harness.needs_root("to give systemd a cgroup of its own")
    @unittest.skipUnless(shutil.which("unshare") and shutil.which("systemctl") and
                         os.path.exists(SYSTEMD) and not os.path.exists("/run/systemd/system"),
                         "needs systemd that is installed but does not run")
    def test_a_real_service(self):
        """A user's systemd, alone on a /run of its own. Red if the unit does not start the server,
        if systemd does not restart it after a kill, if a job dies with it, or if a verb starts
        another server beside the service."""
        self.server.script("train.py", """
            import os, sys, time
            print("up", flush=True)
            while not os.path.exists(sys.argv[1]):
                time.sleep(0.05)
            print("down", flush=True)
        """)
        checks = os.path.join(self.server.root, "checks.sh")
        with open(checks, "w") as file:
            file.write(REAL_SERVICE.replace("ATH ", harness.ATH + " ").replace("SYSTEMD", SYSTEMD))
        environment = dict(self.server.environment, HOME=self.server.root, XDG_RUNTIME_DIR="/run/user/0",
                           GO=os.path.join(self.server.root, "go"), WORK=self.server.work)
        with tempfile.TemporaryFile() as log:
            done = subprocess.run(["unshare", "--mount", "bash", checks], env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=log, timeout=4 * harness.PATIENCE)
            log.seek(0)
            self.assertEqual(done.returncode, 0, done.stdout + log.read().decode())
        said = done.stdout.splitlines()
        self.assertIn("removed", said[-1])


REAL_SERVICE = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system $XDG_RUNTIME_DIR
chmod 700 $XDG_RUNTIME_DIR
SYSTEMD --user >&2 &
MANAGER=$!
trap 'kill -9 $MANAGER' EXIT
until systemctl --user is-active --quiet default.target; do sleep 0.1; done
cd $WORK
ATH run -d -q -- python3 train.py $GO > job
until ATH logs -q $(cat job) | grep -q up; do sleep 0.1; done
ATH service install
ATH server status --json | grep -q '"started_by":"service"'
ATH service status --json | grep -q '"enabled":"enabled","active":"active"'
pid() { ATH server status --json | grep -oE '"pid":[0-9]+'; }
FIRST=$(pid)
kill -9 ${FIRST#*:}
until [ -n "$(pid)" ] && [ "$(pid)" != "$FIRST" ]; do sleep 0.1; done
ATH server status --json | grep -q '"started_by":"service"'
ATH ps --json | grep -q '"state":"Running"'
ATH server stop
! ATH server status > /dev/null 2>&1
ATH ps > /dev/null
ATH server status --json | grep -q '"started_by":"service"'
touch $GO
ATH wait $(cat job)
[ "$(ATH logs -q $(cat job))" = "$(printf 'up\\ndown')" ]
ATH service remove
"""


class Uninstall(unittest.TestCase):
    def setUp(self):
        self.server = Server(start=False)
        self.addCleanup(self.server.close)
        self.server.script("train.py", "import time\nprint('up', flush=True)\ntime.sleep(3600)\n")
        self.job = self.server.submit("python3", "train.py")
        self.server.until_log(self.job, "up\n")
        self.completion = os.path.join(self.server.root, ".local/share/bash-completion/completions/ath")
        os.makedirs(os.path.dirname(self.completion))
        with open(self.completion, "w") as file:
            file.write(self.server.ath("completion", "bash", check=0).stdout)

    def test_nothing_happens_before_it_is_confirmed(self):
        """Red if a dry run, or a run that no one can confirm, removes something."""
        dry = self.server.ath("uninstall", "--dry-run", check=0).stdout
        self.assertIn(self.server.home, dry)
        self.assertIn("1 job will be stopped", dry)
        self.assertIn(self.completion, dry)
        found = self.server.json("uninstall", "--dry-run")
        self.assertEqual((found["removed"], found["jobs"]), (False, 1))
        self.assertGreater(found["data_bytes"], 0)
        refused = self.server.ath("uninstall")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("ath uninstall --yes", refused.stderr)
        self.assertTrue(os.path.exists(self.completion))
        self.assertEqual(self.server.state(self.job), "Running")

    def test_everything_goes(self):
        """Red if a process is left, or if a file of someone else is removed, too."""
        notes = os.path.join(self.server.home, "notes.txt")
        with open(notes, "w") as file:
            file.write("mine")
        self.server.ath("uninstall", "--yes", check=0)
        self.assertEqual(os.listdir(self.server.home), ["notes.txt"])
        self.assertFalse(os.path.exists(self.completion))
        self.assertEqual(self.server.leftovers(), [])
        os.remove(notes)
        self.server.ath("uninstall", "--yes", check=0)  # nothing is left to remove
        self.assertFalse(os.path.exists(self.server.home))

    def test_data_can_stay(self):
        """Red if the job that was stopped has no end in what is kept."""
        self.server.ath("uninstall", "--keep-data", "--yes", check=0)
        self.assertEqual(self.server.leftovers(), [])
        self.assertFalse(os.path.exists(self.completion))
        self.assertEqual(self.server.state(self.job), "Stopped")  # by a server that begins anew
        self.assertEqual(self.server.logs(self.job), b"up\n")


if __name__ == "__main__":
    harness.main()
