"""cgroup v2 as the kernel has it: the driver's, the limits' and the supervisor's own tests, run in
a small virtual machine whose only hierarchy is cgroup2. Skipped, with the reason, where none boots.

The machine is a kernel (ATHANOR_TEST_KERNEL, /boot's newest, or Debian's cloud kernel unpacked
into the build folder) and an initramfs made here: busybox, Python, the tests, their libraries.
"""

import glob
import gzip
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness

FILTER = ":".join(["CgroupDriver.*", "CgroupPolicy.*", "Usage.*",
                   "SupervisorExit.CountsAnOutOfMemoryKill",
                   "SupervisorExit.AProcessLimitStopsAForkBombWithoutTheSupervisor"])
# With these the machine was worth its boot: each skips itself where there is no v2.
PROOFS = ["CgroupDriver.KillsAndRemovesARealV2Cgroup", "CgroupPolicy.RealLimitsCanBeSetAndRaised",
          "SupervisorExit.CountsAnOutOfMemoryKill",
          "SupervisorExit.AProcessLimitStopsAForkBombWithoutTheSupervisor"]
# Of the standard library: what `python3 script.py` itself imports.
PACKAGES = ["encodings", "collections", "importlib", "re"]

MACHINES = [("kvm", "host", harness.PATIENCE),
            ("tcg", "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt", 4 * harness.PATIENCE)]

INIT = """#!/bin/busybox sh
busybox mkdir -p /proc /sys /dev /tmp /run /opt/ml
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
# As under a service manager: the tests sit in a cgroup below the root, with its controllers.
echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
busybox mkdir /sys/fs/cgroup/tests
echo $$ >/sys/fs/cgroup/tests/cgroup.procs
busybox chmod 1777 /tmp
busybox ip link set lo up
export PATH=/usr/bin:/bin HOME=/tmp
%s --gtest_color=no --gtest_filter='%s' 2>&1
echo "the tests ended with status $?"
busybox reboot -f
"""


