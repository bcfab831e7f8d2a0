"""The tiers themselves: what counts as passed, failed and flaky. Real test files and a real
GoogleTest binary, which fail, die or hang as they are told to."""

import contextlib
import io
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases
import harness
import nonroot
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


WHO = """
    import json, os, pwd, re, tempfile, unittest

    class A(unittest.TestCase):
        def test_who(self):
            status = open("/proc/self/status").read()
            found = {
                "ids": [*os.getresuid(), *os.getresgid()], "groups": os.getgroups(),
                "capabilities": re.findall(r"Cap(?:Inh|Prm|Eff|Amb):\\t(\\w+)", status),
                "cgroups": [folder for folder, _, _ in os.walk("/sys/fs/cgroup")
                            if os.access(folder, os.W_OK)],
                "home": [os.environ["HOME"], pwd.getpwuid(os.getuid()).pw_dir,
                         os.access(os.environ["HOME"], os.W_OK)],
                "tmp": tempfile.gettempdir(), "cwd": os.getcwd(),
                "sudo": os.environ.get("SUDO_USER"), "path": os.environ["PATH"].split(":")}
            with open(os.path.join(tempfile.gettempdir(), "who.json"), "w") as file:
                json.dump(found, file)
    """


class Made(unittest.TestCase):
    """A tier with its logs in a folder of its own."""

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


class Counting(Made):
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


