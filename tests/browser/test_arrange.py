"""Charts are resized, moved and zoomed by hand and by keys, and an address or a saved view brings it
all back."""

import os
import re
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

# More points than pixels, a second apart: the whole is sampled, a range of it is not.
LONG = """
    import athanor, time
    for step in range(20000):
        athanor.log({"train/loss": 1 / (step + 1), "train/lr": step, "val/loss": 2 / (step + 1), "plain": step % 7}, step=step)
        if step % 2000 == 0: time.sleep(0.1)
    """


class Arrange(PageCase):
    viewport = {"width": 1400, "height": 1300}  # what is dragged, and where to, are in view at once

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = cls.server.python(LONG, flags=["--name", "long", "--cpus", "0.5"])
        cls.server.wait(cls.job)

    def card(self, name):
        return self.page.locator(".chart", has=self.page.get_by_role("heading", name=name, exact=True))

    def charts(self, query=""):
        self.open("#/job/long/charts" + query)
        self.card("plain").locator("canvas").wait_for()

    def order(self, section):
        return self.page.get_by_role("region", name=section, exact=True).locator(".chart h3").all_inner_texts()

    def test_a_corner_is_dragged(self):
        self.charts()
        card = self.card("train/loss")
        card.scroll_into_view_if_needed()
        card.locator("canvas").wait_for()
        before = self.still(card)
        corner = card.get_by_role("button", name="Resize train/loss")
        card.hover()
        box = self.still(corner)
        mouse = self.page.mouse
        mouse.move(box["x"] + 8, box["y"] + 8)
        mouse.down()
        mouse.move(box["x"] + 8 + before["width"], box["y"] + 88, steps=5)
        mouse.up()
        self.page.wait_for_url(re.compile("size="))
        after = card.bounding_box()
        self.assertAlmostEqual(after["height"], before["height"] + 80, delta=3)
        self.assertAlmostEqual(after["width"], 2 * before["width"] + 12, delta=3)
        canvas = card.locator("canvas").bounding_box()
        self.assertGreater(canvas["width"], 1.8 * before["width"] - 60)
        # The address brings it back, in a page that knows nothing else.
        place = self.page.url.partition("#")[2]
        other = self.new_page()
        self.open("#" + place, other)
        again = other.locator(".chart", has=other.get_by_role("heading", name="train/loss", exact=True))
        again.locator("canvas").wait_for()
        self.assertAlmostEqual(again.bounding_box()["height"], after["height"], delta=2)

    def test_the_arrow_keys_resize_and_the_menu_puts_back(self):
        self.charts()
        corner = self.card("plain").get_by_role("button", name="Resize plain")
        before = self.card("plain").bounding_box()["height"]
        corner.focus()
        for _ in range(3):
            corner.press("ArrowDown")
        harness.until(lambda: abs(self.card("plain").bounding_box()["height"] - before - 60) < 3, "60 pixels more")
        self.menu("plain", "Usual size and place")
        harness.until(lambda: abs(self.card("plain").bounding_box()["height"] - before) < 3, "as before")

    def menu(self, name, choice):
        self.card(name).hover()
        self.card(name).get_by_role("button", name="More for " + name).click()
        self.card(name).get_by_role("button", name=choice).click()

    def test_a_chart_is_dragged_before_another_and_into_another_section(self):
        self.charts()
        self.assertEqual(self.order("train"), ["train/loss", "train/lr"])
        self.card("train/lr").locator("header").drag_to(self.card("train/loss"))
        harness.until(lambda: self.order("train") == ["train/lr", "train/loss"], "the order is another")
        self.card("val/loss").locator("header").drag_to(self.page.locator(".section-head", has_text="train"))
        harness.until(lambda: self.order("train") == ["train/lr", "train/loss", "val/loss"], "it is in the section")
        self.page.reload()
        harness.until(lambda: self.order("train") == ["train/lr", "train/loss", "val/loss"], "the address has it")

    def test_a_new_section_and_a_saved_view(self):
        self.charts()
        self.menu("plain", "Move to a section…")
        self.page.get_by_label("Name of a new section").fill("my: own, one;")
        self.page.get_by_role("dialog").get_by_role("button", name="Move").click()
        harness.until(lambda: self.order("my: own, one;") == ["plain"], "it is in the new section")
        self.menu("val/loss", "Move to a section…")
        self.page.get_by_role("dialog").get_by_role("button", name="my: own, one;").click()
        harness.until(lambda: self.order("my: own, one;") == ["plain", "val/loss"], "so is the other")
        self.menu("val/loss", "Move earlier")
        harness.until(lambda: self.order("my: own, one;") == ["val/loss", "plain"], "it moved up")
        self.page.get_by_role("button", name="Views").click()
        self.page.get_by_label("Name of this view").fill("mine")
        self.page.get_by_role("button", name="Save", exact=True).click()
        self.charts()
        self.assertEqual(self.order("metrics"), ["plain"])
        self.page.get_by_role("button", name="Views").click()
        self.page.get_by_role("button", name="mine", exact=True).click()
        harness.until(lambda: self.order("my: own, one;") == ["val/loss", "plain"], "the view is back")

    def zoomed_on(self, axis):
        """Asks for the steps under the range, whatever the axis is."""
        self.charts("?find=plain&x=" + axis)
        box = self.still(self.card("plain").locator(".u-over"))
        mouse = self.page.mouse
        with self.page.expect_request(lambda r: "/metrics/plain" in r.url and "from=" in r.url) as asked:
            mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
            mouse.down()
            mouse.move(box["x"] + box["width"] * 0.42, box["y"] + 60, steps=4)
            mouse.up()
        query = urllib.parse.parse_qs(urllib.parse.urlparse(asked.value.url).query)
        first, last = int(query["from"][0]), int(query["to"][0])
        self.assertTrue(0 <= first < last <= 20000, (first, last))
        self.assertLess(last - first, 8000)
        # A zoom may end between two samples of the whole; it is still a range of it.
        self.page.wait_for_url(re.compile("zoom="))

    def test_zoom_by_step_asks_for_detail(self):
        self.zoomed_on("step")

    def test_zoom_by_wall_time_asks_for_detail(self):
        self.zoomed_on("time")

    def test_zoom_by_time_since_start_asks_for_detail(self):
        self.zoomed_on("relative")

    def test_zoom_by_another_metric_asks_for_detail(self):
        self.zoomed_on("m:train/lr")


if __name__ == "__main__":
    harness.main()
