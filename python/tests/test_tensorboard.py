"""athanor.SummaryWriter, read back by the C++ reader."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

DUMP = os.environ.get("ATHANOR_EVENT_DUMP")


@unittest.skipUnless(DUMP, "ATHANOR_EVENT_DUMP does not name the reader")
class Writer(unittest.TestCase):
    pure = "0"

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="athanor-tb-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_script(self, text, **more):
        environment = dict(os.environ, ATHANOR_PURE=self.pure, **more)
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(text), self.folder],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def lines(self, folder=None):
        files = sorted(glob.glob(os.path.join(folder or self.folder, "*tfevents*")))
        text = subprocess.run([DUMP, *files], stdout=subprocess.PIPE, check=True, text=True).stdout
        return [json.loads(line) for line in text.splitlines()]

    def points(self, tag):
        return [(line["step"], line["value"]) for line in self.lines() if line.get("tag") == tag]

    def test_scalars_are_all_there_in_order(self):
        self.run_script("""
            import athanor, sys
            w = athanor.SummaryWriter(sys.argv[1])
            for step in range(3000): w.add_scalar("a", step / 8, step)
            w.add_scalar("negative", -1, -5, walltime=12.5)
            w.close()
        """)
        self.assertEqual(self.points("a"), [(step, step / 8) for step in range(3000)])
        self.assertEqual(self.points("negative"), [(-5, -1.0)])
        self.assertEqual(self.lines()[-1]["torn"], 0)

    def test_what_is_left_is_written_at_the_end_of_the_process(self):
        self.run_script("""
            import athanor, sys
            athanor.SummaryWriter(sys.argv[1], flush_secs=3600).add_scalar("a", 1, 1)
            w = athanor.SummaryWriter(sys.argv[1], flush_secs=3600)
            w.add_scalar("b", 2, 2)
        """)
        self.assertEqual(self.points("a"), [(1, 1.0)])
        self.assertEqual(self.points("b"), [(2, 2.0)])

    def test_a_forked_child_leaves_the_file_alone(self):
        self.run_script("""
            import athanor, os, sys
            w = athanor.SummaryWriter(sys.argv[1], flush_secs=3600)
            w.add_scalar("a", 1, 1)
            child = os.fork()
            if child == 0:
                w.add_scalar("a", 2, 2)
                w.close()
                os._exit(0)
            os.waitpid(child, 0)
            w.close()
        """)
        self.assertEqual(self.points("a"), [(1, 1.0)])

    def test_nothing_raises_into_training(self):
        done = self.run_script("""
            import athanor, sys, warnings
            w = athanor.SummaryWriter(sys.argv[1])
            for bad in ("text", None, object(), [1, 2]):
                w.add_scalar("bad", bad, 1)
                w.add_histogram("bad", bad, 1)
                w.add_image("bad", bad, 1)
            w.add_scalar("bad", 1, "step")
            w.add_scalar("good", True, 1)
            w.close()
            w.add_scalar("late", 1, 1)
            w.flush()
            print(w.errors > 8)
        """)
        self.assertEqual(done.stdout, "True\n")
        self.assertIn("SummaryWriter.add_scalar was left out", done.stderr)
        self.assertEqual(self.points("good"), [(1, 1.0)])

    def test_in_a_job_it_writes_where_the_agent_looks(self):
        self.run_script("""
            import athanor
            with athanor.SummaryWriter() as w: w.add_scalar("a", 1, 1)
        """, ATHANOR_TENSORBOARD_DIR=self.folder)
        self.assertEqual(self.points("a"), [(1, 1.0)])


class PureWriter(Writer):
    pure = "1"


if __name__ == "__main__":
    unittest.main()
