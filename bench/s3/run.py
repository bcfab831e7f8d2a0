#!/usr/bin/env python3
"""The S3 door against other S3 servers, and against nginx serving the same bytes from a folder as
the bound.

    bench/s3/run.py [--quick] [--json]

Large: one object of 1 GiB, sent and fetched by curl with presigned URLs. Small: 10,000 objects of
100 KiB over 1 and 8 connections; requests are signed before the clock starts, and the same client
asks every server. Lists: pages of 1,000 keys, in a bucket of 100,000 here and of 10,000 at the
others, which take too long to fill. Each row is against the best of the others.

The others: moto (PyPI; keeps objects in memory) and versitygw (plain files, which it does not sync; built
once if there is a Go). Athanor's PUT is on disk, synced, when it answers.
"""

import contextlib
import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "tests"))
import page_sums  # noqa: E402
import venvs  # noqa: E402
from common import Broken, Server, check, main, median, scratch, until  # noqa: E402

SMALL = 100 << 10
VERSITYGW = "v1.8.0"


class Place:
    """A server that speaks S3, and the keys for it."""

    def __init__(self, name, url, key, secret, region="us-east-1"):
        self.name, self.url, self.key, self.secret = name, url, key, secret
        self.region = region
        self.address = url.rpartition("/")[2]

    def signed(self, method, target, body=None):
        """A request with its headers; over plain HTTP the body's hash is signed too, as SDKs do."""
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        request = AWSRequest(method, self.url + target, data=body)
        S3SigV4Auth(Credentials(self.key, self.secret), "s3", self.region).add_auth(request)
        return method, target, dict(request.headers.items())

    def presigned(self, method, target):
        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        request = AWSRequest(method, self.url + target)
        S3SigV4QueryAuth(Credentials(self.key, self.secret), "s3", self.region,
                         expires=3600).add_auth(request)
        return request.url

    def ask(self, request, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=120)
        with contextlib.closing(connection):
            method, target, headers = request
            connection.request(method, target, body=body, headers=headers)
            reply = connection.getresponse()
            text = reply.read()
            if reply.status >= 300:
                raise Broken("%s: %s %s: %d %s" % (self.name, method, target, reply.status, text[:300]))
            return text


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def program(command, address, **more):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, **more)

    def answers():
        if process.poll() is not None:
            raise Broken("%s ended at once" % command[0])
        with contextlib.suppress(OSError), socket.create_connection(address, 1):
            return True

    try:
        until(answers, "%s listens" % command[0], pause=0.05)
        yield process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def moto():
    python = venvs.venv("moto[server,s3]")
    port = free_port()
    command = [os.path.join(os.path.dirname(python), "moto_server"), "-p", str(port)]
    with program(command, ("127.0.0.1", port)):
        yield Place("moto", "http://127.0.0.1:%d" % port, "key", "secret")


def built_versitygw():
    """Built once from its own source, where there is a Go to do it."""
    folder = os.path.expanduser("~/.cache/athanor-bench/versitygw-" + VERSITYGW)
    if not os.path.exists(os.path.join(folder, "versitygw")):
        if not shutil.which("go"):
            raise Broken("not on PATH, and there is no Go to build it with")
        check(["go", "install", "github.com/versity/versitygw/cmd/versitygw@" + VERSITYGW],
              env=dict(os.environ, GOBIN=folder))
    return os.path.join(folder, "versitygw")


@contextlib.contextmanager
def versitygw(folder):
    found = shutil.which("versitygw") or built_versitygw()
    port = free_port()
    data = os.path.join(folder, "versity")
    os.makedirs(data)
    command = [found, "--port", "127.0.0.1:%d" % port, "--region", "us-east-1", "--quiet",
               "posix", data]
    environment = dict(os.environ, ROOT_ACCESS_KEY="key", ROOT_SECRET_KEY="secret")
    with program(command, ("127.0.0.1", port), env=environment):
        yield Place("versitygw", "http://127.0.0.1:%d" % port, "key", "secret")


