"""Every action of the page, clicked: what it says is what then holds on the server."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

SAVES = """
    import time
    import athanor
    path = athanor.latest_checkpoint()
    step = int(open(path).read()) if path else 0
    print("from", step, flush=True)
    def save(path):
        with open(path, "w") as file: file.write(str(step))
    while not athanor.should_stop():
        step += 1
        athanor.log(loss=1.0 / step, step=step)
        time.sleep(0.02)
        if step == 5: athanor.checkpoint(step, save)
        if step > 5 and athanor.params.get("end", 0): break
    """


class Actions(PageCase):
    def sleeper(self, name, *flags):
        job = self.server.submit("sleep", "1000", flags=["--name", name, "--cpus", "0.1", *flags])
        self.server.until_state(job, "Running")
        self.addCleanup(lambda: self.server.ath("stop", job, "--now"))
        return job

    def children(self, job):
        """The jobs that were made from it."""
        jobs = self.server.http("GET", "/api/v1/jobs").json()["jobs"]
        return [j for j in (self.server.show(j["id"]) for j in jobs) if j.get("parent") == job]

    def test_stop(self):
        job = self.sleeper("stops")
        page = self.open("#/job/stops")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop it").click()
        page.get_by_text("Asked to stop").wait_for()
        self.assertEqual(self.server.wait(job)["state"], "Stopped")
        page.get_by_role("button", name="Retry", exact=True).wait_for()

    def test_retry_opens_the_new_job(self):
        job = self.server.submit("true", flags=["--name", "again"])
        self.server.wait(job)
        page = self.open("#/job/again")
        page.get_by_role("button", name="Retry", exact=True).click()
        page.get_by_text("Started again").wait_for()
        self.assertEqual([j["parent"] for j in self.children(job)], [job])

    def test_clone_with_a_changed_parameter(self):
        self.server.script("p.py", "import athanor; print('lr is', athanor.params['lr'] * 2)")
        job = self.server.submit("python3", "p.py", flags=["--name", "first", "-p", "lr=0.5"])
        self.server.wait(job)
        page = self.open("#/job/first")
        page.get_by_role("button", name="Clone").click()
        page.get_by_label("Name (a new one").fill("second")
        page.get_by_label("Value of lr").fill("4")
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_role("heading", name="second").wait_for()
        self.server.wait("second")
        self.assertIn(b"lr is 8", self.server.logs("second"))

    def test_interrupt_and_resume(self):
        job = self.server.python(SAVES, flags=["--name", "survives", "--cpus", "0.5"])
        self.server.until_checkpoint(job, 5)
        page = self.open("#/job/survives")
        page.get_by_role("button", name="Interrupt").click()
        page.get_by_text("2 attempts").wait_for()
        self.server.until_log(job, "from 5")
        self.server.ath("stop", job, check=0)
        self.server.wait(job)
        page.get_by_role("button", name="Resume", exact=True).click()
        page.get_by_text("Resumed").first.wait_for()
        child = self.children(job)[0]["id"]
        self.server.until_log(child, "from 5")
        self.server.ath("stop", child, "--now", check=0)

    def select(self, page, *names):
        for name in names:
            page.get_by_label("Select " + name, exact=True).check()

    def test_several_are_stopped_at_once(self):
        jobs = [self.sleeper("bulk-%d" % i) for i in range(2)]
        page = self.open("#/runs")
        self.select(page, "bulk-0", "bulk-1")
        bar = page.get_by_role("toolbar", name="Selected runs")
        bar.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Stop them").click()
        page.get_by_text("2 jobs asked to stop").wait_for()
        for job in jobs:
            self.assertEqual(self.server.wait(job)["state"], "Stopped")

    def test_several_are_tagged_and_it_is_undone(self):
        jobs = [self.server.submit("true", flags=["--name", "tag-%d" % i]) for i in range(2)]
        for job in jobs:
            self.server.wait(job)
        page = self.open("#/runs")
        self.select(page, "tag-0", "tag-1")
        page.get_by_role("button", name="Tag", exact=True).click()
        page.get_by_placeholder("name=value").fill("team=vision")
        page.get_by_role("dialog").get_by_role("button", name="Tag", exact=True).click()
        page.get_by_text("2 runs tagged").wait_for()
        self.assertEqual(self.tags(jobs[0]).get("team"), "vision")
        page.get_by_role("button", name="Undo").click()
        harness.until(lambda: "team" not in self.tags(jobs[1]), "the tag is gone again")

    def tags(self, job):
        return self.server.http("GET", "/api/v1/runs/" + job).json()["tags"]

    def test_a_run_is_deleted_and_brought_back(self):
        job = self.server.submit("true", flags=["--name", "goes"])
        self.server.wait(job)
        page = self.open("#/runs")
        self.select(page, "goes")
        page.get_by_role("button", name="Delete").click()
        page.get_by_text("1 run deleted").wait_for()
        page.locator(".grid-row", has_text="goes").wait_for(state="detached")
        page.get_by_role("button", name="Undo").click()
        page.locator(".grid-row", has_text="goes").wait_for()

    def test_a_tag_is_added_on_the_job(self):
        job = self.server.submit("true", flags=["--name", "tagged"])
        self.server.wait(job)
        page = self.open("#/job/tagged")
        page.get_by_label("New tag").fill("note=good")
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_role("button", name="Remove tag note").wait_for()
        self.assertEqual(self.tags(job)["note"], "good")


if __name__ == "__main__":
    harness.main()
