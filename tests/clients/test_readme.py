"""Every command and file of the README, as a new user types them: in an empty folder, with an empty
home, on Debian (where there is a python3 and no python).

    test_readme.py --write      puts what the program prints into the README
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
import walkthrough

README = os.path.join(harness.TREE, "README.md")
MLFLOW = """python3 -c 'import mlflow; mlflow.log_metric("loss", 0.1)'"""


def walk():
    with open(README) as file:
        lines = {line.partition("  #")[0].rstrip(): line.rstrip("\n") for line in file}
    return walkthrough.Walk(
        README,
        instead={
            lines["./demo"]: "test -x %s/demo" % harness.TREE,  # builds the program, which is built
            lines["./test"]: "test -x %s/test" % harness.TREE,  # runs this test
            # The clients' environments are made before.
            lines["python3 launch.py"]: venvs.locked("sagemaker-2") + " launch.py",
            MLFLOW: MLFLOW.replace("python3", venvs.venv("mlflow-skinny==3.15.1"), 1),
        },
        fails={lines["ath run -- python3 train.py --lr fast"]: 2})


class Readme(unittest.TestCase):
    maxDiff = None

    def test_every_line_works(self):
        with walk() as started:
            self.assertEqual("\n\n".join(started.problems()), "")

    def test_each_block_is_run(self):
        """Nothing is in a form that the walk overlooks."""
        with open(README) as file:
            text = file.read()
        for block in walkthrough.blocks(text):
            self.assertTrue(block.file or block.language in ("sh", "console"), block.text)
        self.assertNotRegex(walkthrough.FENCE.sub("", text), r"(?m)^    \S",
                            "an indented block is not run")
        self.assertNotRegex(text, r"\bpython ", "Debian has a python3 and no python")

    def test_the_first_screen(self):
        with open(README) as file:
            head = file.read().split("## ")[0]
        self.assertLess(head.index("./demo"), head.index("./test"))
        self.assertLess(len(head.split("```sh")[0].split("\n\n")[1].split(". ")), 4)
        for picture in ("terminal.svg", "page.png"):
            self.assertIn("docs/pictures/" + picture, head)
            self.assertLess(os.path.getsize(os.path.join(harness.TREE, "docs", "pictures", picture)),
                            150 * 1024)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with walk() as begun:
            begun.write()
    else:
        harness.main()
