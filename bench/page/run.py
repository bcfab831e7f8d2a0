#!/usr/bin/env python3
"""The page in a real Chromium: its size, first paint, and how it stays quick when there is much.

    bench/page/run.py [--quick] [--json]

A server with ten thousand runs, twelve thousand names of metrics and ten series of a million
points; Debian's browser without a graphics card, so that frames cost more than on a desk. Times are
taken inside the page, from the event that begins something to the frame that shows it.
"""

import concurrent.futures
import contextlib
import glob
import http.client
import json
import math
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import TREE, Broken, Server, main, median  # noqa: E402

sys.path.insert(0, os.path.join(TREE, "tests"))
import venvs  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
LIVE = """
import time, athanor
step = 0
while not athanor.should_stop():
    step += 1
    athanor.log({"loss": 1.0 / step, "other": step % 7}, step=step)
    time.sleep(0.01)
"""
# Frames in two seconds while `act` is called once in each of them.
FRAMES = """(act) => new Promise(done => {
  let frames = 0; const begun = performance.now(); const go = new Function('i', act);
  const next = () => {
    go(frames++);
    if (performance.now() - begun < 2000) requestAnimationFrame(next);
    else done(frames * 1000 / (performance.now() - begun));
  };
  requestAnimationFrame(next);
})"""
# Milliseconds until `there` holds after a frame; null after half a minute.
UNTIL = """([begin, there]) => new Promise(done => {
  const begun = performance.now(); const holds = new Function('return ' + there);
  new Function(begin)();
  const look = () => {
    const passed = performance.now() - begun;
    if (holds() || passed > 30000) done(holds() ? passed : null); else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
# The table's own rows, copied once and scrolled without any script behind them: what this browser
# can do at most on this machine.
STILL = """() => {
  const grid = document.querySelector('.grid'), still = grid.cloneNode(true);
  const body = still.querySelector('.grid-body'), rows = [...body.children];
  body.replaceChildren(...Array.from({length: 1200}, (_, i) => {
    const row = rows[i % rows.length].cloneNode(true);
    row.style.top = i * 34 + 'px';
    return row;
  }));
  body.style.height = 1200 * 34 + 'px';
  still.classList.add('still');
  grid.replaceWith(still);
}"""
TYPE = """const box = document.querySelector(%s); box.focus();
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, %s);
box.dispatchEvent(new InputEvent('input', {bubbles: true}));"""


SHARE = 250  # runs made over one connection
TURN = 4_000  # by how much one sine is before the next


class Api:
    def __init__(self, address):
        self.address = address

    def connect(self):
        return contextlib.closing(http.client.HTTPConnection(self.address, timeout=600))

    def post(self, connection, path, body):
        text = body if isinstance(body, str) else json.dumps(body)
        connection.request("POST", "/api/2.0/mlflow/" + path, text,
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        if reply.status != 200:
            raise Broken("%s: %d %s" % (path, reply.status, text[:300]))
        return json.loads(text)

    def new_run(self, connection, name, i):
        return self.post(connection, "runs/create", {
            "experiment_id": "0", "run_name": name, "start_time": 1_700_000_000_000 + i})["run"]["info"]["run_id"]

    def fill(self, runs, names, points):
        """`runs` short runs, one of `names` metrics, and ten series of `points`."""
        def short(first):
            with self.connect() as c:
                for i in range(first, min(first + SHARE, runs)):
                    run = self.new_run(c, "run-%05d" % i, i)
                    self.post(c, "runs/log-batch", {
                        "run_id": run,
                        "metrics": [{"key": "loss", "value": i % 997 / 997, "timestamp": 1, "step": 1}],
                        "params": [{"key": "lr", "value": str(i % 13)}, {"key": "opt", "value": "ab"[i % 2]}]})

        def wide(_):
            with self.connect() as c:
                run = self.new_run(c, "wide", runs)
                for first in range(0, names, 1000):
                    self.post(c, "runs/log-batch", {"run_id": run, "metrics": [
                        {"key": "layer%05d/weight" % n, "value": n, "timestamp": 1, "step": 1}
                        for n in range(first, min(first + 1000, names))]})

        def long(i):
            with self.connect() as c:
                run = self.new_run(c, "long-%d" % i, runs + i + 1)
                for first in range(0, points, 1000):
                    self.post(c, "runs/log-batch", '{"run_id":"%s","metrics":[%s]}' % (run, ",".join(
                        '{"key":"long","value":%s,"timestamp":%d,"step":%d}' % (sines[(n + i * TURN) % len(sines)], n, n)
                        for n in range(first + 1, first + 1001))))

        # Writes that wait for the disk together cost one wait.
        sines = ["%.6f" % math.sin(2 * math.pi * n / 40_000) for n in range(40_000)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            work = [pool.submit(wide, 0), *(pool.submit(long, i) for i in range(10)),
                    *(pool.submit(short, first) for first in range(0, runs, SHARE))]
            for one in work:
                one.result()


def browser():
    python = venvs.locked("browser")
    folder = os.path.dirname(os.path.dirname(python))
    sys.path += glob.glob(os.path.join(folder, "lib", "python3*", "site-packages"))
    from playwright.sync_api import sync_playwright
    return sync_playwright()


def cpu_of(user_data):
    """Seconds of processor time of the browser's processes, found by its profile folder."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if user_data.encode() not in file.read():
                    continue
            with open("/proc/%s/stat" % pid) as file:
                fields = file.read().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def first_paint(report, page, url, repeats):
    paints = []
    for _ in range(repeats):
        page.goto("about:blank")
        page.goto(url)
        page.wait_for_selector(".page h1")
        paints.append(page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    size = page.evaluate("""async () => {
        const all = performance.getEntriesByType('resource').filter(r => r.name.includes('/ui/'));
        let bytes = 0;
        for (const r of [...new Set(all.map(r => r.name)), '.']) {
          const body = await (await fetch(r)).arrayBuffer();
          const packed = new Blob([body]).stream().pipeThrough(new CompressionStream('gzip'));
          bytes += (await new Response(packed).arrayBuffer()).byteLength;
        }
        return bytes;
    }""")
    report.row("what a browser loads, compressed", size / 1024, "KB", bar=150)
    report.row("first paint of Home", median(paints), "ms", values=paints, bar=300)


def until(page, begin, there):
    """Milliseconds from doing `begin` to the frame in which `there` holds."""
    passed = page.evaluate(UNTIL, [begin, there])
    if passed is None:
        raise Broken("half a minute was not enough until " + there)
    return passed


def frames(page, profile, act, repeats):
    """Rates of some rounds, and the processor time of a frame in milliseconds."""
    rates, costs = [], []
    for _ in range(max(1, repeats // 2)):
        before = cpu_of(profile)
        rates.append(page.evaluate(FRAMES, act))
        costs.append(1000 * (cpu_of(profile) - before) / (2 * rates[-1]))
    return rates, median(costs)


def table(report, page, url, profile, repeats):
    page.goto(url + "/#/runs")
    page.wait_for_selector(".grid-row a")
    rates, cost = frames(page, profile, "document.querySelector('.grid').scrollTop += 180", repeats)
    page.evaluate(STILL)
    still, _ = frames(page, profile, "document.querySelector('.still').scrollTop += 180", repeats)
    report.row("10,000 runs: scrolling the table", median(rates), "frames/s", values=rates, bar=50,
               at_least=True, note="%.1f ms of processor time a frame, all processes; the same rows "
               "without script behind them: %.1f frames/s" % (cost, median(still)))
    page.goto("about:blank")
    page.goto(url + "/#/runs")
    page.wait_for_selector(".grid-row a")
    times = []
    for i in range(repeats):
        text = "run-%05d" % (i * 37 + 11)
        begin = TYPE % (json.dumps("[data-search]"), json.dumps("attributes.run_name = '%s'" % text))
        begin += "box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));"
        times.append(until(page, begin, "document.querySelector('.grid-row a')?.textContent === '%s'" % text))
    report.row("10,000 runs: filter to its first row", median(times), "ms", values=times, bar=300)


def chooser(report, page, url, names, repeats):
    page.goto(url + "/#/runs?cols=state")
    page.wait_for_selector(".grid-row a")
    page.get_by_role("button", name="Columns").click()
    page.wait_for_selector(".chooser label")
    times = []
    for i in range(repeats):
        name = "layer%05d" % ((i * 97 + 5) % names)
        times.append(until(page, TYPE % (json.dumps("[aria-label='Search names']"), json.dumps(name)),
                           "document.querySelector('.chooser label')?.textContent.includes('%s')" % name))
    report.row("12,000 names: search in the chooser", median(times), "ms", values=times, bar=100)


def charts(report, page, url, profile, points, repeats):
    place = "/#/compare/charts?find=long&runs=" + ",".join("long-%d" % i for i in range(10))
    times = []
    for _ in range(repeats):
        page.goto("about:blank")
        page.goto(url)
        page.wait_for_selector(".page h1")
        times.append(until(page, "location.hash = %s" % json.dumps(place[1:]),
                           "document.querySelector('.chart canvas')"))
    report.row("10 runs of %d points: chart opens" % points, median(times), "ms", values=times, bar=1000)
    page.wait_for_selector(".chart .u-over")
    pan = """document.querySelector('.chart .u-over').dispatchEvent(new WheelEvent('wheel',
        {deltaX: i % 60 < 30 ? 9 : -9, bubbles: true, cancelable: true}));"""
    rates, cost = frames(page, profile, pan, repeats)
    report.row("10 runs of %d points: panning" % points, median(rates), "frames/s", values=rates, bar=30,
               at_least=True, note="%.1f ms of processor time a frame" % cost)


def live(report, page, server, url, profile, seconds):
    with open(os.path.join(server.work, "live.py"), "w") as file:
        file.write(LIVE)
    server.ath("run", "-d", "-q", "--name", "live", "--", "python3", "live.py")
    page.goto(url + "/#/job/live/charts")
    page.wait_for_selector(".chart canvas")
    time.sleep(2)
    before, begun = cpu_of(profile), time.monotonic()
    time.sleep(seconds)
    used = 100 * (cpu_of(profile) - before) / (time.monotonic() - begun)
    report.row("a live job of 100 steps/s: the browser", used, "% of a core", bar=10,
               note="all processes of the browser, which draws without a graphics card")
    server.ath("stop", "live", "--now")


def streams(report, server, count):
    before = server.memory()
    held = []
    for _ in range(count):
        connection = http.client.HTTPConnection(server.address, timeout=60)
        connection.request("GET", "/api/v1/live")
        reply = connection.getresponse()
        reply.readline()
        held.append((connection, reply))
    report.row("%d open streams: the server" % count, server.memory() - before, "MiB", bar=20)
    for connection, _ in held:
        connection.close()


def run(report, options):
    if not os.path.exists(CHROMIUM):
        report.skip("everything", "Debian's chromium is not installed")
        return
    runs, names, points, repeats = (500, 2000, 20_000, 3) if options.quick else (10_000, 12_000, 1_000_000, 9)
    with Server() as server, browser() as playwright:
        url = "http://" + server.address
        Api(server.address).fill(runs, names, points)
        profile = os.path.join(server.root, "profile")
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=["--no-sandbox"],
            viewport={"width": 1360, "height": 860}, bypass_csp=True)
        try:
            page = context.new_page()
            first_paint(report, page, url, repeats)
            table(report, page, url, profile, repeats)
            chooser(report, page, url, names, repeats)
            charts(report, page, url, profile, points, repeats)
            live(report, page, server, url, profile, 3 if options.quick else 15)
        finally:
            context.close()
        streams(report, server, 200)


if __name__ == "__main__":
    main("page", __doc__, run)
