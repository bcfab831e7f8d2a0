"""The page: opens without an error, asks nobody but its server, keeps what users store inert, and
its server keeps pages of other origins out."""

import http.server
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

JSON = {"Content-Type": "application/json"}
# Each opens a dialog if it ever runs; kit.PageCase fails the test then.
HOSTILE = ["<script>alert('script')</script>", "<img src=x onerror=alert('img')>",
           "<svg onload=alert('svg')>", "javascript:alert('url')",
           "[x](javascript:alert('md'))", "\"><iframe srcdoc=\"<script>alert('frame')</script>\">"]


class Home(PageCase):
    def test_home_opens_and_asks_nobody_else(self):
        self.open()
        self.assertIn("Athanor", self.page.title())
        policy = self.page.evaluate("fetch('.').then(r => r.headers.get('content-security-policy'))")
        self.assertIn("script-src 'self'", policy)

    def test_an_inline_script_does_not_run(self):
        self.open()
        self.allowed = ["Content Security Policy"]
        ran = self.page.evaluate("""() => {
            const s = document.createElement('script');
            s.textContent = 'window.ran = true';
            document.body.append(s);
            return Boolean(window.ran);
        }""")
        self.assertFalse(ran)


class Stored(PageCase):
    """A job and runs whose every text is hostile."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("train.py", """
            import athanor, sys
            for text in sys.argv[1:]: print(text)
            print("\\x1b[31m<b>red</b>\\x1b[0m", flush=True)
            for step in range(3): athanor.log(loss=1.0 / (step + 1), step=step)
            """)
        cls.server.script("page.html", HOSTILE[0])
        cls.job = cls.server.submit("python3", "train.py", *HOSTILE, flags=[
            "--name", "<b>bold</b>", "--experiment", HOSTILE[1], "-p", "word=" + HOSTILE[2]])
        cls.server.wait(cls.job)
        cls.run_id = cls.server.http("GET", "/api/v1/runs/" + cls.job).json()["run_id"]
        cls.server.http("PATCH", "/api/v1/runs/" + cls.job,
                        {"tags": {"tag%d" % i: text for i, text in enumerate(HOSTILE)},
                         "note": "\n\n".join(HOSTILE)}, JSON)
        made = cls.server.http("POST", "/api/2.0/mlflow/runs/create",
                               {"run_name": HOSTILE[0]}, JSON).json()["run"]["info"]
        cls.alone = made["run_id"]
        cls.root = "/" + made["artifact_uri"].partition(":/")[2].lstrip("/")
        for name, text in (("x.html", HOSTILE[0]), ("x.svg", HOSTILE[2]),
                           ("x.md", "\n\n".join(HOSTILE)), ("x.txt", HOSTILE[1])):
            cls.server.http("PUT", "/api/2.0/mlflow-artifacts/artifacts%s/%s" % (cls.root, name),
                            text)

    def test_names_tags_and_notes_are_text_everywhere(self):
        for place in ("", "#/jobs", "#/runs", "#/jobs/" + self.job, "#/runs/" + self.alone,
                      "#/experiments", "#/queue"):
            self.open(place)
            self.page.wait_for_load_state("load")
            # What was stored may be read, never be an element.
            found = self.page.evaluate("""() => [...document.querySelectorAll(
                'script:not([src]), iframe[srcdoc*=alert], [onerror], [onload], a[href^="javascript:"]')]
                .map(e => e.outerHTML.slice(0, 200))""")
            self.assertEqual(found, [], place)

    def test_files_of_users_do_not_run_when_they_are_opened(self):
        base = self.server.url + "/api/v1/"
        self.allowed = ["sandbox", "Content Security Policy", "net::ERR"]
        for target in ("runs/%s/artifacts/x.html" % self.alone, "runs/%s/artifacts/x.svg" % self.alone):
            with self.page.expect_download() as download:
                with_no_answer(lambda: self.page.goto(base + target))
            self.assertTrue(download.value.suggested_filename.startswith("x."))
        self.page.goto(base + "jobs/%s/source/train.py" % self.job)
        self.assertIn("athanor.log", self.page.content())
        reply = self.server.http("GET", "/api/v1/jobs/%s/source/page.html" % self.job)
        self.assertTrue(reply.headers["Content-Type"].startswith("text/plain"))


def with_no_answer(go):
    """A navigation that becomes a download has no page to wait for."""
    try:
        go()
    except Exception as error:  # Playwright's own error type is known only where it is installed
        if "Download is starting" not in str(error) and "ERR_ABORTED" not in str(error):
            raise


HOSTILE_PAGE = """<!doctype html><title>hostile</title><script>
async function attack(server, job) {
  const results = [];
  const attempt = async (target, options) => {
    try { const r = await fetch(server + target, options); results.push(r.status + ' ' + r.type); }
    catch (e) { results.push('refused'); }
  };
  await attempt('/api/v1/jobs');
  await attempt('/api/v1/session', {credentials: 'include'});
  await attempt('/api/v1/jobs/' + job + '/stop', {method: 'POST'});
  await attempt('/api/v1/jobs/' + job + '/stop', {method: 'POST', mode: 'no-cors'});
  await attempt('/api/v1/runs/' + job, {method: 'PATCH', body: '{"name":"taken"}'});
  return results;
}
</script>"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(HOSTILE_PAGE.encode())

    def log_message(self, *_):
        pass


class AnotherOrigin(PageCase):
    def test_a_page_of_another_origin_reads_and_changes_nothing(self):
        job = self.server.submit("sleep", "1000")
        self.server.until_state(job, "Running")
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        self.allowed = ["CORS", "Failed to load resource", "net::ERR"]
        self.page.goto("http://127.0.0.1:%d/" % other.server_port)
        self.foreign.clear()  # the hostile page itself
        results = self.page.evaluate("([server, job]) => attack(server, job)",
                                     [self.server.url, job])
        self.foreign.clear()
        self.assertEqual([r for r in results if r != "refused"], ["0 opaque"])
        self.assertEqual(self.server.state(job), "Running")
        self.assertNotEqual(self.server.http("GET", "/api/v1/runs/" + job).json()["name"], "taken")
        self.server.ath("stop", job, "--now", check=0)

    def test_the_page_itself_may(self):
        job = self.server.submit("sleep", "1000")
        self.server.until_state(job, "Running")
        self.open()
        status = self.page.evaluate("""async job => {
            const session = await (await fetch('api/v1/session')).json();
            const reply = await fetch('api/v1/jobs/' + job + '/stop?grace_ms=0', {
                method: 'POST', headers: {'X-Athanor-Csrf': session.csrf}});
            return reply.status;
        }""", job)
        self.assertEqual(status, 200)
        self.server.wait(job)


if __name__ == "__main__":
    harness.main()
