"""Every command and file of docs/tutorials, as a reader types them (see walkthrough.py).

    test_tutorials.py --write [NAME...]      puts what the program prints into the pages
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
import walkthrough

FOLDER = os.path.join(harness.TREE, "docs", "tutorials")


def prepared(python, install):
    """Instead of a download for each run: an environment with the same packages, made before."""
    folder = os.path.dirname(os.path.dirname(python))
    return {"python3 -m venv .venv": "mkdir .venv; ln -s %s/bin %s/lib .venv" % (folder, folder),
            install: "true"}


def pages():
    """{page: how its run differs from its text}. A function makes what needs an environment."""
    return {
        "first-job": lambda: dict(fails={"ath run --name broken -- python3 train.py --lr fast": 2}),
        "sagemaker": lambda: dict(instead=prepared(
            venvs.locked("sagemaker-2"), "pip install 'sagemaker<3'")),
        "mlflow": lambda: dict(instead=prepared(
            venvs.venv("mlflow-skinny==3.15.1"), "pip install mlflow-skinny")),
        "tuning": dict,
        "spot": dict,
    }


class Tutorials(unittest.TestCase):
    maxDiff = None

    def walk(self, name):
        with walkthrough.Walk(os.path.join(FOLDER, name + ".md"), **pages()[name]()) as walk:
            self.assertEqual("\n\n".join(walk.problems()), "")

    def test_from_script_to_managed_job(self):
        self.walk("first-job")

    def test_from_sagemaker(self):
        self.walk("sagemaker")

    def test_from_mlflow(self):
        self.walk("mlflow")

    def test_tuning(self):
        self.walk("tuning")

    def test_spot(self):
        self.walk("spot")

    def test_each_page_is_run(self):
        self.assertEqual(sorted(os.listdir(FOLDER)), sorted(name + ".md" for name in pages()))


class TheWalkItself(unittest.TestCase):
    def problems(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write(text)
            page.flush()
            with walkthrough.Walk(page.name) as walk:
                return walk.problems()

    def test_takes_what_is_true(self):
        self.assertEqual(self.problems(
            "Save this as `a/b.py`:\n\n```python\nprint('took 12 ms')\n```\n\n"
            "```console\n$ cd a\n$ python3 b.py\ntook 3.1 s\n```\n"), [])

    def test_finds_output_that_is_not_printed(self):
        found = self.problems("```console\n$ echo one; echo two\none\nthree\n```\n")
        self.assertEqual(len(found), 1)
        self.assertIn("three", found[0])

    def test_finds_output_in_another_order(self):
        self.assertTrue(self.problems("```console\n$ echo one; echo two\ntwo\none\n```\n"))

    def test_ends_at_a_command_that_fails(self):
        found = self.problems("```sh\nsh -c 'exit 3'\ntouch never\n```\n")
        self.assertIn("status 3", found[0])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        for page in sys.argv[2:] or pages():
            with walkthrough.Walk(os.path.join(FOLDER, page + ".md"), **pages()[page]()) as started:
                started.write()
    else:
        harness.main()
