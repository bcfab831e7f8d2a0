"""The layer test itself: each planted breach turns it red."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layers

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Layers(unittest.TestCase):
    def setUp(self):
        self.tree = tempfile.mkdtemp(prefix="layers-")
        self.addCleanup(shutil.rmtree, self.tree)
        self.write("tests/allowed_includes.txt",
                   "yaml-cpp/ submit/yaml.cc\nnlohmann/json.hpp *\ngtest/ tests\n")
        for room in ("base", "job", "net", "submit", "place", "run", "cli"):
            self.write("src/%s/CMakeLists.txt" % room, "")
            self.write("src/%s/README.md" % room, "# %s\n" % room)
        self.write("src/base/text/text.h", "#pragma once\n#include <string>\n#include <sys/stat.h>\n")
        self.write("src/job/spec.h", '#pragma once\n#include "base/text/text.h"\n')
        self.write("src/submit/yaml.cc", '#include <yaml-cpp/yaml.h>\n#include "job/spec.h"\n')
        self.write("src/base/text/text_test.cc", '#include <gtest/gtest.h>\n#include "base/text/text.h"\n')

    def write(self, path, text):
        full = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as file:
            file.write(text)

    def breach(self, *words):
        found = layers.breaches(self.tree)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_order_is_green(self):
        self.assertEqual(layers.breaches(self.tree), [])

    def test_include_of_a_room_above(self):
        self.write("src/base/bad.cc", '#include "job/spec.h"\n')
        self.breach("src/base/bad.cc", "above")

    def test_include_of_a_room_beside(self):
        self.write("src/net/http.h", "")
        self.write("src/job/bad.h", '#include "net/http.h"\n')
        self.breach("src/job/bad.h", "beside")

    def test_run_must_not_know_submit(self):
        self.write("src/submit/check.h", "")
        self.write("src/run/bad.cc", '#include "submit/check.h"\n')
        self.breach("src/run/bad.cc", "must not include submit")

    def test_causes_are_compared_by_their_kind(self):
        self.write("src/run/bad.cc", 'bool A(const Cause& c) { return c.cause.kind == "hung"; }\n')
        self.breach("src/run/bad.cc:1", "CauseKind")

    def test_points_enter_by_the_intake(self):
        self.write("src/run/bad.cc", "void A() { context.series.Append(job, batch); }\n")
        self.breach("src/run/bad.cc:1", "point_intake")

    def test_folders_inside_a_room_are_held_to_it(self):
        self.write("src/place/queue.h", "")
        self.write("src/run/supervisor/bad.cc", '#include "place/queue.h"\n')
        self.breach("src/run/supervisor/bad.cc", "place")

    def test_unknown_room(self):
        self.write("src/attic/old.cc", "")
        self.breach("attic", "no place")

    def test_cycle(self):
        self.write("src/job/a.h", '#include "job/b.h"\n')
        self.write("src/job/b.h", '#include "job/a.h"\n')
        self.breach("cycle", "job/a.h", "job/b.h")

    def test_third_party_outside_its_folder(self):
        self.write("src/job/bad.cc", "#include <yaml-cpp/yaml.h>\n")
        self.breach("src/job/bad.cc", "yaml-cpp", "submit/yaml.cc")

    def test_third_party_without_a_row(self):
        self.write("src/base/bad.cc", "#include <curl/curl.h>\n")
        self.breach("curl/curl.h", "no row")

    def test_gtest_only_in_tests(self):
        self.write("src/base/bad.cc", "#include <gtest/gtest.h>\n")
        self.breach("src/base/bad.cc", "gtest")

    def test_json_in_a_header(self):
        self.write("src/job/bad.h", "#include <nlohmann/json.hpp>\n")
        self.breach("src/job/bad.h", "base/text/json.h")

    def test_include_that_is_not_there(self):
        self.write("src/job/bad.cc", '#include "base/nothing.h"\n')
        self.breach("base/nothing.h", "not there")

    def test_relative_include(self):
        self.write("src/job/bad.cc", '#include "spec.h"\n')
        self.breach("name it from src/")

    def test_long_files(self):
        self.write("src/job/long.cc", "\n" * 801)
        self.breach("src/job/long.cc", "800")
        self.write("src/job/long.cc", "\n" * 800)
        self.write("src/job/long.h", "\n" * 301)
        self.breach("src/job/long.h", "300")

    def test_readme_missing_or_long(self):
        os.unlink(os.path.join(self.tree, "src/job/README.md"))
        self.breach("src/job/README.md", "missing")
        self.write("src/job/README.md", "\n" * 61)
        self.breach("src/job/README.md", "page")

    def test_dead_link_and_dead_anchor(self):
        self.write("docs/guide.md", "# Guide\n[gone](nowhere.md)\n")
        self.breach("docs/guide.md", "nowhere.md")
        self.write("docs/guide.md", "# Guide\n[x](#no-such)\n[ok](#guide)\n[e](https://a.invalid)\n")
        self.breach("no such heading")

    def test_architecture_links_every_room(self):
        rooms = [r for r in os.listdir(os.path.join(self.tree, "src")) if r != "place"]
        self.write("docs/architecture.md",
                   "".join("[%s](../src/%s/README.md)\n" % (r, r) for r in rooms))
        self.breach("no link to src/place")


class ThisTree(unittest.TestCase):
    def test_rooms_are_in_order(self):
        self.assertEqual(layers.breaches(TREE), [])


if __name__ == "__main__":
    unittest.main()
