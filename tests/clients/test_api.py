"""The native API over HTTP: who may, what it answers, and that its streams can be resumed."""

import contextlib
import glob
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import ATH, TREE, Case, Server, until

ROUTE = re.compile(r'\{"(GET|POST|PUT|DELETE|PATCH)",\s*"(/[^"]*)",\s*"([a-z_.]+)"', re.S)
# MLflow's calls are in its table once and are served at two paths.
DOORS = (("/api", "mlflow."), ("/ajax-api", "ajax.mlflow."))
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
FILES = "/2.0/mlflow-artifacts/artifacts"


def sources():
    for path in sorted(glob.glob(os.path.join(TREE, "src", "door", "**", "*.cc"),
                                 recursive=True)):
        if not path.endswith(("_test.cc", "_fuzz.cc")):
            with open(path) as file:
                yield path, file.read()


def routes():
    """(method, pattern, name) of every route, from the doors themselves."""
    found = []
    for _, text in sources():
        for method, pattern, name in ROUTE.findall(text):
            if pattern.startswith("/2.0/mlflow"):
                found += [(method, base + pattern, door + name) for base, door in DOORS]
            else:
                found.append((method, pattern, name))
    for base, door in DOORS:
        found += [(method, base + FILES + rest, door + "artifacts." + name)
                  for method, rest, name in (("PUT", "/{path...}", "put"), ("GET", "/{path...}", "get"),
                                             ("DELETE", "/{path...}", "delete"), ("GET", "", "folder"))]
        found += [("GET", base + "/2.0/mlflow/logged-models/{id}/artifacts/" + rest, door + name)
                  for rest, name in (("directories", "logged.artifacts"), ("files", "logged.artifact"))]
        found.append(("GET", base + "/3.0/mlflow/server-info", door + "server_info"))
        found += [(method, base + "/{version}/mlflow/{call...}", door + "unknown." + method.lower())
                  for method in METHODS]
    return found


def needs():
    """What each route needs, by name."""
    rows = {}
    for path, text in sources():
        rows.update(re.findall(r'\{"([a-z_.]+)", Access::k(\w+)\}', text))
        for name, need in (re.findall(r'"/2\.0/[^"]*",\s*"([a-z_.]+)",\s*Access::k(\w+)', text) +
                           re.findall(r'door \+ "([a-z.]+)", Access::k(\w+)', text)):
            rows.update((door + name, need) for _, door in DOORS)
    for _, door in DOORS:
        rows.update((door + "unknown." + method.lower(), "Read") for method in METHODS)
    return rows


def filled(pattern, job="01jzzzzzzzzzzzzzzzzzzzzzzz"):
    values = {"job": job, "sha256": "0" * 64, "name": "x", "id": "x", "name...": "x"}
    return re.sub(r"\{([^}]+)\}", lambda m: values.get(m.group(1), "x"), pattern)


