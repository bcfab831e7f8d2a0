"""The native modules of the Python package, for every Python version that a Debian release has."""

import os
import subprocess
import sys

import sysroot

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
import native_modules  # noqa: E402

# Others use the pure-Python writer, and have no athanor.tune.
PYTHONS = [("3.9", "bullseye"), ("3.11", "bookworm"), ("3.13", "trixie")]
PYBIND = "pybind11==2.13.6"  # Debian 12's does not know Python 3.13
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def pybind(cache):
    """The folder with pybind11's headers."""
    folder = os.path.join(cache, PYBIND)
    if not os.path.isdir(folder):
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--disable-pip-version-check",
                        "--root-user-action=ignore", "--target", folder, PYBIND], check=True)
    return os.path.join(folder, "pybind11", "include")


class Builder:
    def __init__(self, tree, cache, glibc, out):
        self.tree, self.cache, self.glibc, self.out = tree, cache, glibc, out
        self.objects = os.path.join(out, "objects")
        os.makedirs(self.objects, exist_ok=True)

    def compile(self, source, options, suffix=""):
        name = os.path.relpath(source, self.tree).replace("/", "_") + suffix + ".o"
        path = os.path.join(self.objects, name)
        subprocess.run(["ccache", "g++", *native_modules.FLAGS, *options, "-c", source, "-o", path], check=True)
        return path

    def link(self, objects, output):
        exports = os.path.join(self.objects, "exports")
        with open(exports, "w") as file:
            file.write("{ global: PyInit_*; local: *; };\n")
        libraries = os.path.join(self.glibc, LIBRARIES)
        subprocess.run(["g++", "-shared", *objects, "-o", output, "-static-libstdc++", "-static-libgcc",
                        "--sysroot=" + self.glibc, "-B" + libraries, "-L" + libraries,
                        "-L" + os.path.join(self.glibc, "lib/x86_64-linux-gnu"), "-lpthread", "-ldl",
                        "-Wl,--version-script=" + exports, "-Wl,-s"], check=True)

    def headers(self, python, suite):
        """The options that find one version's headers."""
        folder = os.path.join(self.cache, "python" + python)
        sysroot.unpack(suite, ["libpython%s-dev" % python], folder)
        return ["-isystem", pybind(self.cache), "-isystem", os.path.join(folder, "usr/include/python" + python),
                "-isystem", os.path.join(folder, "usr/include")]

    def build(self):
        """The paths of all modules."""
        old = self.compile(os.path.join(self.tree, "package", "old_glibc.cc"), ["-O2"])
        made = []
        for name, files in native_modules.modules().items():
            # The first is compiled for each version, the others know nothing of Python.
            own, options = files[0]
            objects = [self.compile(path, each, name) for path, each in files[1:]]
            for python, suite in PYTHONS:
                module = self.compile(own, options + self.headers(python, suite), "-" + python)
                made.append(os.path.join(self.out, "%s.cpython-%s-x86_64-linux-gnu.so" % (name, python.replace(".", ""))))
                self.link([module, *objects, old], made[-1])
        return made