def kernel():
    """A path, or unittest.SkipTest with what was tried."""
    named = os.environ.get("ATHANOR_TEST_KERNEL")
    found = [named] if named else sorted(glob.glob("/boot/vmlinuz-*"))
    cache = os.path.join(harness.BUILD, "vm-kernel")
    found = found or sorted(glob.glob(os.path.join(cache, "boot", "vmlinuz-*")))
    if found:
        return found[-1]
    if not shutil.which("apt-get"):
        raise unittest.SkipTest("no kernel in /boot, and no apt-get to fetch one")
    depends = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    package = re.search(r"Depends: (linux-image-\S+)", depends)
    if not package:
        raise unittest.SkipTest("no kernel in /boot, and apt knows no linux-image-cloud-amd64")
    with tempfile.TemporaryDirectory() as folder:
        got = subprocess.run(["apt-get", "download", "-q", package.group(1)], cwd=folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        files = glob.glob(os.path.join(folder, "*.deb"))
        if not files:
            raise unittest.SkipTest("%s cannot be downloaded: %s" % (
                package.group(1), (got.stdout.strip().splitlines() or ["no reason given"])[-1]))
        unpacked = os.path.join(folder, "unpacked")
        subprocess.run(["dpkg-deb", "-x", files[0], unpacked], check=True)
        os.makedirs(os.path.join(cache, "boot"), exist_ok=True)
        for path in glob.glob(os.path.join(unpacked, "boot", "vmlinuz-*")):
            shutil.copy(path, os.path.join(cache, "boot"))
    return sorted(glob.glob(os.path.join(cache, "boot", "vmlinuz-*")))[-1]


class Initramfs:
    """A cpio archive in the kernel's "newc" form."""

    def __init__(self):
        self.parts = []
        self.there = set()

    def entry(self, name, mode, data=b""):
        if name in self.there:
            return
        self.there.add(name)
        folder = os.path.dirname(name)
        if folder:
            self.entry(folder, stat.S_IFDIR | 0o755)
        raw = name.encode() + b"\0"
        head = "070701" + "".join("%08X" % field for field in (
            len(self.there), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0))
        for part in (head.encode() + raw, data):
            self.parts.append(part + b"\0" * (-len(part) % 4))

    def file(self, path, to=None):
        with open(path, "rb") as file:
            self.entry((to or path).lstrip("/"), stat.S_IFREG | 0o755, file.read())

    def program(self, path, to=None):
        """With the libraries it is linked to, where it looks for them."""
        self.file(path, to)
        said = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", said):
            self.file(library)

    def link(self, name, target):
        self.entry(name, stat.S_IFLNK | 0o777, target.encode())

    def write(self, path):
        self.entry("TRAILER!!!", 0)
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(b"".join(self.parts))


def make_initramfs(path, tests, supervisor):
    image = Initramfs()
    image.program(shutil.which("busybox"), "/bin/busybox")
    for name in ("sh", "sleep", "cat", "true"):
        image.link("bin/" + name, "busybox")
    python = os.path.realpath("/usr/bin/python3")
    image.program(python, "/usr/bin/python3")
    library = "/usr/lib/" + os.path.basename(python)
    for found in glob.glob(library + "/*.py"):
        image.file(found)
    for package in PACKAGES:
        for found in glob.glob(os.path.join(library, package, "*.py")):
            image.file(found)
    image.program(tests)
    image.file(supervisor)
    image.entry("etc/passwd", stat.S_IFREG | 0o644,
                b"root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n")
    image.entry("init", stat.S_IFREG | 0o755, (INIT % (tests, FILTER)).encode())
    image.write(path)


def run_tests():
    for folder in ("tests", "release/tests"):
        path = os.path.realpath(os.path.join(harness.BUILD, folder, "run_test"))
        if os.path.exists(path):
            return path, os.path.join(os.path.dirname(os.path.dirname(path)), "athanor-supervisor")
    raise unittest.SkipTest("run_test is not built")


def boot_once(command, patience):
    """What the machine said on its serial line until it ended, or for so many seconds."""
    command = [*command, "-smp", "1", "-m", "768", "-nodefaults", "-no-user-config", "-display",
               "none", "-no-reboot", "-serial", "stdio", "-append",
               "console=ttyS0 quiet panic=-1 no_timer_check cgroup_no_v1=all"]
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=patience).stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    return said.decode("utf-8", "replace").replace("\r", "")


class Cgroup2(unittest.TestCase):
    def test_the_tests_of_cgroups_pass_where_only_v2_is(self):
        """Red if a controller is not enabled in every parent, if a limit goes to v1's file, or if
        the exit record's counters are read from v1's only."""
        machine = shutil.which("qemu-system-x86_64")
        if not machine or not shutil.which("busybox"):
            self.skipTest("qemu or busybox is not installed "
                          "(Debian: qemu-system-x86, busybox-static)")
        tests, supervisor = run_tests()
        boot = kernel()
        with tempfile.TemporaryDirectory(prefix="ath-vm-") as folder:
            initramfs = os.path.join(folder, "initramfs")
            make_initramfs(initramfs, tests, supervisor)
            # Nested or foreign hypervisors offer a /dev/kvm that cannot run a guest.
            for accelerator, processor, patience in MACHINES:
                said = boot_once([machine, "-machine", "q35,accel=" + accelerator, "-cpu",
                                  processor, "-kernel", boot, "-initrd", initramfs], patience)
                if "[==========] Running" in said:
                    break
        # A machine that does not come up says nothing about cgroups; one that does must pass.
        if "[==========] Running" not in said:
            self.skipTest("the machine did not boot: %s"
                          % (said.strip().splitlines() or ["it said nothing"])[-1][:300])
        self.assertIn("the tests ended with status 0", said, said[-8000:])
        for proof in PROOFS:
            self.assertIn("[       OK ] " + proof, said, said[-8000:])


if __name__ == "__main__":
    harness.main()
