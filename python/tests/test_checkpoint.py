"""Saving whole or not at all, and when."""

import importlib.util
import os
import shutil
import signal
import tempfile
import textwrap
import unittest

from support import SpoolCase, make_segment, write_control


class CheckpointTest(SpoolCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="athanor-ckpt-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def environment(self, **more):
        return super().environment(ATHANOR_CHECKPOINT_DIR=self.folder, **more)

    def names(self):
        return sorted(os.listdir(self.folder))

    def test_a_file_gets_its_name_once_it_is_whole(self):
        self.run_script("""
            import os
            def save(path):
                assert os.path.dirname(path) == athanor.checkpoint_dir()
                with open(path, "w") as file: file.write("weights")
                assert athanor.latest_checkpoint() is None
            path = athanor.checkpoint(12, save)
            assert path == os.path.join(athanor.checkpoint_dir(), "step-12"), path
            assert path == athanor.latest_checkpoint() and open(path).read() == "weights"
        """)
        self.assertEqual(self.names(), ["step-12"])

    def keeping(self, keep, script):
        self.run_script(script, ATHANOR_CHECKPOINT_KEEP=keep)
        return self.names()

    def test_a_thousand_saves_leave_what_the_policy_keeps(self):
        """Red if older checkpoints stay, or if one is removed before the new one is whole."""
        self.assertEqual(self.keeping("2", """
            import os
            for step in range(1000):
                def save(path):
                    there = [name for name in os.listdir(athanor.checkpoint_dir()) if name[0] != "."]
                    assert len(there) == min(step, 2), there
                    open(path, "w").write(str(step))
                athanor.checkpoint(step, save)
                assert athanor.latest_checkpoint().endswith("step-%d" % step)
        """), ["step-998", "step-999"])

    def test_other_names_and_later_steps_are_left_alone(self):
        """Red if the folder is pruned by anything but the name and the step of this save."""
        for name in ("mine.pt", "step-best", "step-900", "model-1.pt"):
            open(os.path.join(self.folder, name), "w").close()
        self.assertEqual(self.keeping("1", """
            for step in (1, 2, 3):
                athanor.checkpoint(step, lambda path: open(path, "w").close())
            for step in (2, 3):
                athanor.checkpoint(step, lambda path: open(path, "w").close(), name="model-{step}.pt")
        """), ["mine.pt", "model-3.pt", "step-3", "step-900", "step-best"])

    def test_without_a_policy_all_stay(self):
        for keep in ("", "0", "many"):
            self.assertEqual(self.keeping(keep, """
                for step in (1, 2, 3):
                    athanor.checkpoint(step, lambda path: open(path, "w").close())
            """), ["step-1", "step-2", "step-3"])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no torch")
    def test_torch_saves_to_the_path_it_is_given(self):
        """Red if the temporary name has nothing before its last dot, which torch takes for no name."""
        self.run_script("""
            import torch
            for name in (None, "model-{step}.pt"):
                path = athanor.checkpoint(3, lambda path: torch.save([1], path), name=name)
                assert torch.load(path) == [1]
        """)
        self.assertEqual(self.names(), ["model-3.pt", "step-3"])

    def test_what_save_fn_raises_is_passed_on_and_the_old_file_stays(self):
        self.run_script("""
            athanor.checkpoint(1, lambda path: open(path, "w").write("old"), name="last.pt")
            class Own(BaseException): pass
            for error in (ValueError("mine"), KeyboardInterrupt(), Own()):
                def save(path):
                    open(path, "w").write("half")
                    raise error
                try: athanor.checkpoint(2, save, name="last.pt")
                except BaseException as caught: assert caught is error
                else: raise AssertionError
            assert open(athanor.latest_checkpoint("last.pt")).read() == "old"
        """)
        self.assertEqual(self.names(), ["last.pt"])

    def test_a_folder_works_too_and_replaces_an_earlier_one(self):
        self.run_script("""
            import os
            for text in ("one", "two"):
                def save(path):
                    os.makedirs(path + "/shards")
                    open(path + "/shards/" + text, "w").write(text)
                    open(path + "/index", "w").write(text)
                path = athanor.checkpoint(5, save)
            assert os.listdir(path + "/shards") == ["two"] and open(path + "/index").read() == "two"
            def broken(path):
                os.mkdir(path)
                open(path + "/index", "w").write("three")
                raise ValueError
            try: athanor.checkpoint(5, broken)
            except ValueError: pass
            assert open(path + "/index").read() == "two"
        """)
        self.assertEqual(self.names(), ["step-5"])

    def test_an_ending_that_the_saver_adds_is_kept(self):
        self.run_script("""
            import os
            path = athanor.checkpoint(7, lambda path: open(path + ".npy", "w").close())
            assert os.path.basename(path) == "step-7.npy" and path == athanor.latest_checkpoint()
        """)
        self.assertEqual(self.names(), ["step-7.npy"])

    def test_a_saver_that_ignores_the_path_is_an_error(self):
        self.run_script("""
            try: athanor.checkpoint(7, lambda path: None)
            except FileNotFoundError as error: assert "lambda path" in str(error)
            else: raise AssertionError
            for step, name in (("x", None), (1.5, None), (1, "a/b"), (1, ""), (1, ".x"), (1, "..")):
                try: athanor.checkpoint(step, lambda path: open(path, "w").close(), name=name)
                except (TypeError, ValueError): pass
                else: raise AssertionError((step, name))
        """)
        self.assertEqual(self.names(), [])

    def test_the_latest_is_the_one_with_the_highest_step(self):
        for name in ("step-9", "step-10.pt", "step-1000-old", "step-", "step-x", "xstep-99",
                     "model-30.pt", "model-4.pt", ".~tmp-host-1-step-2000", "best.pt"):
            with open(os.path.join(self.folder, name), "w"):
                pass
        self.run_script("""
            import os
            def latest(*name):
                path = athanor.latest_checkpoint(*name)
                return path and os.path.basename(path)
            assert latest() == "step-10.pt"
            assert latest("model-{step}.pt") == "model-30.pt"
            assert latest("best.pt") == "best.pt" and latest("worst.pt") is None
            athanor.checkpoint(31, lambda path: open(path, "w").close(), name="model-{step}.pt")
            assert latest("model-{step}.pt") == "model-31.pt" and latest() == "step-10.pt"
        """)

    def test_a_kill_in_the_middle_of_a_save_leaves_the_last_whole_one(self):
        process = self.start("""
            import os, signal
            athanor.checkpoint(1, lambda path: open(path, "w").write("whole"))
            def save(path):
                with open(path, "w") as file:
                    file.write("half"); file.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
            athanor.checkpoint(2, save)
        """)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertEqual(len(self.names()), 2)  # and a temporary one
        self.run_script("""
            assert open(athanor.latest_checkpoint()).read() == "whole"
            athanor.checkpoint(2, lambda path: open(path, "w").close())
        """)
        self.assertEqual(self.names(), ["step-1", "step-2"])

    def test_saves_of_living_processes_are_left_alone(self):
        process = self.start("""
            def save(path):
                print("saving", flush=True)
                sys.stdin.readline()
                open(path, "w").close()
            def begin(path):
                open(path, "w").close()
                save(path)
            athanor.checkpoint(1, begin)
        """)
        process.stdout.readline()
        self.run_script("athanor.checkpoint(2, lambda path: open(path, 'w').close())")
        _, err = process.communicate("\n", timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(self.names(), ["step-1", "step-2"])


class AdviceTest(SpoolCase):
    # The clock as the script sees it, so that no test waits.
    CLOCK = """
        clock = 1000.0
        import time
        time.monotonic = lambda: clock
        for module in list(sys.modules):
            if module.startswith("athanor"): del sys.modules[module]
        import athanor, os
        def save(step): athanor.checkpoint(step, lambda path: open(path, "w").close())
        ask = athanor.should_checkpoint
    """

    def environment(self, **more):
        return super().environment(
            ATHANOR_CHECKPOINT_DIR=os.path.join(self.spool, "ckpt"), **more)

    def run_with_clock(self, script, **more):
        return self.run_script(textwrap.dedent(self.CLOCK) + textwrap.dedent(script), **more)

    def test_the_first_interval_is_of_the_environment_then_of_the_page(self):
        write_control(self.spool)
        process = self.start(textwrap.dedent(self.CLOCK) + textwrap.dedent("""
            clock += 4.9; assert not ask(1)
            clock += 0.2; assert ask(2)
            save(2); assert not ask(2)
            print("ready", flush=True); sys.stdin.readline()
            clock += 5.1; assert not ask(3)
            clock += 15; assert ask(4)
        """), ATHANOR_CHECKPOINT_EVERY_MS="5000")
        process.stdout.readline()
        write_control(self.spool, every_ms=20_000, seqlock=4)
        _, err = process.communicate("\n", timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))

    def test_without_advice_it_is_every_ten_minutes(self):
        for more in ({}, {"ATHANOR_DISABLE": "1"}, {"ATHANOR_CHECKPOINT_EVERY_MS": "soon"},
                     {"ATHANOR_CHECKPOINT_EVERY_MS": "-5"}):
            self.run_with_clock("""
                clock += 599; assert not ask(1)
                clock += 2; assert ask(2) and ask(2)
            """, **more)

    def test_a_save_by_other_means_starts_the_next_interval_too(self):
        self.run_with_clock("""
            clock += 601
            assert ask(2) and ask(2) and not ask(3)
            clock += 601
            assert ask() and not ask()
        """)

    def test_a_stop_is_a_time_to_save(self):
        write_control(self.spool, stop=1, stop_at=100)
        self.run_script("""
            assert athanor.should_checkpoint(100) and not athanor.should_checkpoint(99)
        """)

    def test_a_request_of_the_agent_is_answered_once(self):
        write_control(self.spool, checkpoint_now=1)
        process = self.start(textwrap.dedent(self.CLOCK) + textwrap.dedent("""
            assert ask(1) and ask(1)
            save(1)
            assert not ask(1) and not ask(2)
            print("ready", flush=True); sys.stdin.readline()
            assert ask(3) and not ask(4)
            print("ready", flush=True); sys.stdin.readline()
            assert not ask(5)
        """))
        process.stdout.readline()
        write_control(self.spool, checkpoint_now=2, seqlock=4)
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        write_control(self.spool, checkpoint_now=0, seqlock=6)
        _, err = process.communicate("\n", timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))

    def test_it_never_raises(self):
        write_control(self.spool, every_ms=-7)
        make_segment(self.spool, 1)
        self.run_with_clock("""
            class Angry:
                def __eq__(self, other): raise RuntimeError
                def __lt__(self, other): raise RuntimeError
            assert ask(Angry()) is False and ask("x") is False and ask(None) is False
        """)


if __name__ == "__main__":
    unittest.main()
