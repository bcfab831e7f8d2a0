"""What the tests share: a spool as the agent makes it, scripts run in it, and the C++ reader."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest

HEADER = struct.Struct("<8sIIQIIQ24x")
POINT_BYTES = 40


def make_segment(folder, serial, size=512 * 1024):
    path = os.path.join(folder, "seg-%08d.spool" % serial)
    with open(path, "wb") as file:
        file.write(HEADER.pack(b"ATHSPL1\0", serial, size - HEADER.size, 0, 0, 0, 0))
        file.write(bytes(size - HEADER.size))
    return path


def write_control(folder, stop=0, deadline_ms=0, stop_at=-(1 << 63), cause=b"", seqlock=2,
                  every_ms=0, checkpoint_now=0, capture_now=0):
    page = struct.pack("<8sIIqq64sqII", b"ATHCTL1\0", seqlock, stop, deadline_ms, stop_at, cause,
                       every_ms, checkpoint_now, capture_now)
    # In place, as the agent does: emptying a mapped page would be a SIGBUS for its readers.
    fd = os.open(os.path.join(folder, "control"), os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(fd, page.ljust(4096, b"\0"), 0)
    os.close(fd)


class SpoolCase(unittest.TestCase):
    """A test with a spool folder; subclasses say which implementation writes to it."""

    pure = False

    def setUp(self):
        self.spool = tempfile.mkdtemp(prefix="athanor-spool-")
        self.addCleanup(shutil.rmtree, self.spool, ignore_errors=True)

    def environment(self, **more):
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("ATHANOR_", "SM_")) or key == "ATHANOR_SPOOL_DUMP"}
        clean.update(ATHANOR_JOB_ID="01jtest", ATHANOR_SPOOL=self.spool,
                     ATHANOR_PURE="1" if self.pure else "0", **more)
        return clean

    def start(self, script, **more):
        check = "import athanor, sys; assert ('athanor._spool' in sys.modules) == %r\n" % self.pure
        return subprocess.Popen([sys.executable, "-c", check + textwrap.dedent(script)],
                                env=self.environment(**more), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_script(self, script, **more):
        """Its output; a traceback of any kind fails the test."""
        process = self.start(script, **more)
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, err), (0, ""), err)
        return out

    def dump(self):
        """Everything the C++ reader finds in the spool."""
        reply = subprocess.run([os.environ["ATHANOR_SPOOL_DUMP"], self.spool],
                               stdout=subprocess.PIPE, check=True, encoding="utf-8")
        return [json.loads(line) for line in reply.stdout.splitlines()]

    def points(self):
        return [line for line in self.dump() if line["kind"] == "point"]

    def counts(self):
        return self.dump()[-1]


def double_of(point):
    return struct.unpack(">d", bytes.fromhex(point["bits"]))[0]
