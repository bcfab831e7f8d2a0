#!/usr/bin/env python3
"""The S3 door against other S3 servers, and against nginx serving the same bytes from a folder as
the bound.

    bench/s3/run.py [--quick] [--json] [--only versitygw,minio,moto] [--turns N]

All servers are up together and are asked in turns, so that a slow moment is everyone's; a ratio is
the median of the turns. Large: one object of 1 GiB, sent and fetched by curl with presigned URLs.
Small: objects of 100 KiB over 1 and 8 connections, each a curl of its own; what is asked is signed
before the clock starts. Lists: pages of 1,000 keys, in a bucket of 100,000 here and of 10,000 at the
others, which take too long to fill. GETs and lists are held to the best of the others.

Athanor's PUT is on disk, synced, when it answers, so it is held to those that sync too: strace
watches each of them take one object, and looks for a sync between the request and the answer. And
to a bare loop that writes as many bytes into a new file and syncs it.

The others: versitygw (plain files) and MinIO (one drive), both built once if there is a Go, and moto
(PyPI; keeps objects in memory).
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
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
from common import (CACHE, Broken, Server, check, cpu_of, main, median, scratch,  # noqa: E402
                    until)

SMALL = 100 << 10
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
MINIO = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
FEW = 20  # moto answers so many times fewer small requests in a turn, being so much slower


class Place:
    """A server that speaks S3, and the keys for it."""

    def __init__(self, name, url, key, secret, pid=None, region="us-east-1"):
        self.name, self.url, self.key, self.secret = name, url, key, secret
        self.region, self.pid = region, pid
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


def built(module):
    """A Go program, from PATH or built once from its own source where there is a Go to do it."""
    path, _, version = module.partition("@")
    name = os.path.basename(path)
    if shutil.which(name):
        return shutil.which(name)
    folder = os.path.join(CACHE, name + "-" + version)
    if not os.path.exists(os.path.join(folder, name)):
        if not shutil.which("go"):
            raise Broken("%s is not on PATH, and there is no Go to build it with" % name)
        check(["go", "install", "-trimpath", "-ldflags=-s -w", module],
              env=dict(os.environ, GOBIN=folder, CGO_ENABLED="0"))
    return os.path.join(folder, name)


@contextlib.contextmanager
def moto(_):
    python = venvs.venv("moto[server,s3]")
    port = free_port()
    command = [os.path.join(os.path.dirname(python), "moto_server"), "-p", str(port)]
    with program(command, ("127.0.0.1", port)) as process:
        yield Place("moto", "http://127.0.0.1:%d" % port, "key", "secret", process.pid)


@contextlib.contextmanager
def versitygw(folder):
    port = free_port()
    data = os.path.join(folder, "versitygw")
    os.makedirs(data)
    command = [built(VERSITYGW), "--port", "127.0.0.1:%d" % port, "--region", "us-east-1", "--quiet",
               "posix", data]
    environment = dict(os.environ, ROOT_ACCESS_KEY="key", ROOT_SECRET_KEY="secret")
    with program(command, ("127.0.0.1", port), env=environment) as process:
        yield Place("versitygw", "http://127.0.0.1:%d" % port, "key", "secret", process.pid)


@contextlib.contextmanager
def minio(folder):
    port = free_port()
    data = os.path.join(folder, "minio")
    os.makedirs(data)
    command = [built(MINIO), "server", "--address", "127.0.0.1:%d" % port, "--quiet", data]
    environment = dict(os.environ, MINIO_ROOT_USER="accesskey", MINIO_ROOT_PASSWORD="secretkey",
                       MINIO_BROWSER="off")
    with program(command, ("127.0.0.1", port), env=environment) as process:
        place = Place("minio", "http://127.0.0.1:%d" % port, "accesskey", "secretkey", process.pid)
        until(lambda: ready(place), "MinIO is ready", pause=0.2)
        yield place


def ready(place):
    with contextlib.suppress(OSError):
        connection = http.client.HTTPConnection(place.address, timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", "/minio/health/cluster")
            return connection.getresponse().status == 200


PEERS = {"versitygw": versitygw, "minio": minio, "moto": moto}


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
    """What the disk gives one who writes 100 KiB into a new file and waits for it: files a second."""
    body, into = os.urandom(SMALL), os.path.join(folder, "synced")
    os.mkdir(into)
    begun = time.perf_counter()
    for i in range(count):
        with open(os.path.join(into, "%d" % i), "wb", buffering=0) as file:
            file.write(body)
            os.fdatasync(file.fileno())
    took = time.perf_counter() - begun
    shutil.rmtree(into)
    return count / took


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


def sync_seen(place, folder):
    """What syncs the server does while it takes an object, as strace shows it: calls between the
    request it reads and the answer it writes. Empty: none."""
    if not shutil.which("strace"):
        raise Broken("there is no strace to look with")
    out, body = os.path.join(folder, "strace-" + place.name), os.urandom(SMALL)
    for i in range(3):  # so that folders and pools are there
        place.ask(place.signed("PUT", "/bench/first-%d" % i, body), body)
    watcher = subprocess.Popen(
        ["strace", "-f", "-y", "-s", "40", "-o", out, "-e", "trace=read,recvfrom,write,sendto,"
         "sendmsg,writev,open,openat,fsync,fdatasync,sync,syncfs", "-p", str(place.pid)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        watcher.stderr.readline()  # "Process … attached"
        place.ask(place.signed("PUT", "/bench/watched", body), body)
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate()
    with open(out, errors="replace") as file:
        lines = file.read().splitlines()
    begin = next((i for i, line in enumerate(lines) if "PUT /bench/watched" in line), None)
    end = next((i for i, line in enumerate(lines) if begin is not None and i > begin and
                re.search(r"(write|writev|sendto|sendmsg)\(.*HTTP/1.1 200", line)), None)
    if begin is None or end is None:
        raise Broken("strace did not see %s take an object" % place.name)
    calls = []
    for line in lines[begin:end]:
        found = re.search(r"\b(fsync|fdatasync|syncfs|sync)\((?:\d+<([^>]*)>)?", line)
        if found:
            calls.append("%s of %s" % (found[1], os.path.basename(found[2] or "all")))
        elif re.search(r"open(at)?\(.*O_D?SYNC", line):
            calls.append("open for synced writes")
    return ", ".join(sorted(set(calls)))


def small_turn(place, folder, serial, count, results):
    """One turn of small requests: a row of rates, and processor time of the server for each GET."""
    small = os.path.join(folder, "small")
    for connections in (1, 8):
        # Enough that starting eight curls does not count.
        asked = count if connections == 1 else 4 * count
        names = ["/bench/t%d/c%d/%06d" % (serial, connections, i) for i in range(asked)]
        for verb, body in (("PUT", small), ("GET", None)):
            urls = [place.presigned(verb, name) for name in names]
            before = cpu_of(place.pid)
            results.setdefault("%s%d" % (verb.lower(), connections), []).append(
                small_rate(folder, urls, connections, body))
            results.setdefault("cpu-%s%d" % (verb.lower(), connections), []).append(
                1000 * (cpu_of(place.pid) - before) / asked)


def large_turn(place, path, results):
    results.setdefault("put", []).append(
        1 / curl("-T", path, place.presigned("PUT", "/bench/large")))
    results.setdefault("get", []).append(1 / curl(place.presigned("GET", "/bench/large")))


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


def ratio(report, what, ours, theirs, bar, unit, note=""):
    """Against the best of {name: figures}; larger is better. Figures with the same index were taken
    in the same turn."""
    best = max(theirs, key=lambda name: median(theirs[name]))
    ratios = [mine / other for mine, other in zip(ours, theirs[best])]
    report.row(what, median(ratios), "x", values=ratios if len(ratios) > 1 else None, bar=bar,
               at_least=True, note=note, against="ours %.4g %s, " % (median(ours), unit) + ", ".join(
                   "%s %.4g" % (name, median(values)) for name, values in sorted(theirs.items())))


def listing(report, server, place, peers, quick):
    server.end()
    fill_index(server.home, 100_000)
    server.start()
    place.url, place.address, place.pid = "http://" + server.address, server.address, server.process.pid
    rates = {}
    for peer in [place, *peers]:
        if peer is not place:
            for i in range(1000 if quick else 10_000):
                peer.ask(peer.signed("PUT", "/bench/listed/%06d" % i, b"hello"), b"hello")
        rates[peer.name] = [1000 / list_page_ms(peer, "listed" if peer is place else "bench",
                                                100 if peer is place and not quick else 5)]
    ours = rates.pop(place.name)
    if rates:
        ratio(report, "a page of 1,000 of 100,000 keys (peers: of 10,000)", ours, rates, 1, "pages/s")


def puts(report, ours, theirs, synced, bare):
    """Held to those that sync, and to the disk itself; the others are told."""
    for connections in (1, 8):
        name = "put%d" % connections
        what = "PUT of 100 KiB, %d connection%s" % (connections, "" if connections == 1 else "s")
        if connections == 1:
            ratio(report, what + ", against a bare synced write", ours[name],
                  {"open+write+fdatasync": bare}, 0.8, "requests/s")
        sync = {peer: found[name] for peer, found in theirs.items() if synced.get(peer)}
        rest = {peer: found[name] for peer, found in theirs.items() if peer not in sync}
        how = "; ".join("%s: %s before it answers, by strace" % pair for pair in sorted(synced.items())
                        if pair[0] in sync)
        if sync:
            ratio(report, what + ", against those that sync", ours[name], sync, 1, "requests/s", how)
        else:
            report.skip(what + ", against those that sync", "none of the others was seen to sync")
        if rest:
            ratio(report, what + ", against those that do not sync", ours[name], rest, None,
                  "requests/s", "no sync before the answer, by strace: " + ", ".join(sorted(rest)))


def gets(report, ours, theirs):
    for connections in (1, 8):
        name = "get%d" % connections
        ratio(report, "GET of 100 KiB, %d connection%s" % (connections, "" if connections == 1 else "s"),
              ours[name], {peer: found[name] for peer, found in theirs.items()},
              1 if connections == 1 else 1.2, "requests/s", "processor time of the server, ms: " +
              ", ".join("%s %.3f" % (who, median(found["cpu-" + name]))
                        for who, found in (("ours", ours), *sorted(theirs.items()))))


def against_nginx(report, folder, path, place, turns, size):
    try:
        with nginx(os.path.join(folder, "nginx")) as bound:
            os.link(path, os.path.join(folder, "nginx", "files", "large"))
            ours, plain = [], []
            for _ in range(turns):
                ours.append(1 / curl(place.presigned("GET", "/bench/large")))
                plain.append(1 / curl(bound.url + "/large"))
        ratio(report, "GET of %d MiB against nginx" % (size >> 20), ours, {"nginx": plain}, 0.7,
              "objects/s")
    except (Broken, OSError) as error:
        report.skip("GET against nginx", str(error))


def started(stack, report, names, folder):
    """The others that can be had here, and which syncs each was seen to do."""
    peers, synced = [], {}
    for name in names:
        try:
            peer = stack.enter_context(PEERS[name](folder))
            peer.ask(peer.signed("PUT", "/bench"), b"" if name == "moto" else None)
            peers.append(peer)
        except Exception as error:
            report.skip("against " + name, str(error).strip()[:200])
            continue
        try:
            synced[name] = sync_seen(peer, folder)
        except Broken as error:
            report.skip("whether %s syncs" % name, str(error))
    return peers, synced


def arguments(parser):
    parser.add_argument("--only", help="the others to ask: " + ",".join(PEERS))
    parser.add_argument("--turns", type=int, help="how often each is asked (7)")


def run(report, options):
    try:
        import botocore  # noqa: F401
    except ImportError:
        raise Broken("python3-botocore is needed: apt-get install python3-boto3")
    size = (64 << 20) if options.quick else (1 << 30)
    count, turns, large = (100, 3, 1) if options.quick else (1000, 7, 3)
    turns = options.turns or turns
    names = options.only.split(",") if options.only else list(PEERS)
    for name in names:
        if name not in PEERS:
            raise Broken("no peer %r; there are %s" % (name, ", ".join(PEERS)))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        path = os.path.join(folder, "large")
        with open(path, "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        with open(os.path.join(folder, "small"), "wb") as file:
            file.write(os.urandom(SMALL))
        server = stack.enter_context(Server())
        key = json.loads(server.ath("env", "aws", "--json"))
        place = Place("athanor", key["AWS_ENDPOINT_URL"], key["AWS_ACCESS_KEY_ID"],
                      key["AWS_SECRET_ACCESS_KEY"], server.process.pid, key["AWS_DEFAULT_REGION"])
        place.ask(place.signed("PUT", "/bench"))
        before = server.memory("VmHWM")
        peers, synced = started(stack, report, names, folder)
        results = {one.name: {} for one in [place, *peers]}
        bare = []
        for turn in range(turns):
            for one in [place, *peers]:
                small_turn(one, folder, turn, count // FEW if one.name == "moto" else count,
                           results[one.name])
                if one is place:
                    bare.append(synced_rate(folder, count))
                if turn < large and (one.name != "moto" or turn == 0):
                    large_turn(one, path, results[one.name])
        ours = results.pop("athanor")
        against_nginx(report, folder, path, place, large, size)
        report.row("memory gained by all of it", server.memory("VmHWM") - before, "MiB", bar=64)
        puts(report, ours, results, synced, bare)
        if peers:
            gets(report, ours, results)
            for verb in ("put", "get"):
                ratio(report, "%s of %d MiB" % (verb.upper(), size >> 20), ours[verb],
                      {name: found[verb] for name, found in results.items()}, 1, "objects/s")
        listing(report, server, place, peers, options.quick)


if __name__ == "__main__":
    main("s3", __doc__, run, arguments)
