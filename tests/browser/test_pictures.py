"""The README's pictures are made from the program as it is (tools/make_pictures): the recording of
the terminal shows what the program prints today, and plays in a browser without other hosts."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "clients"))
import harness
import kit
import walkthrough

PICTURES = os.path.join(harness.TREE, "docs", "pictures")
SVG = "{http://www.w3.org/2000/svg}"


def last_lines(path):
    """What the recording ends with, without names, ids and numbers."""
    lines = []
    for text in xml.etree.ElementTree.parse(path).getroot().iter(SVG + "text"):
        if text.get("visibility") != "hidden":
            lines.append(walkthrough.plain(" ".join(span.text for span in text.iter(SVG + "tspan"))))
    return lines


class Pictures(unittest.TestCase):
    maxDiff = None

    def test_the_recording_shows_what_the_program_prints(self):
        with kit.playwright():
            pass  # skips where there is no browser
        with tempfile.TemporaryDirectory(prefix="ath-pictures-") as folder:
            done = subprocess.run([os.path.join(harness.TREE, "tools", "make_pictures"), folder],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:])
            self.assertEqual(last_lines(os.path.join(PICTURES, "terminal.svg")),
                             last_lines(os.path.join(folder, "terminal.svg")),
                             "make them again: tools/make_pictures")
            for picture in ("terminal.svg", "page.png"):
                self.assertLess(os.path.getsize(os.path.join(folder, picture)), 150 * 1024)

    def test_the_recording_refers_to_nothing_outside(self):
        with open(os.path.join(PICTURES, "terminal.svg")) as file:
            text = file.read().replace('xmlns="http://www.w3.org/2000/svg"', "")
        self.assertNotRegex(text, r"https?://|href|url\(|<script|<foreignObject")
        self.assertTrue(re.search(r"<animate ", text))


if __name__ == "__main__":
    harness.main()
