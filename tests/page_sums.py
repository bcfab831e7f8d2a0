"""Sums of a store's pages (src/record/db/page_check.h), for tests and benches that write to a
SQLite file with another program than ours, which leaves the old sums."""

import struct

MARK = 0x31637441
_TABLE = []
for _byte in range(256):
    _value = _byte
    for _ in range(8):
        _value = _value >> 1 ^ (0x82F63B78 if _value & 1 else 0)
    _TABLE.append(_value)


def crc32c(data):
    value = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def has_sums(path):
    with open(path, "rb") as file:
        header = file.read(100)
    return len(header) == 100 and (header[20] == 8 or header[68:72] == b"Athc")


def restamp(path):
    """Gives every page the sum of what is on it. Nobody may have the file open, and its log must
    be in it (the last to close it does that)."""
    if not has_sums(path):
        return
    with open(path, "r+b") as file:
        size = struct.unpack(">H", file.read(18)[16:])[0]
        number = 1
        while True:
            file.seek((number - 1) * size)
            page = file.read(size)
            if len(page) < size:
                return
            body = page[:-8]
            end = struct.pack("<II", crc32c(struct.pack("<I", number) + body), MARK)
            if page[-8:] != end:
                file.seek((number - 1) * size)
                file.write(body + end)
            number += 1
