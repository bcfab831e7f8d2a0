"""The examples run as their README says: a table of a real PostgreSQL read with a secret, and
secrets from each kind of source."""

import glob
import json
import os
import pwd
import re
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case

EXAMPLES = os.path.join(harness.TREE, "examples")


def postgres_programs():
    """The folder of initdb and postgres; Debian keeps them out of PATH."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    path = found[-1] if found else shutil.which("initdb")
    return os.path.dirname(path) if path else None


class Postgres:
    """A database server of its own: a temporary folder, a free port of loopback, passwords."""

    def __init__(self, programs):
        self.programs = programs
        self.root = tempfile.mkdtemp(prefix="ath-pg-")
        self.data = os.path.join(self.root, "data")
        self.password = "pg/" + secrets.token_hex(12)
        # The server refuses to run as root.
        self.user = None
        if os.geteuid() == 0:
            self.user = pwd.getpwnam("nobody")
            os.chown(self.root, self.user.pw_uid, self.user.pw_gid)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def run(self, program, *arguments, **more):
        as_user = {"user": self.user.pw_uid, "group": self.user.pw_gid,
                   "extra_groups": []} if self.user else {}
        done = subprocess.run([os.path.join(self.programs, program), *arguments], cwd=self.root,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **more}, **as_user)
        if done.returncode:
            raise AssertionError("%s: status %d\n%s" % (program, done.returncode, done.stdout))
        return done.stdout

    def start(self):
        words = os.path.join(self.root, "password")
        with open(words, "w") as file:
            file.write(self.password)
        if self.user:
            os.chown(words, self.user.pw_uid, self.user.pw_gid)
        self.run("initdb", "-D", self.data, "-U", "owner", "--auth=scram-sha-256",
                 "--pwfile", words, "--no-sync", "--encoding=UTF8")
        for _ in range(5):  # the port was free a moment ago
            with socket.create_server(("127.0.0.1", 0)) as probe:
                self.port = probe.getsockname()[1]
            try:
                self.run("pg_ctl", "-D", self.data, "-w", "-t", str(int(harness.PATIENCE)),
                         "-l", os.path.join(self.root, "log"), "-o",
                         "-F -h 127.0.0.1 -p %d -k %s" % (self.port, self.root), "start")
                return
            except AssertionError as error:
                last = error
        raise last

    def dsn(self, user="owner", password=None):
        quoted = (password or self.password).replace("/", "%2F")
        return "postgresql://%s:%s@127.0.0.1:%d/postgres" % (user, quoted, self.port)

    def psql(self, *arguments):
        subprocess.run(["psql", "--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1", *arguments],
                       env={"PATH": "/usr/bin:/bin", "PGHOST": "127.0.0.1", "PGUSER": "owner",
                            "PGPORT": str(self.port), "PGPASSWORD": self.password,
                            "PGDATABASE": "postgres"}, check=True, stdout=subprocess.DEVNULL)

    def close(self):
        if os.path.exists(os.path.join(self.data, "postmaster.pid")):
            self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.root, ignore_errors=True)


@unittest.skipUnless(postgres_programs() and shutil.which("psql"),
                     "PostgreSQL is not installed (Debian: postgresql)")
class Table(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.postgres = Postgres(postgres_programs())
        cls.addClassCleanup(cls.postgres.close)
        cls.folder = os.path.join(EXAMPLES, "postgres")
        cls.postgres.psql("-f", os.path.join(cls.folder, "make_table.sql"))
        # As the README advises: a role that can read and nothing else.
        cls.word = "read/" + secrets.token_hex(12)
        cls.postgres.psql("-c", "CREATE ROLE trainer LOGIN PASSWORD '%s'" % cls.word,
                          "-c", "GRANT SELECT ON points TO trainer")

    def give(self, password):
        dsn = self.postgres.dsn("trainer", password)
        self.server.ath("secret", "set", "POSTGRES_DSN", input=dsn, check=0)

    def train(self, path, status=0):
        out = self.server.ath("run", "-q", path, check=status)
        record = self.server.show("@last")
        said = out.stdout + out.stderr + json.dumps(record) + \
            self.server.ath("logs", record["id"], "--phase", "all").stdout
        for word in (self.word, self.word.replace("/", "%2F")):
            self.assertNotIn(word, said)
        return record, out

    def check_line(self, record, out):
        found = re.search(r"rows=(\d+) a=([\d.]+) b=([\d.]+)", out.stdout)
        self.assertEqual(found.group(1), "1000")
        self.assertAlmostEqual(float(found.group(2)), 3, delta=0.1)
        self.assertAlmostEqual(float(found.group(3)), 1, delta=0.3)
        self.assertEqual([metric["name"] for metric in record["metrics"]], ["mse"])
        self.server.ath("cp", record["id"] + ":model/line.json", self.server.work, check=0)
        with open(os.path.join(self.server.work, "line.json")) as file:
            self.assertEqual(set(json.load(file)), {"a", "b"})

    def test_through_psql(self):
        self.give(self.word)
        self.check_line(*self.train(os.path.join(self.folder, "job-psql.yaml")))

    def test_through_the_driver(self):
        """Debian's driver stands for the one that requirements.txt would install."""
        if subprocess.run(["/usr/bin/python3", "-c", "import psycopg2"],
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("psycopg2 is not installed (Debian: python3-psycopg2)")
        folder = os.path.join(self.server.work, "postgres")
        shutil.copytree(self.folder, folder)
        path = os.path.join(folder, "job.yaml")
        with open(path) as file:
            text = file.read()
        self.assertIn("requirements: requirements.txt", text)
        with open(path, "w") as file:
            file.write(text.replace(", requirements: requirements.txt", "")
                       .replace("run: python ", "run: /usr/bin/python3 "))
        self.give(self.word)
        self.check_line(*self.train(path))

    def test_a_wrong_password_is_the_scripts_failure(self):
        self.give("wrong-" + self.word)
        record, _ = self.train(os.path.join(self.folder, "job-psql.yaml"), status=1)
        self.assertEqual(record["state"], "Failed")


class Sources(Case):
    """examples/secrets, with the cloud's commands played by scripts of the same name."""

    VALUE = "a-value-of-27-bytes-in-all!"
    folder = os.path.join(EXAMPLES, "secrets")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs = os.path.join(cls.server.root, "bin")
        os.mkdir(programs)
        for name, arguments in {"vault": "kv get -field=token secret/training",
                                "aws": "secretsmanager get-secret-value --secret-id "
                                       "training/token --query SecretString --output text",
                                "gcloud": "secrets versions access latest "
                                          "--secret=training-token"}.items():
            path = os.path.join(programs, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n[ \"$*\" = '%s' ] && printf '%%s\\n' '%s'\n"
                           % (arguments, cls.VALUE))
            os.chmod(path, stat.S_IRWXU)
        # Where the server runs is where a secret is looked for.
        cls.server.kill()
        cls.server.environment["PATH"] = programs + ":" + cls.server.environment["PATH"]
        cls.server.environment["MY_TOKEN"] = cls.VALUE
        cls.server.start()

    def check_run(self, path, how):
        out = self.server.ath("run", "-q", path, check=0)
        self.assertEqual(out.stdout, "API_TOKEN: %d characters, as a %s\n"
                         % (len(self.VALUE), how))
        self.assertNotIn(self.VALUE, json.dumps(self.server.show("@last")))

    def test_store(self):
        self.server.ath("secret", "set", "API_TOKEN", input=self.VALUE, check=0)
        self.check_run(os.path.join(self.folder, "store.yaml"), "variable")

    def test_environment_and_commands(self):
        for name in ("environment", "vault", "aws", "gcp"):
            with self.subTest(name):
                self.check_run(os.path.join(self.folder, name + ".yaml"), "variable")

    def test_file(self):
        """The example's own path is the system's; the copy names one of the test's."""
        secret = os.path.join(self.server.root, "api_token")
        with open(secret, "w") as file:
            file.write(self.VALUE + "\n")
        shutil.copy(os.path.join(self.folder, "report.py"), self.server.work)
        with open(os.path.join(self.folder, "file.yaml")) as file:
            text = file.read()
        self.assertIn("file:/etc/athanor/api_token", text)
        path = os.path.join(self.server.work, "file.yaml")
        with open(path, "w") as file:
            file.write(text.replace("/etc/athanor/api_token", secret))
        self.check_run(path, "file")


if __name__ == "__main__":
    harness.main()
