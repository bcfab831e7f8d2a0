"""TensorBoard's files: what scripts write in jobs becomes metrics and is kept, across attempts with
one value per step; what we write is read by TensorBoard from PyPI, and what torch, tensorboardX and
tensorboard write by us."""

import csv
import glob
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import BUILD, Case, until

PACKAGES = ["tensorboard==2.21.0", "tensorboardX==2.6.5"]
DUMP = next((path for path in (os.path.join(BUILD, "tests", "event_dump"),
                               os.path.join(BUILD, "release", "tests", "event_dump"))
             if os.path.exists(path)), None)

# Everything TensorBoard's own reader has of a folder, as JSON.
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata, plugin_data_pb2
from tensorboard.util import tensor_util
out = {}
for folder in sys.argv[1:]:
    run = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    run.Reload()
    tags = run.Tags()
    one = out[folder] = {"scalars": {}, "kinds": {}, "texts": {}, "shapes": {}, "graph": [],
                         "hparams": {}}
    for tag in tags["scalars"]:
        one["scalars"][tag] = [[e.step, e.value] for e in run.Scalars(tag)]
        one["kinds"][tag] = "scalars"
    for tag in tags["tensors"]:
        kind = one["kinds"][tag] = run.SummaryMetadata(tag).plugin_data.plugin_name
        values = [[e.step, tensor_util.make_ndarray(e.tensor_proto)] for e in run.Tensors(tag)]
        one["shapes"][tag] = list(values[0][1].shape)
        if kind == "scalars":
            one["scalars"][tag] = [[step, float(value)] for step, value in values]
        if kind == "text":
            one["texts"][tag] = [value.decode() for value in values[0][1]]
        if kind == "hparams":
            data = metadata.parse_session_start_info_plugin_data if tag.endswith("start_info") else None
            if data:
                info = data(run.SummaryMetadata(tag).plugin_data.content)
                for name, value in info.hparams.items():
                    one["hparams"][name] = getattr(value, value.WhichOneof("kind"))
    if tags["graph"]:
        one["graph"] = [[n.name, n.op] for n in run.Graph().node]
print(json.dumps(out))
"""


def python_with_tensorboard():
    """An interpreter over the system's packages (torch) with TensorBoard."""
    return venvs.venv(*PACKAGES, inherit=True)


def tensorboard_reads(*folders):
    done = subprocess.run([python_with_tensorboard(), "-B", "-W", "ignore", "-c", READ, *folders],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr[-3000:])
    return [json.loads(done.stdout.splitlines()[-1])[folder] for folder in folders]


def event_files(folder):
    return sorted(glob.glob(os.path.join(glob.escape(folder), "**", "*tfevents*"), recursive=True))


