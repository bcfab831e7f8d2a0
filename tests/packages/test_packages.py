"""The packages of tools/package, installed in minimal Debian 11, 12 and 13 systems made by debootstrap, without
a compiler or -dev packages. Each installs from the file alone and runs a job.

Needs root, for chroot. The systems are kept in the user's cache, named by what is in them."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(TREE, "package")]
import venvs
from harness import BUILD

PACKAGES = os.path.join(BUILD, "packages")
INCLUDE = "python3,python3-venv"
TRAIN = """
import athanor
for step in range(5):
    athanor.log({"loss": 1 / (step + 1)}, step=step)
import importlib.util
print("native" if importlib.util.find_spec("athanor._core") else "pure")
"""


def system(suite):
    """The folder of a minimal system; made once per machine."""
    import sysroot
    folder = os.path.join(venvs.cache(), "debian-%s-1" % suite)
    os.makedirs(venvs.cache(), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(folder + ".complete"):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        made = subprocess.run(["debootstrap", "--variant=minbase", "--include=" + INCLUDE, suite, folder,
                               sysroot.mirror()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode != 0:
            raise unittest.SkipTest("no system of %s: %s" % (suite, made.stdout[-300:]))
        with open(folder + ".complete", "w"):
            pass
    return folder


class Machine:
    """A minimal system of its own: what a test changes is gone afterwards."""

    def __init__(self, suite):
        self.lower = system(suite)
        self.folder = tempfile.mkdtemp(prefix="package-")

    def close(self):
        os.rmdir(self.folder)

    def run(self, script):
        """Runs a shell script there, with the packages in /packages; what it printed."""
        mount = """
            mount -t tmpfs tmpfs {0}
            mkdir {0}/upper {0}/work {0}/root
            mount -t overlay overlay -o lowerdir={1},upperdir={0}/upper,workdir={0}/work {0}/root
            mkdir -p {0}/root/packages {0}/root/work
            mount --bind {2} {0}/root/packages
            mount -t proc proc {0}/root/proc
            mount --rbind /dev {0}/root/dev
            exec chroot {0}/root env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -eu -c "$SCRIPT"
            """.format(self.folder, self.lower, PACKAGES)
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c",
                               textwrap.dedent(mount)], env=dict(os.environ, SCRIPT=textwrap.dedent(script)),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        if done.returncode != 0:
            raise AssertionError("status %d\n%s" % (done.returncode, done.stdout[-4000:]))
        return done.stdout


def package(pattern):
    found = [name for name in os.listdir(PACKAGES) if re.fullmatch(pattern, name)]
    if len(found) != 1:
        raise AssertionError("of %s there are %r in build/packages" % (pattern, found))
    return found[0]


TRAIN_FILE = "\ncd /work\ncat >train.py <<'END'%sEND\n" % TRAIN
USE = """
    for tool in cc gcc g++ make; do ! command -v $tool || exit 1; done
    ath version --verify
    ath run --name first -- {python} train.py
    echo "POINTS $(ath metrics first --json | tr -d '\\n')"
    ath server stop
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root, for chroot")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run([os.path.join(TREE, "tools", "package"), PACKAGES], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if made.returncode != 0:
            raise AssertionError("tools/package: status %d\n%s" % (made.returncode, made.stdout[-3000:]))

    def first_job(self, suite, install, python="python3"):
        machine = Machine(suite)
        self.addCleanup(machine.close)
        script = textwrap.dedent(install) + TRAIN_FILE + textwrap.dedent(USE).replace("{python}", python)
        out = machine.run(script)
        self.assertIn("as packaged", out)
        self.assertIn("Completed", out)
        self.assertIn("native", out.splitlines(), "the native core was not used")
        points = json.loads(next(line for line in out.splitlines() if line.startswith("POINTS "))[7:])
        self.assertIn("loss", json.dumps(points))

    def every(self, install, python="python3"):
        for suite in ("bullseye", "bookworm", "trixie"):
            with self.subTest(suite=suite):
                self.first_job(suite, install, python)

    def test_wheel(self):
        self.every("""
            python3 -m venv /venv
            /venv/bin/pip install --no-index -q /packages/%s
            export PATH=/venv/bin:$PATH
            python -c 'import athanor, athanor.tune, athanor._core'
            """ % package(r"athanor-.*\.whl"), "/venv/bin/python")

    def test_deb(self):
        self.every("""
            dpkg -i /packages/%s
            python3 -c 'import athanor, athanor.tune, athanor._core'
            test -f /lib/systemd/system/athanor.service
            """ % package(r"athanor_.*\.deb"))

    def test_tarball(self):
        self.every("""
            tar -xzf /packages/%s -C /opt
            ln -s /opt/athanor-*/bin/ath /usr/bin/ath
            """ % package(r"athanor-.*\.tar\.gz"))

    def test_a_changed_file_is_found(self):
        machine = Machine("bookworm")
        self.addCleanup(machine.close)
        out = machine.run("""
            tar -xzf /packages/%s -C /opt
            cd /opt/athanor-*
            echo '# changed' >>lib/athanor/python/athanor/__init__.py
            rm lib/athanor/LICENSE
            bin/ath version --verify || echo "status $?"
            """ % package(r"athanor-.*\.tar\.gz"))
        self.assertIn("changed  lib/athanor/python/athanor/__init__.py", out)
        self.assertIn("missing  lib/athanor/LICENSE", out)
        self.assertIn("status 1", out)


class Contents(unittest.TestCase):
    """What can be told without installing."""

    @classmethod
    def setUpClass(cls):
        if not os.path.isdir(PACKAGES):
            Packages.setUpClass()

    def test_every_format_has_the_same_files(self):
        with tarfile.open(os.path.join(PACKAGES, package(r"athanor-.*\.tar\.gz"))) as archive:
            packed = {name.partition("/")[2] for name in archive.getnames()} - {"README.md"}
        with zipfile.ZipFile(os.path.join(PACKAGES, package(r"athanor-.*\.whl"))) as archive:
            wheel = {re.sub(r"^[^/]*\.data/(scripts/ath|data/)", lambda m: "bin/ath" if "scripts" in m.group(0) else "",
                            name) for name in archive.namelist() if ".data/" in name}
        self.assertEqual(packed, wheel)
        self.assertIn("libexec/athanor/athanor-supervisor", packed)

    def test_the_list_of_what_is_inside_names_what_is_linked(self):
        with tarfile.open(os.path.join(PACKAGES, package(r"athanor-.*\.tar\.gz"))) as archive:
            name = next(name for name in archive.getnames() if name.endswith("sbom.spdx.json"))
            sbom = json.load(archive.extractfile(name))
        names = {part["name"] for part in sbom["packages"]}
        with open(os.path.join(TREE, "cmake", "libraries.cmake")) as file:
            linked = re.findall(r"^athanor_static_library\(([\w-]+)", file.read(), re.M)
        package_of = {"z": "zlib1g-dev", "crypto": "libssl-dev", "ssl": "libssl-dev"}
        for library in linked:
            self.assertIn(package_of.get(library, "lib%s-dev" % library), names)
        self.assertIn("preact", names)
        self.assertTrue(all(part["versionInfo"] for part in sbom["packages"]))


if __name__ == "__main__":
    unittest.main()