@contextlib.contextmanager
def nginx(folder):
    port = free_port()
    config = os.path.join(folder, "nginx.conf")
    os.makedirs(os.path.join(folder, "files"), exist_ok=True)
    os.chmod(folder, 0o755)
    with open(config, "w") as file:
        file.write("""
            daemon off; master_process off; pid %(f)s/pid; error_log %(f)s/error.log;
            events { }
            http { access_log off; sendfile on; keepalive_requests 1000000;
                   client_body_temp_path %(f)s/b; proxy_temp_path %(f)s/p; fastcgi_temp_path %(f)s/f;
                   uwsgi_temp_path %(f)s/u; scgi_temp_path %(f)s/s;
                   server { listen 127.0.0.1:%(p)d; root %(f)s/files; } }
            """ % {"f": folder, "p": port})
    with program([shutil.which("nginx") or "/usr/sbin/nginx", "-c", config, "-p", folder],
                 ("127.0.0.1", port)):
        yield Place("nginx", "http://127.0.0.1:%d" % port, "key", "secret")


def curl(*arguments):
    begun = time.perf_counter()
    check(["curl", "-sf", "-o", "/dev/null", *arguments])
    return time.perf_counter() - begun


def small_rate(folder, urls, connections, body=None):
    """Requests a second: a curl for each connection, with its share of the addresses."""
    made = []
    for i in range(connections):
        config = os.path.join(folder, "curl-%d" % i)
        with open(config, "w") as file:
            for url in urls[i::connections]:
                file.write('url = "%s"\n' % url)
                file.write('upload-file = "%s"\n' % body if body else "")
                file.write('output = "/dev/null"\n')
        made.append(["curl", "-sf", "--expect100-timeout", "5", "-w", "%{http_code} %{size_download}\n",
                     "-K", config])
    begun = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in made]
    answers = [line for one in running for line in one.communicate()[0].splitlines()]
    took = time.perf_counter() - begun
    wanted = "200 %d" % (0 if body else SMALL)
    if len(answers) != len(urls) or any(line != wanted for line in answers):
        raise Broken("%d of %d answers are %s" % (answers.count(wanted), len(urls), wanted))
    return len(urls) / took


def synced_rate(folder, count):
    """What the disk gives one who writes 100 KiB and waits for it: files a second."""
    body = os.urandom(SMALL)
    begun = time.perf_counter()
    for i in range(count):
        with open(os.path.join(folder, "synced-%d" % i), "wb", buffering=0) as file:
            file.write(body)
            os.fdatasync(file.fileno())
    return count / (time.perf_counter() - begun)


def list_page_ms(place, bucket, pages):
    times, token = [], None
    for _ in range(pages):
        target = "/%s?list-type=2&max-keys=1000" % bucket
        if token:
            target += "&continuation-token=" + urllib.parse.quote(token, safe="")
        request = place.signed("GET", target)
        begun = time.perf_counter()
        text = place.ask(request).decode()
        times.append((time.perf_counter() - begun) * 1000)
        if "<NextContinuationToken>" not in text:
            break
        token = text.split("<NextContinuationToken>")[1].split("<")[0].replace("&amp;", "&")
    return median(times)


def measure(place, path, count, repeats, results):
    """Everything of one server that takes objects."""
    place.ask(place.signed("PUT", "/bench"), b"" if place.name == "moto" else None)
    results["put"] = [curl("-T", path, place.presigned("PUT", "/bench/large"))
                      for _ in range(repeats)]
    results["get"] = [curl(place.presigned("GET", "/bench/large")) for _ in range(repeats)]
    small = os.path.join(os.path.dirname(path), "small")
    with open(small, "wb") as file:
        file.write(os.urandom(SMALL))
    for connections in (1, 8):
        names = ["/bench/s%d/%06d" % (connections, i) for i in range(count)]
        for verb, body in (("PUT", small), ("GET", None)):
            results["%s%d" % (verb.lower(), connections)] = small_rate(
                os.path.dirname(path), [place.presigned(verb, name) for name in names],
                connections, body)


def fill_index(home, keys):
    """Rows of an index as 100,000 PUTs would leave them; lists read nothing else."""
    index = sqlite3.connect(os.path.join(home, "objects", "index.db"))
    bucket = index.execute("INSERT INTO buckets (name, created) VALUES ('listed', 0) "
                           "RETURNING id").fetchone()[0]
    index.executemany("INSERT INTO objects VALUES (?, ?, ?, 5, ?, 0, 0, '')",
                      ((bucket, "data/part-%08d.bin" % i, "%026d" % i, "0" * 32)
                       for i in range(keys)))
    index.commit()
    index.close()
    page_sums.restamp(os.path.join(home, "objects", "index.db"))