class Stream:
    """Reads server-sent events."""

    def __init__(self, server, target, last_id=None, timeout=60):
        host, _, port = server.url.rpartition("//")[2].rpartition(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
        headers = {"Last-Event-ID": last_id} if last_id else {}
        self.connection.request("GET", target, headers=headers)
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, self.reply.read()

    def __iter__(self):
        event = {}
        while line := self.reply.readline():
            line = line.decode().rstrip("\n").rstrip("\r")
            if not line:
                if event:
                    yield event
                event = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                event[name] = event[name] + "\n" + value if name in event else value
        if event:
            yield event

    def close(self):
        # A response that is still being read holds the socket open on its own.
        with contextlib.suppress(OSError, AttributeError):
            self.reply.fp.raw._sock.shutdown(socket.SHUT_RDWR)
        self.reply.close()
        self.connection.close()


class Table(unittest.TestCase):
    def test_every_route_has_a_permission_and_no_permission_is_left_over(self):
        names = {name for _, _, name in routes()}
        self.assertGreater(len(names), 150)
        self.assertEqual(names, set(needs()))


class Health(Case):
    def test_healthz(self):
        reply = self.server.http("GET", "/healthz")
        self.assertEqual((reply.status, reply.json()), (200, {"status": "ok"}))

    def test_metrics_are_prometheus_text(self):
        self.ended(self.server.submit("true"))
        reply = self.server.http("GET", "/metrics")
        self.assertEqual(reply.status, 200)
        self.assertIn("text/plain; version=0.0.4", reply.headers["Content-Type"])
        typed, values = set(), {}
        for line in reply.body.decode().splitlines():
            if line.startswith("# TYPE "):
                typed.add(line.split()[2])
                self.assertIn(line.split()[3], ("gauge", "counter", "histogram", "summary"))
            elif not line.startswith("#") and line:
                found = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-z_]+="[^"]*",?)*\})? (\S+)',
                                     line)
                self.assertTrue(found, line)
                self.assertIn(re.sub(r"_(bucket|sum|count)$", "", found.group(1)), typed | {
                    found.group(1)} & typed)
                values[found.group(1) + (found.group(2) or "")] = float(found.group(4))
        self.assertEqual(values['athanor_jobs{state="Completed"}'], 1)

    def test_unknown_paths_and_methods(self):
        reply = self.server.http("GET", "/api/v1/nothing")
        self.assertEqual(reply.status, 404)
        self.assertEqual(reply.json()["error"]["id"], "ATH-R0016")
        reply = self.server.http("PATCH", "/api/v1/jobs")
        self.assertEqual((reply.status, reply.json()["error"]["id"]), (405, "ATH-R0017"))
        reply = self.server.http("GET", "/api/v1/%zz")
        self.assertEqual((reply.status, reply.json()["error"]["id"]), (400, "ATH-R0018"))

    def test_errors_are_json_and_never_sniffed(self):
        for target in ("/api/v1/jobs/<script>alert(1)</script>", "/api/v1/nothing",
                       "/api/v1/jobs/x/outputs/<b>"):
            reply = self.server.http("GET", target)
            self.assertGreaterEqual(reply.status, 400)
            self.assertIn("application/json", reply.headers["Content-Type"])
            self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")

    def test_curl_speaks_to_it(self):
        out = subprocess.run(["curl", "-sS", "--fail", "--unix-socket", self.server.socket,
                              "http://localhost/api/v1/server"], stdout=subprocess.PIPE, check=True)
        self.assertEqual(json.loads(out.stdout)["home"], self.server.home)


