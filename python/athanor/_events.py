"""The bytes of TensorBoard's event files: protobuf fields, Events and Summaries, record frames.
Standard library only; the checksum is the native core's where there is one."""

import os
import struct
import zlib

FLOAT, DOUBLE, STRING = 1, 2, 7  # TensorFlow's DataType


def _table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def crc32c_portable(data):
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _native_crc():
    if os.environ.get("ATHANOR_PURE", "") not in ("", "0"):
        return crc32c_portable
    try:
        from . import _core
        return _core.crc32c
    except Exception:
        return crc32c_portable


crc32c = _native_crc()


def masked_crc(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(payload):
    head = struct.pack("<Q", len(payload))
    return b"".join((head, struct.pack("<I", masked_crc(head)), payload,
                     struct.pack("<I", masked_crc(payload))))


# --- protobuf

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number, value):
    return varint(number << 3) + varint(int(value))


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def float32(number, value):
    return varint(number << 3 | 5) + pack_floats((value,))


def text(number, value):
    data = value if isinstance(value, (bytes, bytearray)) else str(value).encode("utf-8", "replace")
    return varint(number << 3 | 2) + varint(len(data)) + bytes(data)


def pack_floats(values):
    """As float32; what is too large for one is an infinity, as numpy has it."""
    try:
        return struct.pack("<%df" % len(values), *values)
    except OverflowError:
        return b"".join(_one_float(value) for value in values)


def _one_float(value):
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


# --- messages

def tensor(dtype, shape, values):
    dims = b"".join(text(2, integer(1, size)) for size in shape)
    out = integer(1, dtype) + text(2, dims)
    if dtype == STRING:
        return out + b"".join(text(8, value) for value in values)
    if dtype == DOUBLE:
        return out + text(6, struct.pack("<%dd" % len(values), *values))
    return out + text(5, pack_floats(values))


def metadata(plugin, content, data_class, description=""):
    data = text(1, plugin) + (text(2, content) if content else b"")
    out = text(1, data)
    if description:
        out += text(3, description)
    return out + integer(4, data_class)


def event(wall_time, step, field, body):
    out = double(1, wall_time)
    if step:
        out += integer(2, step)
    return record(out + text(field, body))


# --- pictures and sound

def png(width, height, channels, rows):
    """A PNG of 8-bit rows: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA."""
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]

    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data
                + struct.pack(">I", zlib.crc32(name + data) & 0xFFFFFFFF))

    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw, 6)) + chunk(b"IEND", b""))


def wav(samples, rate):
    """16-bit mono from numbers in [-1, 1]."""
    clipped = (max(-1.0, min(1.0, float(sample))) for sample in samples)
    data = b"".join(struct.pack("<h", int(round(32767 * sample))) for sample in clipped)
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
            + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data" + struct.pack("<I", len(data)) + data)
