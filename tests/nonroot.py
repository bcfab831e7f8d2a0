"""An ordinary user, for the tier `nonroot` of ./test that root started.

The user is a real account (ssh, pip and git look it up) with a home folder, no groups but its own,
and no capability. useradd makes it the first time; it stays, as its home does, which holds the
Python environments that it shares with root's cache. What one run needs lies in a folder of its
own, which close() removes: a copy of the tree and of the program, both owned by the user as after
its own clone and build, and its temporary files. Root's clone may be where nobody else can go."""

import fcntl
import glob
import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import venvs
from cases import BUILD, PYTHON, TREE

NAME = "athanor-test"
HOME = "/var/lib/" + NAME
RUNS = "/var/tmp"  # a run's folder is RUNS/ath-user-PID-*
PROGRAM = ["athanor", "ath", "athanor-supervisor", "python", "release/tests/event_dump"]

# Files of the clients tier that do not run here, with the reason.
LEFT_OUT = {}


def account():
    """The user's entry in the password file; made if there is none."""
    try:
        found = pwd.getpwnam(NAME)
    except KeyError:
        done = subprocess.run(["/usr/sbin/useradd", "--system", "--user-group", "--create-home",
                               "--home-dir", HOME, "--shell", "/bin/bash", NAME],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError("useradd: " + done.stdout.strip())
        found = pwd.getpwnam(NAME)
    if found.pw_uid == 0 or found.pw_gid == 0:
        raise RuntimeError("the user %s is root" % NAME)
    return found


def sweep():
    """Removes the folders of runs that were killed."""
    for path in glob.glob(os.path.join(RUNS, "ath-user-*-*")):
        pid = os.path.basename(path).split("-")[2]
        if pid.isdigit() and not os.path.exists("/proc/" + pid) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)


class User:
    """Runs commands as the ordinary user, within a copy of the tree."""

    def __init__(self, tree=TREE, build=BUILD):
        entry = account()
        self.uid, self.gid, self.home = entry.pw_uid, entry.pw_gid, entry.pw_dir
        if not os.path.isdir(self.home):  # removed, or a file system that came with the account only
            os.mkdir(self.home, 0o755)
            self.give(self.home)
        sweep()
        # A short name: the path of a Unix socket may have 107 characters.
        self.root = tempfile.mkdtemp(prefix="ath-user-%d-" % os.getpid(), dir=RUNS)
        try:
            self.tree = os.path.join(self.root, "tree")
            self.build = os.path.join(self.tree, "build")
            self.tmp = os.path.join(self.root, "tmp")
            os.mkdir(self.tmp)
            copy_tree(tree, self.tree)
            copy_program(build, self.build)
            for folder, _, names in os.walk(self.root):
                self.give(folder, *(os.path.join(folder, name) for name in names))
            self.share(venvs.cache())
        except BaseException:
            self.close()
            raise

    def give(self, *paths):
        for path in paths:
            os.lchown(path, self.uid, self.gid)

    def in_tree(self, path):
        """A path of root's tree in the user's; anything else as it is."""
        return self.tree + path[len(TREE):] if path.startswith(TREE + os.sep) else path

    def command(self, command):
        return ["setpriv", "--reuid", str(self.uid), "--regid", str(self.gid), "--clear-groups",
                "--inh-caps=-all", *command]

    def environment(self):
        """What differs from root's; None is unset."""
        env = {name: None for name in os.environ
               if name.startswith(("XDG_", "SUDO_", "ATHANOR_HOME")) or name == "MAIL"}
        path = [part for part in os.environ.get("PATH", "").split(":") if open_to_all(part)]
        env.update(HOME=self.home, USER=NAME, LOGNAME=NAME, SHELL="/bin/bash", TMPDIR=self.tmp,
                   PATH=":".join(path), ATHANOR_BUILD=self.build)
        return env

    def says(self):
        """What `ath check` tells the user of isolation and limits, a line each."""
        done = subprocess.run(self.command([os.path.join(self.build, "ath"), "check", "--json"]),
                              env={"HOME": self.home, "ATHANOR_HOME": os.path.join(self.tmp, "check")},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/")
        try:
            return ["ath check: %s: %s" % (one["check"], one["text"])
                    for one in json.loads(done.stdout)["checks"]
                    if one["check"] in ("isolation", "limits")]
        except (ValueError, KeyError):
            return ["ath check: status %d: %s" % (done.returncode, done.stdout[-300:])]

    def share(self, cache):
        """Puts root's complete Python environments into the user's cache, where venvs.py looks for
        them. Files are hard links where they can be: they stay root's, and the user reads them."""
        mine = os.path.join(self.home, ".cache", "athanor-tests")
        for folder in (os.path.dirname(mine), mine):
            if not os.path.isdir(folder):
                os.mkdir(folder)
                self.give(folder)
        for name in sorted(os.listdir(cache) if os.path.isdir(cache) else []):
            if not re.fullmatch(r"[0-9a-f]{16}|mlflow-tests-[0-9.]+", name):
                continue
            source, target = os.path.join(cache, name), os.path.join(mine, name)
            if not os.path.exists(os.path.join(source, "complete")):
                continue
            with open(target + ".lock", "a") as lock:
                self.give(target + ".lock")
                fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.exists(os.path.join(target, "complete")):
                    continue
                shutil.rmtree(target, ignore_errors=True)  # half made, by the user
                share_folder(source, target)

    def close(self):
        """Ends what still runs out of this run's folder and removes it."""
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                if os.stat("/proc/%d" % pid).st_uid != self.uid:
                    continue
                with open("/proc/%d/environ" % pid, "rb") as file:
                    if self.root.encode() in file.read():
                        os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.root, ignore_errors=True)


