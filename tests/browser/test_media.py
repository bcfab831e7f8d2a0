"""What torch's and tensorboardX's own SummaryWriters write in a job is shown: every kind, drawn from
the real files."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness
import venvs

WRITE = """
    import sys
    import numpy, torch
    if sys.argv[1] == "torch":
        from torch.utils.tensorboard import SummaryWriter
    else:
        from tensorboardX import SummaryWriter
    torch.manual_seed(0)
    writer = SummaryWriter()
    for step in range(4):
        writer.add_scalar("loss", 1 / (step + 1), step)
        values = torch.randn(500).numpy() + step
        if sys.argv[1] == "torch":  # Debian's torch is too old for Debian's numpy in add_histogram
            counts, edges = numpy.histogram(values, 20)
            writer.add_histogram_raw("weights", min=values.min(), max=values.max(), num=500, sum=values.sum(),
                                     sum_squares=(values ** 2).sum(), bucket_limits=edges[1:].tolist(),
                                     bucket_counts=counts.tolist(), global_step=step)
        else:
            writer.add_histogram("weights", values, step)
        writer.add_image("picture", torch.full((3, 8, 12), 0.25 * step), step)
        writer.add_images("pictures", torch.rand(4, 3, 8, 8), step)
        if sys.argv[1] == "torch":  # tensorboardX wants the package soundfile for it
            writer.add_audio("sound", torch.sin(torch.arange(4000) / 5.0).unsqueeze(0), step, sample_rate=8000)
        writer.add_text("words", "**bold** of step %d" % step, step)
        labels = numpy.array([1, 0, 1, 1, 0, 0, 1, 0])
        writer.add_pr_curve("pr", labels, numpy.linspace(0.1, 0.9, 8) * (1 - 0.1 * step), step, num_thresholds=21)
    writer.add_embedding(torch.randn(30, 5), metadata=["label-%d" % i for i in range(30)], tag="points", global_step=2)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    writer.add_graph(net, torch.zeros(1, 3))
    writer.add_hparams({"lr": 0.25, "opt": "adam"}, {"final": 1.0})
    writer.close()
    """


class RealWriters(PageCase):
    viewport = {"width": 1280, "height": 4000}  # what is out of sight is not loaded

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        venvs.system("torch")
        python = venvs.venv("tensorboard==2.21.0", "tensorboardX==2.6.5", inherit=True)
        cls.server.script("write.py", WRITE)
        jobs = [cls.server.submit(python, "-W", "ignore", "write.py", writer, flags=["--name", writer, "--cpus", "0.5"])
                for writer in ("torch", "tensorboardX")]
        for job in jobs:
            record = cls.server.wait(job)
            assert record["state"] == "Completed", cls.server.logs(job)

    def every_kind(self, writer):
        page = self.open("#/job/%s/media" % writer)
        card = lambda name: page.locator(".card", has=page.get_by_role("heading", name=name, exact=True))
        page.get_by_role("img", name=re.compile("Distribution of weights over 4 steps")).wait_for()
        for name, count in (("picture", 1), ("pictures", 1)):
            images = card(name).locator("img")
            images.first.scroll_into_view_if_needed()
            harness.until(lambda: images.first.evaluate("i => i.complete && i.naturalWidth > 0"), name + " is drawn")
            self.assertEqual(images.count(), count)
        card("picture").get_by_role("slider").fill("0")
        card("picture").get_by_text("step 0").wait_for()
        if writer == "torch":
            sound = card("sound").locator("audio")
            # It decodes: the browser knows how long it is.
            sound.evaluate("a => { a.preload = 'auto'; a.load(); }")
            harness.until(lambda: (sound.evaluate("a => a.duration") or 0) > 0.4, "the sound can be played")
        words = page.locator(".card", has_text="bold of step 3")
        words.wait_for()
        self.assertEqual(words.locator("strong").inner_text(), "bold")
        page.get_by_role("img", name=re.compile("Precision over recall of pr at step 3")).wait_for()
        page.get_by_role("img", name=re.compile("30 vectors of .*points")).wait_for()
        card("points").get_by_label("Find a point").fill("label-7")
        card("points").get_by_text("label-7").first.wait_for()
        params = page.locator(".chart-section", has_text="Hyper-parameters")
        params.get_by_text("adam").first.wait_for()
        params.get_by_text("0.25").first.wait_for()
        graph = page.locator(".chart-section", has_text="Model graph")
        graph.locator("summary").first.wait_for()
        graph.evaluate("all => all.querySelectorAll('details').forEach(one => one.open = true)")
        self.assertRegex(graph.inner_text(), re.compile("relu", re.I))
        self.open("#/job/%s/charts" % writer)
        page.get_by_role("heading", name="loss", exact=True).wait_for()
        page.locator(".chart canvas").first.wait_for()

    def test_torch(self):
        self.every_kind("torch")

    def test_tensorboardx(self):
        self.every_kind("tensorboardX")


if __name__ == "__main__":
    harness.main()
