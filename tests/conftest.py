"""For plain pytest: files next to a test file can be imported, as when it is run alone."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

for folder in [HERE, *(entry.path for entry in os.scandir(HERE) if entry.is_dir())]:
    if folder not in sys.path:
        sys.path.append(folder)
