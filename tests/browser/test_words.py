"""One word for one thing, one number for one duration, nothing that puzzles: what people read on the
page, what `ath` says of the same, and how it fits wide and narrow screens. Each names the planted bug
that turns it red."""

import csv
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

JSON = {"Content-Type": "application/json"}
# A metric and a parameter of the same name; one metric with a goal, some without.
TRAIN = """
    import athanor
    lr = float(athanor.params["lr"])
    for step in range(20):
        athanor.log({"loss": 1 / (lr * (step + 1)), "lr": lr / (step + 1), "grad_norm": lr * step}, step=step)
    writer = athanor.SummaryWriter()
    writer.add_hparams({"width": 64}, {"final": 0.5})
    writer.close()
    """


class Words(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("train.py", TRAIN)
        cls.jobs = [cls.server.submit("python3", "train.py", flags=[
            "--cpus", "0.1", "--name", "word-%d" % i, "--experiment", "words", "-p", "lr=%s" % lr])
            for i, lr in enumerate(("0.00013", "0.0021", "0.0731"))]
        for job in cls.jobs:
            cls.server.wait(job)
        cls.server.script("deaf.py", """
            import signal, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("deaf", flush=True)
            time.sleep(1000)
            """)
        cls.deaf = cls.server.submit("python3", "deaf.py", flags=["--name", "deaf", "--cpus", "0.1"])
        cls.addClassCleanup(lambda: cls.server.ath("stop", cls.deaf, "--now"))
        cls.server.until_log(cls.deaf, "deaf")
        # It holds the rest of the machine, so that another waits.
        cpus = cls.server.http("GET", "/api/v1/server").json()["machine"]["cpu_millis"] / 1000
        cls.holds = cls.server.submit("sleep", "1000", flags=["--name", "holds", "--cpus", "%g" % (cpus - 0.1)])
        cls.addClassCleanup(lambda: cls.server.ath("stop", cls.holds, "--now"))
        cls.server.until_state(cls.holds, "Running")
        cls.waits = cls.server.submit("sleep", "1000", flags=["--name", "waits", "--cpus", "%g" % cpus])
        cls.addClassCleanup(lambda: cls.server.ath("stop", cls.waits, "--now"))
        # One that never ran and never will.
        never = cls.server.submit("true", flags=["--name", "never", "--cpus", "%g" % cpus])
        cls.server.ath("stop", never, check=0)
        cls.server.wait(never)

    def compare(self, tab="differences"):
        return self.open("#/compare/%s?runs=%s" % (tab, ",".join(self.jobs)))

    # The planted bug: the time since it was submitted shown as what it took.
    def test_what_never_ran_took_nothing(self):
        page = self.open("#/runs")
        head = [one.inner_text().strip() for one in page.locator("[role=columnheader]").all()]
        for name in ("waits", "never"):
            row = page.locator(".grid-row", has=page.get_by_role("link", name=name, exact=True))
            cells = [cell.inner_text().strip() for cell in row.locator("[role=gridcell]").all()]
            self.assertEqual(cells[head.index("Took")], "–", name)
            self.assertRegex(cells[head.index("Created")], r"^\d+ [sm] ago$")
        page = self.open("#/job/waits")
        page.locator(".page-head").get_by_text(re.compile(r"waiting for \d")).wait_for()
        page = self.open("#/job/never")
        self.assertEqual(self.fact(page, "Took"), "–")
        self.assertEqual(self.fact(page, "Started"), "–")
        listed = [line.split() for line in self.server.ath("ps", check=0).stdout.splitlines()]
        for line in listed:
            if line and line[0] in ("waits", "never"):
                self.assertEqual(line[6], "-", line)
        for name in ("waits", "never"):
            self.assertRegex(self.server.ath("show", name, check=0).stdout, r"(?m)^  took +-$")
            self.assertNotIn(" after ", self.server.ath("why", name, check=0).stdout.splitlines()[0])

    def fact(self, page, name):
        term = page.locator("dl.facts dt", has_text=re.compile("^%s$" % name)).first
        return term.locator("xpath=following-sibling::dd[1]").inner_text().strip()

    # The planted bug: one of them counting from another moment, or in other words.
    def test_page_and_program_say_the_same_duration(self):
        shown = re.search(r"(?m)^  took +(.+)$", self.server.ath("show", "word-0", check=0).stdout).group(1)
        self.assertRegex(shown, r"^[\d.]+ (ms|s)$|^\d+ m( \d\d s)?$")
        row = next(line for line in self.server.ath("ps", check=0).stdout.splitlines() if line.startswith("word-0"))
        self.assertIn("  %s  " % shown, row)
        self.assertIn("after " + shown, self.server.ath("why", "word-0", check=0).stdout)
        page = self.open("#/job/word-0")
        self.assertEqual(self.fact(page, "Took"), shown)
        page.locator(".page-head").get_by_text(shown, exact=True).wait_for()
        page = self.open("#/runs")
        page.locator(".grid-row", has_text="word-0").get_by_text(shown, exact=True).wait_for()

    # The planted bug: "Finished" for runs that no job made.
    def test_one_word_for_one_state(self):
        run = self.server.http("POST", "/api/2.0/mlflow/runs/create", {"experiment_id": "0", "run_name": "bare"}, JSON).json()
        run = run["run"]["info"]["run_id"]
        self.server.http("POST", "/api/2.0/mlflow/runs/update", {"run_id": run, "status": "FINISHED"}, JSON)
        page = self.open("#/runs")
        page.locator(".grid-row", has_text="bare").get_by_text("Completed").wait_for()
        self.assertRegex(self.server.ath("runs", check=0).stdout, r"(?m)bare.*Completed")
        self.assertEqual(self.server.ath("wait", "word-0", check=0).stdout, "word-0 Completed\n")

    # The planted bug: every metric has its best, in green.
    def test_best_only_where_better_is_known(self):
        page = self.compare()
        row = lambda name: page.locator(".diff-table tr", has=page.locator("td:first-child", has_text=re.compile("^%s$" % name)))
        row("loss").locator("td.best").wait_for()
        self.assertEqual(row("loss").locator("td.best").count(), 1)
        self.assertEqual(row("grad_norm").locator("td.best").count(), 0)
        self.assertEqual(page.locator("td.best").count(), 1)

    # The planted bug: both columns called "lr".
    def test_a_metric_and_a_parameter_of_one_name(self):
        page = self.open("#/runs?cols=state,m:lr,p:lr")
        for title in ("lr (metric)", "lr (parameter)"):
            page.get_by_role("columnheader", name=title).wait_for()
        page.get_by_role("button", name="Columns").click()
        chips = page.get_by_role("dialog").locator(".chip")
        self.assertEqual([chip.inner_text() for chip in chips.all()], ["State", "lr (metric)", "lr (parameter)"])
        page.get_by_role("button", name="Done").click()
        page.get_by_role("button", name="More", exact=True).click()
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save as CSV").click()
        with open(saved.value.path(), newline="") as file:
            table = list(csv.reader(file))
        self.assertEqual(table[0], ["id", "Name", "State", "metrics.lr", "params.lr"])
        mine = {line[1]: line for line in table[1:]}["word-2"]
        self.assertEqual(float(mine[3]), 0.0731 / 20)
        self.assertEqual(mine[4], "0.0731")
        page = self.compare("explore")
        groups = page.get_by_label("x", exact=True).locator("optgroup")
        harness.until(lambda: [one.get_attribute("label") for one in groups.all()] == ["Parameters", "Metrics"],
                      "parameters and metrics stand apart")

    # The planted bug: sizes in other units than `ath` has them.
    def test_one_system_of_units(self):
        page = self.open("#/server")
        machine = page.locator("section.card", has=page.get_by_role("heading", name="Machine"))
        memory = machine.locator("dt", has_text="Memory").locator("xpath=following-sibling::dd[1]").inner_text()
        self.assertRegex(memory, r"^[\d.]+ [KMGT]iB$")
        self.assertIn(memory, self.server.ath("server", "status", check=0).stdout)

    # The planted bug: ids, or no name, in the title of the tab.
    def test_tabs_have_the_names_of_what_they_show(self):
        for place, title in (("#/job/%s/charts" % self.jobs[0], "word-0"), ("#/queue", "Queue"), ("#/new", "New job"),
                             ("#/runs?experiment=words", "words"), ("#/compare?runs=" + ",".join(self.jobs), "Compare 3 runs")):
            page = self.open(place)
            harness.until(lambda: re.sub(r"^\(\d+\) ", "", page.title()) == title + " · Athanor", "the tab is called " + title)

    # The planted bug: words behind a command drawn, and copied, as part of it.
    def test_only_what_a_shell_runs_is_drawn_as_a_command(self):
        self.server.ath("stop", self.deaf, check=0)
        page = self.open("#/job/deaf")
        page.get_by_text("to save and end").wait_for()
        commands = page.locator(".command code").all_inner_texts()
        self.assertEqual(commands, ["ath wait deaf"])
        page.get_by_role("button", name="Copy ath wait deaf", exact=True).wait_for()

    # The planted bug: one click, and a week of training is gone.
    def test_stop_asks_first(self):
        job = self.server.submit("sleep", "1000", flags=["--name", "asked"])
        self.addCleanup(lambda: self.server.ath("stop", job, "--now"))
        page = self.open("#/job/asked")
        page.get_by_role("button", name="Stop", exact=True).click()
        dialog = page.get_by_role("dialog", name="Stop asked?")
        dialog.get_by_role("button", name="Let it run").click()
        dialog.wait_for(state="detached")
        self.assertFalse(self.server.show(job).get("stop"))
        page.get_by_role("button", name="Stop", exact=True).click()
        dialog.get_by_role("button", name="Stop it").click()
        self.assertEqual(self.server.wait(job)["state"], "Stopped")

    # The planted bug: the search's own language shown to who typed a word.
    def test_a_word_is_searched_for_and_stays_a_word(self):
        page = self.open("#/runs")
        box = page.get_by_label("Filter", exact=True)
        box.fill("word-1")
        box.press("Enter")
        page.get_by_text("1 run", exact=True).wait_for()
        self.assertEqual(box.input_value(), "word-1")
        page.get_by_role("button", name="Add filter").click()
        said = page.get_by_label("Comparator").inner_text()
        self.assertIn("contains", said)
        self.assertNotIn("LIKE", said)

    # The planted bug: a card for each of the plugin's tags, two of them empty.
    def test_hyper_parameters_are_one_card(self):
        page = self.open("#/job/word-0/media")
        page.get_by_role("heading", name="Hyper-parameters").wait_for()
        page.get_by_text("width").wait_for()
        self.assertNotIn("_hparams_", page.locator(".page").inner_text())
        self.assertNotIn("Nothing to show", page.locator(".page").inner_text())

    # The planted bug: as many columns as fit, however few charts there are.
    def test_charts_fill_a_wide_screen(self):
        self.page.set_viewport_size({"width": 1920, "height": 1000})
        page = self.open("#/job/word-0/charts")
        charts = page.locator(".charts").first
        charts.locator(".chart canvas").first.wait_for()
        right = lambda: max(one.bounding_box()["x"] + one.bounding_box()["width"] for one in charts.locator(".chart").all())
        whole = self.still(charts)
        self.assertAlmostEqual(right(), whole["x"] + whole["width"], delta=2)

    # The planted bug: a row of links that runs out of the screen; titles of axes over each other.
    def test_a_narrow_screen_has_all_of_it(self):
        self.page.set_viewport_size({"width": 390, "height": 844})
        page = self.compare("explore")
        links = page.locator(".nav-link")
        self.assertEqual(links.count(), 8)
        for link in links.all():
            box = link.bounding_box()
            self.assertTrue(box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["width"] > 40, link.inner_text())
            self.assertTrue(link.evaluate("(a) => a.scrollWidth <= a.clientWidth + 1"), link.inner_text())
        # Where titles are written, as the canvas is told: none begins before the one left of it ends.
        page.add_init_script("""
            window.written = [];
            const fill = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
              if (y === 16) window.written.push([this.canvas.getAttribute('aria-label'), text, x, this.measureText(text).width]);
              return fill.apply(this, arguments);
            };
            """)
        page.reload()
        harness.until(lambda: page.evaluate("() => window.written.length") >= 2, "the axes are drawn")
        drawn = page.evaluate("() => window.written")
        last = [one for one in drawn if one[0] == drawn[-1][0]][-2:]
        (_, _, left, wide), (_, _, right, wide_right) = last
        self.assertLess(left + wide / 2, right - wide_right / 2)

    # The planted bug: plain, or all of it again, to a browser that has it.
    def test_a_browser_gets_it_compressed_and_once(self):
        page = self.open("#/server")
        page.get_by_role("heading", name="Server", exact=True).wait_for()
        sizes = page.evaluate("""async () => {
            const url = new URL('api/v1/runs?filter=' + encodeURIComponent("attributes.run_name ILIKE 'word-%'"), document.baseURI).href;
            for (let i = 0; i < 2; ++i) await (await fetch(url)).text();
            return performance.getEntriesByName(url).map((one) => [one.transferSize, one.encodedBodySize, one.decodedBodySize]);
        }""")
        (first, packed, whole), (again, _, same) = sizes
        self.assertGreater(whole, 1024)
        self.assertLess(packed, whole)
        self.assertGreater(first, packed)
        self.assertEqual(same, whole)
        self.assertLess(again, packed)  # the head of a 304, without a body

    # The planted bug: the whole list again, whoever's job has news.
    def test_what_did_not_change_does_not_travel(self):
        asked = []
        self.page.on("request", lambda request: asked.append(request.url))
        page = self.compare("charts")
        page.locator(".chart canvas").first.wait_for()
        # Beside it one that is about all runs, and so about the other one: when it has asked for that
        # one, the first would have asked, too, having heard of it at the same time.
        beside, other = [], self.new_page()
        other.on("request", lambda request: beside.append(request.url))
        self.open("#/compare/explore", other)
        other.get_by_role("heading", name="Parallel coordinates").wait_for()
        page.get_by_text("Live").wait_for()
        del asked[:], beside[:]
        job = self.server.submit("true", flags=["--name", "another"])
        self.server.ath("stop", job, check=0)
        news = lambda: [url for url in beside if "/api/v1/runs?" in url]

        def told():
            other.wait_for_timeout(50)  # the browser's events are heard while it is waited for
            return news()
        harness.until(told, "the other page has asked for what is new")
        self.assertTrue(all(job in url for url in news()), news())
        self.assertEqual([url for url in asked if "/api/v1/runs" in url], [])


if __name__ == "__main__":
    harness.main()
