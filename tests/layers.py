#!/usr/bin/env python3
"""Holds the house together: reads the #include graph, the sizes of files, the READMEs and the
links of the docs, and fails where one breaks a rule of docs/architecture.md.

    tests/layers.py [TREE]        one line per breach; status 1 if there is any
"""

import os
import re
import sys

# Lower rooms first; rooms of one row never include each other.
ORDER = [["base"], ["net", "eventfile", "job"], ["price"], ["record"], ["link"],
         ["submit", "place", "launch", "feed", "watch", "tune"],
         ["run", "steer", "track"], ["study"], ["door"], ["serve"], ["cli"]]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
FORBIDDEN = {("run", "submit"), ("run", "place"), ("run", "launch"), ("run", "tune")}

MAX_LINES = {".cc": 800, ".h": 300}
MAX_README = 60

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
LINK = re.compile(r'\[[^\]\n]*\]\(([^)\s]+)\)')
GENERATED = {"build"}  # folders of the tree that are no sources


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def walk(tree, top, suffixes):
    for folder, folders, names in os.walk(os.path.join(tree, top)):
        folders[:] = sorted(f for f in folders if f not in GENERATED and not f.startswith("."))
        for name in sorted(names):
            if name.endswith(suffixes):
                yield os.path.relpath(os.path.join(folder, name), tree)


def room_of(path):
    """src/run/supervisor/main.cc -> run"""
    return path.split("/")[1]


def allowed_includes(tree):
    """tests/allowed_includes.txt: prefix -> places (path prefixes below src) that may use it."""
    rows = {}
    for line in read(os.path.join(tree, "tests", "allowed_includes.txt")).splitlines():
        words = line.partition("#")[0].split()
        if words:
            rows[words[0]] = words[1:]
    return rows


# C, C++ and Linux headers; what is not here is a third party's.
STANDARD_PREFIXES = ("sys/", "linux/", "net/if", "netinet/", "arpa/", "asm/", "bits/")
STANDARD_C = {"fcntl.h", "unistd.h", "poll.h", "sched.h", "pthread.h", "dirent.h", "fts.h", "pwd.h",
              "grp.h", "netdb.h", "spawn.h", "signal.h", "termios.h", "time.h", "dlfcn.h",
              "ifaddrs.h", "libgen.h", "mntent.h", "paths.h", "pty.h", "utime.h", "elf.h",
              "stdint.h", "stddef.h", "stdio.h", "stdlib.h", "string.h", "errno.h", "limits.h",
              "features.h", "getopt.h", "langinfo.h", "locale.h", "wchar.h", "cpuid.h",
              "immintrin.h", "nmmintrin.h", "x86intrin.h", "syscall.h", "ftw.h", "fts.h", "glob.h", "fnmatch.h",
              "malloc.h"}


def is_standard(name):
    if "/" not in name and not name.endswith(".h"):
        return True  # <vector>
    return name in STANDARD_C or name.startswith(STANDARD_PREFIXES)


def check_includes(tree):
    breaches, graph = [], {}
    allowed = allowed_includes(tree)
    for path in walk(tree, "src", (".h", ".cc")):
        room = room_of(path)
        below_src = path[len("src/"):]
        if room not in LEVEL:
            breaches.append("%s: room %s has no place in the order" % (path, room))
            continue
        graph[below_src] = []
        for kind, name in INCLUDE.findall(read(os.path.join(tree, path))):
            target = name.split("/")[0]
            if kind == '"':
                if "/" not in name or target not in LEVEL:
                    # A file generated in the build, or a path that is not from src/.
                    breaches.append('%s: includes "%s"; name it from src/, as "room/file.h"'
                                    % (path, name))
                    continue
                graph[below_src].append(name)
                if not os.path.exists(os.path.join(tree, "src", name)):
                    breaches.append("%s: includes %s, which is not there" % (path, name))
                if target == room:
                    continue
                if (room, target) in FORBIDDEN:
                    breaches.append("%s: %s must not include %s (%s)" % (path, room, target, name))
                elif LEVEL[target] >= LEVEL[room]:
                    why = ("they stand beside each other" if LEVEL[target] == LEVEL[room]
                           else "it stands above")
                    breaches.append("%s: %s includes %s (%s), but %s"
                                    % (path, room, target, name, why))
            elif not is_standard(name):
                breaches += check_third_party(path, below_src, name, allowed)
    return breaches + check_cycles(graph)


def check_third_party(path, below_src, name, allowed):
    if name == "nlohmann/json.hpp" and path.endswith(".h"):
        return ["%s: nlohmann/json.hpp in a header; use base/text/json.h" % path]
    for prefix, places in allowed.items():
        if name.startswith(prefix):
            for place in places:
                if place == "*" or below_src.startswith(place) or \
                        place == "tests" and re.search(r"(_test|_fuzz|test\w*)\.(cc|h)$|/testing\.h$|_testing\.h$|_conformance\.h$", below_src):
                    return []
            return ["%s: <%s> belongs to %s only" % (path, name, ", ".join(places))]
    return ["%s: <%s> is in no row of tests/allowed_includes.txt" % (path, name)]