def ratio(report, what, ours, theirs, bar, unit):
    """Against the best of {name: figure}; larger is better."""
    best = max(theirs, key=theirs.get)
    report.row(what, ours / theirs[best], "x", bar=bar, at_least=True,
               against="ours %.4g %s, " % (ours, unit) + ", ".join(
                   "%s %.4g" % (name, value) for name, value in sorted(theirs.items())))


def measure_ours(report, options, path, count, repeats):
    ours = {}
    with Server() as server:
        before = server.memory("VmHWM")
        key = json.loads(server.ath("env", "aws", "--json"))
        place = Place("athanor", key["AWS_ENDPOINT_URL"], key["AWS_ACCESS_KEY_ID"],
                      key["AWS_SECRET_ACCESS_KEY"], key["AWS_DEFAULT_REGION"])
        measure(place, path, count, repeats, ours)
        report.row("memory gained by all of it", server.memory("VmHWM") - before, "MiB", bar=64)
        server.end()
        fill_index(server.home, 100_000)
        server.start()
        place.url = "http://" + server.address
        place.address = server.address
        ours["list"] = list_page_ms(place, "listed", 5 if options.quick else 100)
    return ours


def measure_peers(report, options, folder, path, count):
    peers = {}
    for name, start in (("moto", moto), ("versitygw", lambda: versitygw(folder))):
        try:
            with start() as peer:
                results = {}
                few = count if options.quick or name != "moto" else 2000
                measure(peer, path, few, 1 if name == "moto" else 3, results)
                for i in range(1000 if options.quick else 10_000):
                    peer.ask(peer.signed("PUT", "/bench/listed/%06d" % i, b"hello"), b"hello")
                results["list"] = list_page_ms(peer, "bench", 5)
                peers[name] = results
        except Exception as error:
            report.skip("against " + name, str(error)[:200])
    return peers


def run(report, options):
    try:
        import botocore  # noqa: F401
    except ImportError:
        raise Broken("python3-botocore is needed: apt-get install python3-boto3")
    size = (64 << 20) if options.quick else (1 << 30)
    count = 300 if options.quick else 10_000
    repeats = 1 if options.quick else 5
    with scratch() as folder:
        path = os.path.join(folder, "large")
        with open(path, "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        ours = measure_ours(report, options, path, count, repeats)
        ceiling = synced_rate(folder, 50 if options.quick else 500)
        report.row("PUT of 100 KiB, 1 connection, against a bare synced write", ours["put1"] / ceiling, "x",
                   against="ours %.4g requests/s, open+write+fdatasync %.4g; the peers below do not sync"
                   % (ours["put1"], ceiling))
        try:
            with nginx(os.path.join(folder, "nginx")) as bound:
                os.link(path, os.path.join(folder, "nginx", "files", "large"))
                plain = [curl(bound.url + "/large") for _ in range(repeats)]
            ratio(report, "GET of %d MiB against nginx" % (size >> 20), 1 / median(ours["get"]),
                  {"nginx": 1 / median(plain)}, 0.7, "objects/s")
        except (Broken, OSError) as error:
            report.skip("GET against nginx", str(error))
        peers = measure_peers(report, options, folder, path, count)
    if not peers:
        return
    for verb in ("put", "get"):
        ratio(report, "%s of %d MiB" % (verb.upper(), size >> 20), 1 / median(ours[verb]),
              {name: 1 / median(found[verb]) for name, found in peers.items()}, 1, "objects/s")
    for connections in (1, 8):
        for verb in ("put", "get"):
            name = "%s%d" % (verb, connections)
            ratio(report, "%s of 100 KiB, %d connection%s" % (
                verb.upper(), connections, "" if connections == 1 else "s"), ours[name],
                {peer: found[name] for peer, found in peers.items()}, 1, "requests/s")
    ratio(report, "a page of 1,000 of 100,000 keys (peers: of 10,000)", 1000 / ours["list"],
          {peer: 1000 / found["list"] for peer, found in peers.items()}, 1, "pages/s")


if __name__ == "__main__":
    main("s3", __doc__, run)
