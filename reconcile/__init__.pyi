from .api import Run as Run
from .api import run as run
from .core.errors import NotInResult as NotInResult
from .core.errors import PackageMissing as PackageMissing
from .core.errors import ReconcileError as ReconcileError
from .core.errors import UsageError as UsageError

__version__: str