class OpenApi(Case):
    def document(self):
        document = self.server.http("GET", "/api/v1/openapi.json").json()
        if not document["paths"]:
            self.skipTest("the OpenAPI document describes no path yet")
        return document

    def resolve(self, document, schema):
        while "$ref" in schema:
            node = document
            for part in schema["$ref"].lstrip("#/").split("/"):
                node = node[part]
            schema = node
        return schema

    def check(self, document, schema, value, where):
        """The part of JSON schema that OpenAPI 3.0 documents use."""
        schema = self.resolve(document, schema)
        if value is None:
            self.assertTrue(schema.get("nullable"), where + " is null")
            return
        for part in schema.get("allOf", ()):
            self.check(document, part, value, where)
        options = schema.get("oneOf") or schema.get("anyOf")
        if options:
            wrong = []
            for option in options:
                try:
                    self.check(document, option, value, where)
                    break
                except AssertionError as error:
                    wrong.append(str(error))
            else:
                self.fail("%s fits none: %s" % (where, wrong))
        kinds = {"object": dict, "array": list, "string": str, "boolean": bool,
                 "integer": int, "number": (int, float)}
        kind = schema.get("type")
        if kind:
            self.assertIsInstance(value, kinds[kind], "%s is no %s" % (where, kind))
            if kind in ("integer", "number"):
                self.assertNotIsInstance(value, bool, where)
        if "enum" in schema:
            self.assertIn(value, schema["enum"], where)
        if "pattern" in schema:
            self.assertRegex(value, schema["pattern"], where)
        if isinstance(value, dict):
            for name in schema.get("required", ()):
                self.assertIn(name, value, where)
            known = schema.get("properties", {})
            extra = schema.get("additionalProperties", True)
            for name, item in value.items():
                if name in known:
                    self.check(document, known[name], item, "%s.%s" % (where, name))
                elif extra is False:
                    self.fail("%s.%s is not in the document" % (where, name))
                elif isinstance(extra, dict):
                    self.check(document, extra, item, "%s.%s" % (where, name))
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                self.check(document, schema["items"], item, "%s[%d]" % (where, i))

    def test_every_route_is_described(self):
        document = self.document()
        described = {(method.upper(), re.sub(r"\{[^}]*\}", "{}", path))
                     for path, methods in document["paths"].items() for method in methods
                     if method in ("get", "post", "put", "delete", "patch")}
        for method, pattern, name in routes():
            if not name.startswith("agent.") and "mlflow." not in name:
                self.assertIn((method, re.sub(r"\{[^}]*\}", "{}", pattern)), described, name)

    def test_live_replies_are_as_described(self):
        document = self.document()
        job = self.server.python("""
            import athanor, os
            for i in range(3): athanor.log(loss=float(i), step=i)
            open(os.environ["SM_MODEL_DIR"] + "/m", "w").write("x")
            print("x")
        """)
        self.ended(job)
        self.server.ath("secret", "set", "CANARY", input="value-of-it", check=0)
        token = self.server.http("POST", "/api/v1/tokens", {"scope": "read"},
                                 {"Content-Type": "application/json"}).json()
        aws = dict(os.environ, **self.server.json("env", "aws"))
        for command in (["mb", "s3://here"], ["cp", "--quiet", os.path.abspath(__file__), "s3://here/x"]):
            subprocess.run(["aws", "s3", *command], env=aws, check=True, stdout=subprocess.DEVNULL)
        seen = 0
        for path, methods in sorted(document["paths"].items()):
            operation = methods.get("get")
            if not operation:
                continue
            target = path.replace("{job}", job).replace("{id}", token["id"])
            target = re.sub(r"\{name(\.\.\.)?\}", "model.tar.gz" if "outputs" in path else "loss",
                            target)
            if "{" in target or path.endswith(("/stream", "/exec", "/live")):
                continue
            if path == "/api/v1/diff":
                target += "?jobs=%s&jobs=%s" % (job, job)
            if path.startswith("/api/v1/object"):
                target += "?uri=s3://here/x"
            target += {"/api/v1/importance": "?metric=loss",
                       "/api/v1/jobs/{job}/log/search": "?q=x"}.get(path, "")
            if path == "/api/v1/events":
                target += "?after=0&follow=false"
            reply = self.server.http("GET", target)
            described = operation["responses"].get(str(reply.status))
            self.assertIsNotNone(described, "%s answered %d" % (target, reply.status))
            self.assertEqual(reply.status, 200, target)
            content = self.resolve(document, described).get("content", {})
            kind = reply.headers["Content-Type"].split(";")[0]
            self.assertIn(kind, content, target)
            if kind == "application/json":
                self.check(document, content[kind]["schema"], reply.json(), target)
                seen += 1
        self.assertGreater(seen, 5)
        missing = self.server.http("GET", "/api/v1/jobs/none")
        described = self.resolve(document, document["paths"]["/api/v1/jobs/{job}"]["get"][
            "responses"].get("404") or document["paths"]["/api/v1/jobs/{job}"]["get"][
                "responses"]["default"])
        self.check(document, described["content"]["application/json"]["schema"], missing.json(),
                   "404")


ASK = """
import http.client, json, sys
host, port, calls = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
out = []
for method, target, headers in calls:
    c = http.client.HTTPConnection(host, port, timeout=30)
    c.request(method, target, body=b"{}" if method in ("POST", "PUT") else None, headers=headers)
    r = c.getresponse()
    out.append(r.status)
    c.close()
print(json.dumps(out))
"""


