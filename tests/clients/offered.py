"""Every command that the program and its page offer, found in their sources: literals of C++, texts
and templates of TypeScript. What a literal leaves open ("ath retry " + name) ends with an ellipsis."""

import os
import re

import harness

OPEN = "…"  # the source goes on where the literal ends
SOURCES = (("src", (".cc", ".h")), ("web/src", (".ts", ".tsx")))
# Where a command ends within a text: a comment behind it, another command, prose.
PROSE = ("says", "lists", "shows", "prints", "makes", "writes", "works", "would", "needs", "pass", "work",
         "and", "or", "removes", "has", "is", "as", "for", "starts", "reads", "acts", "does", "enters",
         "copies", "takes", "lays", "ends", "lets", "gave", "once", "names", "leaves", "made", "in")
END = re.compile(r"\n|  +|`|\s#| · |;| && |\)|: |,(?=\s|$)|(?<=\w)\.(?=\s|$)| (?:%s)\b" % "|".join(PROSE))


def cpp_texts(source):
    """(text, open at its end) of each literal, neighbours joined as the compiler does."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<d>\w*)\((?P<raw>.*?)\)(?P=d)"|'
                       r'"(?P<text>(?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)\'', re.S)
    joined, end = None, 0
    for found in token.finditer(source):
        if found.group("raw") is None and found.group("text") is None:
            continue
        text = found.group("raw") if found.group("raw") is not None else unescaped(found.group("text"))
        between = source[end:found.start()]
        if joined is not None and not between.strip():
            joined += text
        else:
            if joined is not None:
                yield joined, bool(re.match(r"\s*\+|\s*<<", between))
            joined = text
        end = found.end()
    if joined is not None:
        yield joined, False


def unescaped(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text)


def ts_texts(source):
    """(text, False) of each string and template; holes of templates are "{}"; texts of elements."""
    source = re.sub(r"^\s*//[^\n]*", "", source, flags=re.M)
    for found in re.finditer(r"'((?:[^'\\\n]|\\.)*)'|\"([^\"\n]*)\"|`([^`]*)`|>([^<>{}]+)<", source):
        text = next(group for group in found.groups() if group is not None)
        yield re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "{}", text), False


def commands(text, goes_on):
    """The commands of a text, whether there is such a verb or not."""
    for found in re.finditer(r"(?:^|(?<=[\s`(:·;&$]))(?:ATHANOR_HOME=\S+ )?ath (?P<verb>[a-z]+)\b", text):
        if text[found.end():found.end() + 1] == ":" or found.group("verb") == "athanor":
            continue  # "ath exec: what went wrong"; "complete ath athanor"
        rest = text[found.end():]
        end = END.search(rest)
        command = text[found.start():found.end() + (end.start() if end else len(rest))]
        whole = end is not None or not goes_on
        yield command.strip() if whole else command.rstrip() + " " + OPEN


def offered():
    """{command: the files that have it}"""
    found = {}
    for folder, kinds in SOURCES:
        for where, _, names in os.walk(os.path.join(harness.TREE, folder)):
            for name in sorted(names):
                if not name.endswith(kinds) or re.search(r"_(test|fuzz)\.", name):
                    continue
                path = os.path.join(where, name)
                with open(path) as file:
                    source = file.read()
                texts = cpp_texts(source) if folder == "src" else ts_texts(source)
                for text, goes_on in texts:
                    for command in commands(text, goes_on):
                        found.setdefault(command, set()).add(os.path.relpath(path, harness.TREE))
    return found
