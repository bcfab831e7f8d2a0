"""The page behind a notebook's proxy, under a prefix: every request stays below it, the stream flows
and actions work."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase
from proxy import Proxy

import harness

PREFIX = "/user/ann/proxy/7070/"
TRAIN = """
    import athanor
    writer = athanor.SummaryWriter()
    for step in range(20):
        athanor.log(loss=1 / (step + 1), step=step)
        print("step", step, flush=True)
    writer.add_text("words", "**bold**", 1)
    writer.close()
    """


class Prefix(PageCase):
    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self.server.url.rpartition("/")[2], PREFIX)
        self.proxy.__enter__()
        self.addCleanup(self.proxy.__exit__)
        self.own = [self.proxy.url]

    def go(self, place):
        self.page.goto(self.proxy.url + place)
        self.page.wait_for_selector(".page h1")
        return self.page

    def test_every_view_and_an_action(self):
        done = self.server.python(TRAIN, flags=["--name", "trained"])
        self.server.wait(done)
        job = self.server.submit("sleep", "1000", flags=["--name", "sleeps"])
        self.server.until_state(job, "Running")
        self.addCleanup(lambda: self.server.ath("stop", job, "--now"))
        page = self.go("")
        page.get_by_text("Live").wait_for()
        page.locator(".job-card", has_text="sleeps").wait_for()
        self.go("#/job/trained/charts").locator(".chart canvas").first.wait_for()
        self.go("#/job/trained/logs").get_by_text("step 19").wait_for()
        self.go("#/job/trained/media").locator("strong", has_text="bold").wait_for()
        self.go("#/runs").locator(".grid-row", has_text="trained").wait_for()
        self.go("#/job/sleeps").get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop it").click()
        page.get_by_text("Asked to stop").wait_for()
        # What the stream tells comes through, too.
        page.get_by_role("button", name="Retry", exact=True).wait_for()
        self.assertEqual(self.proxy.strays, [])


if __name__ == "__main__":
    harness.main()