class WhoMay(Case):
    PUBLIC = {name for name, need in needs().items() if need == "Public"}

    def token(self, scope, **more):
        reply = self.server.http("POST", "/api/v1/tokens", dict({"scope": scope}, **more))
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json()

    def as_nobody(self, calls):
        """The statuses that another Unix user gets."""
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        out = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                              "/usr/bin/python3", "-c", ASK, host, port],
                             input=json.dumps(calls), stdout=subprocess.PIPE, text=True,
                             cwd="/", check=True, timeout=120)
        return json.loads(out.stdout)

    @harness.needs_root("to ask as another user")
    def test_every_route_refuses_another_user_without_a_credential(self):
        every = [(method, pattern, name) for method, pattern, name in routes()
                 if name not in self.PUBLIC]
        statuses = self.as_nobody([[m, filled(p), {}] for m, p, _ in every])
        for (method, pattern, name), status in zip(every, statuses):
            self.assertIn(status, (401, 403), "%s %s (%s)" % (method, pattern, name))

    @harness.needs_root("to ask as another user")
    def test_another_user_with_a_token_gets_its_scope(self):
        token = self.token("read")["token"]
        bearer = {"Authorization": "Bearer " + token}
        self.assertEqual(self.as_nobody([["GET", "/api/v1/jobs", bearer],
                                         ["GET", "/api/v1/jobs", {}],
                                         ["POST", "/api/v1/jobs", bearer],
                                         ["POST", "/api/v1/server/stop", bearer]]),
                         [200, 401, 403, 403])

    def test_socket_is_for_its_owner_only(self):
        self.assertEqual(os.stat(self.server.socket).st_mode & 0o777, 0o600)

    def test_wrong_credential_is_refused_even_for_the_owner(self):
        for value in ("Bearer wrong", "Bearer ", "Bearer ath_" + "0" * 40, "Basic cm9vdDo=",
                      "Negotiate x"):
            reply = self.server.http("GET", "/api/v1/jobs", headers={"Authorization": value})
            self.assertEqual(reply.status, 401, value)
            reply = self.server.http("GET", "/api/v1/jobs", headers={"Authorization": value},
                                     unix=True)
            self.assertEqual(reply.status, 401, value)

    def test_scope_by_route(self):
        """Each route with a token of each scope: enough, or 403 before anything is looked at."""
        need = needs()
        order = ["Public", "Read", "Submit", "Admin"]
        for scope in ("read", "submit", "admin"):
            bearer = {"Authorization": "Bearer " + self.token(scope)["token"],
                      "Content-Type": "application/json"}
            for method, pattern, name in routes():
                if name in ("server.stop",) and scope == "admin":
                    continue
                if name == "page.enter":
                    continue  # a link that was never made is refused, whoever asks
                if name.endswith("stream"):
                    continue  # would go on for ever; its refusal is tested above
                reply = self.server.http(method, filled(pattern), "{}" if method != "GET" else
                                         None, bearer)
                # An agent's route takes its own kind of token only.
                enough = (need[name] in order and
                          order.index(need[name]) <= order.index(scope.capitalize()))
                if enough:
                    self.assertNotIn(reply.status, (401, 403), (scope, name))
                else:
                    self.assertIn(reply.status, (401, 403), (scope, name))

    def test_revoked_and_expired_tokens(self):
        made = self.token("read")
        bearer = {"Authorization": "Bearer " + made["token"]}
        self.assertEqual(self.server.http("GET", "/api/v1/jobs", headers=bearer).status, 200)
        self.assertEqual(self.server.http("DELETE", "/api/v1/tokens/" + made["id"]).status, 200)
        self.assertEqual(self.server.http("GET", "/api/v1/jobs", headers=bearer).status, 401)
        short = self.token("read", expires_in="1ms")
        bearer = {"Authorization": "Bearer " + short["token"]}
        until(lambda: self.server.http("GET", "/api/v1/jobs", headers=bearer).status == 401,
              "the token expired")

    def test_tokens_are_stored_hashed(self):
        made = self.token("submit")
        secret = made["token"].rpartition("_")[2]
        for folder, _, names in os.walk(self.server.home):
            for name in names:
                with contextlib.suppress(OSError):
                    with open(os.path.join(folder, name), "rb") as file:
                        self.assertNotIn(secret.encode(), file.read(), name)

    def test_host_header_of_another_name_is_refused(self):
        port = self.server.url.rpartition(":")[2]
        for host in ("evil.example", "evil.example:" + port, "127.0.0.1.evil.example:" + port,
                     "localhost.evil.example", "169.254.169.254"):
            for target in ("/api/v1/jobs", "/healthz", "/metrics"):
                reply = self.server.http("GET", target, headers={"Host": host})
                self.assertEqual(reply.status, 403, (host, target))
        for host in ("localhost:" + port, "127.0.0.1:" + port):
            self.assertEqual(self.server.http("GET", "/api/v1/jobs",
                                              headers={"Host": host}).status, 200)

    def test_foreign_origin_is_refused(self):
        port = self.server.url.rpartition(":")[2]
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1",
                       "https://127.0.0.1:" + port, "http://localhost.evil:" + port):
            for method, target in (("GET", "/api/v1/jobs"), ("POST", "/api/v1/jobs")):
                reply = self.server.http(method, target, "{}" if method == "POST" else None,
                                         {"Origin": origin, "Host": "127.0.0.1:" + port})
                self.assertEqual(reply.status, 403, origin)

    def test_a_page_needs_the_csrf_token_to_change_anything(self):
        port = self.server.url.rpartition(":")[2]
        own = {"Host": "127.0.0.1:" + port, "Origin": "http://127.0.0.1:" + port}
        csrf = self.server.http("GET", "/api/v1/session", headers=own).json()["csrf"]
        for browser in (own, {"Sec-Fetch-Site": "same-origin"}, {"Cookie": "a=b"},
                        {"Referer": "http://127.0.0.1:%s/" % port}):
            for method, pattern, name in routes():
                if method == "GET" or name.startswith("agent."):
                    continue
                reply = self.server.http(method, filled(pattern), "{}", browser)
                self.assertEqual(reply.status, 403, (browser, name))
        reply = self.server.http("POST", "/api/v1/jobs/none/stop", "{}",
                                 dict(own, **{"X-Athanor-Csrf": csrf}))
        self.assertEqual(reply.status, 404)
        reply = self.server.http("POST", "/api/v1/jobs/none/stop", "{}",
                                 dict(own, **{"X-Athanor-Csrf": "0" * len(csrf)}))
        self.assertEqual(reply.status, 403)

    def test_agents_door_takes_no_user_and_no_other_attempt(self):
        for method, pattern, name in routes():
            if not name.startswith("agent."):
                continue
            for token in (self.token("admin")["token"], "athjob_x_y",
                          "athjob_01jzzzzzzzzzzzzzzzzzzzzzzz_" + "0" * 64):
                reply = self.server.http(method, filled(pattern), b"" if method != "GET" else
                                         None, {"Authorization": "Bearer " + token})
                self.assertIn(reply.status, (401, 403), (name, token))

    def test_other_address_needs_tls(self):
        with Server(start=False) as server:
            out = server.ath("serve", "--address", "0.0.0.0", "--port", "0")
            self.assertEqual(out.returncode, 2)
            self.assertIn("TLS", out.stderr)


