"""Jobs of several hosts and ranks on the page: each host with its state, each line with its rank, and
a choice of both."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness

SCRIPT = """
    import os, sys, time
    rank = int(os.environ["RANK"])
    os.write(1, b"hello from rank %d\\n" % rank)  # in one piece
    wait = sys.argv[1] if len(sys.argv) > 1 else ""
    if wait == "fall" and rank == 3: raise ValueError("rank 3 has no data")
    while wait and not os.path.exists(wait): time.sleep(0.02)
    """


class Ranks(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.script("ranks.py", SCRIPT)
        gang = ["--nodes", "2", "--processes", "2", "--cpus", "0.1"]
        cls.go = os.path.join(cls.server.work, "go")
        cls.fallen = cls.server.submit("python3", "ranks.py", "fall", flags=["--name", "falls", *gang])
        cls.server.wait(cls.fallen)
        cls.gang = cls.server.submit("python3", "ranks.py", cls.go, flags=["--name", "gang", *gang])
        for rank in range(4):
            cls.server.until_log(cls.gang, "hello from rank %d" % rank)

    def test_the_overview_lists_the_hosts(self):
        page = self.open("#/job/gang")
        row = page.locator("tr", has_text="algo-2")
        row.get_by_text("Running").wait_for()
        row.get_by_text("2 and 3").wait_for()
        page.get_by_text("2 nodes with 2 processes each").first.wait_for()

    def test_a_fall_is_told_in_order(self):
        page = self.open("#/job/falls")
        page.get_by_text("rank 3 on algo-2 failed first: exit 1").wait_for()
        page.locator("tr", has_text="algo-2").get_by_text("3 exit 1 (failed first)").wait_for()

    def test_the_log_is_chosen_by_rank_and_host(self):
        page = self.open("#/job/gang/logs")
        page.locator(".log-line", has_text="hello from rank 3").locator(".rank", has_text="3").wait_for()
        page.get_by_label("Rank").select_option("1")
        page.get_by_text("1 line", exact=True).wait_for()
        page.locator(".log-line", has_text="hello from rank 1").wait_for()
        self.assertEqual(page.locator(".log-line .rank").count(), 0)
        page.get_by_label("Rank").select_option("algo-2")
        page.get_by_text("2 lines", exact=True).wait_for()
        self.assertIn("host=algo-2", page.url)
        page.reload()
        page.get_by_text("2 lines", exact=True).wait_for()

    def test_what_a_host_uses_is_chosen_too(self):
        page = self.open("#/job/gang/system")
        page.get_by_text("Memory now").wait_for()
        page.get_by_label("Host").select_option("algo-2")
        page.get_by_text("Memory now").wait_for()
        self.assertIn("host=algo-2", page.url)

    def test_a_new_job_says_on_how_many_nodes(self):
        self.allowed = ["400"]  # a text that is no job yet
        page = self.open("#/new")
        page.get_by_label("Job file").fill("run: 'true'\nresources:\n  nodes: 2\n  processes: 4\n")
        page.get_by_text("on each of 2 nodes with 4 processes each").wait_for()
        page.get_by_label("Job file").fill("run: 'true'\nresources:\n  nodes: 4..1\n")
        page.get_by_text("put the smaller number first").wait_for()

    def test_a_job_of_one_rank_shows_nothing_of_it(self):
        self.server.wait(self.server.submit("true", flags=["--name", "alone"]))
        page = self.open("#/job/alone")
        page.get_by_text("1 attempt").wait_for()
        self.assertEqual(page.get_by_text("algo-1").count(), 0)
        page = self.open("#/job/alone/logs")
        page.get_by_label("Phase").wait_for()
        self.assertEqual(page.get_by_label("Rank").count(), 0)


if __name__ == "__main__":
    harness.main()
