"""A study of real jobs on its page: best so far, best trial, importance, parallel coordinates,
slices, learning curves and trials; and it follows one that runs."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

SCRIPT = """
    import os, athanor
    x, y = float(os.environ["SM_HP_X"]), float(os.environ["SM_HP_Y"])
    for step in range(1, 6):
        athanor.log(loss=(x - 0.3) ** 2 + 0.01 * y + 1 / step, step=step)
    """
JOB = """
    name: hills
    run: python3 train.py
    tune:
      metric: loss
      space:
        x: {type: float, low: 0, high: 1}
        y: {type: float, low: 0, high: 1}
        fixed: 3
      seed: 7
      max_trials: 8
      parallel: 2
    """


class StudyPage(PageCase):
    viewport = {"width": 1280, "height": 3000}  # what is out of sight is not drawn

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("train.py", SCRIPT)
        cls.server.script("job.yaml", JOB)
        done = cls.server.ath("tune", "job.yaml", "-q")
        assert done.returncode == 0, done.stderr

    def study(self):
        return json.loads(self.server.ath("tune", "show", "hills", "--json").stdout)

    def test_shows_all_of_it(self):
        page = self.open("#/studies")
        page.get_by_role("link", name="hills").first.click()
        page.get_by_role("heading", name="hills", exact=True).wait_for()
        best = self.study()["best"]
        page.get_by_role("link", name=best["name"]).first.wait_for()
        for title in ("Best so far", "Best trial", "Importance", "Parallel coordinates", "Slices",
                      "Learning curves of the best", "8 trials"):
            page.get_by_role("heading", name=title, exact=True).wait_for()
        for parameter in ("x", "y"):  # what never varies has no slice
            page.get_by_role("img", name="loss over %s of 8 runs" % parameter, exact=True).wait_for()
        self.assertEqual(page.get_by_role("img", name=re.compile("loss over .* of 8 runs")).count(), 2)
        rows = page.locator("tbody tr")
        self.assertEqual(rows.count(), 8)
        self.assertEqual(rows.first.locator("td").first.inner_text(), str(best["trial"]))
        page.locator(".u-over").first.wait_for()  # the curves are drawn
        page.get_by_role("link", name=best["name"]).first.click()
        page.wait_for_url(re.compile("#/job/"))

    def test_follows_one_that_goes_on(self):
        self.server.ath("tune", "job.yaml", "--name", "longer", "--max-trials", "2", "-q")
        page = self.open("#/studies/longer")
        page.get_by_text("2 of 2").wait_for()
        self.server.ath("tune", "extend", "longer", "--max-trials", "4", "-q")
        page.get_by_text("4 of 4").wait_for()


if __name__ == "__main__":
    harness.main()
