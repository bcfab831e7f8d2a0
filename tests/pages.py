"""Compares the pages of docs/ that are made from tables with what the program prints.

`python3 tests/pages.py --write` brings them up to date.
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(os.environ.get("ATHANOR_BUILD", os.path.join(ROOT, "build")), "athanor")


def made(page):
    return subprocess.run([PROGRAM, "docs", page], check=True, capture_output=True, text=True).stdout


def whole(path, text):
    return path, text


def part(path, start, end, text):
    with open(os.path.join(ROOT, path)) as file:
        page = file.read()
    before, rest = page.split(start, 1)
    return path, before + start + text + rest[rest.index(end):]


def main():
    pages = [
        whole("docs/errors.md", made("errors")),
        whole("docs/job-file.md", made("job-file")),
        whole("docs/settings.md", made("settings")),
        part("docs/architecture.md", "compares it with this page.\n\n", "\n\"Stopping\"", made("states")),
    ]
    failed = 0
    for path, text in pages:
        full = os.path.join(ROOT, path)
        if "--write" in sys.argv:
            with open(full, "w") as file:
                file.write(text)
            continue
        current = open(full).read() if os.path.exists(full) else ""
        if current != text:
            failed += 1
            print(f"{path} is not what the program says: python3 tests/pages.py --write")
    print(f"{len(pages) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
