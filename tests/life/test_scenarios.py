"""The scenarios of this folder (*.life, see README.md) on the real server: real processes, real
SIGKILL. `steer_test` runs the same files in the simulator."""

import glob
import json
import os
import re
import shutil
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness
from harness import Server, alive, kill, processes, until

MANY = 1 << 30


def milliseconds(text):
    number, unit = re.fullmatch(r"([0-9.]+)(ms|s)", text).groups()
    return int(float(number) * (1 if unit == "ms" else 1000))


class Player:
    """Plays one scenario; anything that is not as it says is an AssertionError."""

    def __init__(self, server):
        self.server = server
        self.wishes = {}   # what each job asks for, by name
        self.ids = {}
        self.notes = os.path.join(server.root, "notes")
        os.mkdir(self.notes)
        shutil.copy(os.path.join(HERE, "script.py"), server.work)

    def play(self, path):
        with open(path) as file:
            for number, line in enumerate(file, 1):
                words = line.partition("#")[0].split()
                if not words:
                    continue
                try:
                    getattr(self, "do_" + words[0])(*self.split(words[1:]))
                except (AssertionError, AttributeError, TypeError, ValueError) as error:
                    raise AssertionError("%s:%d: %s\n%s" % (
                        os.path.basename(path), number, line.strip(), error)) from error

    @staticmethod
    def split(words):
        """Plain words, and {key: value} of the others."""
        plain = [word for word in words if "=" not in word]
        return plain, dict(word.split("=", 1) for word in words if "=" in word)

    # --- what happens

    def do_job(self, plain, keys):
        self.wishes[plain[0]] = keys

    def notes_of(self, name):
        folder = os.path.join(self.notes, name)
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o777)
        return folder

    def job_file(self, name):
        wish = dict(self.wishes[name])
        take = lambda key, otherwise: wish.pop(key, otherwise)
        share = int(take("cpus", "5%").rstrip("%")) / 100
        saves = milliseconds(take("saves", "0ms"))
        arguments = [self.notes_of(name), milliseconds(take("work", "1s")), saves,
                     int(take("fails", "0")), int(take("times", MANY)),
                     int(take("fails_on", "-1")), int(take("deaf", "no") == "yes")]
        job = {"name": name, "run": "python3 script.py " + " ".join(map(str, arguments)),
               "resources": {"cpus": round(share * self.cores(), 3)}, "limits": {}}
        for key in ("nodes", "processes"):
            if key in wish:
                job["resources"][key] = int(wish.pop(key))
        spot = {}
        if take("spot", "no") == "yes":
            spot["use"] = True
        if "preempt_after" in wish:
            spot["preempt_after"] = wish.pop("preempt_after")
        if spot:
            job["resources"]["spot"] = spot
        if "max_time" in wish:
            job["limits"]["max_runtime"] = wish.pop("max_time")
        if "grace" in wish:
            job["limits"]["stop_grace"] = wish.pop("grace")
        if "priority" in wish:
            job["priority"] = int(wish.pop("priority"))
        if "retry" in wish:
            job["retry"] = {"max": int(wish.pop("retry")), "on": ["nonzero_exit"]}
        assert not wish, "job %s: nobody knows %s" % (name, ", ".join(wish))
        return job

    def cores(self):
        return len(os.sched_getaffinity(0))

    def do_submit(self, plain, keys):
        name = plain[0]
        path = os.path.join(self.server.work, name + ".yaml")
        with open(path, "w") as file:
            json.dump(self.job_file(name), file)
        flags = ["--key", keys["key"]] if "key" in keys else []
        said = self.server.ath("run", "-d", "--json", *flags, path)
        if "refused" in plain:
            assert said.returncode != 0, "it was accepted: " + said.stdout
            return
        assert said.returncode == 0, said.stdout + said.stderr
        job = json.loads(said.stdout.splitlines()[-1])["id"]
        assert self.ids.setdefault(name, job) == job, "another job: %s" % job

    def record(self, name):
        return self.server.show(self.ids[name])

    def do_wait(self, plain, keys):
        name = plain[0]
        if "attempt" in keys:
            ready = lambda r: (len(r.get("attempts", [])) == int(keys["attempt"])
                               and r["state"] == "Running")
        elif "waiting" in keys:
            ready = lambda r: r["state"] == "Queued" and r["cause"]["kind"] == keys["waiting"]
        elif plain[1] == "saved":
            until(lambda: self.server.checkpoints(self.ids[name]), "%s saved" % name)
            return
        elif plain[1] == "Running":  # its ranks, too: a record may be ahead of a script
            wanted = int(self.wishes[name].get("nodes", 1)) * int(self.wishes[name].get("processes", 1))
            until(lambda: len(os.listdir(self.notes_of(name))) >= wanted, "%s runs" % name)
            ready = lambda r: r["state"] != "Queued"
        else:
            ready = lambda r: r["state"] == plain[1] or (
                r["state"] in harness.TERMINAL and self.wrong(name, r, plain[1]))
        until(lambda: ready(self.record(name)), "%s: %s" % (" ".join(plain), keys))

    @staticmethod
    def wrong(name, record, state):
        raise AssertionError("%s is %s, not %s: %s"
                             % (name, record["state"], state, json.dumps(record.get("cause"))))

    def do_stop(self, plain, _):
        self.server.ath("stop", self.ids[plain[0]], check=0)

    def do_interrupt(self, plain, _):
        said = self.server.ath("interrupt", self.ids[plain[0]])
        assert (said.returncode != 0) == ("refused" in plain), said.stdout + said.stderr

    def do_kill(self, plain, keys):
        if plain[0] == "server":
            return self.server.kill()
        folder = self.folder_of(plain[1], keys)
        agents = until(lambda: self.agents_in(folder), "%s has an agent" % plain[1])
        for pid in agents:
            kill(pid)

    def do_start(self, _, __):
        self.server.start()

    def do_restart(self, _, __):
        self.server.kill(15)
        self.server.start()

    def folder_of(self, name, keys):
        host = int(keys.get("host", 0))
        return self.server.attempt_dir(self.ids[name]) + (".%d" % host if host else "")

    @staticmethod
    def agents_in(folder):
        """By the folder's name alone: on a machine apart its path is another one."""
        return [pid for pid, command in processes().items()
                if " agent " in command and os.path.basename(folder) in
                map(os.path.basename, command.replace("\0", " ").split())]

    def do_lose(self, plain, keys):
        """The agent first, so that nothing reports an end."""
        folder = self.folder_of(plain[0], keys)
        pids = self.agents_in(folder) + self.server.supervisor_in(folder)
        assert len(pids) == 2, "agent and supervisor of %s: %s" % (folder, pids)
        for pid in pids:
            kill(pid)
        until(lambda: not any(alive(pid) for pid in pids), "%s is gone" % folder)
        shutil.rmtree(folder)

    # --- what must be true

    def do_expect(self, plain, keys):
        name = plain[0]
        record = self.record(name)
        attempts = record.get("attempts", [])
        last = attempts[-1] if attempts else {}
        hosts = last.get("hosts", [])
        fell = last.get("fell")
        found = {
            "state": record["state"],
            "attempts": len(attempts),
            "cause": record["cause"]["kind"],
            "starts": len(os.listdir(self.notes_of(name))),
            "resumed": "yes" if last.get("resumed_from") else "no",
            "fell": "none" if fell is None else fell.get("host", 0),
            "hosts": len(hosts),
        }
        for key, value in keys.items():
            if key == "before":
                other = self.record(value)["attempts"][0]["started"]
                assert attempts[0]["started"] <= other, "%s started later" % name
            else:
                assert str(found[key]) == value, "%s is %s\n%s" % (key, found[key],
                                                                   json.dumps(record)[:3000])


class Scenarios(unittest.TestCase):
    """Each file is a case of its own, on a server of its own."""


def case(path):
    def play(self):
        with Server() as server:
            Player(server).play(path)
    with open(path) as file:
        play.__doc__ = file.readline().lstrip("# ").strip()
    return play


for _path in sorted(glob.glob(os.path.join(HERE, "*.life"))):
    setattr(Scenarios, "test_" + os.path.basename(_path)[:-5], case(_path))

if __name__ == "__main__":
    harness.main()
