"""The native modules of the Python package, for every Python version that a Debian release has."""

import os
import subprocess

import sysroot

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
        subprocess.run(["ccache", "g++", "-std=c++20", "-DNDEBUG", "-fPIC", "-fvisibility=hidden",
                        "-I" + os.path.join(self.tree, "src"), *options, "-c", source, "-o", path], check=True)
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
        base = os.path.join(self.tree, "src", "base")
        tune = os.path.join(self.tree, "src", "tune")
        old = self.compile(os.path.join(self.tree, "package", "old_glibc.cc"), ["-O2"])
        crc = self.compile(os.path.join(base, "crc32c.cc"), ["-O2"])
        # As src/tune/sources.cmake has it: the same results on every machine.
        exact = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi"]
        search = [self.compile(os.path.join(tune, name),
                               exact + (["-mavx2", "-mno-fma"] if name == "lanes_avx2.cc" else []))
                  for name in sorted(os.listdir(tune))
                  if name.endswith(".cc") and not name.endswith(("_test.cc", "_fuzz.cc"))]
        search += [self.compile(os.path.join(base, name + ".cc"), exact, "-tune")
                   for name in ("crc32c", "format", "json", "result", "text", "unicode")]
        made = []
        for python, suite in PYTHONS:
            include = self.headers(python, suite)
            tag = "cpython-%s-x86_64-linux-gnu.so" % python.replace(".", "")
            sources = os.path.join(self.tree, "python", "src")
            for name, options, objects in (("core", ["-O2"], [crc]), ("tune", exact, search)):
                module = self.compile(os.path.join(sources, name + ".cc"), options + include, "-" + python)
                made.append(os.path.join(self.out, "_%s.%s" % (name, tag)))
                self.link([module, *objects, old], made[-1])
        return made
