"""Nothing acknowledged is lost and nothing is doubled when the server, the agent or the network
dies at the worst moment. Real processes, real SIGKILL.

Each docstring names a planted bug that turns the test red.
"""

import contextlib
import glob
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SOAK, Case, Server, UnixConnection, until

MOMENTS = 200 if SOAK else 25


def post(server, body, timeout=30):
    """(status, reply) of one submit over the socket; raises OSError when the server dies."""
    with contextlib.closing(UnixConnection(server.socket, timeout)) as connection:
        connection.request("POST", "/api/v1/jobs", json.dumps(body),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


class ServerKilledDuringSubmits(unittest.TestCase):
    def test_no_acknowledged_job_is_lost_and_none_doubled(self):
        """Red if the reply goes out before the commit is durable (Engine::Submit answering when
        the draft is queued instead of after its batch), or if the key is not stored in the same
        transaction as the job."""
        seed = int(os.environ.get("ATHANOR_TEST_SEED", random.randrange(1 << 32)))
        chance = random.Random(seed)
        with Server() as server:
            # Paused jobs only: what is tested is the store, not the machine's speed.
            holder = server.submit("sleep", "3600", flags=["--cpus", os.cpu_count()])
            server.until_state(holder, "Running")
            spec = server.spec("true")
            # The source is on the server already: an earlier job brought it.
            acknowledged, sent = {}, {}
            lock = threading.Lock()
            for moment in range(MOMENTS):
                halt = threading.Event()

                def submitter(number):
                    serial = 0
                    while not halt.is_set():
                        key = "m%d-t%d-%d" % (moment, number, serial)
                        serial += 1
                        one = dict(spec, name=key)
                        with lock:
                            sent[key] = one
                        try:
                            status, reply = post(server, {"key": key, "spec": one})
                        except (OSError, http.client.HTTPException, ValueError):
                            return
                        with lock:
                            acknowledged[key] = (status, reply["id"])

                threads = [threading.Thread(target=submitter, args=(n,)) for n in range(4)]
                for thread in threads:
                    thread.start()
                time.sleep(chance.uniform(0.0, 0.06))  # the random moment itself
                server.kill()
                halt.set()
                for thread in threads:
                    thread.join()
                server.start()
            jobs = server.json("ps", "-a")["jobs"]
            by_name = {}
            for job in jobs:
                by_name.setdefault(job["name"], []).append(job["id"])
            self.assertGreater(len(acknowledged), MOMENTS, "seed %d" % seed)
            for key, (status, id) in acknowledged.items():
                self.assertEqual(status, 201, "seed %d" % seed)
                self.assertEqual(by_name.get(key), [id], "seed %d: acknowledged" % seed)
            for name, ids in by_name.items():
                self.assertEqual(len(ids), 1, "seed %d: %s doubled" % (seed, name))
            # Whoever got no answer asks again with the same key and finds out.
            unanswered = [key for key in sent if key not in acknowledged]
            for key in unanswered + chance.sample(sorted(acknowledged), 20):
                status, reply = post(server, {"key": key, "spec": sent[key]})
                earlier = by_name.get(key)
                self.assertEqual(status, 200 if earlier else 201, "seed %d: %s" % (seed, reply))
                if earlier:
                    self.assertEqual([reply["id"]], earlier, "seed %d" % seed)
            self.assertEqual(len(server.json("ps", "-a")["jobs"]), len(sent) + 1)
            server.ath("stop", "--now", holder)


class Keys(Case):
    def test_same_key_same_spec_is_one_job(self):
        """Red if the key is looked up outside the transaction that inserts the job."""
        spec = dict(self.server.spec("true"), name="once")
        self.server.submit("true")
        replies = [None] * 8

        def submit(i):
            replies[i] = post(self.server, {"key": "the-key", "spec": spec})

        threads = [threading.Thread(target=submit, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(status for status, _ in replies), [200] * 7 + [201])
        self.assertEqual(len({reply["id"] for _, reply in replies}), 1)

    def test_same_key_other_payload_is_422(self):
        """Red if a duplicate key answers with the earlier job without comparing spec hashes."""
        self.server.submit("true")
        spec = self.server.spec("true")
        self.assertEqual(post(self.server, {"key": "k2", "spec": spec})[0], 201)
        status, reply = post(self.server, {"key": "k2", "spec": dict(spec, priority=7)})
        self.assertEqual(status, 422)
        self.assertTrue(reply["error"]["id"].startswith("ATH-S"), reply)
        out = self.server.ath("run", "--key", "k2", "-d", "--", "false")
        self.assertEqual(out.returncode, 4, out.stderr)
        self.assertIn("key", out.stderr)

    def test_cli_with_a_key_twice_is_one_job(self):
        """Red if `ath run --key` makes its own key."""
        ids = {self.server.json("run", "-d", "--key", "k3", "--", "true")["id"]
               for _ in range(3)}
        self.assertEqual(len(ids), 1)


class DroppingProxy:
    """Forwards TCP to the server; the reply to the first `drop` submits is swallowed and the
    connection reset, after the server has answered."""

    def __init__(self, url, drop):
        host, _, port = url.rpartition("//")[2].rpartition(":")
        self.target = (host, int(port))
        self.drop = drop
        self.dropped = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        upstream = socket.create_connection(self.target)
        submit = threading.Event()

        def up():
            with contextlib.suppress(OSError):
                while data := client.recv(65536):
                    if b"POST /api/v1/jobs HTTP" in data:
                        submit.set()
                    upstream.sendall(data)
                upstream.shutdown(socket.SHUT_WR)

        threading.Thread(target=up, daemon=True).start()
        with contextlib.suppress(OSError):
            while data := upstream.recv(65536):
                with self.lock:
                    # Only a job that was made counts: a refusal leads to an upload and goes on.
                    swallow = (submit.is_set() and data.startswith(b"HTTP/1.1 201")
                               and self.dropped < self.drop)
                    self.dropped += swallow
                if swallow:
                    break
                client.sendall(data)
        for end in (client, upstream):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self):
        self.listener.close()


class ReplyLost(Case):
    def test_lost_replies_make_one_job(self):
        """Red if the client mints its key per try instead of before the first one."""
        proxy = DroppingProxy(self.server.url, drop=2)
        self.addCleanup(proxy.close)
        out = self.server.ath("run", "-d", "--json", "--name", "once", "--", "true",
                              env={"ATHANOR_URL": proxy.url})
        self.assertEqual(out.returncode, 0, out.stderr + out.stdout)
        self.assertEqual(proxy.dropped, 2)
        jobs = [job for job in self.server.json("ps", "-a")["jobs"] if job["name"] == "once"]
        self.assertEqual([job["id"] for job in jobs], [json.loads(out.stdout)["id"]])


STEADY = """
    import athanor, os, sys, time
    # The test says when to go on, so that what is killed is killed in the middle.
    for i in range(300):
        print("line %06d of a log that must be complete" % i)
        if i % 50 == 0:
            print("error line", i, file=sys.stderr)
        athanor.log(loss=1.0 / (i + 1), step=i)
        if i in (100, 200):
            while not os.path.exists(sys.argv[1] + str(i)): time.sleep(0.01)
    print("the end")
"""


class KilledDuringARun(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def start(self):
        job = self.server.python(STEADY, os.path.join(self.server.root, "go"))
        self.server.until_log(job, "line 000100")
        return job

    def go(self, i):
        with open(os.path.join(self.server.root, "go%d" % i), "w"):
            pass

    def check(self, job):
        record = self.server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(len(record["attempts"]), 1, "no new attempt")
        out = self.server.ath("logs", job, "--json", check=0).stdout
        streams = {"stdout": "", "stderr": ""}
        for line in out.splitlines():
            event = json.loads(line)
            if event["event"] == "log":
                streams[event["stream"]] += event["text"]
        self.assertEqual(streams["stdout"], "".join(
            "line %06d of a log that must be complete\n" % i for i in range(300)) + "the end\n")
        self.assertEqual(streams["stderr"], "".join("error line %d\n" % i
                                                    for i in range(0, 300, 50)))
        self.assertEqual([(p["step"], p["value"]) for p in self.server.points(job, "loss")],
                         [(i, 1.0 / (i + 1)) for i in range(300)])

    def test_server(self):
        """Red if the agent ends with the server's connection, if acknowledged offsets are kept
        in memory only, or if a batch that was stored but not acknowledged is stored again."""
        job = self.start()
        (supervisor,) = self.server.supervisor_pids(job)
        self.server.kill()
        self.go(100)
        # The training goes on without a server: its raw output grows.
        until(lambda: self.raw_has("line 000200"), "the script printed on")
        self.assertTrue(harness.alive(supervisor))
        self.server.start()
        self.go(200)
        self.check(job)

    def raw_has(self, text):
        for folder, _, names in os.walk(self.server.attempts):
            for name in names:
                if "/logs" in folder:
                    with open(os.path.join(folder, name), "rb") as file:
                        if text.encode() in file.read():
                            return True
        return False

    def test_agent(self):
        """Red if the supervisor dies with the agent (PDEATHSIG), if nobody starts a new agent,
        or if the new one ships the log from its beginning without offsets."""
        job = self.start()
        (agent,) = self.server.agent_pids(job)
        (supervisor,) = self.server.supervisor_pids(job)
        harness.kill(agent)
        self.go(100)
        until(lambda: [pid for pid in self.server.agent_pids(job) if pid != agent],
              "a new agent")
        self.server.until_log(job, "line 000200")
        self.assertTrue(harness.alive(supervisor))
        self.assertEqual(self.server.supervisor_pids(job), [supervisor])
        self.go(200)
        self.check(job)

    def test_agent_keeps_what_is_installed(self):
        """Red if the name of the list of packages is known to the first agent only."""
        venv = os.path.join(self.server.root, "venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        (site,) = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages"))
        planted = os.path.join(site, "planted-1.2.dist-info")
        os.mkdir(planted)
        with open(os.path.join(planted, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\nName: planted\nVersion: 1.2\n")
        self.server.environment["VIRTUAL_ENV"] = venv
        self.server.environment["PATH"] = venv + "/bin:" + self.server.environment["PATH"]
        job = self.start()
        (agent,) = self.server.agent_pids(job)
        harness.kill(agent)
        until(lambda: [pid for pid in self.server.agent_pids(job) if pid != agent],
              "a new agent")
        self.go(100)
        self.go(200)
        self.check(job)
        blob = self.server.show(job)["packages"]
        self.assertIn(b"planted==1.2", self.server.http("GET", "/api/v1/blobs/" + blob).body)

    def test_server_and_agent_together(self):
        """Red if Adopt() at start-up treats an attempt without an agent as ended although its
        supervisor lives."""
        job = self.start()
        (agent,) = self.server.agent_pids(job)
        (supervisor,) = self.server.supervisor_pids(job)
        self.server.kill()
        harness.kill(agent)
        self.go(100)
        until(lambda: self.raw_has("line 000200"), "the script printed on")
        self.server.start()
        self.assertTrue(harness.alive(supervisor))
        self.go(200)
        self.check(job)

    def test_script_that_ends_while_server_and_agent_are_dead(self):
        """Red if the exit record is not durable, or only the agent's memory knows the exit."""
        job = self.start()
        (agent,) = self.server.agent_pids(job)
        (supervisor,) = self.server.supervisor_pids(job)
        self.server.kill()
        harness.kill(agent)
        self.go(100)
        self.go(200)
        until(lambda: self.raw_has("the end"), "the script ended")
        until(lambda: not harness.alive(supervisor), "the supervisor ended")
        self.server.start()
        self.check(job)

    def test_repeated_kills_of_both(self):
        """Red if one recovery works but leaves something (a lock, an offset, a claim) that makes
        the next one fail."""
        job = self.start()
        for i in range(3):
            until(lambda: self.server.agent_pids(job), "an agent")
            for pid in self.server.agent_pids(job):
                harness.kill(pid)
            self.server.kill()
            self.server.start()
        self.go(100)
        self.go(200)
        self.check(job)

    def test_stop_asked_before_the_kill_is_not_forgotten(self):
        """Red if a stop request lives in memory only."""
        job = self.server.python("""
            import signal, sys, time
            def stop(*_):
                print("told")
                sys.exit(0)
            signal.signal(signal.SIGTERM, stop)
            print("ready")
            while True: time.sleep(0.02)
        """)
        self.server.until_log(job, "ready")
        for pid in self.server.agent_pids(job):
            os.kill(pid, signal.SIGSTOP)
        self.server.ath("stop", job, check=0)
        agents = self.server.agent_pids(job)
        self.server.kill()
        for pid in agents:
            harness.kill(pid)
        self.server.start()
        record = self.server.wait(job)
        self.assertEqual((record["state"], record["cause"]["kind"]), ("Stopped", "user_stop"))
        self.assertIn(b"told", self.server.logs(job))


class QueueSurvives(unittest.TestCase):
    def test_queued_jobs_run_after_a_restart(self):
        """Red if the queue is rebuilt from memory and not from the store."""
        with Server() as server:
            holder = server.submit("sleep", "600", flags=["--cpus", os.cpu_count()])
            server.until_state(holder, "Running")
            jobs = [server.submit("echo", str(i)) for i in range(5)]
            server.kill()
            server.start()
            server.ath("stop", "--now", holder, check=0)
            for i, job in enumerate(jobs):
                self.assertEqual(server.wait(job)["state"], "Completed")
                self.assertEqual(server.logs(job), b"%d\n" % i)
                self.assertEqual(len(server.show(job)["attempts"]), 1)

    def test_room_held_by_a_running_job_is_still_held_after_a_restart(self):
        """Red if a restarted server forgets what adopted attempts hold and oversubscribes."""
        with Server() as server:
            holder = server.submit("sleep", "600", flags=["--cpus", os.cpu_count()])
            server.until_state(holder, "Running")
            server.kill()
            server.start()
            other = server.submit("true", flags=["--cpus", "1"])
            self.assertEqual(server.json("why", other)["cause"]["kind"], "waiting_cpus")
            server.ath("stop", "--now", holder, check=0)
            self.assertEqual(server.wait(other)["state"], "Completed")


if __name__ == "__main__":
    harness.main()
