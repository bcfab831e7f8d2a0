"""SIGTERM and the package: it does not end a script that checks for stops; it ends all others."""

import os
import signal
import unittest

from support import SpoolCase, write_control


class TermTest(SpoolCase):
    def until_ready(self, script, **more):
        process = self.start(script, **more)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_a_script_that_looks_ends_by_itself(self):
        write_control(self.spool)
        process = self.until_ready("""
            stop = athanor.should_stop()
            print("ready", flush=True)
            while not (stop := athanor.should_stop()): pass
            print("saving, as", stop.cause)
        """)
        process.send_signal(signal.SIGTERM)
        write_control(self.spool, stop=1, cause=b"preempted", seqlock=4)
        self.assertEqual(process.communicate(timeout=60), ("saving, as preempted\n", ""))
        self.assertEqual(process.returncode, 0)

    def test_a_script_that_does_not_look_is_ended(self):
        write_control(self.spool)
        process = self.until_ready("""
            athanor.log(loss=1.0, step=1)
            print("ready", flush=True); sys.stdin.readline()
        """)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), -signal.SIGTERM)

    def test_a_script_that_only_saves_is_ended_once_it_has(self):
        for save in ("athanor.checkpoint(step, lambda path: open(path, 'w').close())",
                     "print('saved', flush=True)"):
            write_control(self.spool)
            folder = os.path.join(self.spool, "checkpoints")
            process = self.until_ready("""
                step = 0
                athanor.should_checkpoint(step)
                print("ready", flush=True)
                while True:
                    step += 1
                    if athanor.should_checkpoint(step):
                        %s
            """ % save, ATHANOR_CHECKPOINT_DIR=folder)
            process.send_signal(signal.SIGTERM)
            write_control(self.spool, stop=1, cause=b"preempted", seqlock=4)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (-signal.SIGTERM, ""))
            if "print" in save:
                self.assertEqual(out, "saved\n")
            else:
                self.assertEqual(len(os.listdir(folder)), 1)

    def test_a_handler_of_its_own_stays(self):
        write_control(self.spool)
        process = self.until_ready("""
            import signal
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
            athanor.should_stop()
            print("ready", flush=True); sys.stdin.readline()
        """)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 7)

    def test_forked_children_are_ended_as_ever(self):
        write_control(self.spool)
        self.run_script("""
            import os, signal
            athanor.should_stop()
            ready, told = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(told, b"x")
                while True: signal.pause()
            os.read(ready, 1)
            os.kill(child, signal.SIGTERM)
            assert os.waitpid(child, 0)[1] == signal.SIGTERM
        """)

    def test_the_black_box_is_written_before_the_end(self):
        write_control(self.spool)
        folder = os.path.join(self.spool, "capture")
        # The signal may come before a pause() that would wait for it: so it is the file that ends
        # the script that looks, and the other one never ends by itself.
        ends = {"": "while True: signal.pause()",
                "athanor.should_stop()": "while not os.path.exists(%r): time.sleep(0.01)"
                                         % os.path.join(folder, "step-4-rank0")}
        for looks, end in ends.items():
            process = self.until_ready("""
                import os, signal, time
                for step in range(5): athanor.capture(step, batch=[step])
                %s
                print("ready", flush=True)
                %s
            """ % (looks, end), ATHANOR_CAPTURE_DIR=folder)
            write_control(self.spool, capture_now=1, seqlock=4)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), 0 if looks else -signal.SIGTERM)
            self.assertEqual(os.listdir(folder), ["step-4-rank0"])
            os.rename(folder, folder + looks + "-seen")
            write_control(self.spool, seqlock=6)

    def test_without_being_asked_nothing_is_written(self):
        write_control(self.spool)
        folder = os.path.join(self.spool, "capture")
        process = self.until_ready("""
            athanor.capture(1, batch=[1])
            print("ready", flush=True)
            import signal
            signal.pause()
        """, ATHANOR_CAPTURE_DIR=folder)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), -signal.SIGTERM)
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    unittest.main()
