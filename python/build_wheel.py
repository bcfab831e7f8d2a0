"""The PEP 517 backend: packs the package into a wheel, with the native core if it compiles.

By hand, since setuptools builds wheels only with the `wheel` package, which a Debian virtual
environment lacks, and any other backend must be downloaded first. Without a compiler, Python's or
pybind11's headers, or the project's src/ beside this folder, the wheel is pure Python.
"""

import base64
import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

import native_modules

HERE = os.path.dirname(os.path.abspath(__file__))
NAME, VERSION = "athanor", "0.1.0"
INFO = "%s-%s.dist-info" % (NAME, VERSION)
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same sources give the same wheel


def _include_dirs():
    dirs = [sysconfig.get_paths()["include"]]
    try:
        import pybind11
        dirs.append(pybind11.get_include())
    except ImportError:
        pass  # Debian has it in /usr/include
    return dirs


def _compile(name, folder, without):
    """The path of a native module, or None; `without` says what the package then does."""
    output = os.path.join(folder, name + sysconfig.get_config_var("EXT_SUFFIX"))
    compiler = shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")
    flags = [*native_modules.FLAGS, *("-I" + path for path in _include_dirs())]
    try:
        objects = []
        for path, options in native_modules.modules()[name]:
            objects.append(os.path.join(folder, "%s-%d.o" % (name, len(objects))))
            subprocess.run([*compiler, *flags, *options, "-c", path, "-o", objects[-1]],
                           check=True, stdin=subprocess.DEVNULL)
        subprocess.run([*compiler, "-shared", *objects, "-o", output, "-Wl,-s"], check=True,
                       stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        print("%s was not built (%s); %s" % (name, error, without), file=sys.stderr)
        return None
    return output


def _metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return ("Metadata-Version: 2.1\nName: %s\nVersion: %s\n"
            "Summary: Log metrics from, and launch, training jobs run by Athanor\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\n"
            "Description-Content-Type: text/markdown\n\n%s" % (NAME, VERSION, readme))


def _tag(native):
    if not native:
        return "py3-none-any"
    python = "cp%d%d" % sys.version_info[:2]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return "%s-%s-%s" % (python, python, platform)


class _Wheel:
    def __init__(self, path):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data):
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.file.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))

    def close(self):
        name = INFO + "/RECORD"
        self.file.writestr(zipfile.ZipInfo(name, EPOCH), "".join(self.record) + name + ",,\n")
        self.file.close()


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        core = _compile("_core", folder, "the package will use pure Python")
        tune = _compile("_tune", folder, "athanor.tune will be missing") if core else None
        cores = [path for path in (core, tune) if path]
        tag = _tag(core is not None)
        name = "%s-%s-%s.whl" % (NAME, VERSION, tag)
        wheel = _Wheel(os.path.join(wheel_directory, name))
        package = os.path.join(HERE, NAME)
        for module in sorted(os.listdir(package)):
            if module.endswith(".py"):
                wheel.add("%s/%s" % (NAME, module), _read(os.path.join(package, module)))
        for path in cores:
            wheel.add("%s/%s" % (NAME, os.path.basename(path)), _read(path))
        wheel.add(INFO + "/METADATA", _metadata().encode())
        wheel.add(INFO + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: athanor\n"
                                    "Root-Is-Purelib: %s\nTag: %s\n"
                                    % ("false" if core else "true", tag)).encode())
        wheel.close()
        return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("install from the source tree: pip install ./python")
