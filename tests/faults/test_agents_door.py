"""The address for agents of other machines, with clients that know nothing of us: what is open there,
for whom, and what is not.

Each docstring names a planted bug that turns the test red.
"""

import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, Server, until

EMPTY = hashlib.sha256(b"").hexdigest()
CURL = shutil.which("curl")
OPENSSL = shutil.which("openssl")

# Writes what it was given to where the test can read it, and stays until the test is done.
SCRIPT = """
    import json, os, sys, time
    with open(sys.argv[1] + ".new", "w") as file:
        json.dump(dict(os.environ), file)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.05)
"""


def curl(server, target, *more, pin=None, method="GET"):
    """The status and the body; 0 if there was no answer, with what curl said."""
    pin = base64.b64encode(bytes.fromhex(pin or server.agents["pin"])).decode()
    ran = subprocess.run(
        [CURL, "-sS", "-k", "--pinnedpubkey", "sha256//" + pin, "-X", method, "--max-time", "60",
         "-w", "\n%{http_code}", *more, server.agents["url"] + target],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    body, _, status = ran.stdout.rpartition("\n")
    return int(status), body or ran.stderr


def bearer(token):
    return ("-H", "Authorization: Bearer " + token)


def signed(key, secret):
    return ("--aws-sigv4", "aws:amz:us-west-2:s3", "--user", key + ":" + secret,
            "-H", "x-amz-content-sha256: " + EMPTY)


@unittest.skipUnless(CURL and OPENSSL, "needs curl and openssl")
class TheDoor(Case):
    settings = 'agents: {listen: "127.0.0.1:0"}\n'

    def running(self):
        """A job that runs: its id, the environment of its script, its agent's token."""
        server = self.server
        note = os.path.join(server.work, "%s.env" % self.id())
        self.gone = os.path.join(server.work, "%s.over" % self.id())
        job = server.python(SCRIPT, note, self.gone)
        until(lambda: os.path.exists(note), "the script runs")
        with open(note) as file:
            environment = json.load(file)
        with open(os.path.join(server.attempt_dir(job), "plan.json")) as file:
            plan = json.load(file)
        self.addCleanup(lambda: open(self.gone, "w").close())
        return job, environment, plan["token"]

    def test_is_known_by_its_pin(self):
        """Planted bug: announce the pin of the certificate instead of its key's."""
        host = self.server.agents["url"].rpartition("/")[2]
        shown = subprocess.run([OPENSSL, "s_client", "-connect", host], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        public = subprocess.run([OPENSSL, "x509", "-noout", "-pubkey"], input=shown,
                                stdout=subprocess.PIPE, check=True).stdout
        der = subprocess.run([OPENSSL, "pkey", "-pubin", "-outform", "der"], input=public,
                             stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(hashlib.sha256(der).hexdigest(), self.server.agents["pin"])
        self.assertEqual(curl(self.server, "/healthz", pin="00" * 32)[0], 0)

    def test_old_and_plain_protocols_are_refused(self):
        """Planted bug: listen without TLS where only agents of this machine were tried."""
        host = self.server.agents["url"].rpartition("/")[2]
        old = subprocess.run([OPENSSL, "s_client", "-connect", host, "-tls1_1"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        self.assertNotEqual(old.returncode, 0, old.stdout)
        plain = subprocess.run([CURL, "-sS", "-o", "/dev/null", "-w", "%{http_code}",
                                "http://" + host + "/healthz"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(plain.stdout, "000", plain.stderr)

    def test_nobody_comes_in_without_a_credential(self):
        """Planted bug: trust this uid over loopback there as on the server's own port."""
        for method, target in (("GET", "/"), ("GET", "/healthz"), ("GET", "/ui/index.html"),
                               ("GET", "/api/v1/jobs"), ("POST", "/api/v1/tokens"),
                               ("GET", "/api/v1/session"), ("POST", "/api/v1/shutdown"),
                               ("GET", "/api/2.0/mlflow/experiments/search?max_results=1"),
                               ("POST", "/agent/v1/report"), ("GET", "/agent/v1/secrets"),
                               ("GET", "/bucket/key"), ("GET", "/no/such/thing")):
            with self.subTest(target=target):
                self.assertEqual(curl(self.server, target, method=method)[0], 401)
                cookie = ("-H", "Cookie: athanor_session=x", "-H", "Origin: https://evil.example")
                self.assertIn(curl(self.server, target, *cookie, method=method)[0], (401, 403))
        self.assertEqual(curl(self.server, "/", *bearer("nonsense"))[0], 401)
        self.assertEqual(curl(self.server, "/agent/v1/secrets", *bearer("nonsense"))[0], 403)

    def test_people_use_the_other_address(self):
        """Planted bug: accept whatever credential is a good one."""
        server = self.server
        token = server.json("token", "create", "--scope", "admin")["token"]
        for target in ("/api/v1/jobs", "/", "/healthz", "/agent/v1/secrets"):
            self.assertIn(curl(server, target, *bearer(token))[0], (401, 403), target)
        key = server.json("token", "create", "--aws", "--scope", "admin")
        status, body = curl(server, "/", *signed(key["access_key_id"], key["secret_access_key"]))
        self.assertEqual(status, 403, body)

    def test_what_a_job_may_do_it_may_do_until_it_ends(self):
        """Planted bug: check tokens only for whose they are, not whether the attempt lives."""
        server = self.server
        job, environment, token = self.running()
        self.assertEqual(curl(server, "/agent/v1/secrets", *bearer(token)), (200, "{}"))
        self.assertEqual(curl(server, "/api/v1/jobs", *bearer(token))[0], 401)
        run = environment["MLFLOW_TRACKING_TOKEN"]
        search = "/api/2.0/mlflow/experiments/search?max_results=1"
        status, body = curl(server, search, *bearer(run))
        self.assertEqual(status, 200, body)
        self.assertIn("experiments", json.loads(body))
        self.assertEqual(curl(server, search, "--user", "x:" + run)[0], 200)
        self.assertEqual(curl(server, "/api/v1/jobs", *bearer(run))[0], 401)
        keys = signed(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
        status, body = curl(server, "/fromafar", *keys, method="PUT")
        self.assertEqual(status, 200, body)
        status, body = curl(server, "/", *keys)
        self.assertEqual((status, "<Name>fromafar</Name>" in body), (200, True), body)
        wrong = signed(environment["AWS_ACCESS_KEY_ID"], "x" * 40)
        self.assertEqual(curl(server, "/", *wrong)[0], 403)
        open(self.gone, "w").close()
        self.ended(job)
        until(lambda: curl(server, "/agent/v1/secrets", *bearer(token))[0] == 410,
              "the attempt is over for its agent")
        self.assertEqual(curl(server, search, *bearer(run))[0], 401)
        self.assertIn(curl(server, "/", *keys)[0], (400, 403))

    def test_only_its_names_are_answered(self):
        """Planted bug: do not look at Host where only programs call."""
        _, _, token = self.running()
        ask = ("/agent/v1/secrets",) + bearer(token)
        self.assertEqual(curl(self.server, *ask, "-H", "Host: evil.example")[0], 403)
        own = self.server.url.rpartition("/")[2]
        self.assertEqual(curl(self.server, *ask, "-H", "Host: " + own)[0], 200)
        self.assertEqual(curl(self.server, *ask, "-H", "Origin: https://" + own)[0], 403)


@unittest.skipUnless(CURL, "needs curl")
class OverRestarts(unittest.TestCase):
    def test_address_and_key_stay(self):
        """Planted bugs: make a key, or choose a port, at each start."""
        with Server(settings='agents: {listen: "127.0.0.1:0"}\n') as server:
            before = server.agents
            server.kill()
            server.start()
            self.assertEqual(server.agents, before)
            self.assertEqual(curl(server, "/")[0], 401)
            server.kill()
            os.remove(os.path.join(server.home, "server", "agents.key"))
            server.start()
            self.assertEqual(server.agents["url"], before["url"])
            self.assertNotEqual(server.agents["pin"], before["pin"])
            self.assertEqual(curl(server, "/", pin=before["pin"])[0], 0)


class Asked(unittest.TestCase):
    def refused(self, settings):
        with Server(settings=settings, start=False) as server:
            ran = subprocess.run([harness.ATH, "serve", "--port", "0"], env=server.environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, timeout=harness.PATIENCE)
            self.assertNotEqual(ran.returncode, 0)
            self.assertNotIn("terminate", ran.stderr)
            return ran.stderr

    def test_nothing_listens_unless_it_is_asked_for(self):
        """Planted bug: make the key and listen at every start."""
        with Server() as server:
            self.assertIsNone(server.agents)
            self.assertFalse(os.path.exists(os.path.join(server.home, "server", "agents.key")))

    def test_all_addresses_are_no_address_to_call(self):
        """Planted bug: tell agents to call 0.0.0.0."""
        said = self.refused('agents: {listen: "0.0.0.0:0"}\n')
        self.assertIn("ATH-V0010", said)
        self.assertIn("agents.address", said)
        with Server(settings='agents: {listen: "0.0.0.0:0", address: localhost}\n') as server:
            self.assertTrue(server.agents["url"].startswith("https://localhost:"), server.agents)
            if CURL:
                self.assertEqual(curl(server, "/healthz")[0], 401)

    def test_a_port_in_use_is_said(self):
        """Planted bug: start without the address that running agents have."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            said = self.refused('agents: {listen: "127.0.0.1:%d"}\n' % port)
        self.assertIn("ATH-V0003", said)
        self.assertIn(str(port), said)
        self.assertIn("agents.listen", said)

    def test_an_address_of_another_machine_is_said(self):
        """Planted bug: go on without it."""
        said = self.refused('agents: {listen: "203.0.113.7:7071"}\n')
        self.assertIn("203.0.113.7", said)
        self.assertIn("agents.listen", said)


if __name__ == "__main__":
    harness.main()
