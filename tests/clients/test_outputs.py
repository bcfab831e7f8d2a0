"""What a script leaves in its working folder is kept, told and comes back: by `ath cp`, the API and
the screens; when it completes, fails, is stopped, is interrupted or its agent is killed. Each
docstring names a planted bug that turns the test red where it is not plain.
"""

import glob
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, Server, kill


def tree(folder):
    """{name: bytes} of all files below; links by what they lead to."""
    found = {}
    folder = os.fsencode(folder)
    for place, folders, names in os.walk(folder):
        for name in names + folders:
            path = os.path.join(place, name)
            if os.path.isdir(path) and not os.path.islink(path):
                continue
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = b"-> " + os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = file.read()
    return found


class Outputs(Case):
    def setUp(self):
        self.to = tempfile.mkdtemp(dir=self.server.root)

    def leave(self, text, *flags, name="train.py"):
        return self.server.python(text, flags=flags, name=name)

    def cp(self, source, *more, check=0):
        return self.server.ath("cp", source, self.to, *more, check=check)

    def files(self, job):
        """The output of the working folder, or None."""
        return next((o for o in self.server.show(job).get("outputs", []) if o["name"] == "files"),
                    None)

    def test_a_file_comes_back_as_it_was(self):
        job = self.leave("""
            import os
            open("model.pt", "wb").write(bytes(range(256)) * 4)
            os.makedirs("runs/a/b")
            open("runs/a/b/events", "w").write("e")
            open("runs/top", "w").write("t")
        """)
        self.ended(job)
        output = self.files(job)
        self.assertEqual((output["files"], output["bytes"]), (3, 1026))
        self.cp(job + ":model.pt")
        self.assertEqual(tree(self.to), {b"model.pt": bytes(range(256)) * 4})
        os.unlink(os.path.join(self.to, "model.pt"))
        self.cp(job + ":runs/")
        self.assertEqual(tree(self.to), {b"a/b/events": b"e", b"top": b"t"})
        named = os.path.join(self.to, "renamed")
        self.server.ath("cp", job + ":runs/top", named, check=0)
        with open(named) as file:
            self.assertEqual(file.read(), "t")
        everything = os.path.join(self.to, "all")
        self.server.ath("cp", job + ":", everything, check=0)
        self.assertEqual(sorted(tree(everything)), [b"model.pt", b"runs/a/b/events", b"runs/top"])
        # Not the source, nor what Python left there.
        self.assertNotIn("train.py", self.server.ath("cp", job + ":", check=0).stdout)

    def test_changed_files_of_the_source_are_kept_and_others_are_not(self):
        self.server.script("notes.txt", "old\n")
        self.server.script("same.txt", "same\n")
        self.addCleanup(os.unlink, os.path.join(self.server.work, "notes.txt"))
        self.addCleanup(os.unlink, os.path.join(self.server.work, "same.txt"))
        job = self.leave("""
            open("notes.txt", "w").write("new\\n")
            open("same.txt", "r+").write("same\\n")
            import os; os.unlink(__file__)
        """)
        self.ended(job)
        self.cp(job + ":")
        self.assertEqual(tree(self.to), {b"notes.txt": b"new\n"})
        with open(os.path.join(self.server.work, "notes.txt")) as file:
            self.assertEqual(file.read(), "old\n", "the folder of the user was written to")

    def test_it_is_said_at_the_end_of_run_in_show_and_in_lists(self):
        self.server.script("say.py", "open('model.pt', 'w').write('x' * 2048)")
        run = self.server.ath("run", "--name", "says", "--", "python3", "say.py", check=0)
        self.assertRegex(run.stderr, r"outputs  1 file, 2(\.0)? KiB   ath cp says:model.pt \.")
        self.assertRegex(self.server.ath("show", "says").stdout, r"output +1 file +2(\.0)? KiB")
        self.assertRegex(self.server.ath("cp", "says:").stdout, r"2(\.0)? KiB  model.pt")
        listed = self.server.json("cp", "says:")
        self.assertEqual(listed, {"files": [{"path": "model.pt", "bytes": 2048}]})
        # Nothing is said where nothing was left.
        self.server.script("none.py", "print('hello')")
        run = self.server.ath("run", "--name", "silent", "--", "python3", "none.py", check=0)
        self.assertNotIn("outputs", run.stderr)
        refused = self.server.ath("cp", "silent:model.pt", ".", check=None)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("the script left no files", refused.stderr)
        refused = self.server.ath("cp", "says:modle.pt", ".", check=None)
        self.assertIn("it kept model.pt", refused.stderr)

    def test_a_job_that_fails_or_is_stopped_keeps_what_there_is(self):
        failed = self.leave("""
            open("half.pt", "w").write("half")
            raise SystemExit(3)
        """)
        self.ended(failed, "Failed")
        stopped = self.leave("""
            import time
            open("early.pt", "w").write("early")
            print("written", flush=True)
            time.sleep(1000)
        """, name="waits.py")
        self.server.until_log(stopped, "written")
        early = self.server.ath("cp", stopped + ":early.pt", self.to)
        self.assertIn("files are kept when the script ends", early.stderr)
        self.server.ath("stop", stopped, "--now", check=0)
        self.ended(stopped, "Stopped")
        self.cp(failed + ":half.pt")
        self.cp(stopped + ":early.pt")
        self.assertEqual(tree(self.to), {b"half.pt": b"half", b"early.pt": b"early"})

    def test_a_later_attempt_replaces_files_of_the_same_name(self):
        """Red if only the last attempt's files count, or the first one's win."""
        self.server.script("tries.py", """
            import os, sys
            number = os.environ["ATHANOR_ATTEMPT"]
            open("model.pt", "w").write("of " + number)
            open("attempt-%s.txt" % number, "w").write(number)
            sys.exit(9 if number == "1" else 0)
        """)
        job = self.server.file("""
            run: python3 tries.py
            retry: {max: 1, on: [nonzero_exit], backoff: 10ms}
        """)
        self.assertEqual(len(self.ended(job)["attempts"]), 2)
        self.cp(job + ":")
        self.assertEqual(tree(self.to), {b"model.pt": b"of 2", b"attempt-1.txt": b"1",
                                         b"attempt-2.txt": b"2"})

    def test_what_is_left_out_is_said_with_its_size(self):
        self.server.script("big.py", """
            import os
            open("small.txt", "w").write("s")
            with open("huge.bin", "wb") as file: file.truncate(3 << 40)
            for i in range(3): open("part-%d" % i, "wb").write(b"p" * 600_000)
            os.symlink("/etc/passwd", "stolen")
        """)
        self.server.script("big.yaml", """
            name: big
            run: python3 big.py
            outputs: {limit: 1MiB}
        """)
        run = self.server.ath("run", "big.yaml", check=0)
        for text in (run.stderr, self.server.ath("show", "big").stdout,
                     self.server.ath("why", "big").stdout):
            self.assertRegex(text, r"huge\.bin +3(\.0)? TiB: it is larger than the limit")
            self.assertRegex(text, r"part-\d +5\d\d(\.\d)? KiB: all files together")
            self.assertRegex(text, r"stolen .*leads out of the folder")
            self.assertIn("outputs: {limit: SIZE}", text)
        output = self.files("big")
        self.assertEqual(output["files"], 2)
        self.assertEqual(output["left_out"]["files"], 4)
        self.cp("big:")
        kept = tree(self.to)
        self.assertEqual(kept.pop(b"small.txt"), b"s")
        self.assertEqual(list(kept.values()), [b"p" * 600_000])

    def test_patterns_choose_and_none_turns_it_off(self):
        self.server.script("many.py", """
            import os
            os.makedirs("runs/cache")
            for name in ("a.pt", "b.txt", "runs/x", "runs/cache/y"): open(name, "w").write(name)
        """)

        def kept(outputs):
            job = self.server.file("run: python3 many.py\noutputs: %s\n" % outputs)
            self.ended(job)
            output = self.files(job)
            return output and sorted(f["path"] for f in self.server.json("cp", job + ":")["files"])
        self.assertEqual(kept('["*.pt", "runs/**", "!runs/cache/"]'), ["a.pt", "runs/x"])
        self.assertEqual(kept('{files: ["!runs/"]}'), ["a.pt", "b.txt"])
        self.assertIsNone(kept("none"))
        self.assertIsNone(kept("[]"))

    def test_rules_for_the_source_do_not_lose_results(self):
        """*.pt is in most .gitignore files. Red if they decide about outputs, too."""
        self.server.script(".gitignore", "*.pt\nruns/\n")
        self.addCleanup(os.unlink, os.path.join(self.server.work, ".gitignore"))
        job = self.leave("""
            import os
            os.makedirs("runs"); os.makedirs("__pycache__", exist_ok=True); os.makedirs(".venv")
            for name in ("model.pt", "runs/x", "__pycache__/c.pyc", ".venv/big"):
                open(name, "w").write("x")
        """)
        self.ended(job)
        self.cp(job + ":")
        self.assertEqual(sorted(tree(self.to)), [b"model.pt", b"runs/x"])

    def test_links_and_odd_names(self):
        job = self.leave(r"""
            import os
            open(b"m\xff\n\x01 %41.pt", "w").write("odd")
            open("glück.pt", "w").write("luck")
            os.makedirs("epochs")
            open("epochs/3.ckpt", "w").write("three")
            os.symlink("epochs/3.ckpt", "last.ckpt")
            os.symlink("epochs", "newest")
            os.mkfifo("pipe")
        """)
        self.ended(job)
        self.cp(job + ":last.ckpt")
        self.assertEqual(tree(self.to), {b"last.ckpt": b"three"}, "the file that the link names")
        self.server.ath("cp", job + ":newest/3.ckpt", os.path.join(self.to, "three"), check=0)
        everything = os.path.join(self.to, "all")
        self.server.ath("cp", job + ":", everything, check=0)
        self.assertEqual(tree(everything), {
            b"m\xff\n\x01 %41.pt": b"odd", "glück.pt".encode(): b"luck",
            b"epochs/3.ckpt": b"three", b"last.ckpt": b"-> epochs/3.ckpt",
            b"newest": b"-> epochs"})
        self.server.ath("cp", os.fsdecode(os.fsencode(job) + b":m\xff\n\x01 %41.pt"),
                        os.path.join(self.to, "odd"), check=0)
        with open(os.path.join(self.to, "odd")) as file:
            self.assertEqual(file.read(), "odd")
        self.server.ath("cp", job + ":", check=0)  # lists them, whatever they are called

    def test_names_that_stand_for_two_things(self):
        job = self.leave("""
            import athanor, os
            os.makedirs("model")
            open(os.path.join(athanor.model_dir(), "w"), "w").write("of the model folder")
            open(os.path.join(athanor.output_dir(), "plot"), "w").write("plot")
            open("model/w", "w").write("of the working folder")
            open("model/extra", "w").write("extra")
        """)
        self.ended(job)
        self.cp(job + ":model/")
        self.assertEqual(tree(self.to), {b"w": b"of the model folder", b"extra": b"extra"})
        self.server.ath("cp", job + ":files/model/w", os.path.join(self.to, "w"), check=0)
        self.assertEqual(tree(self.to)[b"w"], b"of the working folder")
        self.cp(job + ":output/plot")
        self.assertEqual(tree(self.to)[b"plot"], b"plot")
        self.cp(job + ":code/train.py")
        self.assertIn(b"athanor.model_dir", tree(self.to)[b"train.py"])

    def test_the_last_job_gives_back_its_model(self):
        """The README's line."""
        job = self.leave("""
            import athanor
            open(athanor.model_dir() + "/model.pt", "w").write("weights")
        """)
        self.ended(job)
        self.cp("@last:model/")
        self.assertEqual(tree(self.to), {b"model.pt": b"weights"})
        self.assertIsNone(self.files(job))

    def test_the_api_gives_a_file_as_bytes(self):
        job = self.leave("""
            import os
            os.makedirs("runs")
            open("runs/page ü.html", "w").write("<script>alert(1)</script>")
        """)
        self.ended(job)
        listed = self.server.http("GET", "/api/v1/jobs/%s/outputs" % job).json()["outputs"]
        self.assertEqual([(o["name"], [m["name"] for m in o["members"]]) for o in listed],
                         [("files", ["runs/page ü.html"])])
        base = "/api/v1/jobs/%s/outputs/files" % job
        reply = self.server.http("GET", base + "/runs/page%20%C3%BC.html")
        self.assertEqual((reply.status, reply.body), (200, b"<script>alert(1)</script>"))
        self.assertIn("attachment", reply.headers["Content-Disposition"])
        self.assertIn("sandbox", reply.headers["Content-Security-Policy"])
        for path in ("", "/runs", "/nothing", "/..%2f..%2fetc%2fpasswd", "/train.py"):
            self.assertIn(self.server.http("GET", base + path).status, (400, 404), path)

    def test_rm_and_gc_take_them_away(self):
        text = "gone with its job %s" % os.urandom(8).hex()
        job = self.leave("open('only.txt', 'w').write(%r)" % text)
        self.ended(job)

        def stored():
            found = []
            for path in glob.glob(os.path.join(self.server.home, "blobs", "??", "*")):
                with open(path, "rb") as file:
                    if file.read() == text.encode():
                        found.append(path)
            return found
        (blob,) = stored()
        for path in glob.glob(os.path.join(self.server.home, "blobs", "??", "*")):
            os.utime(path, (1, 1))  # long ago: gc leaves what is young
        self.server.ath("gc", check=0)
        self.assertEqual(stored(), [blob], "gc took what a job has")
        self.server.ath("rm", job, check=0)
        self.server.ath("gc", check=0)
        self.assertEqual(stored(), [])


