"""Reads the #include graph and the sizes of files: the house rules that a compiler does not check.

Run: python3 tests/layers.py [ROOT]; prints what is wrong, one line each, and "N passed, N failed".
"""

import os
import re
import sys

# Each row may include the rows above it; rooms of one row never include each other.
LAYERS = [
    ["base"],
    ["net", "job"],
    ["price"],
    ["record"],
    ["link"],
    ["submit", "place", "launch", "feed", "watch", "tune"],
    ["run", "steer", "track"],
    ["study"],
    ["door"],
    ["cli"],
]
FORBIDDEN = {"run": {"submit", "place", "launch", "tune"}}

# Third-party headers and the rooms that may include them (docs/dependencies.md).
# "*.cc" allows any source file, but no header.
THIRD_PARTY = {
    "boost/": {"net"},
    "yaml-cpp/": {"submit"},
    "CLI/": {"cli"},
    "re2/": {"watch", "submit", "cli"},
    "sqlite3.h": {"record"},
    "archive.h": {"base"},
    "archive_entry.h": {"base"},
    "openssl/": {"base", "record", "net", "door"},
    "nlohmann/json.hpp": {"*.cc"},
    "fmt/": {"base"},
    "gtest/": {"*.cc", "*_test"},
    "pybind11/": set(),
    "tl/expected.hpp": {"base"},
    "nlohmann/json_fwd.hpp": {"base"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)


def level(room):
    for index, row in enumerate(LAYERS):
        if room in row:
            return index
    return None


def sources(root):
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in sorted(names):
            if name.endswith((".cc", ".h")):
                yield os.path.relpath(os.path.join(folder, name), os.path.join(root, "src"))


def may_include(room, other):
    if room == other:
        return True
    if other in FORBIDDEN.get(room, ()):
        return False
    return level(other) < level(room)


def third_party_problem(path, header):
    room = path.split("/")[0]
    is_test = path.endswith(("_test.cc", "_fuzz.cc", "testing.h")) or "test" in os.path.basename(path)
    for prefix, allowed in THIRD_PARTY.items():
        if not header.startswith(prefix):
            continue
        if room in allowed or is_test or ("*.cc" in allowed and path.endswith(".cc")):
            return None
        return f"src/{path}: <{header}> may be included by {', '.join(sorted(allowed)) or 'nobody here'} only"
    return None


def include_problems(root):
    problems = []
    for path in sources(root):
        room = path.split("/")[0]
        if level(room) is None:
            problems.append(f"src/{path}: room \"{room}\" is in no layer")
            continue
        with open(os.path.join(root, "src", path), encoding="utf-8") as file:
            text = file.read()
        for kind, header in INCLUDE.findall(text):
            other = header.split("/")[0]
            if kind == '"' and "/" in header:
                if level(other) is None:
                    problems.append(f"src/{path}: includes \"{header}\", which is in no room")
                elif not may_include(room, other):
                    problems.append(f"src/{path}: {room} must not include {other} (\"{header}\")")
            elif kind == "<":
                problem = third_party_problem(path, header)
                if problem:
                    problems.append(problem)
    return problems


def size_problems(root):
    problems = []
    for path in sources(root):
        with open(os.path.join(root, "src", path), encoding="utf-8") as file:
            lines = sum(1 for _ in file)
        limit = 300 if path.endswith(".h") else 800
        if lines > limit:
            problems.append(f"src/{path}: {lines} lines, {limit} at most: it wants to be two things")
    return problems


def readme_problems(root):
    problems = []
    for room in sorted(os.listdir(os.path.join(root, "src"))):
        folder = os.path.join(root, "src", room)
        if not os.path.exists(os.path.join(folder, "CMakeLists.txt")):
            continue
        readme = os.path.join(folder, "README.md")
        if not os.path.exists(readme):
            problems.append(f"src/{room}: no README.md")
            continue
        with open(readme, encoding="utf-8") as file:
            if sum(1 for _ in file) > 80:
                problems.append(f"src/{room}/README.md: more than a page")
    return problems


def link_problems(root):
    problems = []
    pages = ["README.md", "CHANGELOG.md"]
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        pages += [os.path.relpath(os.path.join(folder, n), root) for n in names if n.endswith(".md")]
    for page in pages:
        with open(os.path.join(root, page), encoding="utf-8") as file:
            text = file.read()
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            if not os.path.exists(os.path.join(root, os.path.dirname(page), target)):
                problems.append(f"{page}: link to {target} leads nowhere")
    return problems


def planted_problem_is_found(root):
    """The checks themselves: a planted bad include must be seen."""
    return (
        not may_include("base", "job")
        and not may_include("run", "submit")
        and not may_include("place", "launch")
        and may_include("cli", "base")
        and third_party_problem("job/x.h", "nlohmann/json.hpp") is not None
        and third_party_problem("job/x.cc", "nlohmann/json.hpp") is None
        and third_party_problem("job/x.cc", "boost/asio.hpp") is not None
    )


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    failed = 0
    checks = [include_problems, size_problems, readme_problems, link_problems]
    for check in checks:
        problems = check(root)
        failed += bool(problems)
        for problem in problems:
            print(problem)
    if not planted_problem_is_found(root):
        failed += 1
        print("tests/layers.py itself: a planted bad include was not seen")
    print(f"{len(checks) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
