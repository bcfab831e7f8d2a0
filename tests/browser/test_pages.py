"""Every view of the page, on a server with real jobs: what it shows is what the server knows, an
address restores it, and it moves without being asked."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

TRAIN = """
    import os, sys, time
    import athanor
    steps = int(athanor.params.get("steps", 60))
    lr = float(athanor.params.get("lr", 0.1))
    print("\\x1b[32mgreen\\x1b[0m line", flush=True)
    for step in range(steps):
        loss = float("nan") if step == 7 else lr + 1.0 / (step + 1)
        athanor.log({"train/loss": loss, "accuracy": 1 - lr}, step=step)
        print("step", step, flush=True)
    if athanor.params.get("fail", 0): raise ValueError("the shapes do not match")
    wait = athanor.params.get("wait", "")
    while wait and not os.path.exists(wait): time.sleep(0.02)
    """


class Pages(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("train.py", TRAIN)

        def run(name, *flags):
            return cls.server.submit("python3", "train.py", flags=[
                "--cpus", "0.1", "--name", name, "--experiment", "mnist", *flags])

        cls.jobs = [run("fit-%d" % i, "-p", "lr=%g" % lr, "-p", "opt=" + opt)
                    for i, (lr, opt) in enumerate([(0.1, "adam"), (0.2, "sgd"), (0.4, "sgd")])]
        cls.failed = run("falls", "-p", "fail=1")
        for job in [*cls.jobs, cls.failed]:
            cls.server.wait(job)

    def at(self, place, *texts):
        """Opens a place and waits for each text."""
        self.open(place)
        for text in texts:
            self.page.get_by_text(text).locator("visible=true").first.wait_for()
        return self.page

    def test_home_tells_what_failed_and_why(self):
        self.at("", "Failed lately", "the shapes do not match", "ath why falls")

    def test_the_table_filters_sorts_and_keeps_it_in_the_address(self):
        page = self.at("#/runs", "fit-0")
        box = page.get_by_label("Filter", exact=True)
        box.fill("params.opt = 'sgd'")
        box.press("Enter")
        page.get_by_text("fit-0").wait_for(state="detached")
        page.get_by_text("2 runs").wait_for()
        page.get_by_role("button", name="accuracy").click()
        page.wait_for_url(re.compile("order="))
        names = page.locator(".grid-row a").all_inner_texts()
        self.assertEqual(names, ["fit-2", "fit-1"])
        page.reload()
        page.get_by_text("2 runs").wait_for()

    def test_a_filter_is_completed_from_names_that_exist(self):
        page = self.at("#/runs", "fit-0")
        box = page.get_by_label("Filter", exact=True)
        box.press_sequentially("met")
        page.get_by_role("option", name="metrics.").click()
        page.get_by_role("option", name="train/loss").click()
        self.assertEqual(box.input_value(), "metrics.`train/loss` ")
        page.get_by_role("option", name="<=").wait_for()

    def test_a_wrong_filter_says_what_is_wrong(self):
        self.allowed = ["400"]
        page = self.at("#/runs", "fit-0")
        box = page.get_by_label("Filter", exact=True)
        box.fill("metrics.loss <")
        box.press("Enter")
        page.get_by_role("alert").wait_for()
        self.assertEqual(box.get_attribute("aria-invalid"), "true")

    def test_a_filter_is_clicked_together(self):
        page = self.at("#/runs", "fit-0")
        page.get_by_role("button", name="Add filter").click()
        page.get_by_label("Kind").select_option("param")
        page.locator(".chooser label", has_text="opt").click()
        page.get_by_label("Value").fill("adam")
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_text("1 run", exact=True).wait_for()

    def test_columns_are_chosen_and_rows_grouped(self):
        page = self.at("#/runs", "fit-0")
        page.get_by_role("button", name="Columns").click()
        page.get_by_label("Search names").fill("accur")
        page.locator(".chooser label", has_text="accuracy").click()
        page.get_by_role("button", name="Done").click()
        page.wait_for_url(re.compile("cols="))
        page.get_by_role("button", name="Group", exact=True).click()
        page.locator(".pop").get_by_role("button", name="opt", exact=True).click()
        page.get_by_text("opt = sgd").wait_for()
        page.get_by_role("button", name="Fold opt = sgd").click()
        page.get_by_text("fit-2").wait_for(state="detached")

    def test_a_view_is_saved_and_opened_again(self):
        page = self.at("#/runs?filter=params.opt+%3D+%27sgd%27", "fit-1")
        page.get_by_role("button", name="Views").click()
        page.get_by_label("Name of this view").fill("only sgd")
        page.get_by_role("button", name="Save", exact=True).click()
        self.open("#/runs")
        page.get_by_text("4 runs").wait_for()
        page.get_by_role("button", name="Views").click()
        page.get_by_role("button", name="only sgd", exact=True).click()
        page.get_by_text("2 runs").wait_for()

    def test_keys_move_open_and_are_listed(self):
        page = self.at("#/runs?order=attributes.run_name+ASC", "fit-0")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.locator(".grid-row.current", has_text="falls").wait_for()
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        keys.get_by_text("Next row").wait_for()
        page.keyboard.press("Escape")
        keys.wait_for(state="hidden")  # an Enter before that is the dialog's
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="falls").wait_for()
        page.keyboard.press("g")
        page.keyboard.press("h")
        page.get_by_text("Failed lately").wait_for()

    def test_a_pinned_run_stays_on_top(self):
        page = self.at("#/runs?order=attributes.run_name+DESC", "fit-0")
        page.locator(".grid-row", has_text="falls").hover()
        page.get_by_role("button", name="Pin falls").first.click()
        harness.until(lambda: page.locator(".grid-row a").all_inner_texts()[:1] == ["falls"],
                      "the pinned run is first")
        page.reload()
        harness.until(lambda: page.locator(".grid-row a").all_inner_texts()[:1] == ["falls"],
                      "the pinned run is first again")

    def test_the_overview_of_a_job(self):
        page = self.at("#/job/falls", "ValueError", "Timeline", "Parameters", "train/loss")
        page.get_by_text("ath logs falls").first.wait_for()

    def test_charts_draw_and_mark_what_is_no_number(self):
        page = self.at("#/job/fit-0/charts", "train/loss")
        page.locator(".chart canvas").first.wait_for()
        page.locator("section[aria-label='train/loss'] .u-over").hover()
        page.locator(".tip-row", has_text="fit-0").first.wait_for()
        page.get_by_label("Smoothing").fill("0.9")
        page.get_by_label("log y").check()
        page.wait_for_url(re.compile("logy=1"))

    def test_a_drag_zooms_and_the_address_restores_it(self):
        page = self.at("#/job/fit-0/charts", "accuracy")
        over = page.locator("section[aria-label='accuracy'] .u-over")
        box = self.still(over)
        page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40, steps=5)
        page.mouse.up()
        page.wait_for_url(re.compile("zoom="))
        page.reload()
        page.get_by_role("button", name="Whole range").click()
        page.wait_for_url(lambda url: "zoom=" not in url)

    def test_a_chart_is_saved_as_png_svg_and_csv(self):
        page = self.at("#/job/fit-0/charts", "accuracy")
        card = page.locator("section[aria-label='accuracy']")
        card.locator("canvas").wait_for()
        for kind, head in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("CSV", b"run,metric,step")):
            card.hover()
            card.get_by_role("button", name="More for accuracy").click()
            with page.expect_download() as download:
                card.get_by_role("button", name="Save as " + kind).click()
            with open(download.value.path(), "rb") as file:
                self.assertEqual(file.read(len(head)), head)

    def test_the_log_is_searched_linked_and_coloured(self):
        page = self.at("#/job/falls/logs?line=3", "step 1")
        page.locator(".log-line.on", has_text="step 1").wait_for()
        self.assertTrue(page.locator(".log-line span", has_text="green").last.get_attribute("style"))
        page.get_by_label("Search the log").fill("step 4")
        page.get_by_text("11 matches").wait_for()
        page.locator(".log-matches button").nth(1).click()
        page.wait_for_url(re.compile("line=42"))
        page.get_by_role("button", name="First error").click()
        page.locator(".log-line.error.on", has_text="Traceback").wait_for()

    def test_source_environment_and_events(self):
        self.at("#/job/fit-0/source", "train.py", "athanor.log", "Environment")
        self.at("#/job/fit-0/events", "Script started")

    def test_artifacts_system_and_media_say_when_there_is_nothing(self):
        self.at("#/job/fit-0/artifacts", "No artifacts")
        self.at("#/job/fit-0/system", "Memory peak")
        self.at("#/job/fit-0/media", "No media")

    def test_compare_shows_differences_only_and_explores(self):
        page = self.at("#/compare?runs=fit-0,fit-1", "What differs")
        row = page.locator("tr", has_text="opt").first
        self.assertIn("adam", row.inner_text())
        self.assertIn("sgd", row.inner_text())
        self.assertEqual(page.locator("tr", has_text="steps").count(), 0)
        self.at("#/compare/charts?runs=fit-0,fit-1", "train/loss")
        page.locator(".chart canvas").first.wait_for()
        self.at("#/compare/explore?experiment=mnist", "Parallel coordinates", "Scatter", "Best so far")

    def test_brushing_keeps_the_runs_that_pass(self):
        page = self.at("#/compare/explore?experiment=mnist&metric=accuracy", "Parallel coordinates")
        canvas = page.get_by_role("img", name=re.compile("Parallel"))
        box = self.still(canvas)
        x = box["x"] + box["width"] - 60
        page.mouse.move(x, box["y"] + 25)
        page.mouse.down()
        page.mouse.move(x, box["y"] + box["height"] / 2, steps=4)
        page.mouse.up()
        page.get_by_text(re.compile(r"^\d of 4 runs$")).wait_for()
        page.get_by_role("link", name="Compare these").wait_for()

    def test_experiments_models_queue_server_and_nothing(self):
        self.at("#/experiments", "mnist")
        self.at("#/models", "No model is registered")
        self.at("#/queue", "Nothing waits")
        self.at("#/server", self.server.home)
        self.at("#/no-such-place", "There is no such page")
        self.allowed = ["404"]
        self.at("#/job/nobody", "ath ps")


class Media(PageCase):
    def test_histograms_texts_and_hparams_of_event_files(self):
        self.server.script("m.py", """
            import random
            import athanor
            writer = athanor.SummaryWriter()
            for step in range(5):
                writer.add_histogram("weights", [random.gauss(step, 1) for _ in range(99)], step)
                writer.add_text("words", "**bold** <i>not</i> of step %d" % step, step)
            writer.add_hparams({"lr": 0.25}, {"final": 1.0})
            writer.close()
            """)
        job = self.server.submit("python3", "m.py", flags=["--name", "media"])
        self.server.wait(job)
        page = self.open("#/job/media/media")
        page.get_by_role("img", name=re.compile("Distribution of weights over 5 steps")).wait_for()
        page.get_by_role("button", name="Map").click()
        card = page.locator(".card", has_text="words")
        card.get_by_text("<i>not</i> of step 4").wait_for()
        self.assertEqual(card.locator("strong").inner_text(), "bold")
        card.get_by_role("slider").fill("0")
        card.get_by_text("of step 0").wait_for()
        page.get_by_text("0.25").first.wait_for()


class Live(PageCase):
    def test_a_job_appears_moves_and_ends_without_a_reload(self):
        page = self.open()
        page.get_by_text("ath run -- python train.py").first.wait_for()
        self.server.script("train.py", TRAIN)
        go = os.path.join(self.server.root, "go")
        job = self.server.submit("python3", "train.py", flags=[
            "--name", "moves", "-p", "wait=" + go])
        card = page.locator(".job-card", has_text="moves")
        card.get_by_text("step 59").wait_for()
        self.server.go("go")
        self.server.wait(job)
        page.get_by_text("Nothing runs now").wait_for()
        page.get_by_text("Completed").first.wait_for()

    def test_a_second_tab_shares_the_first_ones_stream(self):
        page = self.open()
        streams = []
        page.get_by_text("Live").wait_for()
        other = self.context.new_page()
        other.on("request", lambda r: "/api/v1/live" in r.url and streams.append(r.url))
        self.open(page=other)
        other.get_by_text("Live").wait_for()
        job = self.server.submit("sleep", "1000", flags=["--name", "shared"])
        other.locator(".job-card", has_text="shared").wait_for()
        self.assertEqual(streams, [])
        page.close()  # the one that holds the stream
        self.server.ath("stop", job, "--now", check=0)
        other.locator(".job-card", has_text="shared").wait_for(state="detached")
        self.assertEqual(len(streams), 1)

    def test_a_server_that_goes_away_is_told_and_found_again(self):
        page = self.open()
        page.get_by_text("Live").wait_for()
        self.allowed = ["net::ERR", "Failed to load resource"]
        port = self.server.url.rpartition(":")[2]
        self.server.kill()
        page.get_by_text("The connection was lost").wait_for()
        with open(self.server.log, "ab") as log:
            self.server.process = subprocess.Popen(
                [harness.ATH, "serve", "--port", port, "--json"], env=self.server.environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self.server.process.stdout.readline()
        page.get_by_text("The connection was lost").wait_for(state="detached")


if __name__ == "__main__":
    harness.main()
