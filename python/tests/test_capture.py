"""The capture: what is kept, when it is written, and running it again."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import SpoolCase, make_segment, write_control

HAVE_TORCH = importlib.util.find_spec("torch") is not None
HAVE_NUMPY = importlib.util.find_spec("numpy") is not None


class CaptureCase(SpoolCase):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.spool, "capture")
        self.scripts = tempfile.mkdtemp(prefix="athanor-script-")
        self.addCleanup(shutil.rmtree, self.scripts, ignore_errors=True)

    def environment(self, **more):
        return super().environment(**{"ATHANOR_CAPTURE_DIR": self.folder, **more})

    def captures(self):
        return sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else []

    def meta(self, name):
        with open(os.path.join(self.folder, name, "meta.json"), encoding="utf-8") as file:
            return json.load(file)

    def script(self, text):
        path = os.path.join(self.scripts, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def train(self, text, *arguments, **more):
        """Runs a training script; its exit status, output and errors."""
        done = subprocess.run([sys.executable, self.script(text), *arguments],
                              env=self.environment(**more), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def replay(self, *arguments, folder=None, stdin=None):
        """Replays outside the job, as `ath replay` does."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ATHANOR_")}
        done = subprocess.run(
            [sys.executable, "-m", "athanor.replay", *arguments, folder or self.folder,
             os.path.join(self.scripts, "train.py")], cwd=self.scripts, env=clean, input=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr


class KeepingTest(CaptureCase):
    """Without torch: models are dicts, batches lists."""

    CRASH = """
        import athanor, random, sys
        random.seed(5)
        model = {"w": 1.0}
        for step in range(8):
            batch = athanor.capture(step, batch=[step, random.random()], model=model, lr=0.1)
            noise = random.random()
            athanor.log(loss=noise, step=step)
            print(step, batch, noise, model["w"])
            if batch[0] == 6: raise ValueError("bad batch")
            model["w"] += 1
    """

    def test_an_exception_writes_the_last_three_steps(self):
        make_segment(self.spool, 1)
        status, _, err = self.train(self.CRASH)
        self.assertEqual(status, 1)
        self.assertTrue(err.rstrip().endswith("ValueError: bad batch"), err)
        self.assertEqual(self.captures(), ["step-6-rank0"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "step-6-rank0"))),
                         ["data.pkl", "meta.json"])
        meta = self.meta("step-6-rank0")
        self.assertEqual((meta["step"], meta["reason"], meta["error"], meta["job"]),
                         (6, "exception", "ValueError: bad batch", "01jtest"))
        self.assertEqual([entry["step"] for entry in meta["steps"]], [4, 5, 6])
        self.assertEqual(meta["keys"], ["batch", "lr"])
        self.assertEqual([line["code"] for line in self.dump() if line["kind"] == "mark"], [2])

    def test_the_replay_has_the_same_batch_weights_and_random_numbers(self):
        _, out, _ = self.train(self.CRASH)
        status, replayed, err = self.replay()
        self.assertEqual(status, 1)
        # The script's own step is 0: the batch, the noise and the weights are those of step 6.
        last = out.splitlines()[-1]
        self.assertEqual(replayed, "0" + last[1:] + "\n")
        self.assertIn("ValueError: bad batch", err)
        self.assertIn("step 6 of job 01jtest", err)
        self.assertNotIn("replay.py", err)

    def test_a_replay_of_an_earlier_step_ends_with_it(self):
        _, out, _ = self.train(self.CRASH.replace("lr=0.1", "weights='every'"))
        status, replayed, err = self.replay("--step", "5")
        self.assertEqual((status, replayed), (0, "0" + out.splitlines()[-2][1:] + "\n"))
        self.assertIn("step 5 ran to its end", err)
        self.assertIn("logged loss = " + out.splitlines()[-2].split()[3], err)
        self.assertNotIn("after the step", err)
        self.assertEqual(self.replay("--step", "3")[0], 2)

    def test_a_replay_writes_neither_points_nor_checkpoints(self):
        self.train("""
            import athanor
            for step in range(3):
                athanor.capture(step, batch=[1])
                if athanor.replaying():
                    assert athanor.replaying().step == 1
                    athanor.checkpoint(step, lambda path: open(path, "w").close())
                    athanor.log({"a": 1}); athanor.progress(1, 2); athanor.done()
                    assert not athanor.should_checkpoint(step)
                elif step == 1:
                    raise RuntimeError
        """)
        self.assertEqual(self.captures(), ["step-1-rank0"])
        status, _, err = self.replay()
        self.assertEqual(status, 0, err)
        self.assertEqual(os.listdir(self.scripts), ["train.py"])

    def test_pdb_opens_on_the_exception(self):
        self.train(self.CRASH)
        status, out, _ = self.replay("--pdb", stdin="p 'noise is', noise > 0\nq\n")
        self.assertEqual(status, 1)
        self.assertIn("('noise is', True)", out)

    def test_a_script_without_capture_is_told_so(self):
        self.train(self.CRASH)
        self.script("print('nothing')")
        status, _, err = self.replay()
        self.assertEqual(status, 2)
        self.assertIn("never called athanor.capture()", err)
        status, _, err = self.replay(folder=self.scripts)
        self.assertEqual(status, 2)
        self.assertIn("no captured step", err)

    def test_the_newest_of_several_is_replayed(self):
        self.run_script("""
            import os
            for step in (30, 4):
                athanor.capture(step, batch=[step])
                assert athanor.capture.flush().endswith("step-{}-rank2".format(step))
            folder = os.environ["ATHANOR_CAPTURE_DIR"]
            assert athanor.replay.load(folder + "/step-30-rank2").step == 30
            from athanor import replay
            assert replay.load(folder).step == 4 and replay.load(folder).batch == [4]
        """, ATHANOR_RANK="2")
        self.assertEqual(self.captures(), ["step-30-rank2", "step-4-rank2"])

    def test_the_agent_asks_and_the_next_step_writes(self):
        write_control(self.spool)
        process = self.start("""
            for step in range(5): athanor.capture(step, batch=[step])
            print("ready", flush=True); sys.stdin.readline()
            for step in range(5, 9): athanor.capture(step, batch=[step])
            assert athanor.capture.error is None
        """)
        process.stdout.readline()
        self.assertEqual(self.captures(), [])
        write_control(self.spool, capture_now=1, seqlock=4)
        _, err = process.communicate("\n", timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(self.captures(), ["step-5-rank0"])
        meta = self.meta("step-5-rank0")
        self.assertEqual(([entry["step"] for entry in meta["steps"]], meta["reason"]),
                         ([2, 3, 4, 5], "asked"))

    def test_ctrl_c_and_a_good_end_write_nothing(self):
        for end in ("raise KeyboardInterrupt", "sys.exit(3)", "pass"):
            self.train("import athanor, sys\nathanor.capture(1, batch=[1])\n" + end)
        self.assertEqual(self.captures(), [])

    def test_hooks_of_others_still_run_and_forked_children_write_nothing(self):
        status, _, err = self.train("""
            import athanor, os, sys
            sys.excepthook = lambda *about: print("theirs", file=sys.stderr)
            athanor.capture(1, batch=[1])
            pid = os.fork()
            if pid == 0: raise ValueError
            os.waitpid(pid, 0)
            assert not os.path.exists(os.environ["ATHANOR_CAPTURE_DIR"])
            raise TypeError
        """)
        self.assertEqual((status, err), (1, "theirs\ntheirs\n"))
        self.assertEqual(self.captures(), ["step-1-rank0"])

    def test_the_ring_is_bounded_in_steps(self):
        self.train(self.CRASH, ATHANOR_CAPTURE_STEPS="1")
        self.assertEqual([e["step"] for e in self.meta("step-6-rank0")["steps"]], [6])

    def test_what_cannot_be_saved_is_left_out_by_name(self):
        self.run_script("""
            athanor.capture(1, batch=[1], lock=lambda: 0)
            assert athanor.capture.flush()
            recording = __import__("athanor.replay").replay.load(%r)
            assert recording.batch == [1] and recording.more == {}
        """ % self.folder)
        self.assertEqual(self.meta("step-1-rank0")["steps"][0]["left_out"], ["lock"])

    def test_it_never_harms_the_training(self):
        with open(self.folder, "w"):
            pass
        self.run_script("""
            class Angry:
                def state_dict(self): raise RuntimeError
            batch = object()
            assert athanor.capture(1, batch=batch) is batch
            assert athanor.capture.flush() is None and athanor.capture.error is not None
            assert athanor.capture("x", batch=batch) is batch
            assert athanor.capture(2, batch=batch, model=Angry(), weights="every") is batch
            assert athanor.capture(2) is None
            try: athanor.capture(1, weights="none")
            except ValueError: pass
            else: raise AssertionError
        """)

    def test_a_kill_while_writing_leaves_no_half_capture(self):
        process = self.start("""
            import os, signal
            class Deadly:
                def __reduce__(self): os.kill(os.getpid(), signal.SIGKILL)
            athanor.capture(1, batch=[Deadly()])
            athanor.capture.flush()
        """)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertTrue(all(name.startswith(".~tmp-") for name in self.captures()))
        self.run_script("athanor.capture(2, batch=[1]); athanor.capture.flush()")
        self.assertEqual(self.captures(), ["step-2-rank0"])


@unittest.skipUnless(HAVE_TORCH, "torch is not installed")
class TorchTest(CaptureCase):
    TRAIN = """
        import athanor, random, sys, torch
        import torch.nn.functional as F
        from collections import namedtuple
        Batch = namedtuple("Batch", "x y")
        torch.manual_seed(0); torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8),
                                    torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        FAIL_AFTER_UPDATE = False
        for step in range(20):
            batch = Batch(torch.randn(6, 4), {"target": torch.randn(6, 1)})
            batch = athanor.capture(step, batch=batch, model=model, optimizer=optimizer)
            loss = F.mse_loss(model(batch.x), batch.y["target"])
            print(loss.item().hex(), model[0].weight.sum().item().hex(), flush=True)
            loss.backward()
            if not athanor.replaying() and step == 11 and not FAIL_AFTER_UPDATE: raise ValueError
            optimizer.step(); optimizer.zero_grad(); batch.x.zero_()
            if not athanor.replaying() and step == 11: raise ValueError
            athanor.log(weight=model[0].weight.sum().item())
    """

    def test_a_replayed_step_gives_the_same_loss_bit_by_bit(self):
        status, out, _ = self.train(self.TRAIN)
        self.assertEqual(status, 1)
        meta = self.meta("step-11-rank0")
        self.assertEqual((meta["data"], meta["weights"], meta["buffers"]),
                         ("data.pt", "before", "after"))
        self.assertIn("torch", meta["versions"])
        status, replayed, err = self.replay()
        self.assertEqual((status, replayed), (0, out.splitlines()[-1] + "\n"), err)
        self.assertIn("logged weight", err)

    def test_weights_from_after_the_step_are_said_to_be(self):
        self.train(self.TRAIN.replace("UPDATE = False", "UPDATE = True"))
        self.assertEqual(self.meta("step-11-rank0")["weights"], "after")
        self.assertIn("the weights are those after the step", self.replay()[2])

    def test_weights_of_every_step_make_each_exact(self):
        _, out, _ = self.train(self.TRAIN.replace("optimizer=optimizer)",
                                                  "optimizer=optimizer, weights='every')")
                               .replace("UPDATE = False", "UPDATE = True"))
        meta = self.meta("step-11-rank0")
        self.assertEqual([entry["weights"] for entry in meta["steps"]], ["before"] * 3)
        for step in (9, 10, 11):
            status, replayed, err = self.replay("--step", str(step))
            self.assertEqual((status, replayed), (0, out.splitlines()[step] + "\n"), err)

    def test_a_batch_changed_in_the_step_is_kept_as_it_was(self):
        self.run_script("""
            import torch
            x = torch.ones(3, requires_grad=True)
            with torch.no_grad():
                assert athanor.capture(1, batch={"x": [x]})["x"][0] is x
                x.zero_()
            athanor.capture.flush()
            kept = athanor.replay.load(%r).batch["x"][0]
            assert kept.tolist() == [1, 1, 1] and not kept.requires_grad
        """ % self.folder)

    def test_steps_beyond_the_byte_limit_keep_their_random_state_only(self):
        self.run_script("""
            import torch
            for step, size in enumerate((10, 200, 10, 10)):
                athanor.capture(step, batch=torch.zeros(size))
            athanor.capture.flush()
        """, ATHANOR_CAPTURE_BYTES="400")
        self.assertEqual([(e["step"], e["keys"], e["left_out"])
                          for e in self.meta("step-3-rank0")["steps"]],
                         [(1, [], ["batch"]), (2, ["batch"], []), (3, ["batch"], [])])

    @unittest.skipUnless(HAVE_NUMPY, "numpy is not installed")
    def test_restore_by_hand(self):
        self.run_script("""
            import numpy, random, torch
            model = torch.nn.Linear(2, 2)
            before = model.weight.detach().clone()
            athanor.capture(1, batch=numpy.arange(3), model=model)
            athanor.capture.flush()
            drawn = random.random(), numpy.random.rand(), torch.rand(1).item()
            other = torch.nn.Linear(2, 2)
            recording = athanor.replay.load(%r)
            recording.restore(other)
            assert torch.equal(other.weight, before) and recording.batch.tolist() == [0, 1, 2]
            assert drawn == (random.random(), numpy.random.rand(), torch.rand(1).item())
        """ % self.folder)


if __name__ == "__main__":
    unittest.main()
