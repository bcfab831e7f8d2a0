"""What runs inside a job has the uid of the server's user and is not that user: it has the tokens of
its job, which end with the attempt and reach no other job's runs.

Each docstring names a planted bug that turns the test red.
"""

import http.client
import json
import os
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Server, until

# Asks for an admin token as the user would: without a credential. `how` is the way there.
ASK = '''
import array, http.client, json, os, socket, sys, time

BODY = json.dumps({"note": "taken", "scope": "admin"})

def head(length):
    return ("POST /api/v1/tokens HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Type: application/json\\r\\n"
            "Connection: close\\r\\nContent-Length: %d\\r\\n\\r\\n" % length).encode()

def answer(sock):
    reply = http.client.HTTPResponse(sock)
    reply.begin()
    text = reply.read().decode()
    return [reply.status, json.loads(text).get("error", {}).get("id")]

def tcp(url):
    host, port = url.split("//")[1].split(":")
    sock = socket.create_connection((host, int(port)))
    sock.sendall(head(len(BODY)) + BODY.encode())
    return answer(sock)

def unix(path):
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
    except OSError:
        return [401, "out of sight"]
    sock.sendall(head(len(BODY)) + BODY.encode())
    return answer(sock)

def in_flight(url):
    """While it is looked for, no process has the socket: it is on its way in a message."""
    host, port = url.split("//")[1].split(":")
    sock = socket.create_connection((host, int(port)))
    ends = socket.socketpair()
    number = array.array("i", [sock.fileno()])
    ends[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, number)])
    bytes_ = head(len(BODY)) + BODY.encode()
    sock.sendall(bytes_)
    sock.close()
    time.sleep(0.5)
    _, extra, _, _ = ends[1].recvmsg(1, 1024)
    back = socket.socket(fileno=array.array("i", extra[0][2])[0])
    return answer(back)

def orphan(url):
    """By a process whose parents are gone."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, json.dumps(tcp(url)).encode())
            os._exit(0)
        os._exit(0)
    os.wait()
    return json.loads(os.read(read, 1000).decode())
'''

LOOP = """
    import json, os, sys, time
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import ask
    root = sys.argv[1]
    def say(name, what):
        with open(os.path.join(root, name + ".tmp"), "w") as file: json.dump(what, file)
        os.rename(os.path.join(root, name + ".tmp"), os.path.join(root, name))
    say("env", {k: v for k, v in os.environ.items() if k.startswith(("MLFLOW", "AWS", "ATHANOR"))})
    while not os.path.exists(os.path.join(root, "stop")):
        for name in sorted(os.listdir(root)):
            if not name.endswith(".ask"): continue
            with open(os.path.join(root, name)) as file: how, to = json.load(file)
            os.remove(os.path.join(root, name))
            say(name[:-4] + ".answer", getattr(ask, how)(to))
        time.sleep(0.02)
"""

CREATE = ("POST", "/api/v1/tokens", json.dumps({"note": "mine", "scope": "read"}))


