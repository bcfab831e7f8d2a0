"""Both writers, read back by the C++ reader."""

import importlib.util
import math
import os
import signal
import struct
import unittest

from support import HEADER, POINT_BYTES, SpoolCase, double_of, make_segment


class Promises:
    """What holds for either implementation."""

    def test_a_point_comes_back_with_name_step_and_time(self):
        make_segment(self.spool, 1)
        before, after = map(int, self.run_script("""
            import time
            before = time.time_ns()
            athanor.log(loss=0.5, acc=0.25, step=3)
            athanor.log(loss=0.125)
            print(before, time.time_ns())
        """).split())
        points = self.points()
        self.assertEqual([(p["seq"], p["name"], p["step"], p["value"]) for p in points],
                         [(1, "loss", 3, 0.5), (2, "acc", 3, 0.25), (3, "loss", None, 0.125)])
        for point in points:
            self.assertTrue(before <= point["wall_ns"] <= after)
        self.assertTrue(self.counts()["drained"])

    def test_numbers_keep_every_bit(self):
        make_segment(self.spool, 1)
        self.run_script("""
            from fractions import Fraction
            for value in (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 2**53 + 1,
                          -2**80, 10**30, True, Fraction(1, 3)):
                athanor.log(v=value)
            print(athanor.stats())
        """)
        values = [double_of(point) for point in self.points()]
        self.assertTrue(math.isnan(values[0]))
        self.assertEqual(values[1:3], [math.inf, -math.inf])
        self.assertEqual(math.copysign(1, values[3]), -1)
        self.assertEqual(values[4:], [5e-324, float(2**53 + 1), -float(2**80), 1e30, 1.0, 1 / 3])

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "needs numpy")
    def test_numpy_scalars_are_numbers(self):
        make_segment(self.spool, 1)
        self.run_script("""
            import numpy as np
            athanor.log(a=np.float32(0.5), b=np.float64(0.25), c=np.int64(7), d=np.array(2.0),
                        step=np.int32(9))
            athanor.log(a=np.zeros(3))
            assert athanor.stats()["bad"] == 1
        """)
        self.assertEqual([(p["value"], p["step"]) for p in self.points()],
                         [(0.5, 9), (0.25, 9), (7.0, 9), (2.0, 9)])

    def test_bad_values_are_counted_and_the_good_ones_beside_them_kept(self):
        make_segment(self.spool, 1)
        self.run_script("""
            class Angry:
                def __float__(self): raise RuntimeError("no")
            class Liar:
                def __float__(self): return "1"
            bad = [None, "1.5", b"1", [], {}, 1j, object(), Angry(), Liar(), 10**400]
            for value in bad:
                assert athanor.log(x=value, good=1.0) is None
            assert athanor.stats() == {"written": len(bad), "dropped": 0, "bad": len(bad)}
            athanor.log(3)
            athanor.log({"a": 1, 5: 2, "b": "x"}, None)
            athanor.log(("a", 1))
            assert athanor.stats()["bad"] == len(bad) + 5, athanor.stats()
        """)
        self.assertEqual([p["name"] for p in self.points()], ["good"] * 10 + ["a"])

    def test_steps_of_every_integral_kind_and_no_others(self):
        make_segment(self.spool, 1)
        self.run_script("""
            class Index:
                def __index__(self): return 12
            for step in (0, -1, 2**63 - 1, -2**63, True, 4.0, Index(), None):
                athanor.log(x=1, step=step)
            for step in (2**63, -2**63 - 1, 1.5, float("nan"), float("inf"), "3", [], 1e300):
                athanor.log(x=1, y=2, step=step)
            assert athanor.stats() == {"written": 8, "dropped": 0, "bad": 8}, athanor.stats()
        """)
        self.assertEqual([p["step"] for p in self.points()],
                         [0, -1, 2**63 - 1, -2**63, 1, 4, 12, None])

    def test_names_of_any_text_up_to_1024_bytes(self):
        make_segment(self.spool, 1)
        self.run_script("""
            athanor.log(**{"train/loss": 1, "\u00e9t\u00e9 \U0001f525": 2, "n" * 1024: 3})
            athanor.log({"step": 4, "metrics": 5, "self": 6}, args=7, step=1)
            athanor.log({"": 1, "n" * 1025: 1, chr(0xd800): 1, "\u00e9" * 513: 1})
            assert athanor.stats() == {"written": 7, "dropped": 0, "bad": 4}, athanor.stats()
            athanor.log({"".join(["st", "ep"]): 8}, **{"".join(["st", "ep"]): 2})
        """)
        self.assertEqual([(p["name"], p["step"], p["value"]) for p in self.points()],
                         [("train/loss", None, 1), ("\u00e9t\u00e9 \U0001f525", None, 2),
                          ("n" * 1024, None, 3), ("step", 1, 4), ("metrics", 1, 5),
                          ("self", 1, 6), ("args", 1, 7), ("step", 2, 8)])

    def test_thousands_of_names_over_several_segments(self):
        for serial in range(1, 9):
            make_segment(self.spool, serial, 64 * 1024)
        self.run_script("""
            for step in range(3):
                for i in range(1500):
                    athanor.log(**{"layer/%d" % i: i}, step=step)
            assert athanor.stats() == {"written": 4500, "dropped": 0, "bad": 0}, athanor.stats()
        """)
        points = self.points()
        self.assertEqual([(p["step"], p["name"]) for p in points],
                         [(s, "layer/%d" % i) for s in range(3) for i in range(1500)])
        self.assertGreater(len({p["serial"] for p in points}), 3)

    def test_done_and_progress(self):
        make_segment(self.spool, 1)
        self.run_script("""
            athanor.progress(3, 10)
            athanor.progress(4.0, 10)
            athanor.progress("x", 10)
            athanor.progress(1)
            athanor.progress(1, 2.5)
            athanor.done()
            assert athanor.stats() == {"written": 3, "dropped": 0, "bad": 3}, athanor.stats()
        """)
        lines = self.dump()
        self.assertEqual([(p["done"], p["total"]) for p in lines if p["kind"] == "progress"],
                         [(3, 10), (4, 10)])
        self.assertEqual([p["code"] for p in lines if p["kind"] == "mark"], [1])

    def test_a_checkpoint_is_recorded_with_its_step_and_cost(self):
        make_segment(self.spool, 1)
        took = int(self.run_script("""
            import os, time
            def save(path):
                end = time.perf_counter_ns() + 3_000_000
                while time.perf_counter_ns() < end: pass
                open(path, "w").close()
            start = time.perf_counter_ns()
            athanor.checkpoint(-3, save)
            print(time.perf_counter_ns() - start)
            athanor._record_checkpoint(1.5, 0); athanor._record_checkpoint(1)
            assert athanor.stats() == {"written": 1, "dropped": 0, "bad": 2}, athanor.stats()
        """, ATHANOR_CHECKPOINT_DIR=os.path.join(self.spool, "ckpt")))
        saved, = [line for line in self.dump() if line["kind"] == "checkpoint"]
        self.assertEqual(saved["step"], -3)
        self.assertTrue(3_000_000 <= saved["save_ns"] <= took)

    def test_drops_are_counted_and_reported_in_the_next_segment(self):
        make_segment(self.spool, 1, 4096)
        process = self.start("""
            for i in range(150):
                athanor.log(x=i, step=i)
            print(athanor.stats()["dropped"], flush=True)
            sys.stdin.readline()
            before = athanor.stats()["written"]
            while athanor.stats()["written"] == before:
                athanor.log(x=1000.0)
            print(athanor.stats()["dropped"])
        """)
        dropped = int(process.stdout.readline())
        self.assertEqual(dropped, 150 - (4096 - 64 - 24) // POINT_BYTES)
        make_segment(self.spool, 2, 4096)
        out, err = process.communicate("go\n", timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(self.counts()["dropped"], int(out))
        self.assertEqual(self.points()[-1]["value"], 1000.0)

    def test_a_forked_child_writes_in_a_segment_of_its_own(self):
        for serial in range(1, 6):
            make_segment(self.spool, serial)
        self.run_script("""
            import os
            athanor.log(who=0.0, step=1)
            children = []
            for child in (1.0, 2.0):
                pid = os.fork()
                if pid == 0:
                    for step in range(100):
                        athanor.log(who=child, step=step)
                    os._exit(0)
                children.append(pid)
            for step in range(2, 101):
                athanor.log(who=0.0, step=step)
            for pid in children:
                assert os.waitpid(pid, 0)[1] == 0
        """)
        points = self.points()
        self.assertEqual(len(points), 300)
        self.assertEqual(len({(p["serial"], p["value"]) for p in points}), 3)
        self.assertEqual(len({(p["pid"], p["value"]) for p in points}), 3)
        self.assertEqual(self.counts()["corrupt"], 0)

    def test_a_child_that_lives_on_does_not_hold_the_dead_parents_segment(self):
        make_segment(self.spool, 1)
        process = self.start("""
            import os
            athanor.log(x=1.0)
            os.write(1, b"%d\\n" % os.fork())
            sys.stdin.read()
        """)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        child = max(int(process.stdout.readline()), int(process.stdout.readline()))
        process.kill()
        process.wait()
        try:
            os.kill(child, 0)  # it waits for the end of its input
            self.assertTrue(self.counts()["drained"])
        finally:
            process.stdin.close()

    def test_what_was_logged_before_a_kill_is_there(self):
        make_segment(self.spool, 1)
        process = self.start("""
            import os, signal
            for i in range(1000):
                athanor.log(x=i, step=i)
            os.kill(os.getpid(), signal.SIGKILL)
        """)
        process.communicate(timeout=60)
        self.assertEqual([p["step"] for p in self.points()], list(range(1000)))
        self.assertTrue(self.counts()["drained"])

    def test_threads_lose_and_double_nothing(self):
        for serial in range(1, 9):
            make_segment(self.spool, serial, 128 * 1024)
        written = int(self.run_script("""
            import threading
            sys.setswitchinterval(1e-5)
            def work(number):
                for step in range(3000):
                    athanor.log(**{"t%d" % number: step}, step=step)
            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            stats = athanor.stats()
            assert stats["written"] + stats["dropped"] == 12000 and stats["bad"] == 0, stats
            print(stats["written"])
        """))
        points = self.points()
        self.assertEqual((len(points), self.counts()["corrupt"]), (written, 0))
        seen = {(p["name"], p["step"]) for p in points}
        self.assertEqual(len(seen), len(points))
        self.assertTrue(all(p["step"] == p["value"] for p in points))
        for number in range(4):
            steps = [p["step"] for p in points if p["name"] == "t%d" % number]
            self.assertEqual(steps, sorted(steps))
        if not self.pure:
            self.assertEqual(written, 12000)  # the other gives up after a millisecond's wait

    def test_logging_from_signal_handlers_and_from_values(self):
        for serial in range(1, 9):
            make_segment(self.spool, serial)
        self.run_script("""
            import signal
            class Value:
                def __float__(self):
                    athanor.log(inner=1.0)
                    return 2.0
            signal.signal(signal.SIGALRM, lambda *_: athanor.log(handler=1.0))
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            for step in range(20000):
                athanor.log(x=1.0, step=step)
            signal.setitimer(signal.ITIMER_REAL, 0)
            athanor.log(outer=Value())
        """)
        points = self.points()
        self.assertEqual([p["step"] for p in points if p["name"] == "x"], list(range(20000)))
        self.assertEqual([p["name"] for p in points][-2:], ["inner", "outer"])
        self.assertEqual(self.counts()["corrupt"], 0)

    def test_ctrl_c_inside_a_value_is_not_swallowed(self):
        make_segment(self.spool, 1)
        self.run_script("""
            class Value:
                def __float__(self): raise KeyboardInterrupt
            for arguments in ({"x": Value()}, {"x": 1, "step": Value()}):
                try:
                    athanor.log(**arguments)
                except KeyboardInterrupt:
                    continue
                raise AssertionError("swallowed")
            athanor.log(y=1)
        """)
        self.assertEqual([p["name"] for p in self.points()], ["y"])

    HARMLESS = """
        import time
        end = time.monotonic() + 0.003  # long enough for the writer to try again
        while time.monotonic() < end:
            athanor.log(x=1, step=2)
        athanor.done()
        athanor.progress(1, 2)
        assert not athanor.should_stop()
        stats = athanor.stats()
        assert stats["written"] == stats["bad"] == 0 and stats["dropped"] >= 3, stats
    """

    def test_a_missing_spool_is_harmless(self):
        os.rmdir(self.spool)
        self.run_script(self.HARMLESS)

    def test_a_file_in_place_of_the_spool_is_harmless(self):
        os.rmdir(self.spool)
        with open(self.spool, "w"):
            pass
        self.addCleanup(os.remove, self.spool)
        self.run_script(self.HARMLESS)

    def test_files_that_are_no_segments_are_left_alone(self):
        damaged = {1: (0, b"X"), 2: (8, b"\x09"), 3: (12, b"\xff\xff\xff\xff"), 4: (24, b"\x01"),
                   5: (16, b"\x08")}
        for serial, (offset, data) in damaged.items():
            with open(make_segment(self.spool, serial), "r+b") as file:
                file.seek(offset)
                file.write(data)
        os.truncate(make_segment(self.spool, 6), 100)
        os.truncate(make_segment(self.spool, 7), 0)
        os.mkfifo(os.path.join(self.spool, "seg-00000008.spool"))
        os.mkdir(os.path.join(self.spool, "seg-00000009.spool"))
        os.symlink("/dev/zero", os.path.join(self.spool, "seg-00000010.spool"))
        os.symlink("nowhere", os.path.join(self.spool, "seg-00000011.spool"))
        for name in ("seg-0000001.spool", "seg-abcdefgh.spool", "control"):
            os.mkdir(os.path.join(self.spool, name))
        self.run_script(self.HARMLESS)

    def test_an_unwritable_spool_is_harmless(self):
        os.chmod(self.spool, 0o755)
        os.chmod(make_segment(self.spool, 1), 0o444)
        self.run_script("""
        import os
        if os.geteuid() == 0: os.setuid(65534)  # root may write anywhere
        """ + self.HARMLESS)

    def test_segments_of_others_are_passed_over(self):
        make_segment(self.spool, 1)
        make_segment(self.spool, 2)
        process = self.start("""
            athanor.log(first=1)
            print("ready", flush=True)
            sys.stdin.readline()
        """)
        process.stdout.readline()
        self.run_script("athanor.log(second=1)")
        self.assertEqual([(p["serial"], p["name"]) for p in self.points()],
                         [(1, "first"), (2, "second")])
        self.assertFalse(self.counts()["drained"])
        process.communicate("\n", timeout=60)
        self.assertTrue(self.counts()["drained"])


class NativeTest(Promises, SpoolCase):
    pure = False


class PureTest(Promises, SpoolCase):
    pure = True

    def test_ctrl_c_at_any_line_neither_corrupts_nor_ends_the_logging(self):
        for serial in range(1, 200):
            make_segment(self.spool, serial, 4096)
        self.run_script("""
            import random
            numbers = random.Random(3)
            spent = 0
            def trace(frame, event, argument):
                global spent
                if not frame.f_code.co_filename.endswith("_spool.py"): return None
                if event == "line":
                    spent -= 1
                    if spent == 0: raise KeyboardInterrupt
                return trace
            for i in range(1500):
                spent = numbers.randrange(1, 60)
                sys.settrace(trace)
                try:
                    athanor.log(**{"m%d" % (i // 40 % 50): i})
                except KeyboardInterrupt:
                    pass
                sys.settrace(None)
            before = athanor.stats()["written"]
            while athanor.stats()["written"] == before:
                athanor.log(last=1.0)
        """)
        counts = self.counts()
        self.assertEqual(counts["corrupt"], 0)
        self.assertEqual(self.points()[-1]["name"], "last")
        self.assertTrue(all(p["name"] in ("last", "m%d" % (p["value"] // 40 % 50))
                            for p in self.points()))


class SameBytesTest(SpoolCase):
    """The two implementations write the same file, but for times and the pid."""

    SCRIPT = """
        import random
        numbers = random.Random(7)
        for i in range(400):
            count = numbers.randrange(4)
            values = {"m/%d" % numbers.randrange(30): numbers.gauss(0, 1) for _ in range(count)}
            step = numbers.choice([None, i, -i, 2**40 + i, 3.0, "bad", 2.5])
            athanor.log(values, step=step, loss=numbers.choice([1, 0.5, None, float("nan")]))
            if i % 50 == 0: athanor.progress(i, 400)
            if i % 70 == 0: athanor._record_checkpoint(i - 100, i * 10**9)
            if numbers.random() < 0.05: athanor.log(**{"x" * numbers.randrange(1100): i})
        athanor.done()
        print(athanor.stats())
    """

    def written_by(self, pure):
        self.pure = pure
        for serial in range(1, 12):
            make_segment(self.spool, serial, 4096)
        out = self.run_script(self.SCRIPT)
        return out, [self.masked(serial) for serial in range(1, 12)]

    def masked(self, serial):
        with open(os.path.join(self.spool, "seg-%08d.spool" % serial), "rb") as file:
            data = bytearray(file.read())
        committed = HEADER.unpack_from(data)[3]
        data[28:32] = bytes(4)
        at, times = 64, {2: 24, 3: 16, 4: 24, 5: 24}
        while at < 64 + committed:
            length, kind = struct.unpack_from("<II", data, at)
            if kind in times:
                data[at + times[kind]:at + times[kind] + 8] = bytes(8)
            at += length
        return bytes(data)

    def test_native_and_pure_write_the_same_bytes(self):
        native = self.written_by(False)
        pure = self.written_by(True)
        self.assertEqual(native[0], pure[0])
        self.assertEqual(native[1], pure[1])
        used = [HEADER.unpack_from(data)[3] for data in native[1]]
        self.assertGreater(sum(1 for committed in used if committed), 5)


if __name__ == "__main__":
    unittest.main()
