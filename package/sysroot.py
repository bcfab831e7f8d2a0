"""Files of other Debian releases, taken from the mirror that this machine uses and checked by its keys."""

import os
import shutil
import subprocess

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def mirror():
    """The address of the mirror that apt has packages from."""
    found = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
                           check=True, capture_output=True, text=True).stdout.split()
    for address in found:
        if "security" not in address:
            return address
    raise SystemExit("error: apt has no package mirror\n  next: apt-get update")


def unpack(suite, packages, folder):
    """Puts the files of a release's packages into a folder; does nothing if they are there."""
    done = os.path.join(folder, ".complete")
    if os.path.exists(done):
        return
    shutil.rmtree(folder, ignore_errors=True)
    state = folder + ".apt"
    for part in ("lists/partial", "cache/archives/partial", "debs"):
        os.makedirs(os.path.join(state, part), exist_ok=True)
    with open(os.path.join(state, "sources.list"), "w") as file:
        file.write("deb [signed-by=%s] %s %s main\n" % (KEYS, mirror(), suite))
    with open(os.path.join(state, "status"), "w"):
        pass
    options = {"Dir::Etc::SourceList": state + "/sources.list", "Dir::Etc::SourceParts": "/dev/null",
               "Dir::State": state, "Dir::State::status": state + "/status", "Dir::Cache": state + "/cache",
               "APT::Sandbox::User": "root", "Acquire::Languages": "none",
               "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
               "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false"}
    apt = ["apt-get", "-qq"] + [word for key, value in options.items() for word in ("-o", key + "=" + value)]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *packages], check=True, cwd=state + "/debs")
    for name in sorted(os.listdir(state + "/debs")):
        subprocess.run(["dpkg-deb", "-x", os.path.join(state, "debs", name), folder], check=True)
    shutil.rmtree(state)
    within(folder)
    with open(done, "w"):
        pass


def within(folder):
    """Turns links to the root of a machine into links inside the folder."""
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            link = os.path.join(where, name)
            if os.path.islink(link) and os.readlink(link).startswith("/"):
                target = os.path.relpath(folder + os.readlink(link), where)
                os.remove(link)
                os.symlink(target, link)
