"""Everybody can use the page: axe-core finds nothing serious on any view, in light, dark and on a
narrow screen. With ATHANOR_SHOTS=FOLDER each view is also kept there as a picture, to be looked at."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

AXE = os.path.join(harness.TREE, "build", "web", "work", "node_modules", "axe-core", "axe.min.js")
SHOTS = os.environ.get("ATHANOR_SHOTS", "")
TRAIN = """
    import math, random
    import athanor
    lr = float(athanor.params["lr"])
    random.seed(lr)
    for step in range(300):
        loss = 2 * math.exp(-step * lr / 40) + 0.1 * random.random()
        athanor.log({"train/loss": loss, "train/accuracy": 1 - loss / 2.2, "grad_norm": random.random()}, step=step)
        if step % 10 == 0:
            athanor.log({"val/loss": loss * 1.1}, step=step)
            print("step %3d  \\x1b[1mloss\\x1b[0m %.4f" % (step, loss), flush=True)
    writer = athanor.SummaryWriter()
    for step in range(0, 300, 10):
        writer.add_histogram("weights", [random.gauss(step / 100, 1 + lr) for _ in range(400)], step)
        writer.add_text("note", "# step %d\\n\\n- **good**" % step, step)
    writer.add_hparams({"lr": lr, "opt": "adam"}, {"final": loss})
    writer.close()
    if athanor.params.get("fail", 0): raise ValueError("expected 4 columns, found 3")
    """
PLACES = {
    "home": "", "runs": "#/runs", "overview": "#/job/fit-0", "charts": "#/job/fit-0/charts?smooth=0.8",
    "logs": "#/job/falls/logs?q=loss", "system": "#/job/fit-0/system", "media": "#/job/fit-0/media",
    "artifacts": "#/job/fit-0/artifacts", "source": "#/job/fit-0/source", "events": "#/job/falls/events",
    "failed": "#/job/falls", "differences": "#/compare/differences?runs=fit-0,fit-1,fit-2",
    "overlay": "#/compare/charts?runs=fit-0,fit-1,fit-2", "explore": "#/compare/explore?experiment=fits",
    "experiments": "#/experiments", "models": "#/models", "studies": "#/studies", "queue": "#/queue",
    "server": "#/server", "new": "#/new?source=fit-0",
    "arranged": "#/job/fit-0/charts?sec=mine%3Agrad_norm%2Cval%252Floss&size=val%252Floss%3A2%3A330"}


class Access(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("train.py", TRAIN)

        def run(name, *flags):
            return cls.server.submit("python3", "train.py", flags=[
                "--cpus", "0.1", "--name", name, "--experiment", "fits", *flags])

        jobs = [run("fit-%d" % i, "-p", "lr=%g" % lr) for i, lr in enumerate((0.3, 0.6, 1.2))]
        for job in [*jobs, run("falls", "-p", "lr=1", "-p", "fail=1")]:
            cls.server.wait(job)
        with open(AXE) as file:
            cls.axe = file.read()

    def every_view(self, mode, scheme="light", width=1360, height=860):
        self.allowed = ["404"]  # studies, where the server has none
        self.context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme)
        self.addCleanup(self.context.close)
        self.page = self.new_page()
        found = []
        for name, place in PLACES.items():
            self.open(place)
            self.page.locator(".page h1, .page .empty").first.wait_for()
            harness.until(lambda: self.page.locator(".loading").count() == 0, name + " has loaded")
            self.page.evaluate(self.axe)
            violations = self.page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
            found += ["%s: %s: %s" % (name, v["help"], v["nodes"][0]["html"][:200])
                      for v in violations if v["impact"] in ("serious", "critical")]
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            found += ["%s is %d wide" % (name, wide)] if wide > width else []
            if SHOTS:
                self.page.screenshot(path=os.path.join(SHOTS, "%s-%s.png" % (name, mode)))
        self.assertEqual(found, [])

    def test_light(self):
        self.every_view("light")

    def test_dark(self):
        self.every_view("dark", scheme="dark")

    def test_narrow(self):
        self.every_view("narrow", width=390, height=800)


if __name__ == "__main__":
    harness.main()
