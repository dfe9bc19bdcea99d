from .api import polynomials as polynomials
from .api import run as run
from .core.errors import NotInResult as NotInResult
from .core.errors import PackageMissing as PackageMissing
from .core.errors import ReconcileError as ReconcileError
from .core.errors import UsageError as UsageError
from .report.found import Formula as Formula
from .report.found import Run as Run

__version__: str
