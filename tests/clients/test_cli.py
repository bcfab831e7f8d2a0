"""The command line as people use it: the real program, a real server, real scripts."""

import json
import math
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import ATH, BUILD, TERMINAL, Case, Server, has_verb, needs_verb, until


class ExitStatus(Case):
    def test_scripts_code_is_passed_through(self):
        for code in (0, 1, 2, 3, 17, 64, 100, 126, 127, 128, 130, 143, 200, 254, 255):
            with self.subTest(code=code):
                self.assertEqual(self.server.ath("run", "-q", "--", "sh", "-c",
                                                 "exit %d" % code).returncode, code)

    def test_signal_is_128_and_its_number(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1,
                       signal.SIGABRT):
            with self.subTest(signal=number.name):
                out = self.server.ath("run", "--json", "--", "python3", "-c",
                                      "import os; os.kill(os.getpid(), %d)" % number)
                self.assertEqual(out.returncode, 128 + number)
                end = json.loads(out.stdout.splitlines()[-1])
                self.assertEqual(end["attempts"][-1]["exit"]["signal"], number)

    def test_wait_gives_the_jobs_status(self):
        job = self.server.submit("sh", "-c", "exit 9")
        self.assertEqual(self.server.ath("wait", job).returncode, 9)
        self.assertEqual(self.server.json("wait", job, check=9)["exit"], 9)

    def test_wait_gives_up_in_time(self):
        job = self.server.submit("sleep", "600")
        out = self.server.ath("wait", job, "--timeout", "1s", check=7)
        self.assertIn("has not ended yet", out.stderr)
        self.server.ath("stop", "--now", job, check=0)

    def test_failure_before_the_start_is_marked(self):
        out = self.server.ath("run", "--json", "--", "python3", "no_such_script.py")
        self.assertEqual(out.returncode, 2)
        error = json.loads(out.stdout)["error"]
        self.assertEqual(error["origin"], "athanor")
        self.assertTrue(error["id"].startswith("ATH-"), error)
        self.assertTrue(error["hint"], error)


class Streams(Case):
    def test_script_stdout_and_stderr_stay_apart(self):
        self.server.script("both.py", """
            import sys
            print("to out")
            print("to err", file=sys.stderr)
        """)
        out = self.server.ath("run", "--", "python3", "both.py", check=0)
        self.assertEqual(out.stdout, "to out\n")
        self.assertIn("to err\n", out.stderr)
        self.assertNotIn("to out", out.stderr)

    def test_logs_print_only_what_the_script_printed(self):
        job = self.server.submit("sh", "-c", "echo one; echo two; printf three")
        self.server.wait(job)
        self.assertEqual(self.server.logs(job), b"one\ntwo\nthree")

    def test_logs_follow_to_the_end(self):
        job = self.server.python("""
            import time
            for i in range(20):
                print("line", i)
                time.sleep(0.02)
        """)
        out = self.server.ath("logs", "-f", job, check=0)
        self.assertEqual(out.stdout, "".join("line %d\n" % i for i in range(20)))

    def test_logs_tail_grep_and_phase(self):
        job = self.server.submit("seq", "1", "100")
        self.server.wait(job)
        self.assertEqual(self.server.logs(job, "--tail", "3"), b"98\n99\n100\n")
        self.assertEqual(self.server.logs(job, "--grep", "^9.$"),
                         b"".join(b"%d\n" % i for i in range(90, 100)))
        self.assertNotIn(b"100", self.server.logs(job, "--phase", "setup"))
        self.assertEqual(self.server.logs(job, "--since", "1h").count(b"\n"), 100)
        self.assertEqual(self.server.logs(job, "--since", "0s"), b"")
        self.assertEqual(self.server.logs(job, "--rank", "0").count(b"\n"), 100)
        self.assertEqual(self.server.logs(job, "--rank", "1"), b"")
        for flag in ("--rank", "--tail"):
            error = self.server.json("logs", job, flag, "many", check=2)["error"]
            self.assertTrue(error["hint"], error)

    def test_logs_follow_knows_grep_too(self):
        job = self.server.submit("seq", "1", "30")
        out = self.server.ath("logs", "-f", "--grep", "^2.$", job, check=0)
        self.assertEqual(out.stdout.split(), [str(i) for i in range(20, 30)])

    def test_json_logs_carry_every_byte(self):
        job = self.server.submit("seq", "1", "500")
        self.server.wait(job)
        text = ""
        for line in self.server.ath("logs", job, "--json", check=0).stdout.splitlines():
            event = json.loads(line)
            if event["event"] == "log":
                text += event["text"]
        self.assertEqual(text, "".join("%d\n" % i for i in range(1, 501)))

    def test_hints_are_silenced_by_quiet(self):
        self.assertEqual(self.server.ath("run", "-q", "--", "true", check=0).stderr, "")


