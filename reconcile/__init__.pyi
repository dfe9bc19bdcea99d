from .api import Run as Run
from .api import run as run
from .errors import NotInResult as NotInResult
from .errors import PackageMissing as PackageMissing
from .errors import ReconcileError as ReconcileError
from .errors import UsageError as UsageError

__version__: str
