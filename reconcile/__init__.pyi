from .api import polynomials as polynomials
from .api import run as run
from .api.results import Formula as Formula
from .api.results import Run as Run
from .core.errors import NotInResult as NotInResult
from .core.errors import PackageMissing as PackageMissing
from .core.errors import ReconcileError as ReconcileError
from .core.errors import UsageError as UsageError
from .steps.count import Step as Step
from .steps.count import count as count

__version__: str
