"""The sources and options of the native modules, as src/tune/sources.cmake lists them.

For those who build without CMake: build_wheel.py (`pip install ./python`) and package/modules.py.
"""

import os
import re

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLAGS = ["-std=c++20", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-I" + os.path.join(TREE, "src")]


def _lists():
    with open(os.path.join(TREE, "src", "tune", "sources.cmake"), encoding="utf-8") as file:
        text = re.sub(r"#[^\n]*", "", file.read())
    return {name: words.split() for name, words in re.findall(r"set\((\w+)([^()]*)\)", text)}


def modules():
    """{"_core": files, "_tune": files}: (path, options) of each file, the module's own first.

    Raises OSError when the project's src/ is not there.
    """
    lists = _lists()
    base, tune = os.path.join(TREE, "src", "base"), os.path.join(TREE, "src", "tune")
    exact, wide = lists["tune_options"], lists["tune_avx2_options"]
    own = os.path.join(TREE, "python", "src")
    return {
        "_core": [(os.path.join(own, "core.cc"), ["-O2"])]
                 + [(os.path.join(base, name), ["-O2"]) for name in lists["core_base_sources"]],
        "_tune": [(os.path.join(own, "tune.cc"), exact)]
                 + [(os.path.join(tune, name), exact + (wide if name == "lanes_avx2.cc" else []))
                    for name in lists["tune_sources"]]
                 + [(os.path.join(base, name), exact) for name in lists["tune_base_sources"]],
    }
