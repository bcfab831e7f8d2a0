"""native_modules.py: what `pip install` and packages compile is what CMake compiles."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import native_modules


class NativeModules(unittest.TestCase):
    def test_the_search_is_the_whole_room_and_gives_the_same_bytes_everywhere(self):
        """Red if sources.cmake is read wrongly, or if a file of the room is missing from it."""
        files = dict(native_modules.modules()["_tune"])
        room = os.path.join(native_modules.TREE, "src", "tune")
        self.assertEqual({name for name in os.listdir(room)
                          if name.endswith(".cc") and not name.endswith(("_test.cc", "_fuzz.cc"))},
                         {os.path.basename(path) for path in files if os.path.dirname(path) == room})
        for path, options in files.items():
            self.assertTrue(os.path.isfile(path), path)
            self.assertIn("-ffp-contract=off", options)
        self.assertIn("-mno-fma", files[os.path.join(room, "lanes_avx2.cc")])

    def test_the_core_has_its_own_source_and_what_it_needs_of_base(self):
        self.assertEqual([os.path.basename(path) for path, _ in native_modules.modules()["_core"]],
                         ["core.cc", "crc32c.cc"])


if __name__ == "__main__":
    unittest.main()
