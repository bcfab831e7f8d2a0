"""The commands that `ath --help` lists, and those that `ath VERB --help` does."""

import re
import subprocess

from harness import ATH


def verbs_below(*verb):
    text = subprocess.run([ATH, *verb, "--help"], capture_output=True, text=True, check=True).stdout
    found = []
    for section in text.split("\n\n"):
        if not section.startswith("Arguments:"):
            found += re.findall(r"(?m)^  ([a-z][a-z-]*)  +\S", section)
    return found


def all_verbs():
    """Each as a list of words: ["ps"], ["server"], ["server", "stop"], ..."""
    found = []
    for verb in verbs_below():
        found += [[verb]] + [[verb, below] for below in verbs_below(verb)]
    return found