def check_cycles(graph):
    """A header that includes itself over others."""
    breaches, state = [], {}
    for start in sorted(graph):
        stack = [(start, iter(graph[start]))]
        if state.get(start):
            continue
        state[start] = 1
        trail = [start]
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if state.get(target) == 1:
                    breaches.append("cycle: " + " -> ".join(
                        trail[trail.index(target):] + [target]))
                elif target in graph and not state.get(target):
                    state[target] = 1
                    trail.append(target)
                    stack.append((target, iter(graph[target])))
                    break
            else:
                state[node] = 2
                trail.pop()
                stack.pop()
    return breaches


def check_sizes(tree):
    breaches = []
    for path in walk(tree, "src", (".h", ".cc")):
        # A conformance suite is a header only because several tests instantiate it.
        limit = MAX_LINES[".cc" if path.endswith("_conformance.h") else os.path.splitext(path)[1]]
        lines = read(os.path.join(tree, path)).count("\n")
        if lines > limit:
            breaches.append("%s: %d lines, more than %d; it wants to be two things"
                            % (path, lines, limit))
    return breaches


def check_readmes(tree):
    breaches = []
    source = os.path.join(tree, "src")
    for room in sorted(os.listdir(source)):
        if not os.path.isfile(os.path.join(source, room, "CMakeLists.txt")):
            continue
        path = os.path.join("src", room, "README.md")
        if not os.path.exists(os.path.join(tree, path)):
            breaches.append("%s: missing" % path)
        elif read(os.path.join(tree, path)).count("\n") > MAX_README:
            breaches.append("%s: more than a page (%d lines)" % (path, MAX_README))
    return breaches


def anchors_of(text):
    """Headings as they are linked to: lower case, words joined by hyphens."""
    found = set()
    for heading in re.findall(r"^#+\s+(.*)$", text, re.M):
        plain = re.sub(r"[`*_\[\]]|\([^)]*\)", "", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def check_links(tree):
    breaches = []
    for path in walk(tree, ".", (".md",)):
        path = os.path.normpath(path)
        text = re.sub(r"```.*?```", "", read(os.path.join(tree, path)), flags=re.S)
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            full = os.path.normpath(os.path.join(tree, os.path.dirname(path), target)) \
                if target else os.path.join(tree, path)
            if not os.path.exists(full):
                breaches.append("%s: link to %s, which is not there" % (path, link))
            elif anchor and full.endswith(".md") and anchor not in anchors_of(read(full)):
                breaches.append("%s: link to %s: no such heading" % (path, link))
    return breaches


def check_rooms_in_architecture(tree):
    """docs/architecture.md links every room once it is there."""
    path = os.path.join(tree, "docs", "architecture.md")
    if not os.path.exists(path):
        return []
    text = read(path)
    return ["docs/architecture.md: no link to src/%s" % room
            for room in sorted(os.listdir(os.path.join(tree, "src")))
            if os.path.isfile(os.path.join(tree, "src", room, "CMakeLists.txt"))
            and not re.search(r"\(\.\./src/%s(/|\))" % room, text)]


# What may be written in one place only, or not at all: pattern, where it may be, what to do.
OWNED = (
    (re.compile(r"series_?(?:\.|->)(?:Append|Add|AppendFrames)\("), ("src/steer/point_intake", "src/record/"),
     "points enter the series store by steer/point_intake.h only"),
    (re.compile(r"(?:cause|wait|failure)\.kind [=!]= (?:\"|k[A-Z])"), (),
     "compare causes with Is(CauseKind::...)"),
)
FOR_TESTS = re.compile(r"(_test|_fuzz|_bench|testing)\.(cc|h)$")


def check_owned(tree):
    found = []
    for path in walk(tree, "src", (".h", ".cc")):
        if FOR_TESTS.search(path):
            continue
        text = read(os.path.join(tree, path))
        for pattern, places, advice in OWNED:
            if not path.startswith(places or ("\0",)):
                for hit in pattern.finditer(text):
                    found.append("%s:%d: %s" % (path, text.count("\n", 0, hit.start()) + 1, advice))
    return found


CHECKS = (check_owned, check_includes, check_sizes, check_readmes, check_links, check_rooms_in_architecture)


def breaches(tree):
    return [breach for check in CHECKS for breach in check(tree)]


if __name__ == "__main__":
    found = breaches(sys.argv[1] if len(sys.argv) > 1
                     else os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    print("\n".join(found) if found else "the rooms are in order")
    sys.exit(1 if found else 0)