class Names(Case):
    def test_by_id_prefix_name_and_last(self):
        job = self.server.submit("true", flags=["--name", "first-one"])
        self.ended(job)
        other = self.server.submit("true", flags=["--name", "second-one"])
        self.ended(other)
        for reference, wanted in ((job, job), (other, other), ("first-one", job),
                                  ("second-one", other), ("@last", other)):
            self.assertEqual(self.server.show(reference)["id"], wanted, reference)
        prefix = next(job[:n] for n in range(4, 27) if not other.startswith(job[:n]))
        self.assertEqual(self.server.show(prefix)["id"], job)

    def test_last_failed_skips_the_good(self):
        bad = self.server.submit("false")
        self.ended(bad, "Failed")
        self.ended(self.server.submit("true"))
        self.assertEqual(self.server.show("@last-failed")["id"], bad)

    def test_shared_prefix_is_refused_with_the_choices(self):
        one, two = self.server.submit("true"), self.server.submit("true")
        shared = os.path.commonprefix([one, two])
        out = self.server.ath("show", shared)
        self.assertEqual(out.returncode, 4, out.stderr)
        self.assertIn("next:", out.stderr)

    def test_unknown_name_is_not_found(self):
        out = self.server.ath("show", "no-such-job")
        self.assertEqual(out.returncode, 3)
        self.assertIn("ath ps", out.stderr)


class Json(Case):
    def test_every_verb_that_reads_a_job_speaks_json(self):
        job = self.server.python("""
            import athanor
            athanor.log(loss=1.0, step=1)
            print("x")
        """)
        self.ended(job)
        for verb in (["ps"], ["show", job], ["why", job], ["logs", job], ["metrics", job],
                     ["metrics", job, "loss"], ["events", job], ["events"], ["wait", job],
                     ["stop", job], ["server", "status"], ["version"]):
            with self.subTest(verb=verb):
                out = self.server.ath(*verb, "--json", check=0)
                lines = out.stdout.splitlines()
                self.assertTrue(lines)
                for line in lines:
                    json.loads(line)

    def test_so_does_every_other(self):
        job = self.server.submit("true", flags=["--name", "spoken"])
        self.ended(job)
        for verb in (["types"], ["types", "--spot"], ["secret", "ls"], ["token", "ls"], ["check"],
                     ["explain", "ATH-J0137"], ["schema"], ["completion", "bash"],
                     ["diff", job, job], ["checkpoints", job], ["gc", "--dry-run"],
                     ["cp", "spoken:code/", "taken"], ["init", "--force"],
                     ["retry", job], ["rm", job]):
            with self.subTest(verb=verb):
                lines = self.server.ath(*verb, "--json", check=0).stdout.splitlines()
                self.assertTrue(lines)
                for line in lines:
                    json.loads(line)

    def test_errors_are_json_on_stdout(self):
        for verb in (["show", "nope"], ["logs", "nope"], ["why", "nope"], ["metrics", "nope"],
                     ["events", "nope"], ["stop", "nope"], ["wait", "nope"], ["run"],
                     ["run", "missing.yaml"]):
            with self.subTest(verb=verb):
                out = self.server.ath(*verb, "--json")
                self.assertNotEqual(out.returncode, 0)
                error = json.loads(out.stdout)["error"]
                self.assertEqual(error["origin"], "athanor")
                self.assertTrue(error["what"])

    def test_run_json_streams_one_object_a_line_and_ends_with_the_record(self):
        out = self.server.ath("run", "--json", "--", "echo", "hello", check=0)
        events = [json.loads(line) for line in out.stdout.splitlines()]
        self.assertEqual(events[-1]["event"], "end")
        self.assertEqual(events[-1]["state"], "Completed")
        self.assertEqual("".join(e["text"] for e in events if e["event"] == "log"), "hello\n")

    def test_ps_filters(self):
        a = self.server.submit("true", flags=["--experiment", "exp-a"])
        b = self.server.submit("false", flags=["--experiment", "exp-b"])
        self.ended(a)
        self.ended(b, "Failed")
        ids = lambda *more: [j["id"] for j in self.server.json("ps", *more)["jobs"]]
        self.assertEqual(ids("--experiment", "exp-a"), [a])
        self.assertIn(b, ids("--state", "Failed"))
        self.assertNotIn(a, ids("--state", "Failed"))
        self.assertEqual(len(ids("-n", "1")), 1)


