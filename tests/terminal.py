"""A terminal for programs under test: a pseudo-terminal to run them in, and the screen that a
reader would see. It knows what `ath` uses: carriage return, colors, erase line, cursor up."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

CODE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07")


class Screen:
    """What is on the screen. Each line is a list of [character, style]; a style is a tuple of SGR
    codes, such as ("1", "32")."""

    def __init__(self, columns=100):
        self.columns = columns
        self.lines = [[]]
        self.row = self.column = 0
        self.style = ()
        self.rest = ""

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                found = CODE.match(text, at)
                if not found:  # the rest of it comes later
                    self.rest = text[at:]
                    return
                self.code(*found.groups())
                at = found.end()
                continue
            at += 1
            if c == "\n":
                self.down()
            elif c == "\r":
                self.column = 0
            elif c >= " ":
                self.put(c)

    def down(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def put(self, c):
        if self.column == self.columns:
            self.column = 0
            self.down()
        line = self.lines[self.row]
        while len(line) <= self.column:
            line.append([" ", ()])
        line[self.column] = [c, self.style]
        self.column += 1

    def code(self, values, letter):
        if letter == "m":
            for value in (values or "0").split(";"):
                self.style = () if value in ("", "0") else (*self.style, value)
        elif letter == "A":
            self.row = max(0, self.row - int(values or 1))
        elif letter == "K":
            line = self.lines[self.row]
            del line[0 if values == "2" else self.column:]
            if values == "2" and self.column:
                line.extend([" ", ()] for _ in range(self.column))

    def text(self):
        """Its lines, without spaces at their ends."""
        return ["".join(c for c, _ in line).rstrip() for line in self.lines]


def record(command, *, columns=100, rows=50, patience=None, **more):
    """Runs a command with a terminal for stdout and stderr: its status, and what it wrote as
    [(seconds since the start, text)]."""
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=its, stderr=its, **more)
    os.close(its)
    decoder, written = codecs.getincrementaldecoder("utf-8")("replace"), []
    try:
        while True:
            ready, _, _ = select.select([mine], [], [], 0.1)
            passed = time.monotonic() - began
            if ready:
                try:
                    read = os.read(mine, 65536)
                except OSError:  # nobody has it open any more
                    break
                if not read:
                    break
                written.append((passed, decoder.decode(read)))
            elif process.poll() is not None:
                break  # a process that it left behind may still hold the terminal
            if patience and passed > patience:
                process.kill()
                raise AssertionError("%s did not end:\n%s" % (
                    str(command)[-500:], "".join(text for _, text in written)[-4000:]))
    finally:
        os.close(mine)
    return process.wait(), written