@unittest.skipUnless(os.geteuid() == 0, "only root can become an ordinary user")
class Ordinary(unittest.TestCase):
    """The user of the tier nonroot, with a small tree that only root can go to."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tiers-")  # 0700, root's
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.source = os.path.join(cls.folder, "tree")
        for name, text in (("tests/clients/test_who.py", WHO), (".gitignore", "/build/\n"),
                           ("build/ath", "the program"), ("build/scratch", "left behind")):
            path = os.path.join(cls.source, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(textwrap.dedent(text))
        shutil.copy(os.path.join(cases.TREE, "tests", "run_suite.py"),
                    os.path.join(cls.source, "tests"))
        subprocess.run(["git", "init", "-q", cls.source], check=True)
        for module in (cases, nonroot):
            cls.enterClassContext(mock.patch.object(module, "TREE", cls.source))
        cls.enterClassContext(mock.patch.dict(os.environ, XDG_CACHE_HOME=cls.folder, SUDO_USER="me",
                                              PATH=cls.folder + ":" + os.environ["PATH"]))
        cls.user = nonroot.User(cls.source, os.path.join(cls.source, "build"))
        cls.addClassCleanup(cls.user.close)

    def setUp(self):
        self.logs = tempfile.mkdtemp(prefix="tiers-")
        self.addCleanup(shutil.rmtree, self.logs)
        self.enterContext(mock.patch.object(cases, "LOGS", self.logs))
        self.tier = cases.Tier("made")

    def who(self):
        self.tier.suite(os.path.join(self.source, "tests/clients/test_who.py"), user=self.user)
        self.assertEqual([failure.why for failure in self.tier.failed], [])
        with open(os.path.join(self.user.tmp, "who.json")) as file:
            return json.load(file)

    # The planted bug: --clear-groups left out, or root's environment kept.
    def test_a_suite_runs_without_any_privilege(self):
        found = self.who()
        entry = pwd.getpwnam(nonroot.NAME)
        self.assertEqual(found["ids"], [entry.pw_uid] * 3 + [entry.pw_gid] * 3)
        self.assertEqual(found["groups"], [])
        self.assertEqual(found["capabilities"], ["0000000000000000"] * 4)
        self.assertEqual(found["cgroups"], [], "cgroups that it may write to")
        self.assertEqual(found["home"], [entry.pw_dir, entry.pw_dir, True])
        self.assertEqual((found["tmp"], found["cwd"]), (self.user.tmp, self.user.tree))
        self.assertEqual(found["sudo"], None)
        self.assertNotIn(self.folder, found["path"])
        self.assertEqual(self.tier.passed, 1)

    # The planted bug: files that git ignores copied too, or root's tree used.
    def test_the_copy_has_what_git_knows_and_the_program(self):
        there = sorted(os.path.relpath(os.path.join(folder, name), self.user.tree)
                       for folder, _, names in os.walk(self.user.tree) for name in names)
        self.assertEqual(there, [".gitignore", "build/ath", "tests/clients/test_who.py",
                                 "tests/run_suite.py"])
        for name in there:
            self.assertEqual(os.stat(os.path.join(self.user.tree, name)).st_uid, self.user.uid)

    # The planted bug: the programs of a shared environment still name root's interpreter.
    def test_a_shared_environment_runs_at_its_new_place(self):
        name = "%016x" % (os.getpid() + (time.time_ns() << 20 & (1 << 63) - 1))
        made = os.path.join(self.folder, "athanor-tests", name)
        subprocess.run([cases.PYTHON, "-m", "venv", "--without-pip", made], check=True)
        program = os.path.join(made, "bin", "hello")
        with open(program, "w") as file:
            file.write("#!%s/bin/python\nimport sys\nprint(sys.prefix)\n" % made)
        os.chmod(program, 0o700)
        with open(os.path.join(made, "private"), "w") as file:
            os.chmod(file.name, 0o600)
        mine = os.path.join(self.user.home, ".cache", "athanor-tests", name)
        self.addCleanup(shutil.rmtree, mine, ignore_errors=True)
        self.addCleanup(lambda: os.path.exists(mine + ".lock") and os.unlink(mine + ".lock"))
        self.user.share(os.path.dirname(made))
        self.assertFalse(os.path.exists(mine), "it is not complete")
        with open(os.path.join(made, "complete"), "w"):
            pass
        self.user.share(os.path.dirname(made))
        self.user.share(os.path.dirname(made))  # once more changes nothing
        said = subprocess.run(self.user.command([os.path.join(mine, "bin", "hello")]), check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(said, mine + "\n")
        subprocess.run(self.user.command(["cat", os.path.join(mine, "private")]), check=True)
        self.assertNotEqual(subprocess.run(
            self.user.command(["sh", "-c", ": > $0/pyvenv.cfg", mine]),
            stderr=subprocess.DEVNULL).returncode, 0, "root's files must not be written to")

    # The planted bug: a process that a suite left behind keeps its folder.
    def test_nothing_is_left(self):
        user = nonroot.User(self.source, os.path.join(self.source, "build"))
        left = subprocess.Popen(user.command(["sleep", "1000"]), env={"TMPDIR": user.tmp})
        self.addCleanup(left.kill)
        harness.until(lambda: harness.name_of(left.pid) == "sleep", "it is no longer root's")
        user.close()
        self.assertEqual(left.wait(60), -9)
        self.assertFalse(os.path.exists(user.root))
        killed = os.path.join(nonroot.RUNS, "ath-user-%d-x" % left.pid)  # no such process any more
        os.mkdir(killed)
        nonroot.sweep()
        self.assertFalse(os.path.exists(killed))
        self.assertTrue(os.path.exists(self.user.root), "this one is in use")


class OrdinaryTier(Made):
    """What the tier nonroot makes of what was skipped."""

    NEEDS = [("test_x.A.test_1", "needs root: to mount"), ("test_x.A.test_2", "needs root: to mount")]

    def tier_of(self, skipped, clients):
        before = cases.Tier("clients")
        before.skipped = clients
        self.tier.before = [before]

        def run(tier, **_):
            tier.passed, tier.skipped = 1, list(skipped)

        with mock.patch.object(nonroot, "User") as user, mock.patch.object(run_tiers, "clients", run), \
                mock.patch.object(run_tiers.atexit, "register"), \
                mock.patch.object(os, "geteuid", return_value=0):
            user.return_value.says.return_value = ["ath check: limits: none"]
            run_tiers.ordinary(self.tier)
        return self.finish()

    # The planted bug: reasons that are not shown.
    def test_what_needs_root_is_listed_by_reason(self):
        status, words = self.tier_of(self.NEEDS, [])
        self.assertEqual(status, 0, words)
        self.assertIn("  2 skipped: needs root: to mount (test_x.A.test_1, test_x.A.test_2)\n", words)

    # The planted bug: a case that is skipped as a user for any reason is as good as passed.
    def test_what_only_the_user_skips_must_need_root(self):
        status, words = self.tier_of([("test_x.A.test_3", "no environment with boto3"),
                                      ("test_x.A.test_4", "no GPU")],
                                     [("test_x.A.test_4", "no GPU")])
        self.assertEqual(status, 1)
        self.assertEqual(self.names(), ["test_x.A.test_3"])
        self.assertTrue(words.endswith("1 passed, 1 failed\n"), words)

    def test_an_ordinary_user_has_run_it_already(self):
        with mock.patch.object(os, "geteuid", return_value=1000):
            run_tiers.ordinary(self.tier)
        self.assertEqual([name for name, _ in self.tier.skipped], ["nonroot"])
        self.assertIn("  skipped: the tier clients is run by an ordinary user already\n",
                      self.finish()[1])

    def test_what_is_left_out_is_there(self):
        there = {os.path.basename(path) for folder in ("clients", "golden")
                 for path in os.listdir(os.path.join(cases.TREE, "tests", folder))}
        self.assertEqual(set(nonroot.LEFT_OUT) - there, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