TRAVERSAL = ["../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd",
             "..%252f..%252fetc%252fpasswd", "....//....//etc/passwd", "/etc/passwd",
             "%2fetc%2fpasswd", "..\\..\\etc\\passwd", "..%5c..%5cetc%5cpasswd",
             "%c0%ae%c0%ae/etc/passwd", "x;/../../etc/passwd", "x%00/../etc/passwd", "%00",
             "model.tar.gz/../../../etc/passwd", ".", "..", "%2e%2e", "~root", "file:///etc/passwd",
             "x?/../../etc/passwd", "x%0d%0aSet-Cookie:a=b", "a" * 5000, ";$(id)", "`id`", "|id"]


class Traversal(Case):
    def test_no_path_gets_out(self):
        job = self.server.submit("true")
        self.ended(job)
        patterns = [(m, p, n) for m, p, n in routes()
                    if "{" in p and not n.startswith("agent.")]
        self.assertGreater(len(patterns), 8)
        for method, pattern, name in patterns:
            holes = re.findall(r"\{[^}]+\}", pattern)
            for hole in holes:
                for evil in TRAVERSAL:
                    target = re.sub(r"\{job\}", job, pattern.replace(hole, evil))
                    target = filled(target, job)
                    try:
                        reply = self.server.http(method, target, "{}" if method != "GET" else None)
                    except (http.client.HTTPException, ValueError, UnicodeError):
                        # The client itself will not send it; say it by hand.
                        reply = self.raw(method, target)
                    where = "%s %s" % (method, target[:200])
                    self.assertNotIn(b"root:x:0", reply.body, where)
                    self.assertNotEqual(reply.status, 500, where)
                    self.assertIsNone(reply.headers.get("Set-Cookie") if reply.headers else None)
                    if name in ("jobs.file", "blobs.get", "blobs.put"):
                        self.assertGreaterEqual(reply.status, 400, where)
        self.assertEqual(self.server.http("GET", "/healthz").status, 200)
        self.assertEqual(self.server.state(job), "Completed")

    def raw(self, method, target):
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(("%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                                "Content-Length: 0\r\n\r\n" % (method, target)).encode("latin-1"))
            data = b""
            with contextlib.suppress(ConnectionError):
                while piece := connection.recv(65536):
                    data += piece
        status = int(data.split()[1]) if data.startswith(b"HTTP/1.1 ") else 400
        return harness.Reply(status, None, data.partition(b"\r\n\r\n")[2])

    def test_blob_is_kept_only_under_the_hash_of_its_bytes(self):
        import hashlib
        body = b"some bytes"
        right = hashlib.sha256(body).hexdigest()
        reply = self.server.http("PUT", "/api/v1/blobs/" + "1" * 64, body)
        self.assertGreaterEqual(reply.status, 400)
        self.assertEqual(self.server.http("GET", "/api/v1/blobs/" + "1" * 64).status, 404)
        self.assertEqual(self.server.http("PUT", "/api/v1/blobs/" + right, body).status, 201)
        got = self.server.http("GET", "/api/v1/blobs/" + right)
        self.assertEqual(got.body, body)
        self.assertEqual(got.headers["Content-Disposition"], "attachment")
        self.assertIn("sandbox", got.headers["Content-Security-Policy"])


class Streams(Case):
    def log_text(self, event):
        data = json.loads(event["data"])
        return data.get("text", "")

    def test_logs_resumed_anywhere_have_no_gap_and_no_double(self):
        job = self.server.python("""
            import sys, time
            for i in range(400):
                print("line", i)
                if i % 10 == 0:
                    print("err", i, file=sys.stderr)
                    time.sleep(0.005)
        """)
        self.ended(job)
        target = "/api/v1/jobs/%s/stream" % job
        with contextlib.closing(Stream(self.server, target)) as stream:
            events = [e for e in stream if e.get("event") == "log"]
        whole = "".join(self.log_text(e) for e in events)
        self.assertEqual(whole.count("line"), 400)
        self.assertEqual(whole.count("err"), 40)
        self.assertGreater(len(events), 2)
        so_far = ""
        for event in events:
            so_far += self.log_text(event)
            with contextlib.closing(Stream(self.server, target, event["id"])) as stream:
                rest = "".join(self.log_text(e) for e in stream if e.get("event") == "log")
            self.assertEqual(so_far + rest, whole, event["id"])

    def test_logs_resumed_while_they_are_written(self):
        job = self.server.python("""
            import time
            for i in range(300):
                print("line", i)
                time.sleep(0.005)
        """)
        target = "/api/v1/jobs/%s/stream" % job
        text, last, reads = "", None, 0
        while True:
            stream = Stream(self.server, target, last)
            ended = False
            for event in stream:
                if event.get("event") == "log":
                    text += self.log_text(event)
                    last = event["id"]
                    reads += 1
                    if reads % 3 == 0:
                        break  # hang up in the middle
                if event.get("event") == "end":
                    ended = True
                    break
            stream.close()
            if ended:
                break
        self.assertEqual(text, "".join("line %d\n" % i for i in range(300)))

    def test_events_resumed_anywhere_have_no_gap_and_no_double(self):
        for _ in range(3):
            self.ended(self.server.submit("true"))
        target = "/api/v1/events?follow=false"
        with contextlib.closing(Stream(self.server, target + "&after=0")) as stream:
            events = list(stream)
        self.assertGreater(len(events), 12)
        for i, event in enumerate(events):
            with contextlib.closing(Stream(self.server, target, event["id"])) as stream:
                rest = list(stream)
            self.assertEqual([e["data"] for e in rest], [e["data"] for e in events[i + 1:]])

    def test_events_arrive_as_they_happen(self):
        stream = Stream(self.server, "/api/v1/events")
        seen = []
        done = threading.Event()

        def read():
            for event in stream:
                data = json.loads(event["data"])
                seen.append((data["job"], data["state"]))
                if data["state"] == "Completed":
                    done.set()
                    return

        threading.Thread(target=read, daemon=True).start()
        job = self.server.submit("true")
        self.assertTrue(done.wait(60))
        stream.close()
        self.assertEqual([state for id, state in seen if id == job][-1], "Completed")

    def test_large_log_as_json_is_whole(self):
        job = self.server.python("""
            import sys
            line = "x" * 99 + "\\n"
            for _ in range(200000): sys.stdout.write(line)
        """)
        self.ended(job)
        size = 0
        for line in self.server.ath("logs", job, "--json", check=0).stdout.splitlines():
            event = json.loads(line)
            if event["event"] == "log":
                size += len(event["text"])
        self.assertEqual(size, 200000 * 100)

    def test_many_readers_of_one_job(self):
        job = self.server.python("""
            import time
            for i in range(50):
                print("line", i)
                time.sleep(0.02)
        """)
        wanted = "".join("line %d\n" % i for i in range(50))
        texts = {}

        def read(n):
            with contextlib.closing(Stream(self.server, "/api/v1/jobs/%s/stream" % job)) as s:
                texts[n] = "".join(self.log_text(e) for e in s if e.get("event") == "log")

        threads = [threading.Thread(target=read, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertEqual(list(texts.values()), [wanted] * 20)


class BadRequests(Case):
    def test_specs_that_are_none(self):
        before = self.server.json("ps", "-a")["jobs"]
        for body in (b"", b"{", b"[]", b"null", b"{}", b'{"key":1}', b'{"spec":[]}',
                     b'{"spec":{"command":"x"}}', b'{"spec":{"command":[]}}',
                     b'{"spec":{"command":["true"],"resources":{"cpu_millis":-1}}}',
                     b'{"spec":{"command":["true"],"name":"' + b"a" * 70000 + b'"}}',
                     b'{"spec":{"command":["true"],"name":"a\\u0000b"}}',
                     b"[" * 100000, b'{"a":' * 50000, b"\xff\xfe\x00", b"\0" * 1000):
            reply = self.server.http("POST", "/api/v1/jobs", body,
                                     {"Content-Type": "application/json"})
            self.assertIn(reply.status, (400, 413, 422), body[:60])
            self.assertIn("error", reply.json(), body[:60])
        self.assertEqual(self.server.json("ps", "-a")["jobs"], before)

    def test_body_beyond_the_limit(self):
        reply = None
        try:
            reply = self.server.http("POST", "/api/v1/jobs", b"x" * (8 << 20))
        except ConnectionError:
            pass  # hung up on in the middle of the body: refused as well
        if reply:
            self.assertEqual(reply.status, 413)
        self.assertEqual(self.server.http("GET", "/healthz").status, 200)

    def test_unknown_field_in_a_spec_is_said(self):
        spec = self.server.spec("true")
        reply = self.server.http("POST", "/api/v1/jobs", {"spec": dict(spec, colour="red")})
        self.assertEqual(reply.status, 400)
        self.assertIn("colour", reply.body.decode())

    def test_queries_that_are_no_numbers(self):
        job = self.server.submit("echo", "hi")
        self.ended(job)
        for query in ("tail=x", "tail=-1", "tail=99999999999999999999999", "since_ms=abc",
                      "rank=-5", "cursor=zzz", "phase=nothing"):
            reply = self.server.http("GET", "/api/v1/jobs/%s/logs?%s" % (job, query))
            self.assertLess(reply.status, 500, query)
        self.assertEqual(self.server.http("GET", "/healthz").status, 200)


if __name__ == "__main__":
    harness.main()
