"""``python -m reconcile``. Python puts the working folder first on the import path; it is taken off before any import."""

import os
import sys

if not getattr(sys.flags, "safe_path", False) and sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from reconcile.cli import main

if __name__ == "__main__":
    main()
