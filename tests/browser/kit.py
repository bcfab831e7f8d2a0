"""A real Chromium (Debian's) on the page of a real server. A test that ends with an error in the
browser's console, a script that threw, or a request to another host, has failed."""

import glob
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs

CHROMIUM = "/usr/bin/chromium"


def playwright():
    """Playwright from PyPI, its version fixed in clients/locks; it drives Debian's browser."""
    if not os.path.exists(CHROMIUM):
        raise unittest.SkipTest("Debian's chromium is not installed")
    python = venvs.locked("browser")
    folder = os.path.dirname(os.path.dirname(python))
    sys.path += glob.glob(os.path.join(folder, "lib", "python3*", "site-packages"))
    from playwright.sync_api import sync_playwright
    return sync_playwright()


class PageCase(harness.Case):
    """One server and one browser for the class, a fresh profile for each test: self.page."""

    viewport = {"width": 1280, "height": 800}
    scheme = "light"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        index = cls.server.http("GET", "/")
        if index.headers["Cache-Control"] == "no-store":
            raise unittest.SkipTest("this program was built without its page")
        started = playwright().start()
        cls.addClassCleanup(started.stop)
        # Chromium refuses its own sandbox to root; the pages are ours.
        cls.browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.allowed = []  # words of console errors that this test means to cause
        self.errors, self.foreign, self.dialogs = [], [], []
        self.own = [self.server.url + "/"]  # where requests may go
        self.context = self.browser.new_context(viewport=self.viewport, color_scheme=self.scheme)
        self.context.set_default_timeout(harness.PATIENCE * 1000)
        self.addCleanup(self.context.close)
        self.page = self.new_page()

    def new_page(self):
        page = self.context.new_page()
        page.on("console", lambda m: m.type == "error" and self.errors.append(m.text))
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        page.on("request", self.on_request)
        page.on("dialog", self.on_dialog)
        return page

    def on_request(self, request):
        if not request.url.startswith((*self.own, "data:", "blob:")):
            self.foreign.append(request.url)

    def on_dialog(self, dialog):
        """Only a script that should not have run opens one."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def open(self, place="", page=None):
        """The page at a place: "#/jobs"."""
        page = page or self.page
        page.goto(self.server.url + "/" + place)
        page.wait_for_selector("#page > *")
        return page

    def still(self, element):
        """Where it is, once it stays there: what is loaded above it may still move it."""
        element.wait_for()
        boxes = []

        def rests():
            boxes.append(element.bounding_box())
            time.sleep(0.1)
            return len(boxes) > 3 and boxes[-4:] == [boxes[-1]] * 4 and boxes[-1]
        return harness.until(rests, "it stays where it is")

    def tearDown(self):
        errors = [e for e in self.errors if not any(word in e for word in self.allowed)]
        self.assertEqual(errors, [], "errors in the browser")
        self.assertEqual(self.foreign, [], "requests to other hosts")
        self.assertEqual(self.dialogs, [], "a stored script ran")
