"""What is inside a package: an SPDX 2.3 list of the libraries that are linked or copied into it."""

import json
import os
import subprocess

# Debian's packages: linked statically, or used as headers only.
DEBIAN = {"libssl-dev": "Apache-2.0", "libsqlite3-dev": "blessing", "libre2-dev": "BSD-3-Clause",
          "libyaml-cpp-dev": "MIT", "libarchive-dev": "BSD-2-Clause", "zlib1g-dev": "Zlib",
          "libzstd-dev": "BSD-3-Clause", "libstdc++-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
          "libgcc-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1", "libc6-dev": "LGPL-2.1-or-later",
          "libboost1.74-dev": "BSL-1.0", "nlohmann-json3-dev": "MIT", "libfmt-dev": "MIT",
          "libcli11-dev": "BSD-3-Clause", "libexpected-dev": "CC0-1.0"}


def debian():
    for name, license_ in sorted(DEBIAN.items()):
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True)
        if found.returncode != 0:
            raise SystemExit("error: %s is in the list of what is inside, but not installed here\n"
                             "  next: tools/install_packages" % name)
        yield name, found.stdout, license_, "pkg:deb/debian/%s@%s?arch=amd64" % (name, found.stdout)


def page(tree):
    """What the page is built from and contains: the lock file's packages that are not for building."""
    with open(os.path.join(tree, "web", "package-lock.json"), encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    for path, entry in sorted(packages.items()):
        if path and not entry.get("dev"):
            name = path.split("node_modules/")[-1]
            yield name, entry["version"], entry.get("license", "NOASSERTION"), \
                "pkg:npm/%s@%s" % (name.replace("@", "%40"), entry["version"])


def document(tree, version, pybind):
    parts = [*debian(), *page(tree)]
    name, number = pybind.split("==")
    parts.append((name, number, "BSD-3-Clause", "pkg:pypi/%s@%s" % (name, number)))
    packages = [{"SPDXID": "SPDXRef-athanor", "name": "athanor", "versionInfo": version,
                 "licenseDeclared": "Apache-2.0", "downloadLocation": "NOASSERTION", "filesAnalyzed": False}]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": "SPDXRef-athanor"}]
    for number, (name, found, license_, url) in enumerate(parts):
        identity = "SPDXRef-part-%d" % number
        packages.append({"SPDXID": identity, "name": name, "versionInfo": found, "licenseDeclared": license_,
                         "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                           "referenceLocator": url}]})
        relations.append({"spdxElementId": "SPDXRef-athanor", "relationshipType": "CONTAINS",
                          "relatedSpdxElement": identity})
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": "athanor-" + version, "documentNamespace": "https://athanor.invalid/sbom/" + version,
        "creationInfo": {"created": "1980-01-01T00:00:00Z", "creators": ["Tool: athanor-package"]},
        "packages": packages, "relationships": relations}, indent=1) + "\n"
