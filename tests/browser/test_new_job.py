"""A job from a job file that is typed into the page: checked by the server line by line, started with
the files of an earlier job; and what the server's page says of its disk."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness


class NewJob(PageCase):
    def setUp(self):
        super().setUp()
        self.allowed = ["400", "404"]  # texts that are no jobs yet, and a source that is none

    def test_mistakes_are_told_with_their_place(self):
        page = self.open("#/new")
        page.get_by_label("Job file").fill("run: echo hello\nresources:\n  cpu: 2\n")
        place = page.get_by_role("button", name=re.compile(r"Line 3, column \d"))
        place.wait_for()
        self.assertTrue(page.get_by_role("button", name="Start", exact=True).is_disabled())
        place.click()
        chosen = page.get_by_label("Job file").evaluate("t => t.value.slice(t.selectionStart, t.selectionEnd)")
        self.assertTrue(chosen.startswith("cpu"), chosen)
        page.get_by_label("Job file").fill("run: echo hello\nresources:\n  cpus: 0.5\n")
        page.get_by_role("heading", name="The job").wait_for()
        page.get_by_text("echo hello").last.wait_for()

    def test_what_a_browser_cannot_mean_is_refused_with_what_to_do(self):
        page = self.open("#/new")
        for text, word in (("run: true\nsource: {dir: /tmp}\n", "a source folder"),
                           ("run: true\ndata: {train: here/data}\n", "the relative path of data.train"),
                           ("run: true\ntune: {max_trials: 3}\n", "a search")):
            page.get_by_label("Job file").fill(text)
            page.get_by_role("alert").get_by_text(word).wait_for()
        page.get_by_text("ath tune job.yaml").wait_for()

    def test_it_runs_with_the_source_of_an_earlier_job(self):
        self.server.script("greet.py", "import sys; print('hello', sys.argv[1])")
        job = self.server.submit("python3", "greet.py", "first", flags=["--name", "greets", "-p", "who=x"])
        self.server.wait(job)
        page = self.open("#/job/greets")
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("link", name="New job from its source").click()
        box = page.get_by_label("Job file")
        harness.until(lambda: '"greet.py"' in box.input_value(), "its command is suggested")
        self.assertIn("who: x", box.input_value())
        page.get_by_role("heading", name="The job").wait_for()
        box.fill("name: greets-again\nrun: python3 greet.py ${who}\nparams: {who: world}\n")
        page.get_by_text("who=world").wait_for()
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_role("heading", name="greets-again").wait_for()
        self.server.wait("greets-again")
        self.assertIn(b"hello world", self.server.logs("greets-again"))
        same = [self.server.show(name)["spec"]["source"]["bundle"] for name in ("greets", "greets-again")]
        self.assertEqual(same[0], same[1])

    def test_a_command_needs_no_source(self):
        page = self.open("#/runs")
        page.get_by_role("link", name="New job").click()
        page.get_by_label("Job file").fill("name: plain\nrun: echo no files here\n")
        page.get_by_text("echo no files here").last.wait_for()
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_role("heading", name="plain").wait_for()
        self.server.wait("plain")
        self.assertIn(b"no files here", self.server.logs("plain"))

    def test_the_server_tells_what_takes_the_disk(self):
        page = self.open("#/server")
        card = page.locator(".card", has=page.get_by_role("heading", name="Storage"))
        for part in ("Database", "Logs", "Numbers over time", "Sources and outputs", "Caches", "Free on this disk"):
            card.get_by_text(part).wait_for()
        told = self.server.http("GET", "/api/v1/server/storage").json()
        database = next(p for p in told["parts"] if p["name"] == "database")
        self.assertGreater(database["bytes"], os.path.getsize(os.path.join(self.server.home, "server", "athanor.db")) - 1)
        self.assertEqual(told["bytes"], sum(p["bytes"] for p in told["parts"]))


if __name__ == "__main__":
    harness.main()
