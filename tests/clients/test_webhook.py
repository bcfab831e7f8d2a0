"""TLS on both sides: the CLI against a server with a certificate, and a rule that tells an address."""

import http.server
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server

NAN = """
    import athanor, time
    for step in range(20):
        athanor.log(loss=float("nan") if step == 7 else 1.0, step=step)
    time.sleep(%s)
"""


class Authority:
    """A certificate authority of our own, and a certificate for localhost and 127.0.0.1."""

    def __init__(self, folder):
        self.folder = folder
        self.ca, self.cert, self.key = (os.path.join(folder, name)
                                        for name in ("ca.pem", "cert.pem", "key.pem"))
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "2")
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                 "key.pem", "-out", "request.pem", "-subj", "/CN=test")
        with open(os.path.join(folder, "names"), "w") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self.run("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key",
                 "-CAcreateserial", "-out", "cert.pem", "-extfile", "names", "-days", "2")

    def run(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Hook:
    """An HTTPS server that keeps what it is sent and answers from a list of statuses."""

    def __init__(self, authority, statuses=()):
        self.seen = []
        self.statuses = list(statuses)
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.seen.append((self.path, json.loads(body)))
                status = hook.statuses.pop(0) if hook.statuses else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", hook.url("/elsewhere"))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.cert, authority.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def url(self, path="/hook?key=secret"):
        return "https://localhost:%d%s" % (self.server.server_address[1], path)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class TlsCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ath-tls-")
        cls.addClassCleanup(folder.cleanup)
        cls.authority = Authority(folder.name)

    def server(self, **more):
        server = self.enterContext(Server(start=False, **more))
        server.environment["SSL_CERT_FILE"] = self.authority.ca
        return server.start()


class Client(TlsCase):
    def test_the_cli_speaks_to_a_server_with_a_certificate(self):
        """Red if the certificate is not checked, or no token is needed over the network."""
        server = self.server(arguments=["--tls-cert", self.authority.cert,
                                        "--tls-key", self.authority.key])
        self.assertTrue(server.url.startswith("https://127.0.0.1:"), server.url)
        elsewhere = {"ATHANOR_URL": server.url}
        server.script("train.py", "print('over TLS')\n")
        out = server.ath("run", "--", "python3", "train.py", env=elsewhere, check=0)
        self.assertIn("over TLS", out.stdout)
        self.assertEqual(len(server.json("ps", env=elsewhere)["jobs"]), 1)
        # An authority that is not trusted.
        error = server.json("ps", env={**elsewhere, "SSL_CERT_FILE": "/dev/null"}, check=5)["error"]
        self.assertIn("certificate", error["why"])
        self.assertIn("SSL_CERT_FILE", error["hint"])


class Rules(TlsCase):
    def fire(self, server, url, pause="0"):
        server.script("nan.py", NAN % pause)
        server.script("job.yaml", """
            name: told
            run: python3 nan.py
            rules: [{name: bad, rule: nan, metric: loss, action: webhook, url: '%s'}]
        """ % url)
        job = json.loads(server.ath("run", "-d", "--json", "job.yaml", check=0).stdout)["id"]
        record = server.wait(job)
        events = [json.loads(line)
                  for line in server.ath("events", job, "--json", check=0).stdout.splitlines()]
        notes = [event["cause"] for event in events
                 if event.get("cause", {}).get("kind") == "webhook"]
        return record, notes

    def test_a_firing_is_told_once_and_again_when_the_answer_is_an_error(self):
        hook = Hook(self.authority, [503])
        self.addCleanup(hook.close)
        server = self.server(settings="webhooks: {allow_private: true}\n")
        record, notes = self.fire(server, hook.url())
        self.assertEqual((record["state"], notes), ("Completed", []))
        self.assertEqual([path for path, _ in hook.seen], ["/hook?key=secret"] * 2)
        body = hook.seen[-1][1]
        self.assertEqual((body["job"], body["rule"], body["kind"], body["metric"], body["step"]),
                         (record["id"], "bad", "nan", "loss", 7))
        self.assertIn("told: bad fired on loss at step 7", body["text"])

    def test_redirects_are_not_followed_and_the_failure_is_noted(self):
        hook = Hook(self.authority, [302])
        self.addCleanup(hook.close)
        server = self.server(settings="webhooks: {allow_private: true}\n")
        record, notes = self.fire(server, hook.url())
        self.assertEqual([path for path, _ in hook.seen], ["/hook?key=secret"])
        self.assertEqual((record["state"], len(notes)), ("Completed", 1))
        self.assertIn("302", notes[0]["text"])
        self.assertNotIn("secret", json.dumps(notes))

    def test_inside_addresses_are_refused_unless_allowed(self):
        """Red if the address is looked at by name only, or not at all."""
        hook = Hook(self.authority)
        self.addCleanup(hook.close)
        server = self.server()
        record, notes = self.fire(server, hook.url())
        self.assertEqual((record["state"], hook.seen, len(notes)), ("Completed", [], 1))
        self.assertIn("allow_private", notes[0]["hint"])

    def test_plain_http_is_refused_at_submit(self):
        server = self.server()
        server.script("job.yaml", """
            run: 'true'
            rules: [{rule: nan, metric: loss, action: webhook, url: 'http://example.org/x'}]
        """)
        self.assertIn("https://", server.json("run", "job.yaml", check=2)["error"]["what"])


if __name__ == "__main__":
    harness.main()
