"""Jobs on a machine apart (tests/apart.py): the agent has an address and a token, nothing else. What
works on the server's own machine works there, and what is not for it is refused.

tests/run_tiers.py also plays other suites of this folder there (ATHANOR_TEST_PLACE=apart). Each
docstring names a planted bug that turns the test red where it is not plain.
"""

import contextlib
import glob
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server, until

WHOLE = """
    import athanor, os, sys
    home, port = sys.argv[1], sys.argv[2]
    print("home", os.path.exists(home) and os.listdir(home), flush=True)
    from helpers.more import WORD
    print("source", WORD)
    print("param", os.environ["SM_HP_LR"])
    for step in range(1, 101):
        athanor.log(loss=1 / step, step=step)
    with open(os.path.join(athanor.model_dir(), "model.bin"), "wb") as file:
        file.write(bytes(range(256)) * 4096)
    os.mkdir("results")
    with open("results/notes.txt", "w") as file:
        file.write("left in the working folder")
    sys.stderr.write("said on stderr\\n")
    import socket
    def reach(at):
        try:
            socket.create_connection(at, timeout=5).close()
            return True
        except OSError:
            return False
    print("page", reach(("127.0.0.1", int(port))))
"""

SAVES = """
    import athanor, os, signal, sys, time
    last = athanor.latest_checkpoint()
    start = int(open(last).read().split()[0]) if last else 0
    print("from", start, flush=True)
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    for step in range(start + 1, start + 4):
        def write(path):
            with open(path, "w") as file: file.write("%d " % step + "x" * 100000)
        athanor.checkpoint(step, write)
        athanor.log(loss=1 / step, step=step)
        print("step", step, flush=True)
    while start == 0 and not told: time.sleep(0.01)
"""