def open_to_all(path):
    """Whether any user can go there: every folder on the way lets others in."""
    path = os.path.realpath(path)
    while True:
        try:
            if not os.stat(path).st_mode & stat.S_IXOTH:
                return False
        except OSError:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def copy_tree(tree, target):
    """What git knows of the tree, and what it would let one add."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", tree, "ls-files", "-z",
                             "--cached", "--others", "--exclude-standard"], check=True,
                            stdout=subprocess.PIPE).stdout.decode()
    for name in set(listed.split("\0")) - {""}:
        source, path = os.path.join(tree, name), os.path.join(target, name)
        if os.path.lexists(source):  # not removed, to be committed later
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy2(source, path, follow_symlinks=False)


def copy_program(build, target):
    for name in PROGRAM:
        source, path = os.path.join(build, name), os.path.join(target, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, path, symlinks=True)
        elif os.path.exists(source):
            shutil.copy2(source, path)


def share_folder(source, target):
    """The same folder elsewhere, for everyone to read. A virtual environment finds itself by where
    it lies, but its programs name their interpreter: those that do are written anew."""
    part = target + ".part"
    shutil.rmtree(part, ignore_errors=True)
    for folder, subfolders, names in os.walk(source):
        there = part + folder[len(source):]
        os.mkdir(there)
        os.chmod(there, 0o755)
        names += [name for name in subfolders if os.path.islink(os.path.join(folder, name))]
        for name in names:
            share_file(os.path.join(folder, name), os.path.join(there, name),
                       (source, target) if folder == os.path.join(source, "bin") else None)
    os.rename(part, target)


def share_file(source, target, renamed=None):
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    mode = os.stat(source).st_mode
    for_all = mode & 0o777 | 0o444 | (0o111 if mode & 0o100 else 0)
    if renamed:
        with open(source, "rb") as file:
            text = file.read()
        old, new = map(os.fsencode, renamed)
        if old in text:
            with open(target, "wb") as file:
                file.write(text.replace(old, new))
            os.chmod(target, for_all)
            return
    if mode & 0o777 == for_all:
        try:
            os.link(source, target)
            return
        except OSError:  # another file system, or one without links
            pass
    shutil.copy2(source, target)
    os.chmod(target, for_all)


def update_screens():
    """For golden/update: writes what the user sees otherwise than root into root's tree."""
    user = User(build=os.environ.get("ATHANOR_BUILD") or BUILD)
    try:
        env = dict(os.environ, **user.environment(), ATHANOR_GOLDEN_UPDATE="user")
        subprocess.run(user.command([PYTHON, "-B", os.path.join(user.tree, "tests", "golden",
                                                                "test_golden.py")]),
                       cwd=user.tree, check=True,
                       env={name: value for name, value in env.items() if value is not None})
        screens = os.path.join("tests", "golden", "screens")
        for path in glob.glob(os.path.join(user.tree, screens, "*.user.txt")):
            shutil.copyfile(path, os.path.join(TREE, screens, os.path.basename(path)))
    finally:
        user.close()


if __name__ == "__main__":
    if sys.argv[1:] != ["screens"]:
        sys.exit("usage: nonroot.py screens")
    update_screens()