class Jobs(unittest.TestCase):
    """Jobs that ask when they are told to, by files in a folder of their own."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.server.script("ask.py", ASK)

    def start(self, name="a", flags=()):
        root = os.path.join(self.server.root, name)
        os.mkdir(root)
        job = self.server.python(LOOP, root, flags=flags)
        self.read(root, "env")
        return job, root

    def read(self, root, name):
        path = os.path.join(root, name)
        until(lambda: os.path.exists(path), name + " is there")
        with open(path) as file:
            return json.load(file)

    def ask(self, root, how, to=None):
        with open(os.path.join(root, "x.tmp"), "w") as file:
            json.dump([how, to or self.server.url], file)
        os.rename(os.path.join(root, "x.tmp"), os.path.join(root, "x.ask"))
        said = self.read(root, "x.answer")
        os.remove(os.path.join(root, "x.answer"))
        return said

    def outside(self, unix=False):
        return self.server.http(*CREATE, unix=unix).status


class Inside(Jobs):
    def test_tcp(self):
        """Red if every caller with the server's uid is trusted (Authorize without acts_for_uid)."""
        self.assertEqual(self.outside(), 201)
        _, root = self.start()
        self.assertEqual(self.ask(root, "tcp"), [401, "ATH-A0010"])
        self.assertEqual(self.outside(), 201)
        self.assertEqual(len(self.server.json("token", "ls")["tokens"]), 2)

    def test_unix_socket(self):
        """Red if a process that can reach the socket is trusted there."""
        _, root = self.start()
        self.assertEqual(self.ask(root, "unix", self.server.socket)[0], 401)
        self.assertEqual(self.outside(unix=True), 201)

    def test_a_socket_that_no_process_holds(self):
        """Red if only holders inside jobs are looked for, and the rest is trusted."""
        _, root = self.start()
        self.assertEqual(self.ask(root, "in_flight"), [401, "ATH-A0010"])

    def test_a_process_that_left_its_parents(self):
        """Red if a job is recognised by its session or by its direct children."""
        _, root = self.start()
        self.assertEqual(self.ask(root, "orphan"), [401, "ATH-A0010"])

    def test_at_once_after_a_restart(self):
        """Red if what is inside a job is known only once its attempt was taken up again."""
        _, root = self.start()
        self.server.kill()
        # The server answers the moment it is there, so the job asks while it is being started.
        self.server.start()
        self.assertEqual(self.ask(root, "tcp"), [401, "ATH-A0010"])
        self.assertEqual(self.ask(root, "unix", self.server.socket)[0], 401)
        self.assertEqual(self.outside(), 201)

    def test_exec_is_inside(self):
        """Red if what `ath exec` starts counts as its caller."""
        job, root = self.start()
        code = "import sys; sys.path.insert(0, '.'); import ask; print(ask.tcp(sys.argv[1]))"
        out = self.server.ath("exec", job, "--", "python3", "-c", code, self.server.url, check=0)
        self.assertIn("[401, 'ATH-A0010']", out.stdout)

    def test_ath_in_a_job_needs_a_token_that_it_was_given(self):
        """Red if `ath` in a job speaks for its user, or starts a server where the real one is out of
        sight; or if a token that the job was given does not do."""
        token = self.server.http(*CREATE).json()["token"]
        self.server.ath("secret", "set", "ATHANOR_TOKEN", input=token, check=0)
        job = self.server.python("""
            import os, subprocess, sys
            ath, home, url = sys.argv[1:]
            token = os.environ.pop("ATHANOR_TOKEN")
            for more in ({"ATHANOR_HOME": home}, {"ATHANOR_URL": url},
                         {"ATHANOR_URL": url, "ATHANOR_TOKEN": token}):
                done = subprocess.run([ath, "ps", "--json"], env=dict(os.environ, **more),
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                print(done.returncode, "ATH-A0010" in done.stdout)
        """, harness.ATH, self.server.home, self.server.url, flags=["-s", "ATHANOR_TOKEN"])
        self.server.wait(job)
        self.assertEqual(self.server.logs(job), b"6 True\n6 True\n0 False\n")

    def test_one_connection_is_judged_once_and_credentials_need_no_judging(self):
        """Red if a verdict is not kept with its connection, or a token is refused beside jobs."""
        self.start()
        token = self.server.http(*CREATE).json()["token"]
        host = urllib.parse.urlparse(self.server.url).netloc
        connection = http.client.HTTPConnection(host, timeout=harness.PATIENCE)
        for headers, status in (({}, 200), ({}, 200), ({"Authorization": "Bearer " + token}, 200),
                                ({"Authorization": "Bearer nonsense"}, 401), ({}, 200)):
            connection.request("GET", "/api/v1/jobs", headers=headers)
            reply = connection.getresponse()
            reply.read()
            self.assertEqual(reply.status, status, headers)
        connection.close()


