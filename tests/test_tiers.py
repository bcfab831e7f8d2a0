"""The tiers themselves: what counts as passed, failed and flaky. Real test files and a real
GoogleTest binary, which fail, die or hang as they are told to."""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases
import run_tiers
import stress

GTEST = r"""
#include <gtest/gtest.h>
#include <cstdlib>
#include <fstream>
#include <string>
static bool SecondTime(const std::string& name) {
  std::string path = std::string(getenv("MARKS")) + "/" + name;
  bool there = std::ifstream(path).good();
  std::ofstream(path) << "x";
  return there;
}
TEST(Mixed, Passes) {}
TEST(Mixed, Skips) { GTEST_SKIP() << "no such thing here"; }
TEST(Mixed, FailsOnce) { EXPECT_TRUE(SecondTime("fails")); }
TEST(Mixed, DiesOnce) { if (!SecondTime("dies")) { printf("half a line"); fflush(stdout); abort(); } }
TEST(Mixed, FailsAlways) { EXPECT_EQ(1, 2); }
TEST(Mixed, StandsBehind) {}
"""

SUITE = """
    import os, unittest

    def second_time(name):
        path = os.path.join(os.environ["MARKS"], name)
        there = os.path.exists(path)
        open(path, "w").close()
        return there

    class A(unittest.TestCase):
        def test_1_passes(self):
            pass
        def test_2_fails_once(self):
            self.assertTrue(second_time("fails"))
        def test_3_dies_once(self):
            if not second_time("dies"):
                os.kill(os.getpid(), 9)
        def test_4_stands_behind(self):
            pass
        @unittest.skip("no such thing here")
        def test_5_skips(self):
            pass

    class B(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            if not second_time("class"):
                raise RuntimeError("not yet")
        def test_it(self):
            pass
    """


class Counting(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tiers-")
        self.addCleanup(shutil.rmtree, self.folder)
        for module in (cases, run_tiers, stress):
            self.enterContext(mock.patch.object(module, "LOGS", self.folder))
        self.enterContext(mock.patch.dict(os.environ, MARKS=self.folder))
        self.tier = cases.Tier("made")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def names(self):
        return sorted(failure.name for failure in self.tier.failed)

    def finish(self):
        """What ./test would end with: (status, its words)."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run_tiers.show(self.tier)
            status = run_tiers.ended([self.tier], run_tiers.run_again([self.tier]))
        return status, out.getvalue()

    # The planted bug: `left` not run any more after a death: test_4_stands_behind is not counted.
    def test_a_file_that_is_killed_costs_one_case(self):
        self.tier.suite(self.write("test_made.py", SUITE))
        self.assertEqual(self.names(), ["setUpClass (test_made.B)", "test_made.A.test_2_fails_once",
                                        "test_made.A.test_3_dies_once"])
        self.assertEqual(self.tier.passed, 2)
        self.assertEqual(self.tier.skipped, [("test_made.A.test_5_skips", "no such thing here")])
        status, words = self.finish()
        self.assertEqual(status, 0, words)
        self.assertEqual(words.count("flaky: "), 3, words)
        self.assertTrue(words.endswith("5 passed, 0 failed\n"), words)
        for log in ("made-", "again-"):
            self.assertTrue([name for name in os.listdir(self.folder) if name.startswith(log)])

    # The planted bug: what failed twice counted as flaky.
    def test_what_fails_twice_stays_failed(self):
        self.tier.suite(self.write("test_bad.py", """
            import unittest
            class A(unittest.TestCase):
                def test_it(self):
                    self.fail("as always")
            """))
        status, words = self.finish()
        self.assertEqual(status, 1)
        self.assertIn("failed again: test_bad.A.test_it", words)
        self.assertTrue(words.endswith("0 passed, 1 failed\n"), words)

    # The planted bug: any number of flaky cases is green.
    def test_four_flaky_ones_are_red(self):
        for i in range(4):
            self.tier.suite(self.write("test_f%d.py" % i, """
                import os, unittest
                class A(unittest.TestCase):
                    def test_it(self):
                        path = os.path.join(os.environ["MARKS"], __file__ + ".mark")
                        there = os.path.exists(path)
                        open(path, "w").close()
                        self.assertTrue(there)
                """))
        status, words = self.finish()
        self.assertEqual(status, 1)
        self.assertIn("4 flaky", words)
        self.assertTrue(words.endswith("0 passed, 4 failed\n"), words)

    def test_a_step_has_no_second_chance(self):
        self.tier.step("build", ["false"])
        status, words = self.finish()
        self.assertEqual(status, 1)
        self.assertNotIn("again", words)

    # The planted bug: the name of the case taken from the report, which a dead binary never wrote.
    def test_a_binary_that_dies_costs_one_case(self):
        source = self.write("made.cc", GTEST)
        binary = os.path.join(self.folder, "made_test")
        subprocess.run(["g++", "-O0", "-o", binary, source, "-lgtest_main", "-lgtest", "-lpthread"],
                       check=True)
        self.tier.gtest(binary)
        self.assertEqual(self.names(), ["Mixed.DiesOnce", "Mixed.FailsAlways", "Mixed.FailsOnce"])
        self.assertEqual(self.tier.passed, 2)
        self.assertEqual(self.tier.skipped, [("Mixed.Skips", "no such thing here")])
        status, words = self.finish()
        self.assertEqual(status, 1)
        self.assertIn("flaky: Mixed.DiesOnce", words)
        self.assertIn("flaky: Mixed.FailsOnce", words)
        self.assertTrue(words.endswith("4 passed, 1 failed\n"), words)

    def test_stress_counts_runs(self):
        path = self.write("test_made.py", SUITE)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = stress.stress(4, [path + ":A.test_1_passes", path + ":A.test_2_fails_once"],
                                   "release", {})
        self.assertEqual(status, 1, out.getvalue())
        self.assertRegex(out.getvalue(), r"\d passed, [1-4] failed\n$")
        with self.assertRaises(stress.NotFound):
            stress.stress(1, [os.path.join(self.folder, "none.py")], "release", {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
