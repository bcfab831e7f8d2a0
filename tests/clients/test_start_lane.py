"""On a machine that shares its processors by session a start goes ahead of what keeps it busy;
what runs for long does not."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Case, Server, until

LANE = "/athanor-start"


def cpu_cgroup(pid):
    for line in open("/proc/%s/cgroup" % pid):
        _, names, path = line.strip().split(":", 2)
        if "cpu" in names.split(","):
            return path
    return ""


def may_make_cgroups():
    for line in open("/proc/mounts"):
        _, point, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            return os.access(point, os.W_OK)
    return False


def lane_applies():
    try:
        with open("/proc/sys/kernel/sched_autogroup_enabled") as file:
            sessions = file.read().strip() == "1"
    except OSError:
        return False
    return sessions and cpu_cgroup("self") == "/" and may_make_cgroups()


@harness.needs_root("to make cgroups", unless=may_make_cgroups())
@unittest.skipUnless(lane_applies(), "no shares by session here (autogroup, cgroup v1 to write to)")
class StartLane(Case):
    # Planted bugs that turn it red: agent or supervisor stay; the attempt's cgroup is made in it.
    def test_only_the_server_stays_in_it(self):
        self.assertEqual(cpu_cgroup(self.server.pid), LANE)
        job = self.server.python("""
import os, time
print(open("/proc/self/cgroup").read(), flush=True)
time.sleep(1000)
""")
        self.server.until_log(job, "cpu:/athanor/")
        for pids in self.server.agent_pids, self.server.supervisor_pids:
            until(lambda: [cpu_cgroup(pid) for pid in pids(job)] == ["/"], "it is back")
        self.server.ath("stop", job, check=0)
        self.ended(job, "Stopped")

    # Planted bug: the agent leaves only when the script runs.
    def test_an_installer_runs_as_everybody_does(self):
        found = os.path.join(self.server.root, "cgroup-of-installer")
        self.server.script("bin/micromamba", "#!/bin/sh\ncat /proc/self/cgroup >%s\nexit 1\n" % found)
        os.chmod(os.path.join(self.server.work, "bin/micromamba"), 0o755)
        self.server.script("env.yml", "dependencies: [python]\n")
        path = self.server.script("job.yaml", """
            name: installs
            run: python3 -c pass
            environment: {conda: env.yml}
        """)
        job = self.server.json("run", "-d", path, env={
            "PATH": os.path.join(self.server.work, "bin") + ":" + self.server.environment["PATH"]})["id"]
        self.ended(job, "Failed")
        with open(found) as file:
            self.assertIn(":cpu:/\n", file.read())

    def test_a_server_that_ends_leaves_it_to_others(self):
        with Server() as other:
            self.assertEqual(cpu_cgroup(other.pid), LANE)
            self.assertEqual(other.kill(signal.SIGTERM), 0)
            self.assertEqual(cpu_cgroup(self.server.pid), LANE, "others keep it")


if __name__ == "__main__":
    harness.main()
