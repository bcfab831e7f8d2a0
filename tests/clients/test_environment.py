"""requirements.txt through the real pip: wheels made here, an index served here, no network."""

import base64
import hashlib
import http.server
import json
import os
import sys
import tempfile
import threading
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, Server

BUILDING = "comes with the next commit"


def make_wheel(folder, name, version, text):
    """A pure wheel, byte for byte the same each time."""
    file = os.path.join(folder, "%s-%s-py3-none-any.whl" % (name, version))
    info = "%s-%s.dist-info" % (name, version)
    members = {"%s.py" % name: text,
               info + "/METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version),
               info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
                                "Tag: py3-none-any\n"}
    record = "".join("%s,sha256=%s,%d\n" % (
        path, base64.urlsafe_b64encode(hashlib.sha256(body.encode()).digest()).rstrip(b"=").decode(),
        len(body)) for path, body in members.items()) + info + "/RECORD,,\n"
    with zipfile.ZipFile(file, "w") as archive:
        for path, body in dict(members, **{info + "/RECORD": record}).items():
            archive.writestr(zipfile.ZipInfo(path, (2024, 1, 1, 0, 0, 0)), body)
    return file


class Index:
    """A package index (the simple API) that wants a password and counts downloads."""

    def __init__(self, folder, token):
        self.downloads = []
        self.refused = 0
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                given = self.headers.get("Authorization", "")
                if token and token.encode() not in base64.b64decode(given.partition(" ")[2] or ""):
                    index.refused += 1
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="index"')
                    self.end_headers()
                    return
                parts = [p for p in self.path.split("/") if p]
                names = sorted(os.listdir(folder))
                if parts[:1] == ["simple"] and len(parts) == 2:
                    found = [n for n in names if n.startswith(parts[1].replace("-", "_") + "-")]
                    body = "".join('<a href="/files/%s">%s</a>' % (n, n) for n in found).encode()
                    self.answer(200 if found else 404, "text/html", body)
                elif parts[:1] == ["files"] and parts[1] in names:
                    index.downloads.append(parts[1])
                    with open(os.path.join(folder, parts[1]), "rb") as file:
                        self.answer(200, "application/zip", file.read())
                else:
                    self.answer(404, "text/plain", b"")

            def answer(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/simple" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Environment(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.server.root)

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def run_here(self, *arguments, **more):
        out = self.server.ath("run", "-d", "--json", *arguments, cwd=self.folder, **more)
        self.assertEqual(out.returncode, 0, out.stdout)
        job = json.loads(out.stdout)["id"]
        record = self.server.wait(job)
        if BUILDING in json.dumps(record.get("cause")):
            self.skipTest("the environment builder is not there yet")
        return job, record

    def test_wheel_of_the_source_is_installed_and_cached(self):
        make_wheel(self.folder, "tiny_one", "1.0", "WORD = 'installed'\n")
        self.put("requirements.txt", "./tiny_one-1.0-py3-none-any.whl\n")
        self.put("t.py", "import tiny_one; print(tiny_one.WORD)")
        job, record = self.run_here("--requirements", "requirements.txt", "--", "python", "t.py")
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(self.server.logs(job), b"installed\n")
        setup = self.server.logs(job, "--phase", "setup")
        self.assertIn(b"tiny_one", setup.replace(b"-", b"_"))
        again, record = self.run_here("--requirements", "requirements.txt", "--", "python", "t.py")
        self.assertEqual(self.server.logs(again), b"installed\n")
        self.assertNotIn(b"Installing collected", self.server.logs(again, "--phase", "setup"))

    def test_ten_at_once_build_once(self):
        wheels = tempfile.mkdtemp(dir=self.server.root)
        make_wheel(wheels, "tiny_ten", "1.0", "")
        index = Index(wheels, None)
        self.addCleanup(index.close)
        self.put("requirements.txt", "tiny_ten==1.0\n")
        self.put("t.py", "import tiny_ten; print('ok')")
        self.put("job.yaml", "run: python t.py\nresources: {cpus: 0.1}\nenvironment:\n"
                             "  requirements: requirements.txt\n  index: {url: '%s'}\n" % index.url)
        jobs = []
        for _ in range(10):
            out = self.server.ath("run", "-d", "--json", "job.yaml", cwd=self.folder, check=0)
            jobs.append(json.loads(out.stdout)["id"])
        records = [self.server.wait(job) for job in jobs]
        if BUILDING in json.dumps(records[0].get("cause")):
            self.skipTest("the environment builder is not there yet")
        self.assertEqual([r["state"] for r in records], ["Completed"] * 10, records[0]["cause"])
        self.assertEqual(index.downloads, ["tiny_ten-1.0-py3-none-any.whl"])

    def test_private_index_with_its_token_nowhere(self):
        wheels = tempfile.mkdtemp(dir=self.server.root)
        make_wheel(wheels, "tiny_private", "2.0", "")
        token = "index-token-Zq81"
        index = Index(wheels, token)
        self.addCleanup(index.close)
        self.server.ath("secret", "set", "INDEX_TOKEN", input=token, check=0)
        self.put("requirements.txt", "tiny_private\n")
        self.put("t.py", "import tiny_private, os; print('ok', 'INDEX_TOKEN' in os.environ)")
        self.put("job.yaml", "run: python t.py\nenvironment:\n  requirements: requirements.txt\n"
                             "  index: {url: '%s', auth: 'secret:INDEX_TOKEN'}\n" % index.url)
        job, record = self.run_here("job.yaml")
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(self.server.logs(job), b"ok False\n")
        self.assertEqual(index.downloads, ["tiny_private-2.0-py3-none-any.whl"])
        for folder, _, names in os.walk(self.server.home):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as file:
                        self.assertNotIn(token.encode(), file.read(), path)

    def test_wrong_token_is_named_as_the_reason(self):
        wheels = tempfile.mkdtemp(dir=self.server.root)
        make_wheel(wheels, "tiny_locked", "1.0", "")
        index = Index(wheels, "the-right-token")
        self.addCleanup(index.close)
        self.server.ath("secret", "set", "BAD_TOKEN", input="the-wrong-one", check=0)
        self.put("requirements.txt", "tiny_locked\n")
        self.put("job.yaml", "run: python -c pass\nenvironment:\n  requirements: requirements.txt\n"
                             "  index: {url: '%s', auth: 'secret:BAD_TOKEN'}\n" % index.url)
        job, record = self.run_here("job.yaml")
        self.assertEqual((record["state"], record["cause"]["kind"]), ("Failed", "install_failed"))
        self.assertNotIn("the-wrong-one", json.dumps(record))

    def test_system_packages_on_request(self):
        self.put("t.py", "import sys; print(any('dist-packages' in p for p in sys.path))")
        make_wheel(self.folder, "tiny_base", "1.0", "")
        self.put("requirements.txt", "./tiny_base-1.0-py3-none-any.whl\n")
        for base, wanted in (("system", b"True\n"), (None, b"False\n")):
            self.put("job.yaml", "run: python t.py\nenvironment:\n  requirements: requirements.txt\n"
                     + ("  base: system\n" if base else ""))
            job, record = self.run_here("job.yaml")
            self.assertEqual(record["state"], "Completed", record["cause"])
            self.assertEqual(self.server.logs(job), wanted)

    def test_failed_install_names_the_requirement(self):
        wheels = tempfile.mkdtemp(dir=self.server.root)
        index = Index(wheels, None)
        self.addCleanup(index.close)
        self.put("requirements.txt", "surely-not-there==9.9\n")
        self.put("job.yaml", "run: python -c pass\nenvironment:\n  requirements: requirements.txt\n"
                             "  index: {url: '%s'}\n" % index.url)
        job, record = self.run_here("job.yaml")
        self.assertEqual(record["cause"]["kind"], "install_failed")
        self.assertIn("surely-not-there==9.9", record["cause"]["text"])
        self.assertEqual(self.server.ath("wait", job).returncode, 20)
        self.assertEqual(self.server.logs(job), b"")

    def test_what_cannot_be_had_is_refused_clearly(self):
        for text, word in (("environment: {apt: [libgl1]}", "container"),
                           ("environment: {image: 'x:y'}", "processes of this machine"),
                           ("env: {CA_REPOSITORY_ARN: 'arn:aws:x'}", "CA_REPOSITORY_ARN")):
            self.put("job.yaml", "run: 'true'\n%s\n" % text)
            out = self.server.ath("run", "job.yaml", cwd=self.folder)
            self.assertNotEqual(out.returncode, 0, text)
            self.assertIn(word, out.stderr)
            self.assertIn("next:", out.stderr)


if __name__ == "__main__":
    harness.main()
