"""tools/unity_batches: which files may be compiled as one. Real sources and, for what matters most, the
real compiler: a file must mean in a batch what it means alone."""

import importlib.machinery
import importlib.util
import os
import subprocess
import tempfile
import unittest
import unittest.mock

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOADER = importlib.machinery.SourceFileLoader("unity_batches", os.path.join(TREE, "tools", "unity_batches"))
SPEC = importlib.util.spec_from_loader("unity_batches", LOADER)
unity = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(unity)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="unity-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def put(self, **files):
        paths = []
        for name, text in files.items():
            path = os.path.join(self.root, name.replace("_h", ".h") if name.endswith("_h") else name + ".cc")
            with open(path, "w") as file:
                file.write(text)
            if path.endswith(".cc"):
                paths.append(path)
        return paths

    def groups(self, paths, lines=1000):
        _, found = unity.batches(paths, self.root, lines)
        return [[os.path.basename(path)[:-3] for path in batch.files] for batch in found]


class Names(Case):
    def own(self, text):
        return unity.Text(self.put(file=text)[0], self.root).own

    def test_what_a_file_keeps_to_itself(self):
        self.assertEqual(self.own("""
            namespace athanor { namespace {
            struct Row { int inside; };
            enum Colour { kRed, kGreen };
            enum class Shape { kRound };
            constexpr int kMost = 3, kLeast = 1;
            const std::map<std::string, std::pair<int, int>> kTable = {{"a", {1, 2}}};
            using Rows = std::vector<Row>;
            std::vector<std::function<void(int)>> Make(int count, bool whole = true) { int local = count; return {}; }
            template <class T> T Twice(T value) { return value + value; }
            __attribute__((target("sse4.2"))) int Quick(int value) { return value; }
            Row::Row() : inside(0) {}
            // int Commented() {}
            const char* kText = "int Quoted() { return 1; }";
            template <class T> concept Noun = requires(T& x, int& v) { Fields(x, v); };
            static_assert(sizeof(int) == 4, "four");
            } // namespace
            const Row* Found(int id) { return nullptr; }
            static int Hidden() { return 1; }
            int Shown() { return Hidden(); }
            }"""), {"Row", "Colour", "kRed", "kGreen", "Shape", "kMost", "kLeast", "kTable", "Rows", "Make", "Twice",
                    "Quick", "kText", "Noun", "Hidden"})


class Batches(Case):
    def test_files_without_a_name_in_common_share_a_batch(self):
        self.assertEqual(self.groups(self.put(a="namespace { int One() { return 1; } }\n",
                                              b="namespace { int Two() { return 2; } }\n")), [["a", "b"]])

    def test_the_same_name_in_two_files_keeps_them_apart(self):
        self.assertEqual(self.groups(self.put(a="namespace { int One() { return 1; } }\n",
                                              b="namespace { int One() { return 2; } }\n")), [["a"], ["b"]])

    def test_a_name_that_another_file_means_otherwise_keeps_them_apart(self):
        """Without this rule b's call would find a's function, which fits better, and nobody would notice."""
        paths = self.put(lib_h="#pragma once\nnamespace n { inline int Size(double) { return 8; } }\n",
                         a='#include "lib.h"\nnamespace n { namespace { int Size(int) { return 4; } }\n'
                           "int A() { return Size(1); } }\n",
                         b='#include "lib.h"\nnamespace n { int B() { return Size(1); } }\n')
        self.assertEqual(self.groups(paths), [["a"], ["b"]])
        both = os.path.join(self.root, "both.cc")
        with open(both, "w") as file:
            file.write('#include "a.cc"\n#include "b.cc"\nint main() { return n::B(); }\n')
        subprocess.run(["g++", "-I", self.root, both, "-o", both + ".out"], check=True)
        self.assertEqual(subprocess.run([both + ".out"]).returncode, 4)  # 8 is right

    def test_a_header_of_one_file_that_declares_what_the_other_keeps(self):
        paths = self.put(lib_h="#pragma once\nnamespace n { struct Row {}; }\n", a='#include "lib.h"\n',
                         b="namespace n { namespace { struct Row {}; } Row Make() { return {}; } }\n")
        self.assertEqual(self.groups(paths), [["a"], ["b"]])

    def test_a_header_of_one_file_that_declares_what_the_other_means_otherwise(self):
        """As where a header has a namespace athanor::testing, and a test says testing::Test."""
        paths = self.put(lib_h="#pragma once\nnamespace n::testing { int Make(); }\n", a='#include "lib.h"\n',
                         b="namespace n { class Case : public testing::Test {}; }\n")
        self.assertEqual(self.groups(paths), [["a"], ["b"]])

    def test_members_and_qualified_names_do_not_count(self):
        paths = self.put(a="namespace { int Size() { return 1; } }\n", b="int B(Text t) { return t.Size() + std::Size(t); }\n")
        self.assertEqual(self.groups(paths), [["a", "b"]])

    def test_a_macro_ends_a_batch_and_a_late_include_stands_alone(self):
        paths = self.put(a="#define ONE 1\nint A() { return ONE; }\n", b="int B() { return 2; }\n",
                         c='namespace n {\n#include "x.h"\n}\n', d="int D() { return 4; }\n")
        self.assertEqual(self.groups(paths), [["a"], ["b", "d"], ["c"]])

    def test_a_batch_has_no_more_lines_than_asked_for(self):
        paths = self.put(**{name: "int %s() { return 1; }\n" % name * 1 + "\n" * 9 for name in "abc"})
        self.assertEqual(self.groups(paths, lines=20), [["a", "b"], ["c"]])


class Refreshing(Case):
    def test_touches_the_stamp_only_when_the_batches_become_more_or_fewer(self):
        paths = self.put(a="namespace { int One() { return 1; } }\n", b="namespace { int Two() { return 2; } }\n")
        folder = os.path.join(self.root, "unity")
        unity.write(os.path.join(folder, "room"), self.root, 1000, paths)
        stamp = os.path.join(folder, "stamp")
        with open(stamp, "w"):
            os.utime(stamp, (1, 1))
        unity.refresh(folder)
        self.assertEqual(os.stat(stamp).st_mtime, 1)
        self.put(b="namespace { int One() { return 2; } }\n")
        unity.refresh(folder)
        self.assertGreater(os.stat(stamp).st_mtime, 1)
        self.assertEqual(sorted(os.listdir(os.path.join(folder, "room"))), ["batch_0.cc", "batch_1.cc", "call.json"])

    def test_reads_only_what_changed(self):
        paths = self.put(lib_h="namespace n { int One(); }\n", a='#include "lib.h"\n', b="int Two() { return 2; }\n")
        folder = os.path.join(self.root, "unity")
        room = os.path.join(folder, "room")
        unity.write(room, self.root, 1000, paths)
        with open(os.path.join(folder, "stamp"), "w"):
            unity.refresh(folder)

        def read():
            seen = []
            with unittest.mock.patch.object(unity.Text, "scan", lambda *_: seen.append(1)):
                unity.refresh(folder)
            return len(seen)
        self.assertEqual(read(), 0)
        self.put(lib_h="namespace n { int Two(); }\n")
        os.utime(os.path.join(self.root, "lib.h"), (5, 5))
        unity.refresh(folder)
        with open(os.path.join(room, "batch_0.cc")) as file:
            self.assertNotIn("b.cc", file.read())
        self.assertEqual(read(), 0)


if __name__ == "__main__":
    unittest.main()
