"""The files of a package below its prefix, which is /usr, a virtual environment or an unpacked folder.

    bin/ath                              the program
    libexec/athanor/athanor-supervisor   started by it, once per job
    lib/athanor/python/athanor           what `import athanor` is in a job
    lib/athanor/python/site              what a job's interpreter loads at its start
    lib/athanor/sbom.spdx.json           what is inside
    lib/athanor/manifest.sha256          what `ath version --verify` compares with
"""

import hashlib
import os


def tree(root, program, supervisor, modules, sbom):
    """{path below the prefix: (bytes, mode)} of everything."""
    files = {"bin/ath": (read(program), 0o755),
             "libexec/athanor/athanor-supervisor": (read(supervisor), 0o755),
             "lib/athanor/sbom.spdx.json": (sbom.encode(), 0o644),
             "lib/athanor/LICENSE": (read(os.path.join(root, "LICENSE")), 0o644)}
    for name, data in python(root, modules).items():
        files["lib/athanor/python/athanor/" + name] = (data, 0o644)
    files["lib/athanor/python/site/sitecustomize.py"] = (
        read(os.path.join(root, "python", "site", "sitecustomize.py")), 0o644)
    manifest = "".join("%s  %s\n" % (hashlib.sha256(data).hexdigest(), path)
                       for path, (data, _) in sorted(files.items()))
    files["lib/athanor/manifest.sha256"] = (manifest.encode(), 0o644)
    return files


def python(root, modules):
    """{file name: bytes} of the Python package with its native modules."""
    folder = os.path.join(root, "python", "athanor")
    files = {name: read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".py")}
    files.update((os.path.basename(path), read(path)) for path in modules)
    return files


def read(path):
    with open(path, "rb") as file:
        return file.read()
