"""Says which secrets have arrived, and never what they are."""
import os
import sys

missing = False
for name in sys.argv[1:]:
    path = os.path.join(os.environ.get("ATHANOR_SECRETS_DIR", ""), name)
    if os.path.isfile(path):  # the variable then holds its path
        with open(path) as file:
            print(f"{name}: {len(file.read())} characters, as a file")
    elif name in os.environ:
        print(f"{name}: {len(os.environ[name])} characters, as a variable")
    else:
        print(f"{name}: missing")
        missing = True
sys.exit(missing)