class AutoStart(unittest.TestCase):
    def test_first_verb_starts_a_server_and_says_so_once(self):
        with Server(start=False) as server:
            first = server.ath("run", "--", "true", check=0)
            self.assertEqual(first.stderr.count("started a server"), 1)
            second = server.ath("ps", check=0)
            self.assertNotIn("started a server", second.stderr)
            server.ath("server", "stop", check=0)

    def test_looking_at_the_server_does_not_start_one(self):
        with Server(start=False) as server:
            out = server.ath("server", "status")
            self.assertEqual(out.returncode, 5)
            self.assertIn("no server is running", out.stderr)
            self.assertFalse(os.path.exists(server.socket))

    def test_ten_first_verbs_at_once_end_up_with_one_server(self):
        with Server(start=False) as server:
            runs = [server.popen("run", "-d", "-q", "--json", "--", "true",
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    for _ in range(10)]
            outs = [run.communicate(timeout=120) for run in runs]
            self.assertEqual([run.returncode for run in runs], [0] * 10,
                             [err for _, err in outs])
            ids = {json.loads(out)["id"] for out, _ in outs}
            self.assertEqual(len(ids), 10)
            serving = [command for command in
                       (harness.processes().get(pid, "") for pid in server.leftovers())
                       if " serve " in command + " "]
            self.assertEqual(len(serving), 1, serving)
            self.assertEqual(server.json("server", "status")["jobs"], 10)
            server.ath("server", "stop", check=0)

    def test_second_server_for_a_home_is_refused(self):
        with Server() as server:
            out = server.ath("serve", "--port", "0")
            self.assertEqual(out.returncode, 4)
            self.assertIn("already runs", out.stderr)

    def test_sigterm_leaves_jobs_running(self):
        with Server() as server:
            job = server.python("""
                import time
                print("up")
                while True: time.sleep(0.05)
            """)
            server.until_log(job, "up")
            (supervisor,) = server.supervisor_pids(job)
            self.assertEqual(server.kill(signal.SIGTERM), 0)
            self.assertTrue(harness.alive(supervisor))
            server.start()
            self.assertEqual(server.state(job), "Running")
            server.ath("stop", "--now", job, check=0)
            self.assertEqual(server.wait(job)["state"], "Stopped")


class RealTime(unittest.TestCase):
    def test_job_of_a_real_time_server_runs_and_says_what_is_off(self):
        """Red if the script must join a v1 cpu cgroup, which refuses real-time processes."""
        try:
            ordinary = os.sched_getscheduler(0), os.sched_getparam(0)
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except OSError as refused:
            harness.skip_without_root(self, "to be real-time")
            self.skipTest("root may not be real-time here: %s" % refused)
        try:
            server = Server()
        finally:
            os.sched_setscheduler(0, *ordinary)
        self.addCleanup(server.close)
        job = server.python("import os; print(os.sched_getscheduler(0) == os.SCHED_RR)")
        record = server.wait(job)
        self.assertEqual(record["state"], "Completed", record["cause"])
        self.assertEqual(server.logs(job), b"True\n")
        if os.path.exists("/sys/fs/cgroup/cpu/cpu.rt_runtime_us") and os.geteuid() == 0:
            self.assertTrue(any("real-time" in line for line in record["attempts"][-1]["off"]),
                            record["attempts"][-1])


class TenExperiments(Case):
    def test_bash_loop_with_d_runs_all_distinct_and_tracked(self):
        self.server.script("train.py", """
            import athanor
            lr = athanor.params["lr"]
            for step in range(5):
                athanor.log(loss=lr * step, step=step)
            print("trained with", lr)
        """)
        loop = ("for i in $(seq 1 10); do %s run -d -q --experiment sweep --cpus 0.2 -p lr=0.$i "
                "-- python3 train.py; done" % ATH)
        out = subprocess.run(["bash", "-c", loop], env=self.server.environment,
                             cwd=self.server.work, stdout=subprocess.PIPE, text=True, check=True)
        ids = out.stdout.split()
        self.assertEqual(len(ids), 10)
        self.assertEqual(len(set(ids)), 10)
        self.server.ath("wait", *ids, check=0)
        listed = self.server.json("ps", "-a", "--experiment", "sweep")["jobs"]
        self.assertEqual({job["id"] for job in listed}, set(ids))
        self.assertEqual({job["state"] for job in listed}, {"Completed"})
        for i, job in enumerate(ids, 1):
            lr = float("0.%d" % i)
            self.assertEqual(self.server.logs(job).decode(), "trained with %s\n" % lr)
            points = self.server.points(job, "loss")
            self.assertEqual([p["value"] for p in points], [lr * step for step in range(5)])


class Metrics(Case):
    def test_regex_metrics_with_their_step(self):
        self.server.script("job.yaml", r"""
            run: "python3 -c \"for i in range(50): print(f'step={i} loss={1/(i+1)}')\""
            metrics:
              - {name: loss, regex: 'loss=(\S+)', step: 'step=(\d+)'}
        """)
        job = self.server.json("run", "-d", "job.yaml")["id"]
        self.ended(job)
        points = self.server.points(job, "loss")
        self.assertEqual([(p["step"], p["value"]) for p in points],
                         [(i, 1 / (i + 1)) for i in range(50)])

    def test_sdk_metrics_keep_nan_and_infinities(self):
        job = self.server.python("""
            import athanor
            for step, value in enumerate([1.5, float("nan"), float("inf"), float("-inf"), -0.0,
                                          5e-324, 1.7976931348623157e308]):
                athanor.log(x=value, step=step)
        """)
        self.ended(job)
        points = self.server.points(job, "x")
        values = [float(p["value"]) for p in points]
        self.assertTrue(math.isnan(values[1]))
        self.assertEqual(values[:1] + values[2:], [1.5, math.inf, -math.inf, -0.0, 5e-324,
                                                   1.7976931348623157e308])
        self.assertEqual(math.copysign(1, values[4]), -1)

    def test_many_points_come_once_each_and_in_order(self):
        job = self.server.python("""
            import athanor, json
            for i in range(50000):
                athanor.log(a=float(i), step=i)
            print(json.dumps(athanor.stats()))
        """)
        self.ended(job)
        steps = [p["step"] for p in self.server.points(job, "a")]
        stats = json.loads(self.server.logs(job))
        # A script that logs faster than the agent reads may lose points, never unnoticed.
        self.assertEqual(stats["written"] + stats["dropped"], 50000)
        self.assertEqual(len(steps), stats["written"])
        self.assertTrue(all(a < b for a, b in zip(steps, steps[1:])), "in order, once each")

    def test_pure_python_writes_the_same(self):
        job = self.server.python("""
            import athanor, sys
            assert "athanor._spool" in sys.modules
            for i in range(100):
                athanor.log(b=i * 0.5, step=i)
        """, flags=["-e", "ATHANOR_PURE=1"])
        self.ended(job)
        self.assertEqual([(p["step"], p["value"]) for p in self.server.points(job, "b")],
                         [(i, i * 0.5) for i in range(100)])

    def test_regex_that_matches_nothing_is_warned_about(self):
        job = self.server.submit("seq", "1", "2000", flags=["--metric", r"acc=acc=(\S+)"])
        self.ended(job)
        text = self.server.ath("events", job, check=0).stdout
        self.assertIn("matched none of", text)


class Parameters(Case):
    def test_in_the_command_the_environment_and_the_sdk(self):
        self.server.script("p.py", """
            import athanor, json, os, sys
            print(json.dumps([sys.argv[1:], os.environ["SM_HP_LR"], os.environ["SM_HP_NAME"],
                              athanor.params["lr"], athanor.params["name"]]))
        """)
        job = self.server.submit("python3", "p.py", "--lr", "${lr}", "--name", "${name}",
                                 flags=["-p", "lr=1e-4", "-p", "name=x y"])
        self.ended(job)
        self.assertEqual(json.loads(self.server.logs(job)),
                         [["--lr", "1e-4", "--name", "x y"], "0.0001", "x y", 1e-4, "x y"])

    def test_several_flags_of_a_kind_add_up(self):
        self.server.script("e.py", "import os; print(os.environ['A'], os.environ['B'])")
        job = self.server.submit("python3", "e.py", flags=["-e", "A=1", "-e", "B=2",
                                                           "--tag", "a=1", "--tag", "b=2"])
        self.ended(job)
        self.assertEqual(self.server.logs(job), b"1 2\n")
        self.assertEqual(self.server.show(job)["spec"]["tags"], {"a": "1", "b": "2"})

    def test_unknown_parameter_in_the_command_is_refused(self):
        out = self.server.ath("run", "--", "echo", "${nothing}")
        self.assertEqual(out.returncode, 2)
        self.assertIn("nothing", out.stderr)


class Contract(Case):
    """The SageMaker contract, as a script sees it."""

    def dump(self):
        self.server.script("data/train/a.txt", "hello\n")
        self.server.script("dump.py", """
            import json, os, socket
            tree = sorted(os.path.join(d, n) for d, ds, fs in os.walk("/opt/ml") for n in ds + fs
                          if "/.athanor" not in d and n != ".athanor")
            config = {n: json.load(open("/opt/ml/input/config/" + n))
                      for n in os.listdir("/opt/ml/input/config")}
            print(json.dumps({"env": dict(os.environ), "tree": tree, "config": config,
                              "host": socket.gethostname(), "cwd": os.getcwd()}))
        """)
        job = self.server.submit(
            "python3", "dump.py", "--lr", "${lr}",
            # What is the platform's own is no parameter of the script's.
            flags=["-p", "sagemaker_mpi_enabled=true", "-p", "sagemaker_program=dump.py",
                   "-p", "lr=0.5", "-p", "epochs=3", "-p", "tag=b",
                   "-i", "train=data/train", "--name", "contract"])
        self.ended(job)
        return json.loads(self.server.logs(job))

    def test_environment_files_and_host(self):
        seen = self.dump()
        env = seen["env"]
        plain = {
            "SM_MODEL_DIR": "/opt/ml/model", "SM_INPUT_DIR": "/opt/ml/input",
            "SM_INPUT_CONFIG_DIR": "/opt/ml/input/config", "SM_OUTPUT_DIR": "/opt/ml/output",
            "SM_OUTPUT_DATA_DIR": "/opt/ml/output/data",
            "SM_OUTPUT_INTERMEDIATE_DIR": "/opt/ml/output/intermediate",
            "SM_CHANNEL_TRAIN": "/opt/ml/input/data/train", "SM_HP_LR": "0.5",
            "SM_HP_EPOCHS": "3", "SM_HP_TAG": "b", "SM_CURRENT_HOST": "algo-1",
            "SM_USER_ENTRY_POINT": "dump.py", "SM_MODULE_NAME": "dump", "SM_NUM_GPUS": "0",
            "TRAINING_JOB_NAME": "contract", "SAGEMAKER_JOB_NAME": "contract",
            "CURRENT_HOST": "algo-1", "PYTHONUNBUFFERED": "1", "SM_ENTRY_SCRIPT": "dump.py",
            "SM_FRAMEWORK_MODULE": "", "SAGEMAKER_REGION": "us-west-2",
            "TRAINING_JOB_ARN":
                "arn:aws:sagemaker:us-west-2:000000000000:training-job/contract"}
        self.assertEqual({name: env.get(name) for name in plain}, plain)
        parsed = {
            "SM_CHANNELS": ["train"], "SM_HOSTS": ["algo-1"],
            "SM_HPS": {"lr": 0.5, "epochs": 3, "tag": "b"},
            "SM_IS_HETERO": False, "SM_INSTANCE_GROUPS": ["homogeneousCluster"],
            "SM_CURRENT_INSTANCE_GROUP_HOSTS": ["algo-1"],
            "SM_DISTRIBUTION_INSTANCE_GROUPS": [], "SM_DISTRIBUTED_CONFIG": {},
            "SM_FRAMEWORK_PARAMS": {"sagemaker_mpi_enabled": True},
            "SM_USER_ARGS": ["--lr", "0.5"]}
        self.assertEqual({name: json.loads(env[name]) for name in parsed}, parsed)
        for name in ("SM_HPS", "SM_RESOURCE_CONFIG", "SM_INPUT_DATA_CONFIG", "SM_TRAINING_ENV"):
            again = json.dumps(json.loads(env[name]), sort_keys=True, separators=(",", ":"))
            self.assertEqual(env[name], again, "compact, keys sorted")
        self.assertEqual(seen["host"], "algo-1")
        self.assertEqual(seen["cwd"], "/opt/ml/code")
        self.assertEqual(seen["config"]["hyperparameters.json"],
                         {"lr": "0.5", "epochs": "3", "tag": "b",
                          "sagemaker_mpi_enabled": "true", "sagemaker_program": "dump.py"})
        self.assertEqual([name for name in env if name.startswith("SM_HP_SAGEMAKER")], [])
        everything = json.loads(env["SM_TRAINING_ENV"])
        for name in ("current_instance_type", "distribution_instance_groups", "framework_module",
                     "instance_groups_dict", "is_hetero", "module_name", "num_neurons",
                     "output_intermediate_dir"):
            self.assertIn(name, everything)
        resource = seen["config"]["resourceconfig.json"]
        self.assertEqual((resource["current_host"], resource["hosts"]), ("algo-1", ["algo-1"]))
        self.assertEqual(resource["instance_groups"][0]["hosts"], ["algo-1"])
        self.assertEqual(seen["config"]["inputdataconfig.json"]["train"]["TrainingInputMode"],
                         "File")
        for path in ("/opt/ml/code/dump.py", "/opt/ml/input/data/train/a.txt", "/opt/ml/model",
                     "/opt/ml/output/data", "/opt/ml/checkpoints", "/opt/ml/metadata",
                     "/opt/ml/output/metrics/sagemaker", "/opt/ml/output/tensors",
                     "/opt/ml/output/profiler", "/opt/ml/output/tensorboard"):
            self.assertIn(path, seen["tree"])
        self.assertEqual([name for name in env if name.startswith(("ATHANOR_HOME",
                                                                   "ATHANOR_TOKEN"))], [])

    def test_failure_file_is_the_reason(self):
        job = self.server.python("""
            open("/opt/ml/output/failure", "w").write("the moon was in the wrong house")
            raise SystemExit(1)
        """)
        self.ended(job, "Failed")
        self.assertIn("the moon was in the wrong house", self.server.ath("why", job).stdout)

    def test_model_and_output_are_kept_as_archives(self):
        job = self.server.python("""
            import os
            os.makedirs(os.environ["SM_MODEL_DIR"] + "/sub")
            open(os.environ["SM_MODEL_DIR"] + "/sub/weights.bin", "wb").write(bytes(range(256)))
            open(os.environ["SM_OUTPUT_DATA_DIR"] + "/plot.txt", "w").write("plot")
        """)
        record = self.ended(job)
        self.assertEqual({o["name"] for o in record["outputs"]},
                         {"model.tar.gz", "output.tar.gz"})
        reply = self.server.http("GET", "/api/v1/jobs/%s/outputs/model.tar.gz" % job)
        self.assertEqual(reply.status, 200)
        with tempfile.NamedTemporaryFile() as file:
            file.write(reply.body)
            file.flush()
            with tarfile.open(file.name, "r:gz") as archive:
                names = [name.lstrip("./") for name in archive.getnames()]
                self.assertIn("sub/weights.bin", names)
                member = archive.getmembers()[names.index("sub/weights.bin")]
                self.assertEqual(archive.extractfile(member).read(), bytes(range(256)))

    def test_checkpoints_are_there_for_the_next_attempt(self):
        self.server.script("resume.py", """
            import athanor, os, sys
            path = os.path.join(athanor.checkpoint_dir(), "a.ckpt")
            if os.path.exists(path):
                print("resumed from", open(path).read())
            else:
                open(path, "w").write("step 7")
                sys.exit(9)
        """)
        self.server.script("resume.yaml", """
            run: python3 resume.py
            checkpoints: {}
            retry: {max: 1, on: [nonzero_exit], backoff: 10ms}
        """)
        job = self.server.json("run", "-d", "resume.yaml")["id"]
        record = self.ended(job)
        self.assertEqual(len(record["attempts"]), 2)
        self.assertIn(b"resumed from step 7", self.server.logs(job))


class Stopping(Case):
    def test_stop_reaches_python_under_a_shell(self):
        self.server.script("graceful.py", """
            import signal, sys, time
            def stop(*_):
                print("got SIGTERM, saving")
                sys.exit(0)
            signal.signal(signal.SIGTERM, stop)
            print("ready")
            while True: time.sleep(0.02)
        """)
        for command in (["python3", "graceful.py"],
                        ["sh", "-c", "python3 graceful.py; true"],
                        ["bash", "-c", "env A=1 timeout 600 python3 graceful.py; echo done"]):
            with self.subTest(command=command):
                job = self.server.submit(*command)
                self.server.until_log(job, "ready")
                self.server.ath("stop", job, check=0)
                self.assertEqual(self.server.wait(job)["state"], "Stopped")
                self.assertIn(b"got SIGTERM, saving", self.server.logs(job))
                self.assertEqual(self.server.json("why", job)["cause"]["kind"], "user_stop")

    def test_should_stop_with_its_deadline(self):
        job = self.server.python("""
            import athanor, signal, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("ready")
            while not athanor.should_stop(): time.sleep(0.02)
            print("cooperative end")
        """)
        self.server.until_log(job, "ready")
        self.server.ath("stop", job, check=0)
        self.assertEqual(self.server.wait(job)["state"], "Stopped")
        self.assertIn(b"cooperative end", self.server.logs(job))

    def test_time_limit_stops_the_job(self):
        job = self.server.python("""
            import signal, sys, time
            signal.signal(signal.SIGTERM, lambda *_: (print("told"), sys.exit(0)))
            print("ready")
            while True: time.sleep(0.02)
        """, flags=["--max-time", "2s"])
        record = self.server.wait(job)
        self.assertIn(b"told", self.server.logs(job))
        self.assertEqual(record["cause"]["kind"], "time_limit")

    def test_ctrl_c_while_attached_stops_the_job(self):
        self.server.script("loop.py", """
            import signal, sys, time
            signal.signal(signal.SIGTERM, lambda *_: (print("told to stop"), sys.exit(0)))
            print("ready", flush=True)
            while True: time.sleep(0.02)
        """)
        run = self.server.popen("run", "--name", "attached", "--", "python3", "loop.py",
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"ready\n")
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        self.assertIn(b"told to stop", out)
        self.assertIn(b"asking the job to stop", err)
        record = self.server.show("attached")
        self.assertEqual(record["state"], "Stopped")
        self.assertEqual(record["cause"]["kind"], "user_stop")

    def test_ctrl_c_in_logs_only_leaves(self):
        job = self.server.python("""
            import time
            print("ready")
            while True: time.sleep(0.02)
        """)
        logs = self.server.popen("logs", "-f", job, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.assertEqual(logs.stdout.readline(), b"ready\n")
        logs.send_signal(signal.SIGINT)
        logs.communicate(timeout=60)
        self.assertEqual(self.server.state(job), "Running")
        self.server.ath("stop", "--now", job, check=0)
        self.ended(job, "Stopped")

    def test_queued_job_can_be_stopped(self):
        holder = self.server.submit("sleep", "600", flags=["--cpus", str(os.cpu_count())])
        self.server.until_state(holder, "Running")
        queued = self.server.submit("true", flags=["--cpus", "1"])
        self.assertEqual(self.server.state(queued), "Queued")
        why = self.server.json("why", queued)["cause"]
        self.assertEqual(why["kind"], "waiting_cpus")
        self.assertRegex(why["text"], r"\d")
        self.server.ath("stop", queued, check=0)
        self.assertEqual(self.server.wait(queued)["state"], "Stopped")
        self.server.ath("stop", "--now", holder, check=0)
        self.server.wait(holder)

    def test_stopping_twice_is_harmless(self):
        job = self.server.submit("sleep", "600")
        self.server.until_state(job, "Running")
        self.server.ath("stop", "--now", job, check=0)
        self.server.wait(job)
        self.server.ath("stop", job, check=0)
        self.assertEqual(self.server.state(job), "Stopped")


class Queue(Case):
    def test_cpus_are_never_oversubscribed(self):
        cpus = os.cpu_count()
        self.server.script("busy.py", """
            import sys, time
            print("up")
            time.sleep(0.3)
        """)
        jobs = [self.server.submit("python3", "busy.py", flags=["--cpus", "1"])
                for _ in range(2 * cpus + 1)]
        for job in jobs:
            self.ended(job)
        spans = []
        for job in jobs:
            attempt = self.server.show(job)["attempts"][-1]
            spans += [(attempt["placed"], 1), (attempt["ended"], -1)]
        # One ended and one placed within a millisecond: the room was given back first.
        spans.sort(key=lambda span: (span[0], span[1]))
        running = 0
        for _, change in spans:
            running += change
            self.assertLessEqual(running, cpus)

    def test_type_that_does_not_fit_names_the_largest_that_does(self):
        out = self.server.ath("run", "--type", "ml.p4d.24xlarge", "--", "true")
        self.assertNotEqual(out.returncode, 0)
        self.assertRegex(out.stderr, r"ml\.[a-z0-9]+\.\w+")
        self.assertEqual(self.server.json("ps", "-a")["jobs"][0]["state"] in TERMINAL, True)

    def test_unknown_type_suggests(self):
        out = self.server.ath("run", "--type", "ml.m5.larg", "--", "true")
        self.assertEqual(out.returncode, 2)
        self.assertIn("ml.m5.large", out.stderr)


class Simulated(Case):
    settings = "instances: simulate\n"

    def test_larger_type_runs_and_is_marked_everywhere(self):
        out = self.server.ath("run", "--type", "ml.p3dn.24xlarge", "--name", "sim", "--", "true",
                              check=0)
        self.assertIn("simulated", out.stderr)
        record = self.server.show("sim")
        self.assertTrue(record["simulated"])
        self.assertGreater(record["price"]["micros_per_hour"], 0)
        self.assertIn("simulated", self.server.ath("ps", check=0).stdout)
        self.assertIn("simulated", self.server.ath("show", "sim", check=0).stdout)


class JobFile(Case):
    def refused(self, text, *wanted, status=2):
        self.server.script("job.yaml", text)
        out = self.server.ath("run", "job.yaml")
        self.assertEqual(out.returncode, status, out.stderr)
        for one in wanted:
            self.assertIn(one, out.stderr)

    def test_everything_in_one_file(self):
        self.server.script("train.py", """
            import os, sys
            print(sys.argv[1:], os.environ["MODE"], sorted(os.listdir("/opt/ml/input/data/d")))
        """)
        self.server.script("d/x.txt", "x")
        self.server.script("job.yaml", """
            name: whole
            experiment: e1
            run: python3 train.py --lr ${lr} --d ${channel.d}
            params: {lr: 1e-4}
            env: {MODE: fast}
            source: {ignore: [d/]}
            resources: {cpus: 1, memory: 512MB}
            limits: {max_runtime: 5m, stop_grace: 5s}
            data:
              d: ./d
            tags: {team: t}
            priority: 5
        """)
        out = self.server.ath("run", "job.yaml", check=0)
        self.assertEqual(out.stdout.splitlines()[-1],
                         "['--lr', '1e-4', '--d', '/opt/ml/input/data/d'] fast ['x.txt']")
        record = self.server.show("whole")
        self.assertEqual(record["spec"]["priority"], 5)
        self.assertEqual(record["spec"]["experiment"], "e1")

    def test_flags_win_over_the_file(self):
        self.server.script("job.yaml", "run: echo ${lr}\nparams: {lr: 1}\n")
        out = self.server.ath("run", "job.yaml", "-p", "lr=2", "-q", check=0)
        self.assertEqual(out.stdout, "2\n")

    def test_unknown_key_has_line_column_and_suggestion(self):
        self.refused("run: 'true'\nresorces: {cpus: 1}\n", "job.yaml:2:1", "resources")

    def test_duplicate_key(self):
        self.refused("run: 'true'\nname: a\nname: b\n", "job.yaml:3:1", "name")

    def test_number_with_exponent_is_a_number(self):
        self.server.script("job.yaml", "run: echo ${lr}\nparams: {lr: 1e-4}\n")
        spec = json.loads(self.server.ath("run", "--dry-run", "job.yaml", check=0).stdout)
        self.assertIn(spec["params"][0]["kind"] if "kind" in spec["params"][0]
                      else spec["params"][0].get("type"), ("number", "float"))

    def test_bad_regex_is_refused_before_the_start(self):
        self.refused("run: 'true'\nmetrics: [{name: a, regex: '('}]\n", "regex")

    def test_missing_requirements_file(self):
        self.refused("run: 'true'\nenvironment: {requirements: nowhere.txt}\n", "nowhere.txt")

    def test_missing_folder_and_missing_channel(self):
        self.refused("run: 'true'\nsource: {dir: ./nowhere}\n", "nowhere", status=2)
        self.refused("run: 'true'\ndata: {train: ./nodata}\n", "nodata")

    def test_missing_secret(self):
        self.refused("run: 'true'\nsecrets: [NOT_THERE]\n", "NOT_THERE", "ath secret set")

    def test_later_features_are_refused_not_ignored(self):
        self.refused("run: 'true'\nextends: other.yaml\n", "extends")


class Source(Case):
    def test_a_home_inside_the_source_is_not_part_of_it(self):
        """ATHANOR_HOME=./home in the folder one works in."""
        out = self.server.ath("run", "--json", "--", "sh", "-c", "ls", cwd=self.server.root,
                              check=0).stdout
        self.assertNotIn("server.sock", out)
        job = self.server.show("@last")
        self.assertLess(job["spec"]["source"]["files"], 20)

    def test_ignored_files_stay_out_and_git_is_recorded(self):
        with tempfile.TemporaryDirectory(dir=self.server.root) as folder:
            git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
            for name, text in (("train.py", "import os\nprint(sorted(os.listdir('.')))\n"),
                               (".gitignore", "*.log\nsecret/\n"), ("a.log", "x"),
                               ("secret/k", "x"), (".athanorignore", "big.bin\n"),
                               ("big.bin", "y" * 1000)):
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(text)
            for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
                subprocess.run(git + command, cwd=folder, check=True,
                               env=self.server.environment)
            head = subprocess.run(git + ["rev-parse", "HEAD"], cwd=folder, check=True, text=True,
                                  stdout=subprocess.PIPE, env=self.server.environment).stdout.strip()
            with open(os.path.join(folder, "train.py"), "a") as file:
                file.write("# changed\n")
            out = self.server.ath("run", "-q", "--name", "from-git", "--", "python3", "train.py",
                                  cwd=folder, check=0)
            seen = eval(out.stdout, {})
            self.assertIn("train.py", seen)
            for name in ("a.log", "secret", "big.bin", ".git"):
                self.assertNotIn(name, seen)
            source = self.server.show("from-git")["spec"]["source"]
            self.assertEqual(source["git_commit"], head)
            self.assertTrue(source["git_diff"])

    def test_too_large_names_the_offenders(self):
        with tempfile.TemporaryDirectory(dir=self.server.root) as folder:
            for i in range(7):
                with open(os.path.join(folder, "part%d.bin" % i), "wb") as file:
                    file.truncate((i + 1) << 20)
            with open(os.path.join(folder, "job.yaml"), "w") as file:
                file.write("run: 'true'\nsource: {max_size: 5MB}\n")
            out = self.server.ath("run", "job.yaml", cwd=folder)
            self.assertEqual(out.returncode, 2, out.stderr)
            for i in (6, 5, 4, 3, 2):
                self.assertIn("part%d.bin" % i, out.stderr)
            self.assertNotIn("part0.bin", out.stderr)

    def test_same_again_is_said(self):
        self.server.script("same.py", "print(1)")
        first = self.server.json("run", "-d", "--", "python3", "same.py")
        self.ended(first["id"])
        second = self.server.json("run", "-d", "--", "python3", "same.py")
        self.assertEqual(second.get("same_as"), first["id"])
        third = self.server.json("run", "-d", "-p", "a=1", "--", "python3", "same.py")
        self.assertNotEqual(third.get("same_as"), first["id"])


class Launcher(Case):
    def python(self, text):
        environment = dict(self.server.environment, ATHANOR_BIN=ATH,
                           PYTHONPATH=os.path.join(BUILD, "python"))
        return subprocess.run(["/usr/bin/python3", "-c", text], cwd=self.server.work,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=180)

    def test_run_wait_metrics_and_logs(self):
        self.server.script("train.py", """
            import athanor
            for i in range(3): athanor.log(loss=athanor.params["lr"] * i, step=i)
            print("trained")
        """)
        out = self.python("""import athanor
run = athanor.run("train.py", params={"lr": 0.5}, name="from-python").wait()
print(run.state, run.logs().strip(), [p.value for p in run.metrics("loss")])""")
        self.assertEqual((out.returncode, out.stdout),
                         (0, "Completed trained [0.0, 0.5, 1.0]\n"), out.stderr)

    def test_failure_raises_with_the_reason(self):
        self.server.script("bad.py", "raise ValueError('boom')")
        out = self.python("""import athanor
try:
    athanor.run("bad.py").wait()
except athanor.JobFailed as failed:
    print(failed.state, "boom" in failed.why)""")
        self.assertEqual((out.returncode, out.stdout), (0, "Failed True\n"), out.stderr)


class Debug(Case):
    def test_debug_turns_on_faulthandler_and_says_more(self):
        self.server.script("d.py", """
            import faulthandler, json, os
            print(json.dumps([faulthandler.is_enabled(), dict(os.environ)]))
        """)
        out = self.server.ath("run", "-q", "--debug", "--", "python3", "d.py", check=0)
        enabled, environment = json.loads(out.stdout.splitlines()[-1])
        self.assertTrue(enabled)
        plain = json.loads(self.server.ath("run", "-q", "--", "python3", "d.py",
                                           check=0).stdout.splitlines()[-1])[1]
        more = set(environment) - set(plain)
        self.assertTrue(more, "--debug sets something in the environment")


class Ordinary(unittest.TestCase):
    """As an ordinary user: as nobody if it is root who runs this."""

    within = ()  # a command to run `ath` with

    def setUp(self):
        self.server = Server(start=False)
        self.addCleanup(self.server.close)
        self.become = list(self.within)
        if os.getuid() == 0:
            self.become[:0] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
            os.chmod(self.server.root, 0o755)
            for folder in (self.server.home, self.server.work):
                os.chown(folder, 65534, 65534)

    def ath(self, *arguments):
        return subprocess.run([*self.become, ATH, *arguments], cwd=self.server.work,
                              env=dict(self.server.environment, HOME=self.server.work),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


class WithoutRoot(Ordinary):
    def test_ordinary_user_runs_jobs_and_is_told_what_is_off(self):
        self.server.script("train.py", "import os; print(os.getuid() != 0 or 'mapped', "
                           "os.path.isdir(os.environ['SM_MODEL_DIR']))")
        out = self.ath("run", "--name", "plain", "--", "python3", "train.py")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("True", out.stdout)
        off = json.loads(self.ath("show", "plain", "--json").stdout)["attempts"][-1].get("off", [])
        self.assertTrue(any("memory" in text or "cgroup" in text for text in off), off)
        self.assertEqual(self.ath("server", "stop").returncode, 0)


class WithoutNamespaces(Ordinary):
    """A user namespace in which no other can be made, and whose maker gave its powers away."""

    within = ("unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c",
              'echo 0 >/proc/sys/user/max_user_namespaces && '
              'exec setpriv --inh-caps=-all --ambient-caps=-all "$@"', "sh")

    # The planted bug: the diagnosis takes the code to be in /opt/ml/code.
    def test_a_script_that_wants_opt_ml_is_told_what_to_use(self):
        if subprocess.run([*self.become, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no user namespace can be made here")
        self.server.script("good.py", "import os; open(os.environ['SM_MODEL_DIR'] + '/m', 'w')")
        good = self.ath("run", "--", "python3", "good.py")
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertIn("this machine gives jobs no mount namespace", good.stderr)
        self.assertIn("model.tar.gz", good.stderr)
        self.server.script("train.py", "open('/opt/ml/model/m', 'w')")
        self.assertEqual(self.ath("run", "-q", "--name", "fixed", "--", "python3", "train.py").returncode, 1)
        why = self.ath("why", "fixed").stdout
        self.assertIn("/opt/ml/model/m is not there (at train.py:1)", why)
        self.assertIn("SM_MODEL_DIR", why)
        self.assertEqual(self.ath("server", "stop").returncode, 0)


if __name__ == "__main__":
    harness.main()
