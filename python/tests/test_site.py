"""site/sitecustomize.py: Python stacks on request, which parameters are read, and nothing else changed.
Real interpreters."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "site")
PYTHON = "/usr/bin/python3"
SIGNAL = signal.SIGURG


class SiteCase(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="athanor-site-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.stacks = os.path.join(self.dir, "stacks")

    def environment(self, *path, **more):
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("ATHANOR_", "PYTHON"))}
        clean.update(PYTHONPATH=os.pathsep.join((SITE,) + path), PYTHONDONTWRITEBYTECODE="1",
                     ATHANOR_STACKS=self.stacks)
        clean.update(more)
        return {key: value for key, value in clean.items() if value is not None}

    def run_script(self, script, *path, flags=(), python=PYTHON, **more):
        """Its output; anything on stderr fails the test."""
        reply = subprocess.run([python, *flags, "-c", textwrap.dedent(script)], cwd=self.dir,
                               env=self.environment(*path, **more), timeout=120, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""), reply.stderr)
        return reply.stdout

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def dumped(self):
        with open(self.stacks, encoding="utf-8") as file:
            return file.read()


class StacksTest(SiteCase):
    def test_all_threads_are_written_when_asked_and_the_script_goes_on(self):
        out = self.run_script("""
            import os, signal, threading
            waiting = threading.Event()
            def pump():
                waiting.wait()
            def main():
                os.kill(os.getpid(), signal.SIGURG)
            threading.Thread(target=pump, daemon=True).start()
            main()
            main()
            print("on")
        """)
        self.assertEqual(out, "on\n")
        text = self.dumped()
        self.assertEqual(len(re.findall(r"^Current thread 0x\w+ \(most recent call first\):$", text,
                                        re.MULTILINE)), 2)
        self.assertEqual(len(re.findall(r' in main$', text, re.MULTILINE)), 2)
        self.assertEqual(len(re.findall(r' in pump$', text, re.MULTILINE)), 2)

    def test_forked_children_and_new_interpreters_write_to_the_same_file(self):
        self.run_script("""
            import os, signal, subprocess, sys
            def child():
                os.kill(os.getpid(), signal.SIGURG)
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                child()
            os.waitpid(pid, 0)
            subprocess.run([sys.executable, "-c", "import os\\ndef spawned():\\n"
                            "  os.kill(os.getpid(), %d)\\nspawned()"], check=True)
        """ % SIGNAL)
        self.assertIn(" in child\n", self.dumped())
        self.assertIn(" in spawned\n", self.dumped())

    def test_other_programs_neither_get_the_file_nor_die_of_the_signal(self):
        out = self.run_script("""
            import subprocess
            # The shell signals itself, then lists what it has open.
            print(subprocess.run(["sh", "-c", "kill -URG $$; ls -l /proc/$$/fd"], check=True,
                                 close_fds=False, stdout=subprocess.PIPE, text=True).stdout)
        """)
        self.assertNotIn(self.stacks, out)

    def test_interrupted_system_calls_are_started_again(self):
        process = subprocess.Popen(
            [PYTHON, "-c", "import ctypes\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "buffer = ctypes.create_string_buffer(8)\n"
             "print('ready', flush=True)\n"
             "print(libc.read(0, buffer, 8), buffer.value, flush=True)"],
            env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(SIGNAL)
        out, _ = process.communicate("abc", timeout=120)
        self.assertEqual(out, "3 b'abc'\n")

    def test_a_script_may_take_the_signal_for_itself(self):
        out = self.run_script("""
            import os, signal
            print(signal.getsignal(signal.SIGURG) is signal.SIG_DFL)
            signal.signal(signal.SIGURG, lambda *_: print("mine"))
            os.kill(os.getpid(), signal.SIGURG)
        """)
        self.assertEqual(out, "True\nmine\n")
        self.assertEqual(self.dumped(), "")

    def test_a_signal_that_was_ignored_stays_ignored(self):
        script = ("import os; os.kill(os.getpid(), %d); print(open('/proc/self/status').read())"
                  % SIGNAL)
        reply = subprocess.run([PYTHON, "-c", script], env=self.environment(), check=True,
                               text=True, stdout=subprocess.PIPE, timeout=120,
                               restore_signals=False,
                               preexec_fn=lambda: signal.signal(SIGNAL, signal.SIG_IGN))
        mask = int(re.search(r"SigIgn:\s*(\w+)", reply.stdout).group(1), 16)
        self.assertTrue(mask >> (SIGNAL - 1) & 1)
        self.assertFalse(os.path.exists(self.stacks))


class QuietTest(SiteCase):
    CAUGHT = """
        import re
        status = open("/proc/self/status").read()
        mask = int(re.search("SigCgt:\\\\s*(\\\\w+)", status).group(1), 16)
        print(mask >> (%d - 1) & 1)
    """ % SIGNAL

    def test_it_is_on_by_default(self):
        self.assertEqual(self.run_script(self.CAUGHT), "1\n")

    def test_it_can_be_switched_off(self):
        self.assertEqual(self.run_script(self.CAUGHT, ATHANOR_SITE="0"), "0\n")
        self.assertEqual(self.run_script(self.CAUGHT, ATHANOR_STACKS=None), "0\n")
        self.assertEqual(self.run_script(self.CAUGHT, ATHANOR_STACKS=""), "0\n")
        self.assertFalse(os.path.exists(self.stacks))

    def test_isolated_interpreters_never_see_it(self):
        for flag in ("-I", "-E", "-S"):
            self.assertEqual(self.run_script(self.CAUGHT, flags=[flag]), "0\n", flag)

    def test_a_file_that_cannot_be_written_is_no_trouble(self):
        for path in ("/nowhere/stacks", self.dir):
            self.assertEqual(self.run_script(self.CAUGHT, ATHANOR_STACKS=path), "0\n", path)

    def test_it_works_in_a_virtual_environment(self):
        folder = os.path.join(self.dir, "venv")
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", folder], check=True, timeout=300)
        python = os.path.join(folder, "bin", "python3")
        self.assertEqual(self.run_script(self.CAUGHT, python=python), "1\n")

    def test_it_leaves_no_trace_in_the_interpreter(self):
        show = """
            import sys
            print(sorted(set(sys.modules) - {"faulthandler", "_signal", "sitecustomize"}))
            print(sys.path)
        """
        self.assertEqual(self.run_script(show), self.run_script(show, PYTHONPATH=None))

    def test_crashes_are_still_told_on_stderr(self):
        reply = subprocess.run([PYTHON, "-c", "import faulthandler; faulthandler._sigsegv()"],
                               env=self.environment(PYTHONFAULTHANDLER="1"), timeout=120,
                               stderr=subprocess.PIPE, text=True)
        self.assertEqual(reply.returncode, -signal.SIGSEGV)
        self.assertIn("Fatal Python error: Segmentation fault", reply.stderr)


class ReadsTest(SiteCase):
    """What is noted of the parameters that a script reads (src/run/agent/param_reads.h has the lines)."""

    def reads(self, script, **more):
        path = os.path.join(self.dir, "read")
        if os.path.exists(path):
            os.remove(path)
        out = self.run_script(script, ATHANOR_PARAMS_DIR=self.dir, SM_HP_LR="0.1", SM_HP_WD="1",
                              SM_HPS="{}", **more)
        with open(path, encoding="utf-8") as file:
            return out, file.read().split("\n")[:-1]

    def test_nothing_is_noted_of_a_script_that_asks_for_nothing(self):
        out, lines = self.reads("""
            import os, subprocess
            os.environ["PATH"], os.environ.get("SM_NONE"), "HOME" in os.environ
            os.environ["OWN"] = "1"; del os.environ["OWN"]
            print(len(os.environ), os.environ.get("OWN"))
        """)
        self.assertEqual(lines, ["python"])
        self.assertTrue(out.endswith(" None\n"))

    def test_each_variable_is_noted_once(self):
        for ask in ("os.environ['SM_HP_LR']", "os.getenv('SM_HP_LR')", "os.environ.get('SM_HP_LR')",
                    "'SM_HP_LR' in os.environ", "os.environb[b'SM_HP_LR']"):
            _, lines = self.reads("import os\nfor _ in range(3): %s" % ask)
            self.assertEqual(lines, ["python", "env SM_HP_LR"], ask)

    def test_a_copy_of_all_is_told_from_a_choice(self):
        for ask in ("dict(os.environ)", "os.environ.copy()", "list(os.environ.items())", "{**os.environ}"):
            _, lines = self.reads("import os; " + ask)
            self.assertEqual(lines, ["python", "walk"], ask)
        _, lines = self.reads("import os; [os.environ[k] for k in os.environ if 'SM_HP_' in k]")
        self.assertEqual(sorted(lines), ["env SM_HP_LR", "env SM_HP_WD", "python"])
        _, lines = self.reads("import os; dict(os.environ); os.environ['SM_HP_LR']")
        self.assertEqual(lines, ["python", "walk", "env SM_HP_LR"])

    def test_programs_that_are_started_are_noted(self):
        for start in ("subprocess.run(['/bin/true', 'x'])", "os.system('true x')", "os.popen('true').read()",
                      "os.posix_spawn('/bin/true', ['true'], {})", "os.execv('/bin/true', ['true'])"):
            _, lines = self.reads("import os, subprocess; " + start)
            self.assertEqual(lines[:1], ["python"], start)
            self.assertIn(lines[1:], (["spawn true"], ["spawn sh"]), start)

    def test_children_note_for_themselves(self):
        _, lines = self.reads("""
            import subprocess, sys
            subprocess.run([sys.executable, "-c", "import os; os.environ['SM_HP_WD']"], check=True)
        """)
        self.assertEqual(sorted(set(lines)), ["env SM_HP_WD", "python", "spawn python3"])

    def test_the_environment_is_what_it_was(self):
        show = """
            import os, copy
            print(isinstance(os.environ, os._Environ), type(os.environ).__name__, os.environ["HOME"],
                  os.environ | {"a": "b"} == dict(os.environ, a="b"), copy.copy(os.environ) == os.environ,
                  sorted(os.environ) == sorted(dict(os.environ)), os.environ.pop("SM_HPS"))
            try: os.environ["NONE"]
            except KeyError as error: print(error)
            print(os.system.__name__, os.execv.__module__, repr(os.environ)[:9])
        """
        self.assertEqual(self.reads(show)[0], self.run_script(show, SM_HPS="{}"))

    def test_a_folder_that_is_not_there_is_no_trouble(self):
        self.assertEqual(self.run_script("import os; print(os.environ['SM_HP_LR'])", SM_HP_LR="1",
                                         ATHANOR_PARAMS_DIR="/nowhere"), "1\n")


class ChainTest(SiteCase):
    def test_the_users_own_sitecustomize_still_runs(self):
        mine = self.write("mine/sitecustomize.py",
                          "value = 'user'\nimport os; mark = os.getpid()\n")
        for switch in ("1", "0"):
            out = self.run_script("""
                import sitecustomize, os
                print(sitecustomize.value, sitecustomize.mark == os.getpid(),
                      sitecustomize.__file__)
            """, os.path.dirname(mine), ATHANOR_SITE=switch)
            self.assertEqual(out, "user True %s\n" % mine)

    def test_without_another_one_there_is_none(self):
        out = self.run_script("""
            try:
                import sitecustomize
                print(sitecustomize.__file__)
            except ModuleNotFoundError as error:
                print(error)
        """)
        script = "import sitecustomize; print(sitecustomize.__file__)"
        plain = subprocess.run([PYTHON, "-c", script], env=self.environment(PYTHONPATH=None),
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               timeout=120).stdout
        self.assertEqual(out, plain or "No module named 'sitecustomize'\n")

    def test_an_error_in_it_is_told_as_without_us(self):
        mine = os.path.dirname(self.write("mine/sitecustomize.py", "raise ValueError('user')\n"))
        command = [PYTHON, "-c", "print('on')"]
        ours = subprocess.run(command, env=self.environment(mine), timeout=120, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        plain = subprocess.run(command, env=self.environment(PYTHONPATH=mine), timeout=120,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((ours.returncode, ours.stdout), (0, "on\n"))
        self.assertEqual(ours.stderr, plain.stderr)
        self.assertIn("ValueError: user", ours.stderr)

    def test_it_is_found_through_a_link_and_twice_without_going_in_circles(self):
        link = os.path.join(self.dir, "link")
        os.symlink(SITE, link)
        out = self.run_script("""
            import sys
            print([entry for entry in sys.path if entry[-4:] in ("site", "link")])
        """, link, SITE)
        self.assertEqual(out, "[]\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