def dump(*paths):
    """What our reader has of event files."""
    text = subprocess.run([DUMP, *paths], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


class Formats(unittest.TestCase):
    """Files only; no server."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ath-tb-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def script(self, text, python=None, **env):
        done = subprocess.run([python or python_with_tensorboard(), "-B", "-W", "ignore", "-c",
                               textwrap.dedent(text), self.folder], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python"), **env))
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    WRITE = """
        import sys, torch, athanor
        torch.manual_seed(0)
        w = athanor.SummaryWriter(sys.argv[1])
        for step in range(2000):
            w.add_scalar("loss", 1 / (step + 1), step)
        w.add_scalar("odd/nan", float("nan"), 1)
        w.add_scalar("odd/huge", 1e300, 2)
        w.add_scalars("both", {"a": 1, "b": 2}, 3)
        w.add_histogram("weights", torch.randn(1000), 1)
        w.add_image("picture", torch.rand(3, 8, 6), 1)
        w.add_images("pictures", torch.rand(2, 3, 8, 6), 1)
        w.add_text("note", "**bold**", 1)
        w.add_audio("sound", torch.rand(800), 1, sample_rate=8000)
        w.add_pr_curve("pr", [1, 0, 1, 0], [0.9, 0.2, 0.4, 0.6], 1, num_thresholds=11)
        w.add_hparams({"lr": 0.1, "opt": "adam", "amp": True}, {"hp/acc": 0.75})
        net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
        w.add_graph(net, torch.zeros(1, 3))
        w.add_image("bad", "no image", 1)   # left out, with a warning
        w.close()
        print(w.errors)
    """

    def test_tensorboard_reads_ours(self):
        for pure in ("0", "1"):
            with self.subTest(pure=pure):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                self.assertEqual(self.script(self.WRITE, ATHANOR_PURE=pure).stdout.strip(), "1")
                run, sub = tensorboard_reads(self.folder, os.path.join(self.folder, "both_a"))
                self.assertEqual(len(run["scalars"]["loss"]), 2000)
                self.assertEqual(run["scalars"]["loss"][9], [9, run["scalars"]["loss"][9][1]])
                self.assertAlmostEqual(run["scalars"]["loss"][9][1], 0.1, places=6)
                self.assertEqual(str(run["scalars"]["odd/nan"][0][1]), "nan")
                self.assertEqual(run["scalars"]["odd/huge"][0][1], float("inf"))
                self.assertEqual(sub["scalars"]["both"], [[3, 1.0]])
                self.assertEqual(run["kinds"]["weights"], "histograms")
                self.assertEqual(run["shapes"]["weights"], [30, 3])
                self.assertEqual(run["kinds"]["picture"], "images")
                self.assertEqual(run["shapes"]["picture"], [3])
                self.assertEqual(run["shapes"]["pictures"], [4])
                self.assertEqual(run["texts"]["note"], ["**bold**"])
                self.assertEqual(run["kinds"]["sound"], "audio")
                self.assertEqual(run["shapes"]["pr"], [6, 11])
                self.assertEqual(run["hparams"], {"lr": 0.1, "opt": "adam", "amp": True})
                self.assertEqual(run["scalars"]["hp/acc"][0][1], 0.75)
                self.assertIn("aten::relu", [op for _, op in run["graph"]])
                self.assertNotIn("bad", run["kinds"])

    def test_without_numpy_and_torch(self):
        """Scalars, text, histograms and sound need nothing but Python."""
        self.script("""
            import sys
            sys.modules["numpy"] = sys.modules["torch"] = None
            import athanor
            w = athanor.SummaryWriter(sys.argv[1])
            w.add_scalar("a", 1.5, 1)
            w.add_histogram("h", [1, 2, 3, 3], 1)
            w.add_audio("s", [0, 0.5], 1)
            assert w.errors == 0
            # the end of the process writes what is left
        """)
        run, = tensorboard_reads(self.folder)
        self.assertEqual(run["scalars"]["a"], [[1, 1.5]])
        self.assertEqual(run["kinds"]["h"], "histograms")

    @unittest.skipUnless(DUMP, "event_dump is not built")
    def test_we_read_theirs(self):
        body = """
            import sys, numpy, torch
            from %s import SummaryWriter
            w = SummaryWriter(sys.argv[1])
            for step in range(50): w.add_scalar("loss", step / 4, step)
            w.add_text("note", "hello", 2)
            w.add_image("picture", numpy.zeros((3, 4, 5), dtype="uint8"), 1)
            w.add_pr_curve("pr", numpy.array([1, 0, 1]), numpy.array([.9, .2, .4]), 0,
                           num_thresholds=5)
            w.add_graph(torch.nn.Linear(3, 2), torch.zeros(1, 3))
            w.add_hparams({"lr": 0.1, "opt": "adam"}, {"acc": 0.5})
            if "X" in w.__module__:
                w.add_histogram("weights", numpy.arange(10.), 1)  # torch 1.13 cannot, with numpy 1.24
            w.close()
        """
        for module in ("torch.utils.tensorboard", "tensorboardX"):
            with self.subTest(module):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                self.script(body % module)
                lines = dump(*event_files(self.folder))
                by_tag = {}
                for line in lines:
                    by_tag.setdefault(line.get("tag", line["kind"]), []).append(line)
                self.assertEqual([(p["step"], p["value"]) for p in by_tag["loss"]],
                                 [(step, step / 4) for step in range(50)])
                self.assertEqual(by_tag["note/text_summary"][0]["texts"], ["hello"])
                self.assertEqual(by_tag["picture"][0]["size"], [5, 4])
                self.assertEqual(by_tag["pr"][0]["true_positives"], [2, 2, 1, 1, 0])
                self.assertGreater(by_tag["graph"][0]["bytes"], 0)
                self.assertEqual(by_tag["_hparams_/session_start_info"][0]["params"],
                                 {"lr": 0.1, "opt": "adam"})
                self.assertEqual(by_tag["acc"][0]["value"], 0.5)
                if "X" in module:
                    self.assertEqual(sum(b[2] for b in by_tag["weights"][0]["buckets"]), 10)
                self.assertEqual([line for line in lines if line["kind"] == "damage"], [])

    @unittest.skipUnless(DUMP, "event_dump is not built")
    def test_we_read_new_style_summaries(self):
        """As tensorboard's own writer (and TensorFlow 2) makes them."""
        self.script("""
            import sys, numpy
            from tensorboard.summary import Writer
            from tensorboard.summary._output import DirectoryOutput
            w = Writer(DirectoryOutput(sys.argv[1]))
            for step in range(20): w.add_scalar("loss", step / 2, step=step)
            w.close()
        """)
        points = [line for line in dump(*event_files(self.folder)) if line.get("tag") == "loss"]
        self.assertEqual([(p["kind"], p["step"], p["value"]) for p in points],
                         [("scalars", step, step / 2) for step in range(20)])


class InJobs(Case):
    def tb(self, *parts):
        return os.path.join(self.server.home, "tb", *parts)

    def test_a_torch_writer_in_a_job(self):
        """Found, sent as metrics with names and steps, kept and shown below tb/."""
        python = python_with_tensorboard()
        self.server.script("train.py", """
            from torch.utils.tensorboard import SummaryWriter
            with SummaryWriter() as w:
                for step in range(30):
                    w.add_scalar("train/loss", step * 0.5, step)
                w.add_text("note", "kept in the file")
                w.add_scalars("both", {"a": 1, "b": 2}, 3)
        """)
        job = self.server.submit(python, "train.py",
                                 flags=["--name", "torch-tb", "--experiment", "exp"])
        self.ended(job)
        points = self.server.points(job, "train/loss")
        self.assertEqual([(p["step"], p["value"]) for p in points],
                         [(step, step * 0.5) for step in range(30)])
        self.assertEqual(self.server.points(job, "both_a/both")[0]["value"], 1)
        run, = tensorboard_reads(self.tb("exp", "torch-tb"))
        self.assertEqual(len(run["scalars"]["train/loss"]), 30)
        self.assertIn("note/text_summary", run["kinds"])
        self.server.ath("rm", job, check=0)
        self.assertFalse(os.path.lexists(self.tb("exp", "torch-tb")))

    def test_our_writer_and_names_that_others_have(self):
        """athanor.log and `metrics:` keep their names; the file's scalars of that name are not
        sent. Without either, a step is there once."""
        job = self.server.python("""
            import athanor
            athanor.log(acc=0.25, step=0)
            print("loss=7.0", flush=True)
            w = athanor.SummaryWriter()
            assert w.log_dir == "/opt/ml/output/tensorboard" or "tensorboard" in w.log_dir
            for step in range(5):
                w.add_scalar("loss", step, step)
                w.add_scalar("acc", 99, step)
                w.add_scalar("free", step, step)
            w.add_histogram("h", [1.0, 2.0], 0)
            w.close()
        """, flags=["--metric", r"loss=loss=(\S+)", "--name", "names"])
        self.ended(job)
        self.assertEqual([p["value"] for p in self.server.points(job, "loss")], [7.0])
        self.assertEqual([p["value"] for p in self.server.points(job, "acc")], [0.25])
        self.assertEqual([p["value"] for p in self.server.points(job, "free")], [0, 1, 2, 3, 4])
        run, = tensorboard_reads(self.tb("default", "names"))
        self.assertEqual(run["kinds"]["h"], "histograms")
        self.assertEqual(len(run["scalars"]["loss"]), 5)  # the file has all

    def test_a_source_that_brings_event_files(self):
        """What came with the source is not this job's."""
        source = self.server.script("old.py", """
            import athanor
            w = athanor.SummaryWriter("runs/old")
            w.add_scalar("stale", 1, 1)
            w.close()
        """)
        subprocess.run(["/usr/bin/python3", "-B", source], cwd=self.server.work, check=True,
                       env={"PYTHONPATH": os.path.join(BUILD, "python"), "PATH": "/usr/bin:/bin"})
        self.addCleanup(shutil.rmtree, os.path.join(self.server.work, "runs"))
        job = self.server.python("""
            import athanor, os
            assert os.path.isdir("runs/old")
            with athanor.SummaryWriter("runs/new") as w: w.add_scalar("fresh", 1, 1)
        """)
        self.ended(job)
        names = [m["name"] for m in self.server.json("metrics", job)["metrics"]]
        self.assertEqual(names, ["fresh"])

    # Saves at step 20 and is interrupted at 30; goes on from 20.
    RESUMING = """
        import athanor, os, signal, sys, time
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(1))
        last = athanor.latest_checkpoint()
        start = int(open(last).read()) if last else 0
        w = athanor.SummaryWriter("runs/%d" % int(os.environ["ATHANOR_ATTEMPT"]))
        def write(path):
            with open(path, "w") as file: file.write("20")
        for step in range(start, 50):
            w.add_scalar("loss", step + (1000 if last else 0), step)
            w.add_histogram("weights", [step, step + 1.0], step)
            if step == 20 and not last: athanor.checkpoint(20, write)
            if step == 30 and not last:
                w.flush()
                print("ready", flush=True)
                while not told: time.sleep(0.01)
                sys.exit(0)
        w.close()
        athanor.done()
    """

    def test_one_value_per_step_after_a_resume(self):
        """Planted bug: without EventKeeper::Settle the kept run has steps 20 to 30 twice."""
        job = self.server.python(self.RESUMING, flags=["--name", "resumed"])
        self.server.until_log(job, "ready")
        self.server.until_checkpoint(job, 20)
        self.server.ath("interrupt", job, check=0)
        record = self.ended(job)
        self.assertEqual(len(record["attempts"]), 2)
        expected = [[step, step + (1000 if step >= 20 else 0)] for step in range(50)]
        self.assertEqual([[p["step"], p["value"]] for p in self.server.points(job, "loss")],
                         expected)
        abandoned = self.tb("default", "resumed", "abandoned", "attempt-1-by-2")
        run, branch = tensorboard_reads(self.tb("default", "resumed"), abandoned)
        self.assertEqual(run["scalars"]["loss"], expected)
        self.assertEqual(branch["scalars"]["loss"], [[step, step] for step in range(20, 31)])
        self.assertEqual(branch["kinds"]["weights"], "histograms")

    def test_export(self):
        job = self.server.python("""
            import athanor
            for step in range(10): athanor.log({"a,b": step / 2, "nan": float("nan")}, step=step)
        """, flags=["-p", "lr=0.1", "--name", "exported"])
        self.ended(job)
        rows = list(csv.DictReader(io.StringIO(self.server.ath("export", "csv", job, check=0).stdout)))
        self.assertEqual([(r["metric"], int(r["step"]), r["value"]) for r in rows][:2],
                         [("a,b", 0, "0.0"), ("a,b", 1, "0.5")])
        self.assertEqual([r["value"] for r in rows if r["metric"] == "nan"], ["NaN"] * 10)
        path = os.path.join(self.server.root, "points.jsonl")
        self.server.ath("export", "jsonl", job, "-o", path, check=0)
        with open(path) as file:
            self.assertEqual(len([json.loads(line) for line in file]), 20)
        folder = os.path.join(self.server.root, "exported-tb")
        self.server.ath("export", "tb", job, "-o", folder, check=0)
        run, = tensorboard_reads(folder)
        self.assertEqual(run["scalars"]["a,b"], [[step, step / 2] for step in range(10)])
        self.assertEqual(run["hparams"], {"lr": 0.1})
        self.server.ath("export", "tb", job, "-o", folder, check=4)
        self.server.ath("export", "csv", "nobody", check=3)

    def test_the_agent_killed_while_it_reads(self):
        """A successor reads the files again; every point is there once."""
        job = self.server.python("""
            import athanor, os, time
            w = athanor.SummaryWriter(flush_secs=0.01)
            for step in range(2000): w.add_scalar("loss", step, step)
            w.flush()
            print("half", flush=True)
            while not os.path.exists(%r): time.sleep(0.01)
            for step in range(2000, 4000): w.add_scalar("loss", step, step)
            w.close()
        """ % os.path.join(self.server.root, "go"))
        self.server.until_log(job, "half")
        until(lambda: any(m["name"] == "loss" for m in self.server.json("metrics", job)["metrics"]),
              "points of the file are there")
        for pid in self.server.agent_pids(job):
            harness.kill(pid)
        self.server.go("go")
        self.ended(job)
        self.assertEqual([p["value"] for p in self.server.points(job, "loss")],
                         list(range(4000)))


class Import(Case):
    """Event files of others, brought in by `ath import tb`."""

    WRITE = """
        import sys
        from tensorboardX import SummaryWriter
        for run in ("a", "b/deep"):
            w = SummaryWriter(sys.argv[1] + "/" + run)
            for step in range(300):
                w.add_scalar("loss", 1 / (step + 1), step)
            w.add_scalar("odd", float("nan"), 5)
            w.add_text("notes", "not a number", 1)
            w.close()
    """

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(tempfile.mkdtemp(prefix="ath-import-"), "logs")
        self.addCleanup(shutil.rmtree, os.path.dirname(self.folder), ignore_errors=True)

    def write(self, text=WRITE):
        subprocess.run([python_with_tensorboard(), "-B", "-c", textwrap.dedent(text), self.folder],
                       check=True)

    def points(self, run, name="loss"):
        lines = self.server.http("GET", "/api/v1/runs/%s/metrics/%s" % (run, name)).body
        return [json.loads(line) for line in lines.splitlines()]

    def test_a_folder_is_runs_and_again_changes_nothing(self):
        self.write()
        first = self.server.json("import", "tb", self.folder, "--experiment", "theirs")
        self.assertEqual([run["name"] for run in first["runs"]], ["a", "b/deep"])
        self.assertEqual([run["stored"] for run in first["runs"]], [301, 301])
        found = self.points(first["runs"][1]["id"])
        self.assertEqual([(p["step"], round(p["value"], 5)) for p in found],
                         [(step, round(1 / (step + 1), 5)) for step in range(300)])
        self.assertEqual(self.points(first["runs"][0]["id"], "odd")[0]["value"], "NaN")
        # Planted bug: number the points by a counter instead of their place in the file.
        again = self.server.json("import", "tb", self.folder, "--experiment", "theirs")
        self.assertEqual([run["id"] for run in again["runs"]], [run["id"] for run in first["runs"]])
        self.assertEqual([(run["new"], run["stored"]) for run in again["runs"]], [(False, 0)] * 2)
        runs = self.server.json("runs", "--experiment", "theirs")
        self.assertEqual(sorted((run["name"], run["status"]) for run in runs["runs"]),
                         [("a", "FINISHED"), ("b/deep", "FINISHED")])

    def test_follow_reads_what_is_written(self):
        self.write()
        reading = self.server.popen("import", "tb", self.folder, "--follow", "--json",
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        def count():
            listed = self.server.http("GET", "/api/v1/runs?limit=50").json()["runs"]
            mine = [run for run in listed if run["tags"].get("athanor.source", "").endswith(
                self.folder + "/a")]
            return mine and len(self.points(mine[0]["id"])) or 0
        until(lambda: count() == 300, "the first points are there")
        self.write(self.WRITE.replace("range(300)", "range(300, 400)"))
        until(lambda: count() == 400, "the second file is read too")
        reading.send_signal(2)
        out, err = reading.communicate()
        self.assertEqual(reading.returncode, 0, err)
        self.assertEqual(json.loads(out)["runs"][0]["stored"], 402)

    def test_from_a_bucket(self):
        self.write()
        env = self.server.json("env", "aws")
        aws = dict(os.environ, **env)
        for command in (["mb", "s3://others"], ["cp", "--recursive", "--quiet", self.folder,
                                                "s3://others/tb"]):
            subprocess.run(["aws", "s3", *command], env=aws, check=True, stdout=subprocess.DEVNULL)
        found = self.server.json("import", "tb", "s3://others/tb")
        self.assertEqual([(run["name"], run["stored"]) for run in found["runs"]],
                         [("a", 301), ("b/deep", 301)])
        self.assertEqual(found["experiment"], "tb")
        left = os.path.join(tempfile.gettempdir(), "ath-import-??????")  # mkdtemp of C has six
        self.assertEqual(glob.glob(left), [], "what was fetched is gone")

    def test_refusals(self):
        os.makedirs(self.folder)
        for source, words in ((self.folder, "no event files below"),
                              (self.folder + "/none", "there is no folder"),
                              ("s3://none/x", "none")):
            done = self.server.ath("import", "tb", source)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        job = self.server.python("print('loss=1')")
        self.ended(job)
        refused = self.server.http("POST", "/api/v1/runs/%s/points" % job, b"")
        self.assertEqual(refused.status, 409)
        made = self.server.http("POST", "/api/v1/runs", json.dumps({"name": "own"})).json()
        self.assertEqual(self.server.http("POST", "/api/v1/runs/%s/points" % made["id"],
                                          b"\x01\xff\xff").status, 400)
        self.assertEqual(self.server.http("POST", "/api/v1/runs", json.dumps({"name": 5})).status, 400)


if __name__ == "__main__":
    harness.main()
