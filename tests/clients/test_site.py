"""docs/ builds as a site (tools/build_site): strictly, every link and anchor leads somewhere, and
a browser that opens a page asks no other host for anything."""

import glob
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs

LOADS = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src",
         "video": "src", "audio": "src", "object": "data", "embed": "src", "use": "href"}


class Page(html.parser.HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.names = [], [], set()
        with open(path) as file:
            self.text = file.read()
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names.update(found[key] for key in ("id", "name") if found.get(key))
        if found.get(LOADS.get(tag)) and found.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(found[LOADS[tag]])
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])


def build(tree, folder):
    return subprocess.run([os.path.join(tree, "tools", "build_site"), folder], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        venvs.locked("site")  # skips where PyPI cannot be reached
        cls.folder = tempfile.mkdtemp(prefix="ath-site-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        done = build(harness.TREE, cls.folder)
        if done.returncode:
            raise AssertionError("tools/build_site: status %d\n%s" % (done.returncode, done.stdout))
        cls.pages = {path: Page(path) for path in
                     glob.glob(os.path.join(cls.folder, "**", "*.html"), recursive=True)}

    def test_every_page_of_docs_is_there(self):
        docs = os.path.join(harness.TREE, "docs")
        for path in glob.glob(os.path.join(docs, "**", "*.md"), recursive=True):
            name = re.sub(r"README\.md$", "index.md", os.path.relpath(path, docs))[:-3] + ".html"
            self.assertIn(os.path.join(self.folder, name), self.pages)

    def test_nothing_is_loaded_from_elsewhere(self):
        for path, page in self.pages.items():
            for address in page.loads:
                self.assertNotRegex(address, r"^(\w+:)?//", path)
            self.assertNotRegex(page.text, r"@import|url\(['\"]?(https?:)?//", path)
        styles = glob.glob(os.path.join(self.folder, "**", "*.css"), recursive=True)
        self.assertTrue(styles)
        for path in styles:
            with open(path) as file:
                self.assertNotRegex(file.read(), r"url\(['\"]?(https?:)?//", path)

    def test_every_link_and_anchor_leads_somewhere(self):
        followed = 0
        for path, page in self.pages.items():
            if path.endswith("404.html"):
                continue  # served at any address, so its links start at the root
            for link in page.links + page.loads:
                address = urllib.parse.urlsplit(link)
                if address.scheme or address.netloc or link == "#":
                    continue
                target = os.path.normpath(os.path.join(
                    os.path.dirname(path), urllib.parse.unquote(address.path))) \
                    if address.path else path
                if os.path.isdir(target):
                    target = os.path.join(target, "index.html")
                self.assertTrue(os.path.exists(target), "%s links to %s" % (path, link))
                if address.fragment and target in self.pages:
                    self.assertIn(urllib.parse.unquote(address.fragment),
                                  self.pages[target].names, "%s links to %s" % (path, link))
                followed += 1
        self.assertGreater(followed, 200)

    def test_a_broken_link_or_anchor_ends_the_build(self):
        for broken in ("[gone](nowhere.md)", "[gone](glossary.md#nowhere)", "[gone](../nowhere)"):
            with tempfile.TemporaryDirectory(prefix="ath-tree-") as tree:
                for name in ("docs", "tools"):
                    shutil.copytree(os.path.join(harness.TREE, name), os.path.join(tree, name))
                shutil.copy(os.path.join(harness.TREE, "mkdocs.yml"), tree)
                for name in ("src", "examples", "tests", "CHANGELOG.md", "README.md"):
                    os.symlink(os.path.join(harness.TREE, name), os.path.join(tree, name))
                with open(os.path.join(tree, "docs", "page.md"), "a") as file:
                    file.write("\n%s\n" % broken)
                done = build(tree, os.path.join(tree, "site"))
                self.assertNotEqual(done.returncode, 0, broken)
                self.assertIn("nowhere", done.stdout)


if __name__ == "__main__":
    harness.main()
