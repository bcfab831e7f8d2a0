"""Packs the built page for the program: pack_page.py DIST PACK. The form is described in
src/door/page/page_pack.h. Files are given both as they are and, where that is worth it, gzipped,
so that nothing is packed while it is served."""

import gzip
import hashlib
import os
import sys


def files(folder):
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            full = os.path.join(path, name)
            yield os.path.relpath(full, folder), open(full, "rb").read()


def main():
    dist, pack = sys.argv[1:]
    head, bodies = ["athanor page 1"], []
    for name, data in files(dist):
        if " " in name or "\n" in name:
            sys.exit("a file of the page has a space in its name: %r" % name)
        packed = gzip.compress(data, 9, mtime=0)
        if len(packed) > 0.9 * len(data):
            packed = b""
        head.append("%s %d %d %s" % (name, len(data), len(packed),
                                     hashlib.sha256(data).hexdigest()[:32]))
        bodies += [data, packed]
    if not any(line.startswith("index.html ") for line in head):
        sys.exit("the page has no index.html")
    text = ("\n".join(head) + "\n\n").encode() + b"".join(bodies)
    if os.path.exists(pack) and open(pack, "rb").read() == text:
        return
    with open(pack + ".new", "wb") as file:
        file.write(text)
    os.replace(pack + ".new", pack)


if __name__ == "__main__":
    main()
