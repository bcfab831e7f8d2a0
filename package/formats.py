"""Writes the files of a package as a wheel, a .deb and a tarball. The same files give the same bytes."""

import base64
import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
import zipfile

EPOCH = (1980, 1, 1, 0, 0, 0)
SUMMARY = "Managed training jobs on your own machines"
# Any Linux on x86-64 with glibc 2.31 or newer; each Python finds its own native module.
TAG = "py3-none-manylinux_2_31_x86_64"


def wheel(out, version, files, python, readme):
    """`pip install` puts data/ below the environment and scripts/ into its bin/."""
    data = "athanor-%s.data" % version
    info = "athanor-%s.dist-info" % version
    path = os.path.join(out, "athanor-%s-%s.whl" % (version, TAG))
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, content, mode=0o644):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))

        for name, content in python.items():
            add("athanor/" + name, content)
        for name, (content, mode) in files.items():
            place = "scripts/ath" if name == "bin/ath" else "data/" + name
            add("%s/%s" % (data, place), content, mode)
        add(info + "/METADATA", (
            "Metadata-Version: 2.1\nName: athanor\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n%s" % (version, SUMMARY, readme)).encode())
        add(info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: athanor-package\nRoot-Is-Purelib: false\n"
                              "Tag: %s\n" % TAG).encode())
        archive.writestr(zipfile.ZipInfo(info + "/RECORD", EPOCH), "".join(record) + info + "/RECORD,,\n")
    return path


def tarball(out, version, files, extra):
    """Unpack it anywhere and run bin/ath."""
    name = "athanor-%s-linux-x86_64" % version
    path = os.path.join(out, name + ".tar.gz")
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for place, (content, mode) in sorted({**files, **extra}.items()):
            entry = tarfile.TarInfo(name + "/" + place)
            entry.size, entry.mode, entry.mtime = len(content), mode, 0
            archive.addfile(entry, io.BytesIO(content))
    packed = subprocess.run(["gzip", "-9n"], input=plain.getvalue(), check=True, capture_output=True).stdout
    with open(path, "wb") as file:
        file.write(packed)
    return path


def deb(out, version, files, units):
    path = os.path.join(out, "athanor_%s_amd64.deb" % version)
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        for place, (content, mode) in {**{"usr/" + name: file for name, file in files.items()}, **units}.items():
            put(os.path.join(root, place), content, mode)
        modules = os.path.join(root, "usr/lib/python3/dist-packages")
        os.makedirs(modules)
        os.symlink("../../athanor/python/athanor", os.path.join(modules, "athanor"))
        size = sum(len(content) for content, _ in files.values()) // 1024
        put(os.path.join(root, "DEBIAN/control"), (
            "Package: athanor\nVersion: %s\nArchitecture: amd64\nMaintainer: The Athanor authors <athanor@localhost>\n"
            "Installed-Size: %d\nDepends: libc6 (>= 2.31)\nRecommends: python3\nSection: science\nPriority: optional\n"
            "Description: %s\n Runs training scripts as jobs: queues them, records metrics, resumes them from\n"
            " checkpoints, tunes them and says why they failed. One program, no account.\n"
            % (version, size, SUMMARY)).encode(), 0o644)
        # The system unit runs as a user of its own; without systemd there is nothing to do.
        put(os.path.join(root, "DEBIAN/postinst"), (
            "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then\n"
            "  systemd-sysusers athanor.conf\n  systemctl daemon-reload\nfi\n").encode(), 0o755)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Zxz", root, path], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": "315532800"})
    return path


def put(path, content, mode):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
