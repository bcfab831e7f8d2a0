"""The links that MLflow's clients print lead to the run on the page, also those of a job, which are
to the address of its agent."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PageCase

import harness
import venvs

LOG = """
    import os, sys, time, mlflow
    mlflow.set_experiment("linked")
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", 0.5, step=1)
    client = mlflow.MlflowClient()
    name = "registered net"
    try:
        client.create_registered_model(name)
    except mlflow.exceptions.MlflowException:
        pass
    client.create_model_version(name, run.info.artifact_uri + "/model", run.info.run_id)
    print("logged", flush=True)
    while sys.argv[1:] and not os.path.exists(sys.argv[1]): time.sleep(0.02)
    """


class Links(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = venvs.venv("mlflow-skinny==3.17.2")
        cls.script = os.path.join(cls.server.work, cls.server.script("log.py", LOG))

    def printed(self, text):
        links = re.findall(r"View run (\S+) at: (\S+)", text)
        experiments = re.findall(r"View experiment at: (\S+)", text)
        self.assertEqual((len(links), len(experiments)), (1, 1), text)
        return (*links[0], experiments[0])

    def test_of_a_script(self):
        done = subprocess.run([self.python, self.script], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE,
                              env={"HOME": self.server.root, "PATH": "/usr/bin:/bin",
                                   "MLFLOW_TRACKING_URI": self.server.url})
        self.assertEqual(done.returncode, 0, done.stdout)
        name, run, experiment = self.printed(done.stdout)
        self.page.goto(run)
        self.page.get_by_role("heading", name=name, exact=True).wait_for()
        self.page.get_by_role("navigation", name="Sections").get_by_role("link", name="Charts").click()
        self.page.get_by_text("loss").locator("visible=true").first.wait_for()
        self.page.goto(experiment)
        self.page.get_by_role("heading", name="linked", exact=True).wait_for()
        self.page.get_by_role("link", name=name).wait_for()
        self.open("#/models/registered%20net/versions/1")
        self.page.get_by_role("heading", name="registered net").first.wait_for()
        marked = self.page.locator("tr[aria-current=true] td").first
        self.assertEqual(marked.inner_text(), "1")

    def test_of_a_job_while_it_runs(self):
        """Red if the agent's address knows nothing but MLflow's calls."""
        job = self.server.submit(self.python, "log.py", os.path.join(self.server.root, "go"),
                                 flags=["--name", "linked-job"])
        self.server.until_log(job, "logged")
        name, run, experiment = self.printed(self.server.logs(job).decode())
        self.assertFalse(run.startswith(self.server.url), run)
        self.own.append(run.partition("#")[0])
        self.page.goto(run)
        self.page.get_by_role("heading", name="linked-job", exact=True).wait_for()
        self.assertTrue(self.page.url.startswith(self.server.url + "/#/"), self.page.url)
        self.page.goto(experiment)
        self.page.get_by_role("heading", name="linked", exact=True).wait_for()
        self.server.go("go")
        self.ended(job)


if __name__ == "__main__":
    harness.main()