@harness.needs_root("to make a machine apart")
class Apart(unittest.TestCase):
    disk = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(place="apart", disk=cls.disk)
        cls.addClassCleanup(cls.server.close)

    def ended(self, job, state="Completed"):
        record = self.server.wait(job)
        self.assertEqual(record["state"], state, json.dumps(record.get("cause")))
        return record


    def all_there_once(self, job, saves):
        """Of a script that prints a line and logs a point each step, and saves every so many. Its log."""
        record = self.ended(job)
        self.assertEqual(len(record["attempts"]), 1)
        log = self.server.logs(job).decode()
        steps = int(re.search(r"steps (\d+)", log).group(1))
        self.assertEqual(re.findall(r"^line (\d+)$", log, re.M),
                         [str(i) for i in range(1, steps + 1)])
        self.assertEqual([p["step"] for p in self.server.points(job, "loss")],
                         list(range(1, steps + 1)))
        kept = self.server.json("checkpoints", job)["checkpoints"]
        self.assertEqual(kept[0]["step"], steps // saves * saves)
        return log


class Jobs(Apart):
    def test_all_that_a_script_needs_gets_there_and_back(self):
        """Red if an agent opens anything of the server's home by itself."""
        self.server.script("helpers/more.py", "WORD = 'came along'\n")
        self.server.script("helpers/__init__.py", "")
        port = self.server.url.rpartition(":")[2]
        job = self.server.python(WHOLE, self.server.home, port, flags=("-p", "lr=0.5"))
        record = self.ended(job)
        self.assertEqual(record["attempts"][-1]["hosts"][0]["placement"]["backend"], "apart")
        log = self.server.logs(job).decode()
        for line in ("source came along", "param 0.5", "said on stderr", "page False"):
            self.assertIn(line, log)
        self.assertRegex(log, r"home (False|\[\])")
        self.assertEqual([p["step"] for p in self.server.points(job, "loss")],
                         list(range(1, 101)))
        for name, bytes_ in (("model/model.bin", bytes(range(256)) * 4096),
                             ("results/notes.txt", b"left in the working folder")):
            self.server.ath("cp", "%s:%s" % (job, name), "got", check=0)
            with open(os.path.join(self.server.work, "got"), "rb") as file:
                self.assertEqual(file.read(), bytes_)
            os.remove(os.path.join(self.server.work, "got"))
        self.assertEqual(os.listdir(os.path.join(self.server.home, "attempts")), [],
                         "nothing of it was on the server's disk")

    def test_it_fails_as_anywhere(self):
        job = self.server.python("""
            def deep():
                raise ValueError("seen from afar")
            deep()
        """)
        record = self.ended(job, "Failed")
        self.assertIn("seen from afar", json.dumps(record["cause"]))
        why = self.server.ath("why", job, check=0).stdout
        self.assertIn("train.py", why)
        self.assertIn("deep", why)

    def test_it_is_stopped_and_saves(self):
        job = self.server.python(SAVES)
        self.server.until_log(job, "step 3")
        self.server.ath("stop", job, check=0)
        record = self.ended(job, "Stopped")
        self.assertEqual(record["attempts"][-1]["cause"]["kind"], "user_stop", record["cause"])

    def test_resumes_from_its_checkpoint(self):
        """Red if parts are looked for on the machine, or if an attempt there starts anew."""
        job = self.server.python(SAVES)
        self.server.until_checkpoint(job, 3)
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertEqual([attempt["cause"]["kind"] for attempt in record["attempts"]],
                         ["preempted", "completed"])
        self.assertEqual(record["attempts"][1]["resumed_step"], 3)
        self.assertIn("from 3", self.server.logs(job).decode())
        self.assertEqual([p["step"] for p in self.server.points(job, "loss")], [1, 2, 3, 4, 5, 6])

    def test_another_job_continues_from_its_checkpoint(self):
        first = self.server.python(SAVES)
        self.server.until_checkpoint(first, 3)
        self.server.ath("stop", first, check=0)
        self.server.wait(first)
        second = self.server.json("resume", first, "-d")["id"]
        self.ended(second)
        self.assertIn("from 3", self.server.logs(second).decode())

    def test_event_files_are_kept_and_shown(self):
        """Red if files of agents elsewhere are kept on their machine only."""
        job = self.server.python("""
            import sys
            sys.path.append(%r)
            from athanor.tensorboard import SummaryWriter
            with SummaryWriter() as writer:
                for step in range(50): writer.add_scalar("acc", step / 50, step)
        """ % os.path.join(harness.BUILD, "python"), name="tb.py")
        self.ended(job)
        self.assertEqual(len(self.server.points(job, "acc")), 50)
        found = glob.glob(os.path.join(self.server.home, "jobs", job, "events", "**",
                                       "*tfevents*"), recursive=True)
        self.assertEqual(len(found), 1, found)
        shown = [path for path in glob.glob(os.path.join(self.server.home, "tb", "*", "*"))
                 if job in os.path.realpath(path)]
        self.assertEqual(len(shown), 1)

    def test_a_captured_step_comes_home(self):
        job = self.server.python("""
            import athanor
            for step in range(3):
                batch = [step] * 10
                athanor.capture(step, batch=batch)
                if step == 2: raise ValueError("bad batch")
        """)
        self.ended(job, "Failed")
        found = glob.glob(os.path.join(self.server.home, "jobs", job, "capture", "*", "meta.json"))
        self.assertTrue(found, "nothing was captured")

    def test_hosts_side_by_side_there_reach_each_other(self):
        job = self.server.python("""
            import os, socket, sys, time
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
            if rank == 0:
                with socket.create_server(("0.0.0.0", at[1])) as listener:
                    for _ in range(world - 1):
                        peer, _ = listener.accept()
                        print("heard", peer.recv(100).decode(), flush=True)
            else:
                while True:
                    try: peer = socket.create_connection(at, timeout=5); break
                    except OSError: time.sleep(0.02)
                peer.sendall(b"rank %d on %s" % (rank, socket.gethostname().encode()))
        """, flags=("--nodes", "2", "--processes", "2"))
        record = self.ended(job)
        self.assertEqual(len(record["attempts"][0]["hosts"]), 2)
        heard = re.findall(r"heard rank (\d) on (\S+)", self.server.logs(job).decode())
        self.assertEqual(sorted(heard), [("1", "algo-1"), ("2", "algo-2"), ("3", "algo-2")])

    def test_aws_and_mlflow_clients_of_a_script_find_the_server(self):
        """Red if a script is given an address that only the server's machine has."""
        job = self.server.python("""
            import json, os, urllib.request
            def post(path, body):
                request = urllib.request.Request(
                    os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/" + path,
                    json.dumps(body).encode(), {"Content-Type": "application/json",
                    "Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]})
                return json.load(urllib.request.urlopen(request))
            run = os.environ["MLFLOW_RUN_ID"]
            for step in range(20):
                post("runs/log-metric", {"run_id": run, "key": "far", "value": step, "step": step,
                                         "timestamp": 1700000000000 + step})
            got = urllib.request.urlopen(urllib.request.Request(
                os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/get?run_id=" + run,
                headers={"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]}))
            print("run", json.load(got)["run"]["info"]["run_id"] == run)
            print("endpoint", os.environ.get("AWS_ENDPOINT_URL", ""))
            try: urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"] + "/")
            except urllib.error.HTTPError as error: print("answered", error.code)
        """)
        self.ended(job)
        log = self.server.logs(job).decode()
        self.assertIn("run True", log)
        self.assertRegex(log, r"endpoint http://127\.0\.0\.1:\d+")
        self.assertRegex(log, r"answered 40[0-9]")
        self.assertEqual(len(self.server.points(job, "far")), 20)

    def test_a_command_in_the_job_is_refused_in_words(self):
        job = self.server.python(SAVES)
        self.server.until_log(job, "step 3")
        said = self.server.ath("exec", job, "--", "true")
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("another machine", said.stderr)
        self.server.ath("stop", job, check=0)


class Refused(Apart):
    """What is not for a caller at the agents' address."""

    def setUp(self):
        self.job = self.server.python(SAVES, flags=("--nodes", "2"))
        self.server.until_log(self.job, "step 3")
        self.addCleanup(lambda: self.server.ath("stop", self.job, "--yes"))

    def plan(self, host):
        name = self.server.attempt_dir(self.job) + ("" if host == 0 else ".%d" % host)
        with open(os.path.join(name, "plan.json")) as file:
            return json.load(file)

    def ask(self, method, path, token=None, body=b""):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(*self.server.machine.where, context=context,
                                                 timeout=30)
        headers = {"Authorization": "Bearer " + token} if token else {}
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode("utf-8", "replace")

    def test_a_stranger_gets_nothing(self):
        """Red if a caller is trusted for the address that it calls from."""
        for path in ("/", "/api/v1/jobs", "/agent/v1/commands", "/api/2.0/mlflow/experiments/search",
                     "/agent/v1/secrets", "/ui"):
            for token in (None, "wrong", self.plan(0)["token"][:-1] + "x"):
                status, body = self.ask("GET", path, token)
                self.assertIn(status, (401, 403, 404), (path, status, body))
                self.assertNotIn(self.job, body)

    def test_a_token_is_good_for_its_own_host_and_attempt(self):
        """Red if an agent's token speaks for a user, or is that of another host. What a host may store
        and report: src/link/job_files_test.cc, src/serve/agents_listener_test.cc."""
        token = self.plan(1)["token"]
        for path in ("/api/v1/jobs", "/api/v1/jobs/" + self.job):
            status, body = self.ask("GET", path, token)
            self.assertIn(status, (401, 403), (path, status, body))
        self.assertNotEqual(self.plan(0)["token"], token)

    def test_the_plan_says_nothing_of_the_servers_folders(self):
        for host in (0, 1):
            plan = self.plan(host)
            self.assertEqual(plan["paths"]["home"], "")
            self.assertTrue(plan["server"].startswith("https://"))
            self.assertEqual(len(plan["pin"]), 64)
            self.assertNotIn(self.server.home, json.dumps(plan["paths"]))


class AnotherKey(Apart):
    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def test_a_server_with_another_key_is_not_spoken_to(self):
        """Red if an agent follows whoever answers at the address. The job goes on, and is heard
        when the right server is back."""
        job = self.server.python("""
            import athanor, os, sys, time
            print("began", flush=True)
            while not os.path.exists(sys.argv[1]): time.sleep(0.02)
            athanor.log(loss=1.0, step=1)
            print("went on")
        """, os.path.join(self.server.root, "go"))
        self.server.until_log(job, "began")
        with Server(settings="agents: {listen: '127.0.0.1:0'}\n", place="") as other:
            right = self.server.machine.where
            address = json.loads(subprocess.run(
                [harness.ATH, "server", "status", "--json"], env=other.environment,
                stdout=subprocess.PIPE, text=True, check=True).stdout)["agents"]
            host, _, port = address.rpartition("//")[2].rpartition(":")
            self.server.machine.where = (host, int(port))
            self.server.machine.line.break_open()
            self.server.go("go")
            log = os.path.join(self.server.attempt_dir(job), "agent.log")
            until(lambda: b"another" in self.read(log), "the agent noticed the stranger")
            self.server.machine.where = right
            self.server.machine.line.break_open()
            self.ended(job)
        self.assertIn("went on", self.server.logs(job).decode())
        self.assertEqual(len(self.server.show(job)["attempts"]), 1)


class Away(Apart):
    def test_a_server_that_is_away_for_long_costs_only_lateness(self):
        """Ten minutes with --soak. Red if the spool of an agent is bounded by what a server that is
        there would leave in it, or if a try that failed counts as one that was heard."""
        away = 600 if os.environ.get("ATHANOR_TEST_SOAK") == "1" else 8
        job = self.server.python("""
            import athanor, os, sys, time
            print("began", flush=True)
            step, slowest = 0, 0.0
            def save(path):
                with open(path, "w") as file: file.write(str(step))
            while not os.path.exists(sys.argv[1]):
                step += 1
                before = time.perf_counter()
                athanor.log(loss=1 / step, step=step)
                slowest = max(slowest, time.perf_counter() - before)
                print("line", step, flush=True)
                if step % 200 == 0: athanor.checkpoint(step, save)
                time.sleep(0.01)
            print("steps", step, "slowest log %.3f ms" % (1000 * slowest), flush=True)
        """, os.path.join(self.server.root, "enough"))
        self.server.until_log(job, "began")
        self.server.kill()
        time.sleep(away)  # how long it is away is what this is about
        self.server.go("enough")
        self.server.start()
        log = self.all_there_once(job, saves=200)
        print(re.search(r"steps .*", log).group(0), "away for %d s" % away, file=sys.stderr)


class Silent(Apart):
    def test_what_arrives_late_doubles_and_undoes_nothing(self):
        """Connections stay open, so that agent and server wait until they give up; what was sent
        before that arrives all the same, after what was sent again. Red if a late call is carried
        out: it would cut what came since, or commit an older checkpoint as the newest."""
        job = self.server.python("""
            import athanor, os, sys, time
            print("began", flush=True)
            step = 0
            def save(path):
                with open(path, "w") as file: file.write(str(step))
            while not os.path.exists(sys.argv[1]):
                step += 1
                athanor.log(loss=1 / step, step=step)
                print("line", step, flush=True)
                if step % 25 == 0: athanor.checkpoint(step, save)
                time.sleep(0.02)
            print("steps", step, flush=True)
        """, os.path.join(self.server.root, "enough"))
        self.server.until_checkpoint(job, 25)
        self.server.machine.line.hold()
        time.sleep(33)  # longer than anybody waits for an answer that should come at once
        self.server.go("enough")
        self.server.machine.line.let_go()
        self.all_there_once(job, saves=25)


class SmallDisk(Apart):
    disk = "48m"

    def test_a_full_disk_there_costs_a_wait_and_is_said(self):
        """Red if a full disk over there ends the script, or loses what it prints."""
        job = self.server.python("""
            import os, sys, time
            print("began", flush=True)
            blob = open("/opt/ml/output/data/blob", "wb")
            try:
                while True: blob.write(b"x" * 65536); blob.flush()
            except OSError as error: print("full", error.errno, flush=True)
            blob.close()
            os.remove("/opt/ml/output/data/blob")
            for i in range(1000): print("line", i)
        """)
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        log = self.server.logs(job).decode()
        self.assertIn("full 28", log)
        self.assertEqual(re.findall(r"^line (\d+)$", log, re.M), [str(i) for i in range(1000)])

    def test_a_source_that_does_not_fit_is_said(self):
        for name in ("one.bin", "two.bin"):
            with open(os.path.join(self.server.work, name), "wb") as file:
                file.write(os.urandom(40 << 20))
            self.addCleanup(os.remove, file.name)
        job = self.server.python("print('never')")
        record = self.ended(job, "Failed")
        self.assertEqual(record["cause"]["kind"], "disk_full", record["cause"])


if __name__ == "__main__":
    harness.main()
