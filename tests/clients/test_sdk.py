"""The Python package against a real server: runs of scripts that are no jobs, jobs from Python, and
both in a notebook's kernel."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import ATH, BUILD, Case, Server, until

PACKAGE = os.path.join(BUILD, "python")


class Sdk(Case):
    def environment(self, **more):
        return dict(self.server.environment, PYTHONPATH=PACKAGE, ATHANOR_BIN=ATH,
                    PYTHONDONTWRITEBYTECODE="1", **more)

    def run_here(self, text, check=True, **more):
        """Runs a script outside any job."""
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], env=self.environment(**more),
                              cwd=self.server.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=3 * harness.PATIENCE)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done


class Tracking(Sdk):
    def test_a_script_is_a_run(self):
        self.run_here("""
            import athanor
            run = athanor.init(name="plain", experiment="e", params={"lr": 0.1, "opt": "adam"}, tags={"who": "me"})
            for step in range(3000):
                athanor.log(loss=1.0 / (step + 1), step=step)
            athanor.log({"odd/name": float("nan")})
            athanor.log(bad="text")
            assert run.finish(wait=120), run
            assert athanor.stats() == {"written": 3001, "dropped": 0, "bad": 1}, athanor.stats()
            """)
        run = [one for one in json.loads(self.server.ath("runs", "--json").stdout)["runs"] if one["name"] == "plain"][0]
        self.assertEqual((run["status"], run["experiment"]), ("FINISHED", "e"))
        self.assertEqual((run["params"], run["tags"]["who"]), ({"lr": "0.1", "opt": "adam"}, "me"))
        points = self.server.points("plain", "loss")
        self.assertEqual([point["step"] for point in points], list(range(3000)))
        self.assertEqual(points[9]["value"], 0.1)

    def test_the_end_of_the_script_ends_the_run(self):
        done = self.run_here("""
            import athanor
            athanor.init(name="broke")
            athanor.log(loss=1.0, step=0)
            raise ValueError("planted")
            """, check=False)
        self.assertIn("planted", done.stderr)
        run = self.server.http("GET", "/api/v1/runs/broke", unix=True).json()
        self.assertEqual(run["status"], "FAILED")
        self.assertEqual(len(self.server.points("broke", "loss")), 1)

    def test_a_lost_reply_stores_nothing_twice(self):
        self.run_here("""
            import athanor, athanor.track
            plain, lost = athanor.track._Server.post, []
            def post(self, target, body):
                answer = plain(self, target, body)
                if target not in lost:
                    lost.append(target)
                    raise OSError("the reply was lost")
                return answer
            athanor.track._Server.post = post
            run = athanor.init(name="twice", params={"a": 1})
            athanor.log(loss=1.0, step=0)
            assert run.finish(wait=120)
            assert len(lost) == 4, lost
            """)
        self.assertEqual(len(self.server.points("twice", "loss")), 1)
        runs = json.loads(self.server.ath("runs", "--json").stdout)["runs"]
        self.assertEqual(len([one for one in runs if one["name"] == "twice"]), 1)

    def test_off(self):
        self.run_here("""
            import athanor, sys
            run = athanor.init(name="unseen")
            athanor.log(loss=1.0)
            assert run.finish() and run.state == "off"
            """, ATHANOR_MODE="off")
        self.assertNotIn("unseen", self.server.ath("runs").stdout)

    def test_in_a_job_it_is_the_jobs_run(self):
        job = self.server.python("""
            import athanor
            run = athanor.init(name="other")
            assert run.id == athanor.job_id()
            run.log(loss=0.5, step=1)
            athanor.log(loss=0.25, step=2)
            """)
        self.ended(job)
        self.assertEqual([point["value"] for point in self.server.points(job, "loss")], [0.5, 0.25])
        self.assertNotIn("other", self.server.ath("runs").stdout)


class Alone(unittest.TestCase):
    """Without a server."""

    SCRIPT = """
        import athanor
        run = athanor.init(name="first")
        athanor.log(loss=1.0, step=0)
        """
    WAITS = SCRIPT + """assert run.finish(wait=120)
        """

    def go(self, server, script, **more):
        environment = dict(server.environment, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        environment.update(more)
        return subprocess.run([sys.executable, "-c", textwrap.dedent(script)],
                              env=environment, cwd=server.work, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=2 * harness.PATIENCE)

    def test_one_is_started(self):
        with Server(start=False) as server:
            done = self.go(server, self.WAITS, ATHANOR_BIN=ATH)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(server.points("first", "loss")), 1)

    def test_none_can_be_started(self):
        with Server(start=False) as server:
            done = self.go(server, self.SCRIPT, ATHANOR_BIN="/nowhere/ath")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("athanor: 1 point of this run did not reach the server", done.stderr)
            self.assertNotIn("Traceback", done.stderr)


class Jobs(Sdk):
    def test_the_log_is_printed_while_waiting(self):
        go = os.path.join(self.server.root, "go-on")
        self.server.script("train.py", """
            import os, time
            print("first é", flush=True)
            while not os.path.exists(%r): time.sleep(0.01)
            print("last")
            """ % go)
        process = subprocess.Popen(
            [sys.executable, "-c", "import athanor; athanor.run('train.py').wait(stream=True); print('over')"],
            env=self.environment(PYTHONUNBUFFERED="1"), cwd=self.server.work, stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "first é\n")  # while the job waits for us
        self.server.go("go-on")
        self.assertEqual(process.communicate(timeout=2 * harness.PATIENCE)[0], "last\nover\n")

    def test_outputs(self):
        self.server.script("train.py", """
            import athanor, os
            open(os.path.join(athanor.model_dir(), "weights"), "w").write("w" * 10)
            open(os.path.join(athanor.output_dir(), "report"), "w").write("r")
            """)
        self.run_here("""
            import athanor, os
            job = athanor.run("train.py").wait()
            assert {one["name"] for one in job.outputs.list()} >= {"model.tar.gz", "output.tar.gz"}
            job.outputs.download("all")
            assert open("all/model/weights").read() == "w" * 10
            assert open("all/output/report").read() == "r"
            job.outputs.download("one", "model/weights")
            assert os.listdir("one") == ["weights"]
            """)

    def test_errors_can_be_read(self):
        done = self.run_here("""
            import athanor
            try:
                athanor.run("train.py", type="ml.nosuch")
            except athanor.AthanorError as error:
                assert error.what and error.next and error.code.startswith("ATH-"), vars(error)
                assert "  next: " in str(error)
                print("refused")
            try:
                athanor.run(["false"]).wait()
            except athanor.JobFailed as error:
                assert error.state == "Failed" and "exit" in error.why.lower(), vars(error)
                print("failed")
            try:
                athanor.Run("nobody").show()
            except athanor.AthanorError as error:
                assert "nobody" in error.what, vars(error)
                print("missing")
            """)
        self.assertEqual(done.stdout, "refused\nfailed\nmissing\n")


class Notebook(Sdk):
    """A real kernel, talked to as a notebook does."""

    DRIVER = """
        import json, os, queue, sys
        from jupyter_client.manager import start_new_kernel
        manager, client = start_new_kernel(kernel_name="python3", env=dict(os.environ))
        shown = []
        def run(code):
            asked = client.execute(code)
            while True:
                message = client.get_iopub_msg(timeout=240)
                if message["parent_header"].get("msg_id") != asked:
                    continue
                kind, content = message["msg_type"], message["content"]
                if kind in ("display_data", "update_display_data", "execute_result"):
                    shown.append([kind, content["data"].get("text/html", "")])
                elif kind == "stream":
                    shown.append([content["name"], content["text"]])
                elif kind == "error":
                    shown.append(["error", "\\n".join(content["traceback"])])
                elif kind == "status" and content["execution_state"] == "idle":
                    return
        try:
            for cell in json.load(sys.stdin):
                run(cell)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
        json.dump(shown, sys.stdout)
        """

    def cells(self, *cells):
        python = venvs.venv("ipykernel==6.29.5", "jupyter_client==8.6.3")
        done = subprocess.run([python, "-c", textwrap.dedent(self.DRIVER)], env=self.environment(),
                              cwd=self.server.work, input=json.dumps([textwrap.dedent(cell) for cell in cells]),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=4 * harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        shown = json.loads(done.stdout)
        self.assertEqual([text for kind, text in shown if kind == "error"], [])
        return shown

    def test_a_job_is_shown_while_it_runs(self):
        self.server.script("train.py", """
            import athanor, time, os
            for step in range(5):
                athanor.log(loss=10.0 - step, step=step)
            while not os.path.exists(%r): time.sleep(0.01)
            athanor.log(loss=1.5, step=5)
            """ % os.path.join(self.server.root, "seen"))
        def let_go():
            until(lambda: self.server.http("GET", "/api/v1/jobs/live/metrics", unix=True).json().get("metrics"),
                  "the job logged", 4 * harness.PATIENCE)
            self.server.go("seen")
        helper = threading.Thread(target=let_go)
        helper.start()
        self.addCleanup(helper.join)
        shown = self.cells("import athanor; job = athanor.run('train.py', name='live'); job.wait()", "job")
        first, updates = shown[0], [text for kind, text in shown if kind == "update_display_data"]
        self.assertEqual(first[0], "display_data")
        self.assertIn("<b>live</b>", first[1])
        self.assertTrue(updates)
        self.assertIn("Completed", updates[-1])
        self.assertIn("1.5", updates[-1])
        self.assertEqual(shown[-1][0], "execute_result")
        self.assertIn("Completed", shown[-1][1])

    def test_the_log_in_a_cell(self):
        self.server.script("train.py", "print('said by the job')")
        shown = self.cells("import athanor; _ = athanor.run('train.py').wait(stream=True)")
        self.assertIn("said by the job", "".join(text for kind, text in shown if kind == "stdout"))

    def test_a_run_is_shown_while_it_is_tracked(self):
        shown = self.cells("""
            import athanor, time
            run = athanor.init(name="cell")
            run.display()
            athanor.log(loss=0.25, step=7)
            assert run.finish(wait=120)
            for _ in range(600):
                if run._live[0]._last is not None and "Finished" in run._live[0]._last._repr_html_(): break
                time.sleep(0.1)
            """, "run")
        self.assertEqual(shown[0][0], "display_data")
        self.assertIn("0.25", shown[-1][1])
        self.assertIn("Finished", shown[-1][1])
        self.assertTrue([1 for kind, text in shown if kind == "update_display_data" and "0.25" in text], shown)


if __name__ == "__main__":
    harness.main()