class Killed(unittest.TestCase):
    def test_files_survive_kills_of_agent_and_server(self):
        """Red if a new agent does not know of the working folder, or an end is reported before the
        files are kept."""
        with Server() as server:
            job = server.python("""
                import os, sys, time
                for i in range(50): open("part-%02d" % i, "w").write(str(i) * 1000)
                print("written", flush=True)
                while not os.path.exists(sys.argv[1]): time.sleep(0.01)
                open("model.pt", "w").write("weights")
            """, os.path.join(server.root, "go on"))
            server.until_log(job, "written")
            for pid in server.agent_pids(job):
                kill(pid)
            server.kill()
            server.go("go on")
            server.start()
            # And while it keeps them, as often as it can be caught.
            for _ in range(3):
                for pid in server.agent_pids(job):
                    kill(pid)
            record = server.wait(job)
            self.assertEqual(record["state"], "Completed", json.dumps(record.get("cause")))
            (output,) = record["outputs"]
            self.assertEqual(output["files"], 51)
            to = os.path.join(server.root, "back")
            server.ath("cp", job + ":", to, check=0)
            kept = tree(to)
            self.assertEqual(kept.pop(b"model.pt"), b"weights")
            self.assertEqual(kept, {b"part-%02d" % i: b"%d" % i * 1000 for i in range(50)})


if __name__ == "__main__":
    harness.main()
