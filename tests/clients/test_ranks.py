"""Jobs of several hosts and ranks: what each rank gets, who is named when one falls, and what
happens to the others. Each docstring names a planted bug that turns the test red where it is not
plain.
"""

import glob
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, alive, kill, processes, until

PYTHON = "/usr/bin/python3"
HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch.distributed"], stderr=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL).returncode == 0

# Prints its variables in one line, and waits if it is told to.
SAY = """
    import json, os, socket, sys, time
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
             "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "ATHANOR_RANK", "SM_HOSTS",
             "SM_CURRENT_HOST", "SM_CURRENT_HOST_RANK", "SM_HOST_COUNT")
    say = {name: os.environ[name] for name in names}
    say["hostname"] = socket.gethostname()
    with open(os.environ["SM_INPUT_CONFIG_DIR"] + "/resourceconfig.json") as file:
        say["config"] = json.load(file)
    print("SAID " + json.dumps(say), flush=True)
    while len(sys.argv) > 1 and not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
"""


class Ranks(Case):
    def many(self, text, *arguments, hosts=2, processes=2, flags=(), name="train.py"):
        """A job of as many hosts, with as many ranks each; its id."""
        return self.server.python(text, *arguments, name=name, flags=(
            "--nodes", str(hosts), "--processes", str(processes), *flags))

    def folders(self, job):
        """Of its hosts, by index."""
        first = self.server.attempt_dir(job)
        found = glob.glob(first + ".*")
        return [first] + sorted(found, key=lambda path: int(path.rpartition(".")[2]))

    def supervisors(self, job):
        return [pid for folder in self.folders(job) for pid in self.server.supervisor_in(folder)]

    def agents(self, folder):
        """Of this host alone, whatever its command line says."""
        found = []
        for pid in processes():
            try:
                for name in os.listdir("/proc/%d/fd" % pid):
                    if os.readlink("/proc/%d/fd/%s" % (pid, name)) == folder + "/agent.lock":
                        found.append(pid)
            except OSError:
                continue
        return found

    def said(self, job):
        """{rank: what it said}."""
        lines = re.findall(r"SAID (\{.*\})", self.server.logs(job).decode())
        return {int(one["RANK"]): one for one in map(json.loads, lines)}

    def until_running(self, job, ranks):
        until(lambda: len(self.said(job)) == ranks, "%d ranks have spoken" % ranks)

    def links(self):
        return {name for name in os.listdir("/sys/class/net") if name.startswith("ath")}

    # --- what a rank gets

    def test_every_rank_knows_who_it_is(self):
        job = self.many(SAY)
        record = self.ended(job)
        said = self.said(job)
        self.assertEqual(sorted(said), [0, 1, 2, 3])
        for rank, one in said.items():
            host = rank // 2
            self.assertEqual(
                [one[name] for name in ("WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                        "GROUP_RANK", "GROUP_WORLD_SIZE", "ATHANOR_RANK")],
                ["4", str(rank % 2), "2", str(host), "2", str(rank)])
            self.assertEqual(json.loads(one["SM_HOSTS"]), ["algo-1", "algo-2"])
            self.assertEqual(one["SM_CURRENT_HOST"], "algo-%d" % (host + 1))
            self.assertEqual((one["SM_CURRENT_HOST_RANK"], one["SM_HOST_COUNT"]), (str(host), "2"))
            self.assertEqual(one["config"]["hosts"], ["algo-1", "algo-2"])
            self.assertEqual(one["config"]["current_host"], "algo-%d" % (host + 1))
        self.assertEqual({one["MASTER_PORT"] for one in said.values()}, {said[0]["MASTER_PORT"]})
        hosts = record["attempts"][-1]["hosts"]
        self.assertEqual([host["name"] for host in hosts], ["algo-1", "algo-2"])
        self.assertEqual([sorted(end["rank"] for end in host["ranks"]) for host in hosts],
                         [[0, 1], [2, 3]])

    def test_a_lone_rank_knows_who_it_is_too(self):
        job = self.server.python(SAY)
        self.ended(job)
        one = self.said(job)[0]
        self.assertEqual((one["WORLD_SIZE"], one["LOCAL_RANK"], one["MASTER_ADDR"]),
                         ("1", "0", "127.0.0.1"))
        self.assertGreater(int(one["MASTER_PORT"]), 0)

    def test_four_ranks_on_one_host(self):
        job = self.many(SAY, hosts=1, processes=4)
        self.ended(job)
        said = self.said(job)
        self.assertEqual(sorted(said), [0, 1, 2, 3])
        self.assertEqual({one["MASTER_ADDR"] for one in said.values()}, {"127.0.0.1"})
        self.assertEqual([said[rank]["LOCAL_RANK"] for rank in range(4)], ["0", "1", "2", "3"])

    def test_more_ranks_than_cores_are_allowed_and_said(self):
        ranks = 2 * os.cpu_count()
        job = self.many("print('hello')", hosts=1, processes=ranks)
        self.ended(job)
        self.assertEqual(self.server.logs(job).count(b"hello"), ranks)
        setup = self.server.ath("logs", job, "--phase", "setup").stdout
        self.assertIn("%d ranks share" % ranks, setup)

    # --- hosts reach each other

    def test_hosts_reach_each_other_by_name(self):
        job = self.many(r"""
            import os, socket, time
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
            if rank == 0:
                server = socket.create_server(("", address[1]))
                names = []
                for _ in range(world - 1):
                    connection, _ = server.accept()
                    names.append(connection.recv(100).decode())
                print("met", *sorted(names))
            else:
                while True:
                    try:
                        connection = socket.create_connection(address, 5)
                        break
                    except OSError:
                        time.sleep(0.05)
                connection.sendall(b"%d@%s" % (rank, socket.gethostname().encode()))
            # Everyone has a name that leads to an address.
            for host in ("algo-1", "algo-2"):
                socket.gethostbyname(host)
        """)
        self.ended(job)
        self.assertIn("met 1@algo-1 2@algo-2 3@algo-2", self.server.logs(job).decode())

    @harness.needs_root("makes network namespaces")
    def test_each_host_has_its_own_network_and_reaches_this_server(self):
        """Planted bug: no forwarder in the namespace."""
        before = self.links()
        job = self.many(r"""
            import json, os, socket, sys, time, urllib.error, urllib.request
            url = os.environ["SERVER_URL"]
            try:
                status = urllib.request.urlopen(url + "/api/v1/jobs", timeout=30).status
            except urllib.error.HTTPError as error:
                status = error.code
            print("SAID", json.dumps({"RANK": os.environ["RANK"], "status": status,
                                      "net": os.readlink("/proc/self/ns/net"),
                                      "address": socket.gethostbyname(socket.gethostname())}))
            while not os.path.exists(sys.argv[1]):
                time.sleep(0.02)
        """, os.path.join(self.server.root, "over"), processes=1,
                        flags=("-e", "SERVER_URL=" + self.server.url))
        self.until_running(job, 2)
        said = self.said(job)
        self.assertNotEqual(said[0]["net"], said[1]["net"])
        self.assertNotEqual(said[0]["address"], said[1]["address"])
        self.assertTrue(all(one["status"] in (200, 401, 403) for one in said.values()), said)
        self.assertTrue(self.links() - before)
        hosts = self.server.show(job)["attempts"][-1]["hosts"]
        self.assertEqual([host["address"] for host in hosts],
                         [said[0]["address"], said[1]["address"]])
        self.server.go("over")
        self.ended(job)
        until(lambda: self.links() <= before, "its links are gone")

    @harness.needs_root("makes network namespaces")
    def test_links_go_even_if_everything_is_killed(self):
        before = self.links()
        job = self.many(SAY, "/never")
        self.until_running(job, 4)
        for pid in [pid for folder in self.folders(job) for pid in self.agents(folder)]:
            kill(pid)
        for pid in self.supervisors(job):
            kill(pid)
        self.server.ath("stop", job)
        self.server.wait(job)
        until(lambda: self.links() <= before, "its links are gone")

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_torch_meets_over_two_hosts(self):
        job = self.many("""
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            sum = torch.tensor([float(dist.get_rank())])
            dist.all_reduce(sum)
            print("sum", sum.item(), flush=True)
            dist.barrier()
        """)
        self.ended(job)
        self.assertEqual(self.server.logs(job).count(b"sum 6.0"), 4)

    # --- who fell

    def test_a_rank_that_falls_is_named_and_the_others_are_stopped(self):
        job = self.many("""
            import os, time
            print("up", flush=True)
            if os.environ["RANK"] == "3":
                raise ValueError("rank three went wrong")
            time.sleep(1000)
        """)
        record = self.ended(job, "Failed")
        self.assertEqual(record["cause"]["kind"], "python_exception")
        self.assertIn("rank 3 on algo-2", record["cause"]["text"])
        self.assertIn("rank three went wrong", record["cause"]["text"] + record["cause"]["detail"])
        attempt = record["attempts"][-1]
        self.assertEqual((attempt["fell"]["host"], attempt["fell"]["rank"]), (1, 3))
        ends = {end["rank"]: end for host in attempt["hosts"] for end in host["ranks"]}
        self.assertEqual(ends[3]["code"], 1)
        for rank in (0, 1, 2):
            self.assertEqual(ends[rank]["signal"], 15, ends)
        self.assertEqual(attempt["hosts"][0]["cause"]["kind"], "peer_failed")
        self.assertIn("rank 3 on algo-2", self.server.ath("why", job).stdout)

    def test_a_rank_that_ends_early_is_no_fall(self):
        job = self.many("""
            import os, time
            if os.environ["RANK"] != "0":
                time.sleep(0.5)
            print("done", flush=True)
        """)
        self.ended(job)
        self.assertEqual(self.server.logs(job).count(b"done"), 4)

    # --- agents that die

    def test_an_agent_that_is_killed_costs_nothing(self):
        job = self.many(SAY, os.path.join(self.server.root, "agent"))
        self.until_running(job, 4)
        before = self.supervisors(job)
        folder = self.folders(job)[1]
        for pid in self.agents(folder):
            kill(pid)
        until(lambda: self.agents(folder), "host 1 has an agent again")
        self.assertEqual(self.supervisors(job), before)
        self.server.go("agent")
        self.ended(job)
        self.assertEqual(len(self.said(job)), 4)

    # --- stops

    def test_a_stop_reaches_every_rank(self):
        job = self.many("""
            import os, signal, sys, time
            def stop(*_):
                print("asked", os.environ["RANK"], flush=True)
                sys.exit(0)
            signal.signal(signal.SIGTERM, stop)
            print("up", flush=True)
            time.sleep(1000)
        """)
        until(lambda: self.server.logs(job, "--quiet").count(b"up") == 4, "all ranks are up")
        self.server.ath("stop", job, check=0)
        self.ended(job, "Stopped")
        asked = re.findall(r"asked (\d)", self.server.logs(job).decode())
        self.assertEqual(sorted(asked), ["0", "1", "2", "3"])

    def test_the_time_limit_ends_all_hosts(self):
        job = self.many("import time; time.sleep(1000)", flags=("--max-time", "2s"))
        record = self.server.wait(job)
        self.assertEqual(record["cause"]["kind"], "time_limit")

    def test_an_interruption_goes_on_from_one_checkpoint(self):
        """Planted bug: only the first host restoring it."""
        job = self.many(r"""
            import os, sys, time
            folder = os.environ["ATHANOR_CHECKPOINT_DIR"]
            rank = os.environ["RANK"]
            attempt = os.environ["ATHANOR_ATTEMPT"]
            print("found", attempt, rank, sorted(os.listdir(folder)), flush=True)
            if attempt == "1":
                if rank == "0":
                    with open(folder + "/step-5.tmp", "w") as file:
                        file.write("five")
                    os.rename(folder + "/step-5.tmp", folder + "/step-5")
                time.sleep(1000)
        """)
        until(lambda: self.server.checkpoints(job), "its checkpoint is kept")
        self.server.ath("interrupt", job, check=0)
        self.ended(job)
        found = re.findall(r"found 2 (\d) (\[.*\])", self.server.logs(job).decode())
        self.assertEqual(sorted(found), [(str(rank), "['step-5']") for rank in range(4)])

    # --- what they leave

    def test_metrics_and_event_files_of_all_hosts_are_there(self):
        """Planted bug: points of both hosts having the same key."""
        job = self.many(r"""
            import os
            import athanor
            rank = int(os.environ["RANK"])
            for step in range(20):
                athanor.log({"loss": rank * 100 + step}, step=step)
        """)
        self.ended(job)
        self.assertEqual(len(self.server.points(job, "loss")), 20)

    def test_outputs_of_each_host_are_kept(self):
        job = self.many(r"""
            import os
            with open(os.environ["SM_MODEL_DIR"] + "/weights", "w") as file:
                file.write(os.environ["SM_CURRENT_HOST"])
            if os.environ["RANK"] == "1":
                open("left-by-second", "w").write("x")
        """, processes=1)
        record = self.ended(job)
        names = sorted(output["name"] for output in record["outputs"])
        self.assertEqual(names, ["algo-2/files", "algo-2/model.tar.gz", "model.tar.gz"])

    # --- ath exec

    def test_exec_enters_the_host_of_a_rank(self):
        job = self.many(SAY, os.path.join(self.server.root, "exec"))
        self.until_running(job, 4)
        for flags, seen in ((("--rank", "3"), "3 algo-2"), (("--host", "2"), "2 algo-2"), (("--host", "algo-2"), "2 algo-2"),
                            ((), "0 algo-1"), (("--rank", "1"), "1 algo-1")):
            out = self.server.ath("exec", *flags, job, "--", "sh", "-c",
                                  "echo $RANK $(hostname)", check=0).stdout
            self.assertEqual(out.strip(), seen)
        for flags in (("--rank", "4"), ("--host", "3"), ("--host", "0"), ("--host", "x"),
                      ("--rank", "0", "--host", "2")):
            refused = self.server.ath("exec", *flags, job, "--", "true")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("has no", refused.stderr)
        self.server.go("exec")
        self.ended(job)


if __name__ == "__main__":
    harness.main()