class OwnToken(Jobs):
    """With the token of its environment."""

    def call(self, token, method, target, body=None):
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = "Bearer " + token
        return self.server.http(method, target, json.dumps(body) if body is not None else None,
                                headers=headers)

    def mlflow(self, token, call, body, method="POST"):
        return self.call(token, method, "/api/2.0/mlflow/" + call, body).status

    def two(self):
        """Two jobs: (run, token) of each."""
        found = []
        for name in ("a", "b"):
            job, root = self.start(name)
            env = self.read(root, "env")
            found.append((env["MLFLOW_RUN_ID"], env["MLFLOW_TRACKING_TOKEN"], job))
        return found

    def test_reaches_its_own_runs_only(self):
        """Red if a job's token is one of scope submit (CheckMayChange says yes to all)."""
        (mine, token, job), (other, _, _) = self.two()
        metric = {"key": "m", "value": 1, "timestamp": 1, "step": 1}
        odd = dict(metric, extra="goes to the general reader")
        made = self.call(token, "POST", "/api/2.0/mlflow/runs/create",
                         {"experiment_id": "0", "tags": [{"key": "athanor.job_id", "value": other}]})
        self.assertEqual(made.status, 200)
        child = made.json()["run"]["info"]["run_id"]
        foreign = self.call(None, "POST", "/api/2.0/mlflow/runs/create", {"experiment_id": "0"})
        foreign = foreign.json()["run"]["info"]["run_id"]
        for run, status in ((mine, 200), (child, 200), (other, 403), (foreign, 403)):
            for call, body in (("log-metric", metric), ("log-metric", odd),
                               ("log-batch", {"metrics": [metric]}),
                               ("log-batch", {"params": [{"key": "p", "value": "1"}]}),
                               ("set-tag", {"key": "t", "value": "v"}),
                               ("log-parameter", {"key": "q", "value": "1"}),
                               ("delete-tag", {"key": "t"}),
                               ("log-inputs", {"datasets": []}),
                               ("update", {"run_name": "renamed"})):
                self.assertEqual(self.mlflow(token, "runs/" + call, dict(body, run_id=run)), status,
                                 (call, run))
            place = self.call(None, "GET", "/api/2.0/mlflow/runs/get?run_id=" + run).json()
            place = place["run"]["info"]["artifact_uri"].partition(":/")[2]
            put = self.server.http("PUT", "/api/2.0/mlflow-artifacts/artifacts/%s/f.txt" % place,
                                   "text", headers={"Authorization": "Bearer " + token})
            self.assertEqual(put.status, status, run)
            model = self.mlflow(token, "logged-models", {"experiment_id": "0", "name": "m",
                                                         "source_run_id": run})
            self.assertEqual(model, status, run)
            # Everything may be read.
            self.assertEqual(self.mlflow(token, "runs/get?run_id=" + run, None, "GET"), 200)
        self.assertEqual(self.mlflow(token, "runs/delete", {"run_id": other}), 403)
        self.assertEqual(self.mlflow(token, "runs/delete", {"run_id": child}), 200)
        put = self.server.http("PUT", "/api/2.0/mlflow-artifacts/artifacts/0/elsewhere.txt", "text",
                               headers={"Authorization": "Bearer " + token})
        self.assertEqual(put.status, 403)
        self.assertEqual(self.mlflow(token, "experiments/create", {"name": "new"}), 200)
        for call in ("experiments/delete", "experiments/update"):
            self.assertEqual(self.mlflow(token, call, {"experiment_id": "0", "new_name": "x"}), 403)
        for method, target in (("GET", "/api/v1/jobs"), ("POST", "/api/v1/tokens"),
                               ("GET", "/api/v1/jobs/%s/logs" % job)):
            self.assertEqual(self.call(token, method, target, {} if method == "POST" else None).status,
                             401, target)

    def test_model_without_a_run_is_the_jobs(self):
        """Red if a job may not go on with a model that it made outside of a run."""
        (mine, token, _), (_, other, _) = self.two()
        made = self.call(token, "POST", "/api/2.0/mlflow/logged-models",
                         {"experiment_id": "0", "name": "alone"})
        self.assertEqual(made.status, 200)
        model = made.json()["model"]["info"]["model_id"]
        tags = {"tags": [{"key": "a", "value": "b"}]}
        target = "logged-models/%s/tags" % model
        self.assertEqual(self.mlflow(token, target, tags, "PATCH"), 200)
        self.assertEqual(self.mlflow(other, target, tags, "PATCH"), 403)

    def test_ends_with_its_attempt(self):
        """Red if a token is good as long as its job lives (JobOf for JobNowIn)."""
        job, root = self.start()
        first = self.read(root, "env")["MLFLOW_TRACKING_TOKEN"]
        search = ("runs/search", {"experiment_ids": ["0"]})
        self.assertEqual(self.mlflow(first, *search), 200)
        os.remove(os.path.join(root, "env"))
        self.server.ath("interrupt", job, check=0)
        second = self.read(root, "env")["MLFLOW_TRACKING_TOKEN"]
        self.assertNotEqual(first, second)
        self.assertEqual(self.mlflow(first, *search), 401)
        self.assertEqual(self.mlflow(second, *search), 200)
        self.server.ath("stop", "--now", job, check=0)
        self.server.wait(job)
        self.assertEqual(self.mlflow(second, *search), 401)

    def test_is_scrubbed_from_the_log(self):
        """Red if only secrets that a user named are looked for (OwnTokens left out)."""
        job = self.server.python("""
            import os
            print("token", os.environ["MLFLOW_TRACKING_TOKEN"])
            print("key", os.environ["AWS_SECRET_ACCESS_KEY"])
        """)
        self.server.wait(job)
        self.assertEqual(self.server.logs(job),
                         b"token ***MLFLOW_TRACKING_TOKEN***\nkey ***AWS_SECRET_ACCESS_KEY***\n")


if __name__ == "__main__":
    harness.main()
