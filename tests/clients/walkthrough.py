"""Runs a page of documentation as its reader would: every file is saved and every command typed,
in order, in one shell, in an empty folder of an empty home. What the page shows as output must be
what the program prints, line by line, apart from names, ids, numbers and times.

    ```console         lines with "$ " are typed; the others are their output
    ```sh              every line is typed; no output is shown
    ```python, ```yaml a file, if the paragraph before says: Save this as `NAME`
"""

import contextlib
import os
import re

import harness
import terminal

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SAVE = re.compile(r"\b[Ss]ave (?:this|it) as `([^`]+)`")
MARK = re.compile("\x1e(\\d+) (\\d+)\x1e\r\n")  # after each command: its number and its status
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
UNIT = r"(?:ms|s|m|h|d|B|KiB|MiB|GiB)\b"


class Block:
    """One fenced block: its language, its text, and the paragraph before it."""

    def __init__(self, text, match):
        self.language, self.text = match.groups()
        self.span = match.span(2)
        self.before = text[:match.start()].rstrip().rpartition("\n\n")[2]

    @property
    def file(self):
        found = SAVE.search(self.before)
        return found.group(1) if found and self.language in ("python", "yaml") else None

    def commands(self):
        """[(command, the output that is shown)]; a line that ends with \\ goes on."""
        found = []
        for line in self.text.splitlines():
            goes_on = found and not found[-1][1] and found[-1][0].endswith("\\")
            if goes_on:
                found[-1][0] += "\n" + line
            elif self.language == "sh":
                if line.strip() and not line.startswith("#"):
                    found.append([line, []])
            elif line.startswith("$ "):
                found.append([line[2:], []])
            elif found:
                found[-1][1].append(line)
        return [(command, [line for line in shown if line.strip()]) for command, shown in found]


def blocks(text):
    return [Block(text, match) for match in FENCE.finditer(text)]


def plain(line):
    """A line without what differs from one run to the next."""
    line = re.sub(r"\b[0-9a-z]{26}\b|\b[0-9a-f]{32}\b", "ID", line)
    line = re.sub(r"(?<![\w.-])[0-9a-hjkmnp-tv-z]{6}(?![\w.-])", "ID", line)  # words too, on both sides
    line = re.sub(r"\b[a-z]{2,9}-[a-z]{2,9}(-\d+)?\b", "NAME", line)
    line = re.sub(r"[▁▂▃▄▅▆▇█]+", "~", line)
    line = re.sub(NUMBER, "0", line)
    line = re.sub(r"0 ?%s( 0 ?%s)*" % (UNIT, UNIT), "0 U", line)
    line = re.sub(r"0-0-0(T0:0:0Z?)?|0:0:0", "0", line)
    line = re.sub(r" - ", " 0 U ", line)  # a time that is not known yet
    return re.sub(r"\s+", " ", line).strip()


class Walk:
    """A page, run once. `instead` maps a command of the page to the one that is run for it;
    `fails` maps a command to the status that it ends with on purpose."""

    def __init__(self, path, *, instead=None, fails=None, path_first=(), environment=None):
        with open(path) as file:
            self.text = file.read()
        self.path = path
        self.instead, self.fails = instead or {}, fails or {}
        # An empty home: no settings, no server, the store where it is by default.
        self.server = harness.Server(start=False)
        self.server.home = os.path.join(self.server.root, ".local", "share", "athanor")
        self.environment = dict(self.server.environment, **(environment or {}))
        del self.environment["ATHANOR_HOME"]
        self.environment.update(TERM="xterm", NO_COLOR="1", PAGER="cat", DISPLAY="")
        self.environment["PATH"] = ":".join([*path_first, harness.BUILD, self.environment["PATH"]])
        self.server.environment = self.environment

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(AssertionError):
            self.server.ath("server", "stop")
        self.server.close()

    def run(self):
        """Every step; [(block, command, shown, status, printed)] for those that were reached."""
        notes = os.path.join(self.server.root, "notes")
        os.mkdir(notes)
        lines, steps = ["mark() { printf '\\036%d %d\\036\\n' $1 $2; [ $2 -eq $3 ] || exit 1; }"], []
        for block in blocks(self.text):
            if block.file:
                saved = os.path.join(notes, "file%d" % len(lines))
                with open(saved, "w") as file:
                    file.write(block.text)
                lines.append("mkdir -p $(dirname '%s') && cp %s '%s'"
                             % (block.file, saved, block.file))
            elif block.language in ("console", "sh"):
                for command, shown in block.commands():
                    lines.append("%s\nmark %d $? %d" % (self.instead.get(command, command),
                                                       len(steps), self.fails.get(command, 0)))
                    steps.append((block, command, shown))
        left = (set(self.instead) | set(self.fails)) - {command for _, command, _ in steps}
        if left:
            raise AssertionError("%s does not have: %s" % (self.path, ", ".join(left)))
        _, written = terminal.record(["bash", "-c", "\n".join(lines)], cwd=self.server.work,
                                     env=self.environment, patience=10 * harness.PATIENCE)
        parts = MARK.split("".join(text for _, text in written))
        done = []
        for step, printed, status in zip(steps, parts[0::3], parts[2::3]):
            screen = terminal.Screen(columns=1000)  # as it is copied from a terminal: not wrapped
            screen.feed(printed.replace(self.server.root, "~"))
            done.append((*step, int(status), [line for line in screen.text() if line]))
        return done, len(steps)

    def problems(self):
        """What is not as the page says; the page ends at the first command that fails."""
        done, wanted = self.run()
        found = []
        for _, command, shown, status, printed in done:
            if status != self.fails.get(command, 0):
                found.append("$ %s\nended with status %d:\n%s" % (command, status,
                                                                 "\n".join(printed[-40:])))
                continue
            rest = iter([plain(line) for line in printed])
            for line in shown:
                if plain(line) not in rest:
                    found.append("$ %s\ndoes not print, or not in this order: %s\n%s"
                                 % (command, line, "\n".join(printed[-60:])))
                    break
        if len(done) < wanted and not found:
            found.append("only %d of %d commands were run" % (len(done), wanted))
        return found

    def write(self):
        """Puts what the program prints into the console blocks of the page."""
        done, wanted = self.run()
        text, last, failed = self.text, {}, len(done) < wanted
        for block, command, _, status, printed in done:
            last.setdefault(block.span, []).append((command, printed))
            if status != self.fails.get(command, 0):
                failed = True
                print("$ %s\nended with status %d:\n%s" % (command, status, "\n".join(printed)))
        for span in sorted(last, reverse=True):
            block = next(block for block, *_ in done if block.span == span)
            if block.language == "console":
                shown = ["\n".join(["$ " + command, *printed]) for command, printed in last[span]]
                text = text[:span[0]] + "\n".join(shown) + "\n" + text[span[1]:]
        if not failed:
            with open(self.path, "w") as file:
                file.write(text)
        else:
            print("%s: %d of %d commands were run; not written" % (self.path, len(done), wanted))
