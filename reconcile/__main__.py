"""``python -m reconcile``: removes the working folder, which Python puts on the import path, then runs the command line."""

import os
import sys

if not getattr(sys.flags, "safe_path", False) and sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from reconcile.cli import main

if __name__ == "__main__":
    main()
